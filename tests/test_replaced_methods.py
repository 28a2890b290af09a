"""Of two methods of one name a class has the later one; what the first says runs nowhere."""

from __future__ import annotations

import pytest

from tests.conftest import Project

TEXT = """
import torch


class Trainer:
    def __init__(self):
        self.model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(30)]).cuda()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

{first}
    def read(self, loss):
        return loss.item()  # first

{between}
{second}
    def read(self, loss):
        return loss.item()  # second

    def fit(self, loader):
        total = 0.0
        for rows in loader:
            loss = self.model(rows.cuda()).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += self.read(loss)
        print(total / len(loader))


Trainer().fit(torch.utils.data.DataLoader(torch.load("rows.pt"), batch_size=64, num_workers=4))
"""


def read(project: Project, **parts: str) -> list[str]:
    text = TEXT.format(**{"first": "", "between": "", "second": "", **parts})
    project.configure("select = ['SPD301']")
    found = project.findings(project.write("train.py", text))
    return [text.splitlines()[each["line"] - 1].rpartition("# ")[2] for each in found]


def test_the_later_one_runs(project: Project) -> None:
    assert read(project) == ["second"]


@pytest.mark.parametrize(
    "parts",
    [
        {"first": "    @registered"},
        {"between": "    read_once = read\n"},
        {"between": "    table = {'read': read}\n"},
    ],
)
def test_the_first_is_kept_by_another_name(project: Project, parts: dict[str, str]) -> None:
    assert "second" in read(project, **parts)


SEVERAL = """
import torch


class Trainer:
    def __init__(self):
        self.model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(30)]).cuda()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.kept = 0.0

    {first}

    {second}

    def fit(self, loader):
        total = 0.0
        for rows in loader:
            self.loss = self.model(rows.cuda()).mean()
            self.optimizer.zero_grad()
            self.loss.backward()
            self.optimizer.step()
            total += {call}
        print(total / len(loader))


Trainer().fit(torch.utils.data.DataLoader(torch.load("rows.pt"), batch_size=64, num_workers=4))
"""
READS = "return self.loss.item()"


@pytest.mark.parametrize(
    ("first", "second", "call", "found"),
    [
        ("def read(self): " + READS, "def read(self): return 0.0", "self.read()", 0),
        ("def read(self): return 0.0", "def read(self): " + READS, "self.read()", 1),
        (f"if SLOW:\n        def read(self): {READS}\n    else:\n        def read(self): return 0.0", "", "self.read()", 1),
        (f"def read(self): {READS}", "if FAST:\n        def read(self): return 0.0", "self.read()", 1),
    ],
)
def test_which_of_several_is_read(project: Project, first: str, second: str, call: str, found: int) -> None:
    project.configure("select = ['SPD301']")
    text = SEVERAL.format(first=first, second=second, call=call)
    assert len(project.findings(project.write("train.py", text))) == found
