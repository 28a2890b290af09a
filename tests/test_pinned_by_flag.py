"""Loaders that pin where the option is on by which the program takes the GPU."""

from __future__ import annotations

import pytest

from tests.conftest import Project

TRAIN = """
import argparse
import torch
from torch import nn
from torch.utils.data import DataLoader
from sounds import Sounds

parser = argparse.ArgumentParser()
parser.add_argument("--use-cuda", action="store_true")
parser.add_argument("--pin", action="store_true")
args = parser.parse_args()
device = torch.device("cuda" if args.use_cuda else "cpu")
model = nn.Sequential(nn.Linear(999, 999), nn.ReLU(), nn.Linear(999, 4)).to(device)
optimizer = torch.optim.AdamW(model.parameters())
loader = DataLoader(Sounds("wav"), batch_size=64, num_workers=4, persistent_workers=True, pin_memory={pinned})
for epoch in range(9):
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(("pinned", "is_found"), [("args.use_cuda", False), ("args.pin", True), ("False", True)])
def test_what_is_pinned_with_the_gpu(project: Project, pinned: str, is_found: bool) -> None:
    project.configure("select = ['SPD202']")
    assert bool(project.findings(project.write("train.py", TRAIN.format(pinned=pinned)), "--notes")) is is_found
