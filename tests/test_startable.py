"""What a script would gain that ends before it trains, as it stands in its repository, is a note."""

from __future__ import annotations

import pytest

from tests.conftest import Project

TRAINS = """
import torch
from torch import nn
{imports}

model = nn.Sequential(nn.Conv2d(3, 256, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{before}


def train(loader):
    total = 0.0
    for images, labels in loader:
        loss = nn.functional.cross_entropy(model(images.cuda()), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total


{starts}
"""
FACES = "def faces(folder):\n    return torch.load(folder)\n"
STARTS = "for epoch in range(9):\n    print(train(torch.load('batches.pt')))"


def _told(project: Project, *, imports: str = "", before: str = "", starts: str = STARTS) -> str:
    project.configure("select = ['SPD301']\ntorch = '2.4'")
    path = project.write("train.py", TRAINS.format(imports=imports, before=before, starts=starts))
    (found,) = project.findings(path, "--notes")
    return str(found["level"])


def test_a_module_that_is_not_in_the_project_may_be_installed(project: Project) -> None:
    project.write("pictures.py", f"import torch\n\n\n{FACES}")
    assert _told(project, imports="from celebrities import faces") == "warning"


@pytest.mark.parametrize(
    ("before", "starts", "level"),
    [
        ("test_set = test_set.transpose(1, 3)", STARTS, "note"),
        ("", f"test_set = prepared(test_set)\n{STARTS}", "note"),
        ("if torch.cuda.device_count() > 1:\n    test_set = test_set.half()", STARTS, "warning"),
        ("", f"{STARTS}\nprint(test_set.shape)", "warning"),
        ("test_set = torch.load('test.pt')\ntest_set = test_set.transpose(1, 3)", STARTS, "warning"),
        ("for test_set in torch.load('tests.pt'):\n    test_set.mul_(2)", STARTS, "warning"),
        ("scaled = [test_set.half() for test_set in torch.load('tests.pt')]", STARTS, "warning"),
        ("from settings import *\ntest_set = test_set.transpose(1, 3)", STARTS, "warning"),
    ],
)
def test_a_name_that_nothing_has_bound_ends_what_comes_after_it(
    project: Project, before: str, starts: str, level: str
) -> None:
    assert _told(project, before=before, starts=starts) == level


@pytest.mark.parametrize(
    ("read", "starts", "level"),
    [
        ("total = 0.0", "", "warning"),
        ("total = 0.0 * config.scale", "", "note"),
        ("total = 0.0 * config.scale", f"config = torch.load('config.pt')\n{STARTS}", "warning"),
        ("total = 0.0 * config.scale", f"from settings import *\n{STARTS}", "warning"),
        ("total: config.Number = 0.0", STARTS, "warning"),
        ("total = 0.0\n    if len(loader) > 9000:\n        total *= config.scale", STARTS, "warning"),
        ("total = sum(0.0 for _ in xrange(3))", STARTS, "warning"),
    ],
)
def test_a_function_that_reads_what_nothing_binds_does_not_train(
    project: Project, read: str, starts: str, level: str
) -> None:
    project.configure("select = ['SPD301']\ntorch = '2.4'")
    text = TRAINS.format(imports="", before="", starts=starts).replace("total = 0.0", read)
    (found,) = project.findings(project.write("train.py", text), "--notes")
    assert found["level"] == level


def test_a_name_that_another_file_binds_in_a_module(project: Project) -> None:
    project.write(
        "main.py",
        "import train\n\ntrain.config = train.torch.load('config.pt')\nprint(train.train(train.torch.load('batches.pt')))",
    )
    project.configure("select = ['SPD301']\ntorch = '2.4'")
    text = TRAINS.format(imports="", before="", starts="").replace("total = 0.0", "total = 0.0 * config.scale")
    (found,) = project.findings(project.write("train.py", text), "--notes")
    assert found["level"] == "warning"
