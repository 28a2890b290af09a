"""Packages that bind the name of one of their modules to something of it: ``from .unet import unet``."""

from __future__ import annotations

import pytest

from tests.conftest import Project
from tests.test_large import STEP

TRAIN = """
import torch
from torch.utils.data import DataLoader
from torchvision.datasets import CIFAR100
{imports}

loader = DataLoader(CIFAR100("data"), batch_size=512, num_workers=4, pin_memory=True)
model = {made}
model.cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(90):
    for images, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(images.cuda()), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
NETWORK = """
import torch
from torch import nn


class {name}(nn.Module):
    def __init__(self, classes=100):
        super().__init__()
        self.body = nn.Sequential(*[nn.Sequential(nn.Conv2d(3 if i == 0 else 256, 256, 3), nn.ReLU()) for i in range(9)])
        self.head = nn.Linear(256, classes)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


def unet(classes):
    return {name}(classes)
"""


@pytest.mark.parametrize(
    ("package", "imports", "made", "is_known"),
    [
        ("from .unet import Unet as unet", "from nets import *", "unet(100)", True),
        ("from .unet import unet", "from nets import unet", "unet(100)", True),
        ("from .unet import unet", "import nets", "nets.unet(100)", True),
        ("from .unet import *", "from nets import unet", "unet(100)", True),
        ("from . import unet", "from nets import unet", "unet.Unet(100)", True),
        ("from . import unet", "import nets.unet", "nets.unet.unet(100)", True),
        ("", "from nets import unet", "unet.unet(100)", True),
        ("from . import unet", "from nets import unet", "unet(100)", False),
        (
            "try:\n    from .fast import unet\nexcept ImportError:\n    from .unet import unet",
            "import nets",
            "nets.unet(1)",
            False,
        ),
    ],
)
def test_a_network_of_a_package(project: Project, package: str, imports: str, made: str, is_known: bool) -> None:
    """The name is what the package binds last; a module is no network."""
    project.configure("select = ['SPD402']\ntorch = '2.13'")
    project.write("nets/__init__.py", package)
    project.write("nets/unet.py", NETWORK.format(name="Unet"))
    found = project.findings(project.write("train.py", TRAIN.format(imports=imports, made=made)), "--notes")
    assert [each["code"] for each in found] == ["SPD402"] * is_known


@pytest.mark.parametrize(
    ("setup", "found"),
    [
        ("def setup(env):\n    return env.reset()\n", 1),
        ("from setuptools import setup\nsetup(name='ops', ext_modules=[])\n", 1),
        ("from setuptools import setup\nsetup(name='tools', packages=['tools'])\n", 0),
    ],
)
def test_who_calls_a_module_beside_one_called_setup(project: Project, setup: str, found: int) -> None:
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    loop = TRAIN.replace("        optimizer.step()", "        optimizer.step()\n        print(told(loss))")
    project.write("train.py", loop.format(imports="from nets.tools.told import told", made="torch.nn.Conv2d(3, 64, 3)"))
    project.write("requirements.txt", "numpy\n")
    project.write("nets/tools/setup.py", setup)
    told = project.write("nets/tools/told.py", "def told(loss):\n    return loss.item()\n")
    assert len(project.findings(told)) == found


REGISTRY = """
import sys
import torch
from torch.utils.data import DataLoader
from models import *

model = networks[sys.argv[1]]()
model.cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(90):
    for rows in DataLoader(torch.load("rows.pt"), batch_size=512):
        losses = model.losses(rows.cuda())
        optimizer.zero_grad()
        losses["loss"].backward()
        optimizer.step()
        print({name: value.item() for name, value in losses.items()})
"""
PART = """
import torch
from models import Network
from torch import nn


class {name}(Network):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(512, 512)

    def forward(self, x):
        return self.layer(x)

    def losses(self, rows):
        out = self(rows)
        return {{"loss": out.mean(), "part": {part}}}
"""


@pytest.mark.parametrize(
    ("last", "is_found"), [("(out - rows).abs().mean()", True), ("measured(out)", True), ("float(rows.mean())", False)]
)
def test_modules_that_take_their_base_from_the_package_that_imports_them(
    project: Project, last: str, is_found: bool
) -> None:
    """Each network is a module, whatever star import binds its base last; what one of their losses is, the others leave."""
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    project.write("pyproject.toml", "")
    project.write("models/base.py", "from torch import nn\n\n\nclass Network(nn.Module):\n    pass\n")
    project.write("models/small.py", PART.format(name="Small", part="(out - rows).abs().mean()"))
    project.write("models/large.py", PART.format(name="Large", part=last))
    stars = "".join(f"from .{name} import *\n" for name in ("base", "small", "large"))
    project.write("models/__init__.py", f"{stars}\nnetworks = {{'small': Small, 'large': Large}}\n")
    found = project.findings(project.write("train.py", REGISTRY))
    assert [each["line"] for each in found] == ([16] if is_found else [])
    assert all(each["fix"] is None for each in found)


WAITS = "def log(loss):\n    return loss.item()\n"


@pytest.mark.parametrize(
    ("files", "module", "codes"),
    [
        ({"tools/told.py": WAITS}, "tools.told", ["SPD311"]),
        ({"tools/__init__.py": "", "tools/told.py": WAITS}, "tools.told", ["SPD311"]),
        ({"tools/__init__.py": "from .told import log\n", "tools/told.py": WAITS}, "tools", ["SPD311"]),
        ({"tools/inner/told.py": WAITS}, "tools.inner.told", ["SPD311"]),
        ({"tools/inner/told.py": WAITS, "tools/names.py": "from tools.inner.told import log\n"}, "tools.names", ["SPD311"]),
        ({"told.py": WAITS}, "told", ["SPD311"]),
    ],
)
def test_a_folder_that_nothing_marks_is_one_project(
    project: Project, files: dict[str, str], module: str, codes: list[str]
) -> None:
    """No .git, README or requirements: a script and the folders that it imports from still belong together."""
    (project.root / "speedlint.toml").write_text("select = ['SPD311']\n")
    for name, text in files.items():
        project.write(name, text)
    project.write("train.py", STEP.replace("from shared", f"from {module}").replace("print(loss.item())", "log(loss)"))
    assert [each["code"] for each in project.findings("train.py")] == codes
