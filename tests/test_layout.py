"""SPD604 where one line elsewhere in the program decides, so that no look-alike can stand beside what is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from speedlint.ask.script import Options
from speedlint.config import Settings
from speedlint.engine import Engine
from speedlint.registry import Registry

REGISTRY = Registry.load()
SCRIPT = """
import torch
from torch import nn
from torch.utils.data import DataLoader

distributed = False


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(3, 64, 3), nn.Conv2d(64, 64, 3), nn.Conv2d(64, 64, 3)
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        return self.head(self.c(self.b(self.a(x))).mean((2, 3)))


def collate(items):
    images = torch.stack([image for image, _ in items])
    return images, torch.tensor([label for _, label in items])


def main(rows):
    model = Net()
    model.to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(rows, batch_size=64, collate_fn=collate)
    for images, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images.cuda()), labels.cuda()).backward()
        optimizer.step()


main([])
"""
STACK = "torch.stack([image for image, _ in items])"
MOVE = '    model.to("cuda")\n'
CONV = "self.b(self.a(x))"
STEP = "        optimizer.step()\n"
LOADER = "    loader = DataLoader(rows"


@pytest.mark.parametrize(
    ("before", "after", "found", "fixed"),
    [
        ("", "", 1, 1),
        (STACK, f"{STACK}.permute(0, 3, 1, 2)", 0, 0),
        (MOVE, '    if distributed:\n        model.to("cuda")\n    model.cuda()\n', 1, 1),
        (CONV, f"nn.functional.dropout({CONV})", 1, 0),
        (CONV, f"nn.functional.dropout2d({CONV})", 1, 1),
        (STEP, f"{STEP}        model.a.weight.data.reshape(-1)[0] = 0\n", 1, 0),
        (STEP, f"{STEP}        print(model.a.weight.shape)\n", 1, 1),
        (LOADER, f"    optimizer.load_state_dict(torch.load('last.pt'))\n{LOADER}", 1, 0),
        (LOADER, f"    nn.utils.prune.l1_unstructured(model.a, 'weight', 0.5)\n{LOADER}", 1, 0),
    ],
)
def test_channels_last(tmp_path: Path, before: str, after: str, found: int, fixed: int) -> None:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT.replace(before, after) if before else SCRIPT)
    report = Engine(Settings(tmp_path, select=("SPD604",)), REGISTRY, options=Options((2, 13))).check(path)
    assert not report.problems
    assert len(report.diagnostics) == found
    assert sum(each.fix is not None for each in report.diagnostics) == fixed
