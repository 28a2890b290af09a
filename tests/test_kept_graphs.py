"""A sum that keeps every step's graph: without it nothing changes but what a printed tensor says of it."""

from __future__ import annotations

import pytest

from tests.conftest import Project

TRAINS = """
import logging
import torch

model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0.0
rows = torch.load("rows.pt")
for row in rows:
    loss = model(row.cuda()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss
{shown}
"""


@pytest.mark.parametrize(
    ("shown", "risk"),
    [
        ("print(total.item())", "exact"),
        ("print(float(total) / len(rows))", "exact"),
        ("print(f'{total} {total / len(rows):.3f}')", "exact"),
        ("print(total)", "behavior"),
        ("print('mean', total / len(rows))", "behavior"),
        ("mean = total / len(rows)\nlogging.info('%s', mean)", "behavior"),
        ("print(f'{total!r}')", "behavior"),
        ("print(f'{total=}')", "behavior"),
        ("torch.save(total, 'total.pt')", "behavior"),
    ],
)
def test_the_risk_of_letting_the_graph_go(project: Project, shown: str, risk: str) -> None:
    project.configure("select = ['SPD504']\ntorch = '2.13'")
    (found,) = project.findings(project.write("train.py", TRAINS.format(shown=shown)))
    assert found["fix"]["risk"] == risk
