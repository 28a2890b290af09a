"""What a loop takes out of something that is out of sight is a batch on the host where its parts are moved to a device."""

from __future__ import annotations

import pytest

from tests.conftest import Project

TRAINS = """
import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Trainer:
    def __init__(self, model, loaders, others):
        self.model, self.loaders, self.others = model.to(device), loaders, others
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def step(self, batch):
        images, labels = batch["images"].to(device), batch["labels"].to(device)
        self.update(images, labels)

    def update(self, images, labels):
        loss = torch.nn.functional.cross_entropy(self.model(images), labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def fit(self):
        {loop}


Trainer(torch.nn.Linear(512, 512), *torch.load("loaders.pt")).fit()
"""
LOADER = "for batch in self.loaders['train']:\n            "


@pytest.mark.parametrize(
    ("loop", "copies"),
    [
        (LOADER + "self.step(batch)", 2),
        (LOADER + "self.update(batch['images'].to(device), batch['labels'].long().cuda())", 2),
        (LOADER + "self.update(batch[0].to(device), batch[1].to(device))", 2),
        (LOADER + "images, labels = batch\n            self.update(images.to(device), labels.to(device))", 2),
        (LOADER + "self.update(batch['images'].to('cpu'), batch['labels'].to(torch.int64))", 0),
        (LOADER + "self.update(batch['images'], batch['labels'])", 0),
        ("for rows in self.others:\n            self.update(self.loaders[0][rows].to(device), self.loaders[1][rows])", 0),
        ("for rows in self.others:\n            self.update(rows[self.loaders].to(device), rows[self.others])", 0),
        ("for model in self.others:\n            self.update(model.to(device)(self.loaders), self.loaders)", 0),
    ],
)
def test_copies_of_batches(project: Project, loop: str, copies: int) -> None:
    project.configure("select = ['SPD205']\ntorch = '2.13'")
    assert len(project.findings(project.write("train.py", TRAINS.format(loop=loop)), "--notes")) == copies


ZIPPED = """
import torch
from torch.utils.data import DataLoader
try:
    from itertools import izip as zip
except ImportError:
    pass

first, second = DataLoader(torch.load("a.pt"), 64, num_workers=4), DataLoader(torch.load("b.pt"), 64, num_workers=4)
model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step, (x, y) in enumerate(zip(first, second)):
    x, y = x.cuda(), y.cuda()
    loss = (model(x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_batches_of_two_loaders_under_an_old_name_of_zip(project: Project) -> None:
    project.configure("select = ['SPD205']\ntorch = '2.13'")
    found = project.findings(project.write("train.py", ZIPPED))
    assert [each["line"] for each in found] == [13, 13]


GIVEN = """
import torch
from torch.utils.data import DataLoader, TensorDataset

rows = TensorDataset(torch.load("rows.pt"), torch.load("labels.pt"))
loader, others = DataLoader(rows, 64, num_workers=4), DataLoader(rows, 16, num_workers=4)
model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def given(loader):
    for x, y in loader:
        {first}
        yield {gives}


for x, y in given({loader}):
    {mixed}
    x, y = x.cuda(), y.cuda()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
MOVED = "x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)"


@pytest.mark.parametrize(
    ("first", "gives", "copied"),
    [
        ("pass", "x, y", "xy"),
        (MOVED, "x, y", ""),
        ("x = x.cuda(non_blocking=True)", "x, y", "y"),
        ("x = x.flip(-1)", "x, y", "xy"),
        ("batch = x, y", "batch", "xy"),
    ],
)
def test_batches_that_a_generator_of_the_project_gives(project: Project, first: str, gives: str, copied: str) -> None:
    project.configure("select = ['SPD205']\ntorch = '2.13'")
    text = GIVEN.format(first=first, gives=gives, loader="loader", mixed="pass")
    found = project.findings(project.write("train.py", text), "--notes")
    assert [each["message"].split(" ")[0] for each in found] == [f"`{name}.cuda()`" for name in copied]


def test_a_generator_that_changes_what_it_gives(project: Project) -> None:
    """It may write to the memory again that is being copied."""
    project.configure("select = ['SPD205']\ntorch = '2.13'")
    text = GIVEN.format(first="x.add_(torch.randn_like(x))", gives="x, y", loader="loader", mixed="pass")
    found = project.findings(project.write("train.py", text), "--notes")
    assert [(each["message"].split(" ")[0], each["fix"] is None) for each in found] == [
        ("`x.cuda()`", True),
        ("`y.cuda()`", True),
    ]


def test_a_generator_of_the_project_that_takes_several_loaders(project: Project) -> None:
    """What each call is handed is what it gives: the loader that the batches come from is known, and a fix is written."""
    project.configure("select = ['SPD205']\ntorch = '2.13'")
    text = GIVEN.format(first="pass", gives="x, y", loader="loader", mixed="more = list(given(others))")
    found = project.findings(project.write("train.py", text), "--notes")
    assert [each["fix"]["risk"] for each in found] == ["exact", "exact"]


@pytest.mark.parametrize(
    ("mixed", "copied"),
    [
        ("if len(others) > 1:\n        x = torch.cat([x, next(iter(others))[0]])", "xy"),
        ("x = torch.cat([x, x])", "y"),
    ],
)
def test_batches_that_a_second_loader_adds_to(project: Project, mixed: str, copied: str) -> None:
    """A batch in some runs, computed from one in others: told, and nothing is written for what is computed."""
    project.configure("select = ['SPD205']\ntorch = '2.13'")
    text = GIVEN.format(first="pass", gives="x, y", loader="loader", mixed=mixed).replace("in given(loader):", "in loader:")
    found = project.findings(project.write("train.py", text), "--notes")
    assert [(each["message"].split(" ")[0], each["fix"] is None) for each in found] == [
        (f"`{name}.cuda()`", name == "x") for name in copied
    ]


NAMED = """
import torch
from rows import Rows
from torch.utils.data import DataLoader


def to_device(x, device):
    if torch.is_tensor(x):
        return x.to(device)
    raise TypeError(x)


def batch_to_device(batch, device="cuda:0"):
    {moved}
    return type(batch)(*parts)


model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(30)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in DataLoader(Rows(), batch_size=64, num_workers=4, pin_memory=True):
    batch = batch_to_device(batch)
    loss = model(batch.rows).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("moved", "found"),
    [
        ("parts = [to_device(getattr(batch, name), device) for name in batch._fields]", 1),
        ("parts = [getattr(batch, name) for name in batch._fields]", 0),
        ("parts = [name.to(device) for name in batch._fields]", 0),
    ],
)
def test_fields_of_a_batch_that_a_helper_moves(project: Project, moved: str, found: int) -> None:
    project.configure("select = ['SPD205']\ntorch = '2.13'")
    assert len(project.findings(project.write("train.py", NAMED.format(moved=moved)))) == found
