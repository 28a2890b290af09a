"""A condition on the number of a batch that a function is handed holds as seldom as it does in the loop."""

from __future__ import annotations

import pytest

from tests.conftest import Project

TRAINS = """
import torch

model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def compute(rows, epoch, number, kind):
    loss = model(rows.cuda()).mean()
    if {test}:
        print(f"{{loss.item():.4f}}")
    return loss


def train(loader, kind):
    for epoch in range(9):
        for number, rows in enumerate(loader):
            loss = compute(rows, epoch, number, kind)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


train(torch.utils.data.DataLoader(torch.load("rows.pt")), 2)
"""


@pytest.mark.parametrize(
    ("test", "found"), [("epoch == 0 and number == 0", 0), ("number == 9", 0), ("kind == 2", 1), ("number >= 1", 1)]
)
def test_prints_of_some_turns(project: Project, test: str, found: int) -> None:
    project.configure("select = ['SPD301', 'SPD303']\ntorch = '2.13'")
    assert len(project.findings(project.write("train.py", TRAINS.format(test=test)))) == found
