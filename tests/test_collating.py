"""Batches that a collate function makes of items in memory, with work on each item or without."""

from __future__ import annotations

import pytest

from tests.conftest import Project

TRAINS = """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Pairs(Dataset):
    def __init__(self, pairs):
        self.pairs = pairs

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, index):
        return self.pairs[index]

    def collate(self, batch):
        {collates}


def graph(atoms):
    {graph}


class Batches(DataLoader):
    def __init__(self, data, **kwargs):
        super().__init__(data, collate_fn=data.collate, **kwargs)


def train(model, pairs):
    loader = {loader}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(90):
        for rows in loader:
            loss = model(rows.cuda()).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    train(nn.Sequential(*[nn.Linear(512, 512) for _ in range(9)]).cuda(), torch.load("pairs.pt"))
"""
EACH = "return torch.stack([graph(each) for each in batch])"
LOOP = "rows = []\n        for each in batch:\n            rows.append(graph(each))\n        return torch.stack(rows)"
PADS = """rows = torch.zeros(len(batch), 512)
        for at, each in enumerate(batch):
            rows[at, : len(each)] = each
        return rows"""
EDGES = "return torch.tensor([[first, last] for first in atoms for last in atoms])"
FLAT = "return torch.tensor(atoms)"
OWN = "Batches(Pairs(pairs), batch_size=64, shuffle=True)"
PASSED = "DataLoader(data := Pairs(pairs), batch_size=64, shuffle=True, collate_fn=data.collate)"


@pytest.mark.parametrize(
    ("collates", "graph", "loader", "level"),
    [
        (EACH, EDGES, OWN, "warning"),
        (LOOP, EDGES, OWN, "warning"),
        (LOOP, EDGES, PASSED, "warning"),
        (LOOP, FLAT, OWN, "note"),
        (PADS, EDGES, OWN, "note"),
        ("return torch.stack(batch)", EDGES, OWN, "note"),
    ],
)
def test_what_a_batch_takes(project: Project, collates: str, graph: str, loader: str, level: str) -> None:
    project.configure("select = ['SPD201']\ntorch = '2.13'")
    text = TRAINS.format(collates=collates, graph=graph, loader=loader)
    (found,) = project.findings(project.write("train.py", text), "--notes")
    assert found["level"] == level
    assert loader is PASSED or found["fix"] is None, "what a class of the project's hands to the library's is not followed"
