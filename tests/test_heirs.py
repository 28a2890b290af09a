"""A training step that a class leaves to those that derive from it runs where the class calls it."""

from __future__ import annotations

import pytest

from tests.conftest import Project

BASE = """
import torch


class Trainer:
    def __init__(self, model, loader):
        self.model = model.cuda()
        self.loader = loader
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.total = 0.0

    def fit(self, epochs):
        for epoch in range(epochs):
            for batch in self.loader:
                {call}
            self.report(epoch)

    def step(self, batch):
        {step}

    def report(self, epoch):
        print(epoch, self.total)
"""
HEIR = """
import torch
from {module} import Trainer


class Classifier(Trainer):
    def step(self, batch):
        images, labels = batch
        loss = torch.nn.functional.cross_entropy(self.model(images.cuda()), labels.cuda())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.total += loss.item()

    def report(self, epoch):
        print(epoch, self.model.weight.mean().item())
"""
START = """
import sys
import torch
import trainers

trainer = getattr(trainers, sys.argv[1])(torch.nn.Linear(512, 512), torch.utils.data.DataLoader(torch.load("pairs.pt")))
trainer.fit(9)
"""


def _reads(
    project: Project, *, call: str = "self.step(batch)", step: str = '"""One step."""', between: str = ""
) -> list[int]:
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    project.write("README.md", "trainers\n")
    project.write("trainers/__init__.py", "from trainers.classifier import Classifier\n")
    project.write("trainers/base.py", BASE.format(call=call, step=step))
    if between:
        project.write("trainers/between.py", between)
    path = project.write("trainers/classifier.py", HEIR.format(module="trainers.between" if between else "trainers.base"))
    project.write("start.py", START)
    return [each["line"] for each in project.findings(path)]


@pytest.mark.parametrize(
    "step",
    ['"""One step."""', "pass", "...", "raise NotImplementedError", '"""One step."""\n        raise NotImplementedError()'],
)
def test_a_read_in_a_step_that_the_base_leaves_open(project: Project, step: str) -> None:
    assert _reads(project, step=step) == [13]


def test_a_class_between_that_defines_nothing(project: Project) -> None:
    between = "from trainers.base import Trainer as Base\n\n\nclass Trainer(Base):\n    name = 'between'\n"
    assert _reads(project, between=between) == [13]


def test_a_step_that_no_loop_calls(project: Project) -> None:
    assert _reads(project, call="batch[0].cuda()") == []


def test_a_step_of_another_branch_of_the_family(project: Project) -> None:
    project.write("trainers/other.py", HEIR.format(module="trainers.base").replace("Classifier", "Other"))
    assert _reads(project) == [13]


def test_the_base_knows_that_its_loop_trains(project: Project) -> None:
    _reads(project, call="self.step(batch)\n                print(torch.rand(9, device='cuda').mean().item())")
    project.write("start.py", START.replace("getattr(trainers, sys.argv[1])", "trainers.Classifier"))
    assert [each["line"] for each in project.findings("trainers/base.py")] == [16]


def test_a_network_out_of_sight_in_a_step_of_another_class(project: Project) -> None:
    _reads(project)
    project.configure("select = ['SPD101']\ntorch = '2.13'")
    project.write("start.py", START.replace("torch.nn.Linear(512, 512)", "torch.load('model.pt')") + "import torchaudio\n")
    assert [each["line"] for each in project.findings("trainers/classifier.py")] == [9]


FOUND_BY_NAME = """
import importlib
from kinds.base import Base


def find(name):
    module = importlib.import_module("kinds." + name)
    kind = None
    for title, each in {members}:
        if {test}:
            kind = each
    if kind is None:
        raise ValueError(name)
    return kind


def create(name, loader):
    trainer = find(name)(loader)
    print(type(trainer).__name__)
    return trainer
"""
OPEN = """
import abc


class Base(abc.ABC):
    def __init__(self, loader):
        self.loader = loader

    @abc.abstractmethod
    def take(self, batch):
        pass
"""
KIND = """
import torch
from kinds.base import Base


class Classifier(Base):
    def __init__(self, loader):
        super().__init__(loader)
        self.net = torch.nn.Linear(512, 512).cuda()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def take(self, batch):
        self.rows = batch["rows"].to("cuda")

    def train(self):
        loss = self.net(self.rows).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.seen = loss.item()
"""
BEGIN = """
import sys
import torch
from kinds import create

loader = torch.utils.data.DataLoader(torch.load("rows.pt"), pin_memory=True)
trainer = create(sys.argv[1], loader)
for epoch in range(9):
    for batch in loader:
        trainer.take(batch)
        trainer.train()
"""
IS_KIND = "title.lower() == name and issubclass(each, Base)"


