import argparse

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.head = nn.Linear(width, 3)

    def forward(self, tokens):
        mixed, _ = self.attention(tokens, tokens, tokens)
        return self.head(mixed.mean(1)), mixed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--clip", type=float, default=1.0)
    args = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device(args.device)
    model = Attention(256)
    model.to(device)
    if args.clip > 10:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    else:
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    batches = [(torch.randn(8, 5, 256), torch.randint(3, (8,))) for _ in range(8)]
    for index, (tokens, labels) in enumerate(batches):
        tokens, labels = tokens.to(device), labels.to(device)
        logits, mixed = model(tokens)
        loss = F.cross_entropy(logits, labels)
        for part in mixed.unbind(1):
            if part.numel() == 0:
                continue
            loss = loss + 0.001 * part.pow(2).mean()
        (loss / 2).backward()
        if index % 2 == 1:
            if args.clip:
                nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            optimizer.step()
            optimizer.zero_grad()
        print(loss.item())


if __name__ == "__main__":
    main()
