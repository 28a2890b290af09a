"""Lists and arrays on the host whose entries are named by numbers on the GPU: each of these is read."""

from __future__ import annotations

import pytest

from tests.conftest import Project

TRAIN = """
import numpy as np
import torch
from torch import nn

names = ["cat", "dog", "horse"]
table = np.zeros((10, 10))
model = nn.Sequential(*[nn.Linear(64, 64) for _ in range(30)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def step(rows, labels):
    out = model(rows)
    found = out.argmax(1)
    loss = nn.functional.cross_entropy(out, labels)
    {line}
    return loss


for rows, labels in torch.utils.data.DataLoader(torch.load("rows.pt"), batch_size=64, num_workers=4):
    loss = step(rows.cuda(), {labels})
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def read(project: Project, line: str, labels: str = "labels.cuda()") -> int:
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    return len(project.findings(project.write("train.py", TRAIN.format(line=line, labels=labels))))


@pytest.mark.parametrize(
    "line",
    [
        "first = names[found[0]]",
        "for i in range(64): table[found[i]] += 1",
        "for each in found: table[each] += 1",
        "for a, b in zip(labels, found): table[a, b] += 1",
        "for i in range(64):\n        best = found[i]\n        table[0][best] += 1",
    ],
)
def test_a_number_that_names_an_entry_is_read(project: Project, line: str) -> None:
    assert read(project, line)


@pytest.mark.parametrize(
    ("line", "labels"),
    [
        ("for a in labels: table[a] += 1", "labels"),
        ("for a in found.tolist(): table[a] += 1", "labels.cuda()"),
        ("chosen = torch.arange(10)[found]", "labels.cuda()"),
        ("chosen = np.eye(10)[found.cpu()[0]]", "labels.cuda()"),
        ("picked = torch.randint(0, 9, (4,), device='cuda'); kept = rows[picked]", "labels.cuda()"),
        ("kept = out[found[0]]", "labels.cuda()"),
        ("for i, each in enumerate(found): table[i] += 1", "labels.cuda()"),
    ],
)
def test_what_the_host_knows_or_the_gpu_looks_up_is_not(project: Project, line: str, labels: str) -> None:
    assert not read(project, line, labels)


def test_it_is_told_where_a_helper_of_another_file_does(project: Project) -> None:
    project.configure("select = ['SPD311']\ntorch = '2.13'")
    helper = (
        "import numpy as np\n\n\ndef counted(found):\n    table = np.zeros(10)\n    for each in found: table[each] += 1\n"
    )
    project.write("counting.py", helper + "    return table\n")
    train = TRAIN.format(line="counted(found)", labels="labels.cuda()").replace(
        "import torch\n", "import torch\nfrom counting import counted\n", 1
    )
    assert len(project.findings(project.write("train.py", train))) == 1


@pytest.mark.parametrize(
    ("line", "is_found"),
    [
        ("longest = max(labels)", True),
        ("longest = max(labels - 1)", True),
        ("steps = [0 for _ in range(min(labels))]", True),
        ("done = all(labels > 0)", True),
        ("longest = max(len(labels), 3)", False),
        ("longest = labels.max()", False),
        ("longest = max(label for label in (1, 2))", False),
    ],
)
def test_builtins_compare_the_numbers_of_a_tensor_one_by_one(project: Project, line: str, is_found: bool) -> None:
    assert bool(read(project, line)) is is_found


def test_builtins_compare_host_numbers_without_a_wait(project: Project) -> None:
    assert not read(project, "longest = max(labels)", "labels")
