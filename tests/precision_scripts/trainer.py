import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.LSTM(6, 264, batch_first=True)
        self.head = nn.Linear(264, 1)

    def forward(self, rows):
        states, _ = self.cells(rows)
        return self.head(states[:, -1]).squeeze(1)


class Trainer:
    def __init__(self):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = Reader().to(self.device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        self.loader = DataLoader(TensorDataset(torch.randn(48, 5, 6), torch.randn(48)), batch_size=16)

    def loss(self, rows, targets):
        return F.mse_loss(self.model(rows), targets)

    def epoch(self):
        for rows, targets in self.loader:
            loss = self.loss(rows.to(self.device), targets.to(self.device))
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 0.5)
            self.optimizer.step()
            print(loss.item())

    def save(self):
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
        }
        torch.save(state, "last.pt")

    def load(self):
        state = torch.load("last.pt")
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])


if __name__ == "__main__":
    torch.manual_seed(0)
    trainer = Trainer()
    trainer.epoch()
    trainer.save()
    trainer.load()
    trainer.epoch()