@pytest.mark.parametrize(
    ("members", "test", "lines"),
    [
        ("module.__dict__.items()", IS_KIND, [13, 20]),
        ("vars(module).items()", IS_KIND, [13, 20]),
        ("vars(module).items()", "title.lower() == name or issubclass(each, Base)", []),
        ("vars(module).items()", "title.lower() == name and not issubclass(each, Base)", []),
    ],
)
def test_a_class_that_is_found_by_its_name_and_its_base(project: Project, members: str, test: str, lines: list[int]) -> None:
    project.configure("select = ['SPD205', 'SPD301']\ntorch = '2.13'")
    project.write("README.md", "kinds\n")
    project.write("kinds/__init__.py", FOUND_BY_NAME.format(members=members, test=test))
    project.write("kinds/base.py", OPEN)
    project.write("train.py", BEGIN)
    assert [each["line"] for each in project.findings(project.write("kinds/classifier.py", KIND))] == lines


def test_what_an_heir_may_do_in_the_place_of_its_base(project: Project) -> None:
    """What the base returns says nothing where an heir may be called instead: its own method runs in each step, too."""
    project.configure("select = ['SPD205', 'SPD301']\ntorch = '2.13'")
    project.write("README.md", "kinds\n")
    project.write("kinds/__init__.py", FOUND_BY_NAME.format(members="vars(module).items()", test=IS_KIND))
    does = '"""One step."""\n        print(self.loader)\n'
    project.write("kinds/base.py", OPEN + "\n    def train(self):\n        " + does)
    project.write("train.py", BEGIN)
    assert [each["line"] for each in project.findings(project.write("kinds/classifier.py", KIND))] == [13, 20]


OWN_WRAPPER = """
import torch
from torch.nn.parallel import DataParallel


class Gathered(DataParallel):
    def __init__(self, {given}, dim=0):
        super().__init__({handed}, dim=dim)

    def gather(self, outputs, output_device):
        return [output.to(output_device) for output in outputs]


def train(loader):
    net = Gathered(torch.nn.Linear({width}, {width})).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for rows in loader:
        loss = torch.cat(net(rows.cuda())).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


train(torch.utils.data.DataLoader(torch.load("rows.pt")))
"""


@pytest.mark.parametrize(
    ("given", "handed", "width", "codes"),
    [
        ("module", "module", 4096, ["SPD101", "SPD603"]),
        ("module", "module", 16, ["SPD603"]),
        ("name", "torch.load(name)", 4096, []),
    ],
)
def test_a_wrapper_of_the_projects_own(project: Project, given: str, handed: str, width: int, codes: list[str]) -> None:
    project.configure("select = ['SPD101', 'SPD603']\ntorch = '2.13'")
    text = OWN_WRAPPER.format(given=given, handed=handed, width=width)
    assert sorted(each["code"] for each in project.findings(project.write("train.py", text))) == codes


BY_CLASS = """
import torch
from torch.nn import functional as F


class Quiet:
    def __init__(self, width):
        self.width = width

    @classmethod
    def of(cls, width):
        made = cls(width)
        made.width += 1
        return made

    def tell(self, loss):
        self.width += 1


class Loud(Quiet):
    def tell(self, loss):
        print(loss.item())


model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
teller = {made}
for x, y in torch.utils.data.DataLoader(torch.load("rows.pt"), num_workers=4, pin_memory=True):
    loss = F.mse_loss(model(x.cuda(non_blocking=True)), y.cuda(non_blocking=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    teller.tell(loss)
"""


@pytest.mark.parametrize(("made", "waits"), [("Loud.of(3)", 1), ("Quiet.of(3)", 0), ("Loud(3).of(4)", 1)])
def test_what_a_class_method_makes(project: Project, made: str, waits: int) -> None:
    """It makes an object of the class that it is called on."""
    project.configure("select = ['SPD301', 'SPD311']\ntorch = '2.13'")
    found = project.findings(project.write("train.py", BY_CLASS.format(made=made)))
    assert len(found) == waits


STEPS = """
import lightning
import torch


class Steps(lightning.LightningModule):
    {own}

    def training_step(self, batch, index):
        return self({handed}).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)
"""
STEPPED = """
import lightning
import torch
from steps import Steps


class Net(Steps):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(512, 512)

    def forward(self, rows):
        out = self.layer(rows)
        print(out.max().item())
        return out


loader = torch.utils.data.DataLoader(torch.load("rows.pt"), batch_size=512, num_workers=4)
lightning.Trainer(accelerator="gpu", precision="16-mixed").fit(Net(), loader)
"""


