"""An object, a network or a function that is one of several, by a branch: each of them runs where it is called."""

from __future__ import annotations

import pytest

from tests.conftest import Project

OBJECTS = """
import torch


class Small:
    def __init__(self, loader):
        self.loader = loader
        self.net = torch.nn.Linear(512, 512).cuda()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def step(self, rows):
        self.loss = self.net(rows.cuda()).mean()
        self.optimizer.zero_grad()
        self.loss.backward()
        self.optimizer.step()

    def current(self):
        return self.loss.item()


class Large(Small):
    def current(self):
        return {{"loss": self.loss.item()}}


class Pretrained:
    def __init__(self, loader):
        self.loader = loader
        self.net = torch.nn.Linear(512, 512).cuda()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def step(self, rows):
        for part in rows.split(8):
            loss = self.net(part.cuda()).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        self.kept = loss.detach()
        print(self.kept.item())

    def current(self):
        return self.kept.item()
"""
STARTS = """
import sys
import torch
from trainers import Large, Pretrained, Small

loader = torch.utils.data.DataLoader(torch.load("rows.pt"))
{chosen}
losses = []
for epoch in range(9):
    for rows in loader:
        trainer.step(rows)
        losses.append(trainer.current())
"""
BY_BRANCHES = """
if sys.argv[1] == "small":
    trainer = Small(loader)
elif sys.argv[1] == "large":
    trainer = Large(loader)
else:
    raise ValueError(sys.argv[1])
"""
BY_FUNCTION = """
def build(kind):
    if kind == "small":
        return Small(loader)
    return Large(loader)


trainer = build(sys.argv[1])
"""


def _lines(project: Project, chosen: str) -> list[int]:
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    path = project.write("trainers.py", OBJECTS.format())
    project.write("train.py", STARTS.format(chosen=chosen))
    return [each["line"] for each in project.findings(path)]


@pytest.mark.parametrize(
    ("chosen", "lines"),
    [
        (BY_BRANCHES, [18, 23]),
        ("trainer = Small(loader) if sys.argv[1] == 'small' else Large(loader)", [18, 23]),
        ("trainer = Small(loader)", [18]),
    ],
)
def test_methods_of_one_of_several_objects(project: Project, chosen: str, lines: list[int]) -> None:
    assert _lines(project, chosen) == lines


def test_one_that_takes_many_steps_beside_one_that_takes_one(project: Project) -> None:
    """What it reads behind its own steps it reads once for many of them."""
    assert _lines(project, "trainer = Small(loader) if sys.argv[1] == 'small' else Pretrained(loader)") == [18, 42]


def test_what_one_of_several_objects_holds(project: Project) -> None:
    """Its loader is a loader, whichever it is of."""
    project.configure("select = ['SPD205']\ntorch = '2.13'")
    starts = STARTS.format(chosen=BY_BRANCHES)
    project.write("train.py", starts.replace("in loader:", "in trainer.loader:").replace('.pt")', '.pt"), pin_memory=True'))
    path = project.write("trainers.py", OBJECTS.format())
    assert [each["line"] for each in project.findings(path)] == [12]


FUNCTIONS = """
import sys
import torch


def mean(values):
    return values.mean()


def clipped(values):
    if values.max() > 9:
        values = values.clamp(max=9)
    return values.mean()


class Training:
    def __init__(self, kind):
        self.net = torch.nn.Linear(512, 512).cuda()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        {chosen}

    def fit(self, loader):
        for rows in loader:
            loss = self.criterion(self.net(rows.cuda()))
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


Training(sys.argv[1]).fit(torch.utils.data.DataLoader(torch.load("rows.pt")))
"""


@pytest.mark.parametrize(
    ("chosen", "lines"),
    [
        ("self.criterion = clipped", [11]),
        ("self.criterion = clipped if kind == 'clipped' else mean", [11]),
        (
            "if kind == 'clipped':\n            self.criterion = clipped\n        else:\n            self.criterion = mean",
            [11],
        ),
        ("self.criterion = mean", []),
    ],
)
def test_one_of_several_functions(project: Project, chosen: str, lines: list[int]) -> None:
    project.configure("select = ['SPD304']\ntorch = '2.13'")
    path = project.write("train.py", FUNCTIONS.format(chosen=chosen))
    assert [each["line"] for each in project.findings(path)] == lines


CHUNKS = """
import torch

net = torch.nn.Linear(512, 512).cuda()
teacher = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def targets(rows):
    found = []
    for group in rows.split(64):
        with torch.no_grad():
            for part in group.split(8):
                found.append(teacher(part))
        {read}
    return torch.cat(found)


for rows in torch.utils.data.DataLoader(torch.load("rows.pt")):
    rows = rows.cuda()
    {begins}
    loss = (net(rows) - wanted).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("read", "begins", "found"),
    [
        ("print(found[-1].mean().item())", "wanted = targets(rows)", 1),
        ("pass", "wanted = targets(rows)", 0),
    ],
)
def test_a_loop_of_passes_in_a_step(project: Project, read: str, begins: str, found: int) -> None:
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    findings = project.findings(project.write("train.py", CHUNKS.format(read=read, begins=begins)))
    assert [each["message"].partition(" in every ")[2] for each in findings] == ["training step"] * found


HANDED = """
import torch
from losses import clipped


def fit(net, optimizer, loader, criterion{default}):
    for rows in loader:
        loss = criterion(net(rows.cuda()))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


net = torch.nn.Linear(512, 512).cuda()
fit(net, torch.optim.SGD(net.parameters(), lr=0.1), torch.utils.data.DataLoader(torch.load("rows.pt")){given})
"""
LOSSES = """
def clipped(values):
    if values.max() > 9:
        values = values.clamp(max=9)
    return values.mean()
"""


@pytest.mark.parametrize(
    ("default", "given"),
    [("", ", clipped"), ("", ", criterion=clipped"), ("=clipped", ""), ("=None", ", criterion=clipped")],
)
def test_a_function_that_is_handed_on(project: Project, default: str, given: str) -> None:
    project.configure("select = ['SPD304']\ntorch = '2.13'")
    project.write("train.py", HANDED.format(default=default, given=given))
    assert [each["line"] for each in project.findings(project.write("losses.py", LOSSES))] == [3]


BASE = """
import torch


class Trainer:
    def __init__(self, rows):
        self.loader = torch.utils.data.DataLoader(rows, pin_memory=True)

    def fit(self, step):
        for epoch in range(9):
            step(self.loader)
"""
PLAIN = """
import torch
from training.base import Trainer


class Plain(Trainer):
    def __init__(self, rows):
        super().__init__(rows)
        self.net = torch.nn.Linear(512, 512).cuda()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def train(self, loader):
        for rows in loader:
            loss = self.net(rows.cuda()).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
"""
RUNS = """
import sys
import torch
from training.plain import Plain
from training.other import Other

rows = torch.load("rows.pt")
trainer = Plain(rows) if sys.argv[1] == "plain" else Other(rows)
trainer.fit(trainer.train)
"""


def test_a_method_that_is_handed_to_one_which_its_class_inherits(project: Project) -> None:
    """Its loader is known by way of the base class, whose method nobody calls who imports it."""
    project.configure("select = ['SPD205']\ntorch = '2.13'")
    project.write("README.md", "training\n")
    project.write("training/__init__.py", "")
    project.write("training/base.py", BASE)
    project.write("training/other.py", PLAIN.replace("Plain", "Other"))
    project.write("run.py", RUNS)
    assert [each["line"] for each in project.findings(project.write("training/plain.py", PLAIN))] == [14]
