"""A model that an option chooses, out of modules that are imported by name, trains where its step is called."""

from __future__ import annotations

import pytest

from speedlint.facts.bases import bases
from speedlint.facts.imported import imported_names
from speedlint.facts.left_open import left_open
from tests.conftest import Project

PACKAGE = """
import importlib

from models.base import Base


def created(options):
    {imports}
    return getattr(module, options.kind)(options)
"""
IMPORTS = 'module = importlib.import_module("models." + options.model + "_model")'
BASE = """
class Base:
    def __init__(self, options):
        self.options = options

    def optimize(self):
        {body}
"""
MODEL = """
import torch

from models.base import Base


class Wide(Base):
    def __init__(self, options):
        super().__init__(options)
        self.network = torch.nn.Linear(512, 512).cuda()
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=0.1)
        self.total = 0.0

    def feed(self, batch):
        self.images, self.labels = batch

    def optimize(self):
        loss = torch.nn.functional.cross_entropy(self.network(self.images.cuda()), self.labels.cuda())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.total += loss.item()
"""
TRAINS = """
import sys

import torch

from models import created

model = created(torch.load(sys.argv[1]))
for epoch in range(9):
    for batch in torch.utils.data.DataLoader(torch.load("pairs.pt")):
        model.feed(batch)
        {call}
"""


def _reads(
    project: Project,
    *,
    imports: str = IMPORTS,
    body: str = "raise NotImplementedError",
    call: str = "model.optimize()",
    name: str = "models/wide_model.py",
) -> int:
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    project.write("README.md", "models\n")
    project.write("models/__init__.py", PACKAGE.format(imports=imports))
    project.write("models/base.py", BASE.format(body=body))
    path = project.write(name, MODEL)
    project.write("train.py", TRAINS.format(call=call))
    return len(project.findings(path))


@pytest.mark.parametrize(
    "imports",
    [
        IMPORTS,
        'module = importlib.import_module(f"models.{options.model}_model")',
        'module = importlib.import_module(f"{__name__}.{options.model}")',
        'module = importlib.import_module("models.%s_model" % options.model)',
        'name = "models." + options.model\n    module = importlib.import_module(name)',
    ],
)
def test_the_step_of_a_model_that_an_option_chooses(project: Project, imports: str) -> None:
    assert _reads(project, imports=imports) == 1


def test_a_module_that_no_name_leads_to(project: Project) -> None:
    assert _reads(project, name="models/wide.py") == 0


def test_a_method_that_its_base_class_does_not_leave_open(project: Project) -> None:
    assert _reads(project, body="print(self.options)") == 0


def test_a_method_that_another_class_has_too(project: Project) -> None:
    project.write("models/search.py", "class Search:\n    def optimize(self):\n        return 1\n")
    assert _reads(project, imports=f"import models.search\n    {IMPORTS}") == 0


def test_a_method_that_nothing_calls(project: Project) -> None:
    assert _reads(project, call="print(model)") == 0


def test_names_that_are_put_together_without_an_import() -> None:
    assert imported_names(b'import os\nname = "models." + kind\n') == ("os",)
    assert "models.*" in imported_names(b'import importlib\nimportlib.import_module("models." + kind)\n')
    assert imported_names(b'import importlib\nimportlib.import_module("models")\nat = "nets.unet"\n')[1:] == (
        "models",
        "nets.unet",
    )


def test_methods_left_open() -> None:
    code = b'''
class A:
    def one(self): pass
    def two(self, x: int) -> None:
        """Says what."""
        raise NotImplementedError("two")
    def three(self):
        ...
    def four(self):
        passed = 1
    def five(self):
        raise ValueError
'''
    assert left_open(code) == ("one", "three", "two")


@pytest.mark.parametrize(
    ("code", "names"),
    [
        (b"class One(Base):\n    pass\n", ("Base",)),
        (
            b"class One (\n    nn.Module,\n    metaclass=make(Kind),\n):\n    pass\n",
            ("Kind", "Module", "make", "metaclass", "nn"),
        ),
        (b"from base import Base as Root\nclass One(Root):\n    pass\n", ("Base", "Root")),
        (b"import base as root\n", ()),
        (b"class One:\n    pass\n", ()),
    ],
)
def test_names_that_classes_may_derive_from(code: bytes, names: tuple[str, ...]) -> None:
    assert bases(code) == names


STARTS = """
import importlib
import sys
import torch

ENGINES = {{"small": {written}}}
torch.backends.cudnn.benchmark = True
importlib.import_module(ENGINES[sys.argv[1]]).fit()
"""
ENGINE = """
import torch
import torchvision


def fit():
    model = torchvision.models.resnet18().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torchvision.datasets.CIFAR10("data", transform=torchvision.transforms.ToTensor())
    for x, y in torch.utils.data.DataLoader(data, batch_size=512, num_workers=4):
        loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(("written", "is_found"), [('"engines.small"', False), ("sys.argv[2]", True)])
def test_a_table_of_modules_of_which_one_is_imported(project: Project, written: str, is_found: bool) -> None:
    project.configure("select = ['SPD402']\ntorch = '2.13'")
    project.write("pyproject.toml", "")
    project.write("run.py", STARTS.format(written=written))
    assert bool(project.findings(project.write("engines/small.py", ENGINE))) is is_found
