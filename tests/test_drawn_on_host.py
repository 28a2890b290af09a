"""What NumPy draws and a step copies is told with the function of torch that draws the same on the GPU."""

from __future__ import annotations

import pytest

from tests.conftest import Project

TRAINS = """
import numpy as np
import torch

model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for rows in torch.load("rows.pt"):
    weights = torch.from_numpy({drawn}).float().cuda()
    loss = (model(rows.cuda()) * weights).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("drawn", "advice"),
    [
        ("np.random.uniform(0, 1, size=(len(rows), 1))", "`torch.rand(..., device=...)`, scaled as there"),
        ("np.random.rand(len(rows), 1)", "`torch.rand(..., device=...)`;"),
        ("np.random.normal(0, 2, (len(rows), 1))", "`torch.randn(..., device=...)`, scaled as there"),
        ("np.random.randint(0, 9, len(rows))", "`torch.randint(..., device=...)`;"),
    ],
)
def test_the_counterpart_is_named(project: Project, drawn: str, advice: str) -> None:
    project.configure("select = ['SPD308']\ntorch = '2.13'")
    shown = project.run("check", "--format", "full", project.write("train.py", TRAINS.format(drawn=drawn))).stdout
    assert advice in " ".join(shown.split())
