"""Trains a small network to guess the next letter of a text: `python train.py --text book.txt`."""

import argparse
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset


class Contexts(Dataset):
    def __init__(self, codes, length):
        self.codes = codes
        self.length = length

    def __len__(self):
        return len(self.codes) - self.length

    def __getitem__(self, index):
        end = index + self.length
        return self.codes[index:end], self.codes[end]


class NextLetter(nn.Module):
    def __init__(self, letters, context, width=64, layers=4):
        super().__init__()
        self.embed = nn.Embedding(letters, 16)
        self.enter = nn.Linear(16 * context, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
            for _ in range(layers)
        )
        self.head = nn.Linear(width, letters)

    def forward(self, x):
        h = self.enter(self.embed(x).flatten(1))
        for block in self.blocks:
            h = h + block(h)
        return self.head(h)


def evaluate(model, loader, device):
    model.eval()
    total = 0.0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        loss = F.cross_entropy(model(x), y)
        total += loss.item()
    return total / len(loader)


def train(model, train_loader, val_loader, args, device):
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        model.train()
        running, correct, seen = 0.0, 0, 0
        for x, y in train_loader:
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            logits = model(x)
            loss = F.cross_entropy(logits, y)
            loss.backward()
            optimizer.step()
            running += loss.item()
            correct += (logits.argmax(-1) == y).sum().item()
            seen += len(y)
        val = evaluate(model, val_loader, device)
        print(f"epoch {epoch}: loss {running / len(train_loader):.3f}, accuracy {correct / seen:.3f}, validation {val:.3f}")
        torch.save(model.state_dict(), args.out)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--out", default="model.pt")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--context", type=int, default=16)
    parser.add_argument("--lr", type=float, default=3e-3)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    text = args.text.read_text()
    letters = sorted(set(text))
    codes = torch.tensor([letters.index(letter) for letter in text])
    split = int(0.9 * len(codes))
    train_set, val_set = Contexts(codes[:split], args.context), Contexts(codes[split:], args.context)
    train_loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=args.batch_size)

    model = NextLetter(len(letters), args.context).to(device)
    train(model, train_loader, val_loader, args, device)


if __name__ == "__main__":
    main()