@pytest.mark.parametrize(
    ("own", "handed", "is_found"),
    [
        ("kept = True", "batch", True),
        ("def forward(self, rows):\n        raise NotImplementedError", "batch", True),
        ("def forward(self, rows):\n        return rows", "batch", False),
        ("kept = True", "torch.ones(3)", True),
    ],
)
def test_a_base_class_that_calls_itself_for_its_heirs(project: Project, own: str, handed: str, is_found: bool) -> None:
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    project.write("steps.py", STEPS.format(own=own, handed=handed))
    found = project.findings(project.write("train.py", STEPPED))
    assert [each["line"] for each in found] == ([14] if is_found else [])


FAMILY = """
import torch


class Method:
    def __init__(self, width):
        self.net = torch.nn.Linear(width, width).cuda()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def train_on_batch(self, rows):
        {open}

    def told(self):
        return {{"rate": 0.1}}


class Plain(Method):
    def train_on_batch(self, rows):
        self.loss = self.net(rows.cuda()).mean()
        self.optimizer.zero_grad()
        self.loss.backward()
        self.optimizer.step()
        return {{}}

    def told(self):
        return {{"loss": self.loss.item()}}


class Squared(Plain):
    def told(self):
        return {{"squared": (self.loss * 2).item()}}


METHODS = {{}}
for kind in (Plain, Squared):
    METHODS[kind.__name__.lower()] = kind
"""
RUNS = """
import sys
import torch
import methods


def run(method, loader):
    for rows in loader:
        method.train_on_batch(rows)
        print(method.told())


made = getattr(methods, "METHODS")[sys.argv[1]](512)
run(made, torch.utils.data.DataLoader(torch.load("rows.pt"), num_workers=4))
"""


@pytest.mark.parametrize(
    ("left", "other", "lines"),
    [
        ("assert rows is not None\n        return {}", "", [27, 32]),
        ("return dict()", "", [26, 31]),
        ("raise NotImplementedError", "", [26, 31]),
        ("return {}", "class Log:\n    def told(self):\n        return 1\n", []),
    ],
)
def test_a_method_that_several_classes_of_a_family_have(project: Project, left: str, other: str, lines: list[int]) -> None:
    """Which object it is nobody sees: it is one of the family where no other class has a method of the name."""
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    project.write("logs.py", other)
    project.write("run.py", RUNS + ("\nimport logs\n" if other else ""))
    path = project.write("methods.py", FAMILY.format(open=left))
    assert [each["line"] for each in project.findings(path)] == lines


PLAIN = """
import torch


class Base{base}:
    {own}

    def run(self, x):
        return self(x)


class Heir(Base):
    {called}

    def forward(self, x):
        print(x.sum().item())
        return x


heir = Heir()
model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for rows in torch.utils.data.DataLoader(torch.load("rows.pt"), num_workers=4):
    loss = heir.run(model(rows.cuda())).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
CALLED = "def __call__(self, x):\n        return x"


@pytest.mark.parametrize(
    ("base", "own", "called", "is_found"),
    [
        ("(torch.nn.Module)", "kept = 1", "kept = 2", True),
        ("", "kept = 1", CALLED, False),
        ("(torch.nn.Module)", CALLED, "kept = 2", False),
        ("", "kept = 1", "kept = 2", False),
    ],
)
def test_what_is_no_module_has_no_forward_to_call(
    project: Project, base: str, own: str, called: str, is_found: bool
) -> None:
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    text = PLAIN.format(base=base, own=own, called=called)
    assert bool(project.findings(project.write("train.py", text))) is is_found


def test_a_library_object_in_an_attribute_is_of_no_family(project: Project) -> None:
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    project.write("methods.py", FAMILY.format(open="return {}"))
    text = RUNS.replace('getattr(methods, "METHODS")[sys.argv[1]](512)', "Kept()")
    kept = "from torch.utils.tensorboard import SummaryWriter\n\n\n"
    kept += "class Kept:\n    def __init__(self):\n        self.inner = SummaryWriter()\n"
    text = text.replace("import methods\n", f"import methods\n{kept}").replace("method.told()", "method.inner.told()")
    project.write("run.py", text.replace("method.train_on_batch(rows)", "methods.Plain(512).train_on_batch(rows)"))
    assert not project.findings("methods.py")
