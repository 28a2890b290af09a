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


MADE = """
import torch

model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
rows = torch.load("rows.pt")
kept = {{}}
WIDTH = 512


def made(count):
    {body}


for batch in torch.utils.data.DataLoader(rows, 32):
    weights = made(len(batch)).to("cuda")
    loss = (model(batch.cuda()) * weights).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("return torch.randn(count, WIDTH)", 1),
        ("return torch.triu(torch.ones(count, WIDTH)) * 2", 1),
        ("return rows[torch.randint(500, (count,))]", 0),
        ("out = torch.ones(count, 1)\n    out[:] = 1.0 / rows[:count].sum()\n    return out", 0),
        ("if count not in kept:\n        kept[count] = torch.ones(count, 1)\n    return kept[count]", 0),
        ("out = torch.zeros(count, 1)\n    for i in range(count):\n        out[i] = i / 2\n    return out", 0),
        ("return torch.randn(count, 1).pin_memory()", 0),
        ("drawn = torch.Generator().manual_seed(3)\n    return torch.randn(count, 1, generator=drawn)", 0),
    ],
)
def test_what_a_function_makes_of_sizes_alone(project: Project, body: str, found: int) -> None:
    """What it cuts out of data, keeps, fills row by row, pins or draws by a stream of its own has its place on the host."""
    project.configure("select = ['SPD308']\ntorch = '2.13'")
    assert len(project.findings(project.write("train.py", MADE.format(body=body)))) == found


LABELS = """
import numpy as np
import torch
from torch.autograd import Variable

model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
WAYS = 5
for batch in torch.utils.data.DataLoader(torch.load("rows.pt"), 32):
    counts = np.asarray([len(each) for each in batch])
    labels = Variable(torch.from_numpy({made})).cuda()
    loss = torch.nn.functional.cross_entropy(model(batch.cuda()), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("made", "found"),
    [
        ("np.repeat(range(WAYS), 3)", 1),
        ("np.tile(np.arange(WAYS), 3)", 1),
        ("np.repeat(range(WAYS), counts)", 0),
        ("np.repeat(batch.numpy()[:, 0], 3)", 0),
    ],
)
def test_labels_that_numpy_repeats(project: Project, made: str, found: int) -> None:
    project.configure("select = ['SPD309']\ntorch = '2.13'")
    assert len(project.findings(project.write("train.py", LABELS.format(made=made)))) == found
