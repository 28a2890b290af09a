"""Methods that nothing calls: what stands in them costs no run anything."""

from __future__ import annotations

import pytest

from tests.conftest import Project

TEXT = """
import torch
from torch import nn
from torch.utils.data import DataLoader
IMPORTS


class Trainer(BASE):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(8)]).cuda()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def fit(self, loader):
        for x, y in loader:
            loss = nn.functional.mse_loss(self.model(x.cuda()), y.cuda())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def measure(self, loader):
        self.model.eval()
        total = 0.0
        with torch.no_grad():
            for x, y in loader:
                total += nn.functional.mse_loss(self.model(x.cuda()), y.cuda()).item()
        return total


if __name__ == "__main__":
    trainer, loader = Trainer(), DataLoader(torch.load("rows.pt"), batch_size=64, num_workers=4)
    for _ in range(9):
        trainer.fit(loader)
        CALLS
"""


@pytest.mark.parametrize(
    ("imports", "base", "calls", "level"),
    [
        ("", "object", "trainer.measure(loader)", "warning"),
        ("", "object", "# trainer.measure(loader)", "note"),
        ("", "object", "measure = trainer.measure", "warning"),
        ("import sys", "object", "getattr(trainer, sys.argv[1])(loader)", "warning"),
        ("", "object", "print(dict(measure=1), 'measure')", "warning"),
        ("from library import Base", "Base", "pass", "warning"),
        ("import fire", "object", "fire.Fire(Trainer)", "warning"),
    ],
)
def test_a_method_that_nothing_names(project: Project, imports: str, base: str, calls: str, level: str) -> None:
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    text = TEXT.replace("IMPORTS", imports).replace("BASE", base).replace("CALLS", calls)
    (found,) = project.findings("--notes", project.write("train.py", text))
    assert found["level"] == level


def test_a_method_of_a_module_that_others_import_is_called_there(project: Project) -> None:
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    text = TEXT.replace("IMPORTS", "").replace("BASE", "object").replace("CALLS", "pass")
    path = project.write("train.py", text)
    calls = "trainer = Trainer()\nfor _ in range(9):\n    trainer.fit([])\n    print(trainer.measure([]))\n"
    project.write("other.py", f"from train import Trainer\n\n{calls}")
    (found,) = project.findings("--notes", path)
    assert found["level"] == "warning"


HEIRS = """
from train import Trainer


class Longer(Trainer):
    def measure(self, loader):
        BODY


trainer = Longer()
for _ in range(9):
    trainer.fit([])
    print(trainer.measure([]))
"""


@pytest.mark.parametrize(
    ("body", "more", "level"),
    [
        ("return 0", "", "note"),
        ("return super().measure(loader)", "", "warning"),
        ("return 0", "print(Trainer().measure([]))", "warning"),
        ("return 0", "class Other(Trainer):\n    pass", "warning"),
        ("return 0", "import sys\nimport train\ntrain.__dict__[sys.argv[1]]().measure([])", "warning"),
    ],
)
def test_a_method_that_each_heir_has_another_in_the_place_of(project: Project, body: str, more: str, level: str) -> None:
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    text = TEXT.replace("IMPORTS", "").replace("BASE", "object").partition("if __name__")[0]
    path = project.write("train.py", text)
    loops = "for _ in range(9):\n    Trainer().fit([])\n    Trainer().measure([])\n" if "Trainer()" in more else ""
    project.write("start.py", HEIRS.replace("BODY", body) + f"\n{more}\n{loops}")
    found = project.findings("--notes", path)
    assert [each["level"] for each in found] == [level]


UNUSED = """
import sys

import torch
from torch import nn


class Copied(nn.Module):
    def __init__(self, model):
        super(Copied, self).__init__()
        self.model = nn.DataParallel(model).cuda()

    def __getattr__(self, name):
        return getattr(self.model.module, name)


model = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(8)])
{made}
model = nn.DataParallel(model).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in torch.utils.data.DataLoader(torch.load("rows.pt"), batch_size=64, num_workers=4):
    loss = nn.functional.mse_loss(model(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("made", "levels"),
    [
        ("# model = Copied(model)", ["note", "warning"]),
        ("model = Copied(model) if sys.argv else model", ["warning", "warning"]),
        ("wrapper = Copied", ["warning", "warning"]),
        ("print(globals()[sys.argv[1]])", ["warning", "warning"]),
    ],
)
def test_a_class_that_nothing_names(project: Project, made: str, levels: list[str]) -> None:
    project.configure("select = ['SPD603']")
    project.write("README.md", "# Training\n")
    found = project.findings("--notes", project.write("train.py", UNUSED.replace("{made}", made)))
    assert [each["level"] for each in found] == levels


TRAINER = """
from torch.nn import functional


class Trainer:
    def __init__(self, model, optimizer, loader):
        self.model, self.optimizer, self.loader = model.cuda(), optimizer, loader

    def train(self, epochs):
        for _ in range(epochs):
            for x, y in self.loader:
                loss = functional.mse_loss(self.model(x.cuda()), y.cuda())
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                print(loss.item())
"""


def test_a_class_of_a_module_that_no_start_is_seen_to_import(project: Project) -> None:
    """What a start puts on the path at run time leads it to a module, in which nothing names the class."""
    project.configure("select = ['SPD301']")
    project.write("README.md", "# Training\n")
    project.write(
        "bin/start.py", "import sys\nsys.path.append(sys.argv[1])\nfrom trainer import Trainer\nTrainer(*sys.argv)\n"
    )
    called = TRAINER.replace("\n\nclass", "\nimport matplotlib.pyplot\n\nmatplotlib.pyplot.switch_backend('agg')\n\n\nclass")
    found = project.findings("--notes", project.write("parts/trainer.py", called))
    assert [each["level"] for each in found] == ["warning"]
