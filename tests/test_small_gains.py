"""Changes that are right and gain next to nothing where they stand: they are notes. Beside each, one that pays."""

from __future__ import annotations

import pytest

from tests.conftest import Project

STEP = """
import torch
import torchvision
from torch import nn
from torch.utils.data import DataLoader

IMPORTS


class Body(nn.Module):
    def __init__(self):
        super().__init__()
        LAYERS

    def forward(self, x):
        return self.run(x)


def train(loader):
    model = Body().cuda()
    optimizer = OPTIMIZER
    for epoch in range(90):
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images.cuda()), labels.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


train(DataLoader(DATA, batch_size=64, num_workers=8, pin_memory=True))
"""
CONVOLUTIONS = "self.run = nn.Sequential(nn.Conv2d(3, 64, 3), nn.Flatten(), nn.LazyLinear(10))"
CLASSIFIER = "self.run = nn.Sequential(nn.Conv2d(3, 64, 3), nn.Flatten(), nn.Linear(9216, 4096), nn.Linear(4096, 10))"
PRODUCTS = "self.run = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))"
RECURRENT = "self.run = nn.LSTM(64, 256)"
FOLDER = 'torchvision.datasets.ImageFolder("images", torchvision.transforms.ToTensor())'
SGD = "torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)"
ADAM = "torch.optim.Adam(model.parameters(), lr=1e-3)"


def _levels(project: Project, name: str, text: str, code: str) -> list[str]:
    project.configure(f"select = ['{code}']")
    return [each["level"] for each in project.findings(project.write(name, text), "--notes")]


def _text(layers: str, optimizer: str, data: str = FOLDER, imports: str = "") -> str:
    parts = {"IMPORTS": imports, "LAYERS": layers, "OPTIMIZER": optimizer, "DATA": data}
    text = STEP
    for name, part in parts.items():
        text = text.replace(name, part)
    return text


@pytest.mark.parametrize(
    ("layers", "optimizer", "level"),
    [
        (CONVOLUTIONS, SGD, "note"),
        (CONVOLUTIONS, ADAM, "warning"),
        (CLASSIFIER, SGD, "warning"),
        (PRODUCTS, SGD, "warning"),
        (RECURRENT, SGD, "warning"),
        (RECURRENT, ADAM, "warning"),
    ],
)
def test_an_update_beside_what_the_network_is_made_of(project: Project, layers: str, optimizer: str, level: str) -> None:
    assert _levels(project, "train.py", _text(layers, optimizer), "SPD502") == [level]


DECODER = """
class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.LSTMCell(80, 512), nn.Linear(512, 80)

    def forward(self, x):
        frames, state = [], None
        for frame in x.unbind(1):
            state = self.cell(frame, state)
            frames.append(self.out(state[0]))
        return torch.stack(frames, 1)
"""


def test_an_update_beside_a_loop_over_time(project: Project) -> None:
    text = _text("self.run = Decoder()", ADAM, imports=DECODER)
    assert _levels(project, "train.py", text, "SPD502") == ["note"]


FROZEN = """
class Eyes(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torchvision.models.resnet50()

    def forward(self, x):
        with torch.no_grad():
            return self.body(x)


eyes = Eyes().cuda()
"""


@pytest.mark.parametrize(
    ("body", "seen", "level"),
    [
        ("torchvision.models.resnet50()", "eyes(images.cuda())", "note"),
        ("torchvision.models.resnet50()", "images.cuda()", "warning"),
        ("nn.Conv2d(3, 8, 3)", "eyes(images.cuda())", "warning"),
    ],
)
def test_an_update_behind_a_frozen_network(project: Project, body: str, seen: str, level: str) -> None:
    frozen = FROZEN.replace("torchvision.models.resnet50()", body)
    text = _text(PRODUCTS, ADAM, imports=frozen).replace("images.cuda()", seen)
    assert _levels(project, "train.py", text, "SPD502") == [level]


POINTS = """
import numpy as np


class Points(torch.utils.data.Dataset):
    def __init__(self, files):
        self.files = files

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        return READ(self.files[index]).astype(np.float32), index % 10


files = [f"{i}.txt" for i in range(20000)]
"""


@pytest.mark.parametrize(("read", "level"), [("np.loadtxt", "note"), ("np.load", "warning")])
def test_an_update_beside_items_that_are_parsed(project: Project, read: str, level: str) -> None:
    text = _text(PRODUCTS, ADAM, "Points(files)", POINTS.replace("READ", read))
    assert _levels(project, "train.py", text, "SPD502") == [level]


@pytest.mark.parametrize(("read", "level"), [("np.loadtxt", "note"), ("np.load", "warning")])
def test_pinning_of_what_is_parsed(project: Project, read: str, level: str) -> None:
    text = _text(PRODUCTS, ADAM, "Points(files)", POINTS.replace("READ", read))
    assert set(_levels(project, "train.py", text.replace(", pin_memory=True", ""), "SPD202")) == {level}


def test_an_update_beside_images_that_the_training_decodes(project: Project) -> None:
    text = _text(CONVOLUTIONS, ADAM)
    assert _levels(project, "train.py", text.replace("num_workers=8", "num_workers=0"), "SPD502") == ["note"]


@pytest.mark.parametrize(("every", "level"), [("(step + 1) % 8 == 0", "note"), ("loss.requires_grad", "warning")])
def test_an_update_for_many_batches(project: Project, every: str, level: str) -> None:
    step = "            optimizer.zero_grad()\n            loss.backward()\n            optimizer.step()\n"
    seldom = (
        f"            loss.backward()\n            if {every}:\n                optimizer.step()\n"
        "                optimizer.zero_grad()\n"
    )
    text = (
        _text(PRODUCTS, ADAM)
        .replace(step, seldom)
        .replace("for images, labels in loader", "for step, (images, labels) in enumerate(loader)")
    )
    assert _levels(project, "train.py", text, "SPD502") == [level]


@pytest.mark.parametrize(
    ("shown", "level"), [("plt.pause(0.05)", "note"), ("epoch % 10 or plt.pause(0.05)", "warning"), ("pass", "warning")]
)
def test_an_update_beside_a_pause(project: Project, shown: str, level: str) -> None:
    text = """
import matplotlib.pyplot as plt
import torch

net = torch.nn.Linear(10, 1)
optimizer = torch.optim.Adam(net.parameters())
for epoch in range(1000):
    loss = net(torch.randn(100, 10)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
    assert _levels(project, "train.py", f"{text}    {shown}\n", "SPD502") == [level]


def test_an_update_of_what_accelerate_drives(project: Project) -> None:
    text = """
import torch
from accelerate import Accelerator
from torch import nn


def train(loader):
    accelerator = Accelerator()
    model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for epoch in range(10):
        for x, y in loader:
            optimizer.zero_grad()
            accelerator.backward(nn.functional.cross_entropy(model(x), y))
            optimizer.step()
"""
    project.configure("select = ['SPD502']")
    path = project.write("train.py", text)
    (found,) = project.findings(path, "--torch", "2.3")
    assert found["fix"] is None
    (found,) = project.findings(path, "--torch", "2.6")
    assert found["fix"]["applicable"]


PASSES = """
import argparse

import torch
import torchvision
from torch import nn
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser(description="ABOUT")
parser.add_argument("data", default="PATH", help="HELP")
args = parser.parse_args()
images = torchvision.datasets.ImageFolder(args.data, torchvision.transforms.ToTensor())
loader = DataLoader(images, batch_size=64, num_workers=8, pin_memory=True)
model = nn.Sequential(nn.Conv2d(3, 64, 3), nn.Flatten(), nn.LazyLinear(10)).cuda()
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(90):
    for inputs, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs.cuda()), labels.cuda()).backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("about", "path", "told", "level"),
    [
        ("Train", "images", "path to images", "warning"),
        ("ImageNet training", "images", "path to images", "note"),
        ("Train", "/data/ilsvrc2012", "path to images", "note"),
        ("Train", "data/coco", "path to images", "note"),
        ("Train", "data/cocoon", "path to images", "warning"),
        ("Train", "images", "images for a network with ImageNet weights", "warning"),
        ("Train on Imagenette", "images", "path to images", "warning"),
        ("Train on flowers or ImageNet", "images", "path to images", "warning"),
    ],
)
def test_workers_that_start_for_a_pass_of_minutes(project: Project, about: str, path: str, told: str, level: str) -> None:
    text = PASSES.replace("ABOUT", about).replace("PATH", path).replace("HELP", told)
    assert _levels(project, "train.py", text, "SPD203") == [level]
    text = text.replace("argparse\n", "argparse\nimport os\n", 1).replace(f'"{path}"', f'os.path.expanduser("{path}")')
    assert _levels(project, "train.py", text, "SPD203") == [level]


def test_a_script_named_for_its_data(project: Project) -> None:
    assert _levels(project, "train_imagenet.py", PASSES, "SPD203") == ["note"]


@pytest.mark.parametrize(
    ("told", "level"),
    [
        ("    python train.py /path/to/imagenet --epochs 90", "note"),
        ("    python other.py /path/to/imagenet --epochs 90", "warning"),
        ("The weights were trained on ImageNet. Run `python train.py`.", "warning"),
    ],
)
def test_a_script_that_a_readme_starts_on_large_data(project: Project, told: str, level: str) -> None:
    project.write("README.md", told)
    assert _levels(project, "train.py", PASSES, "SPD203") == [level]


SELDOM = """
import torch
import torchvision
from torch import nn
from torch.utils.data import DataLoader

images = torchvision.datasets.ImageFolder("images", torchvision.transforms.ToTensor())
loader = DataLoader(images, batch_size=64, num_workers=8, pin_memory=True, persistent_workers=True)
held_out = DataLoader(images, batch_size=64, num_workers=8, pin_memory=True)
model = nn.Sequential(nn.Conv2d(3, 64, 3), nn.Flatten(), nn.LazyLinear(10)).cuda()
optimizer = torch.optim.Adam(model.parameters())


def validate(held_out):
    total = 0.0
    with torch.no_grad():
        for inputs, labels in held_out:
            total += nn.functional.cross_entropy(model(inputs.cuda()), labels.cuda())
    return total


step = 0
for epoch in range(90):
    for inputs, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs.cuda()), labels.cuda()).backward()
        optimizer.step()
        step += 1
        if step % EVERY == 0:
            print(validate(held_out))
"""


@pytest.mark.parametrize(("every", "level"), [("2000", "note"), ("50", "warning"), ("len(loader)", "warning")])
def test_workers_that_start_once_in_many_steps(project: Project, every: str, level: str) -> None:
    assert _levels(project, "train.py", SELDOM.replace("EVERY", every), "SPD203") == [level]


@pytest.mark.parametrize(
    ("ends", "level"),
    [
        ("if step == 500:\n                break", "note"),
        ("if not torch.isfinite(loss):\n                break", "warning"),
        ("for each in images:\n                break", "warning"),
        ("done += 1\n            if done == 5000:\n                break", "warning"),
        ("if args.debug and step:\n                break", "warning"),
    ],
)
def test_workers_of_a_loader_that_is_left_early(project: Project, ends: str, level: str) -> None:
    parsed = (
        "import argparse\ndone = 0\nparser = argparse.ArgumentParser()\nparser.add_argument('--debug', action='store_true')"
    )
    text = _text(CONVOLUTIONS, ADAM, imports=f"{parsed}\nargs = parser.parse_args()")
    text = text.replace("for images, labels in loader", "for step, (images, labels) in enumerate(loader)")
    text = text.replace("optimizer.step()", f"optimizer.step()\n            {ends}")
    assert _levels(project, "train.py", text, "SPD203") == [level]


@pytest.mark.parametrize(("every", "level"), [("20", "note"), ("2", "warning"), ("len(loader)", "warning")])
@pytest.mark.parametrize("is_inline", [True, False])
def test_workers_that_start_once_in_many_epochs(project: Project, every: str, level: str, is_inline: bool) -> None:
    text = SELDOM.replace("        if step % EVERY == 0:\n    ", f"    if epoch % {every} == 0:\n")
    if is_inline:
        passes = (
            "with torch.no_grad():\n            for inputs, labels in held_out:\n                print(model(inputs.cuda()))"
        )
        text = text.replace("print(validate(held_out))", passes)
    assert _levels(project, "train.py", text, "SPD203") == [level]


@pytest.mark.parametrize(
    ("requirement", "levels"),
    [("torch>=1.8", []), ("torch>=1.8,<3", []), ("torch==1.8.1", ["warning"]), ("torch>=1.8,<2", ["warning"]), ("", [])],
)
def test_gradients_that_the_release_of_today_drops(project: Project, requirement: str, levels: list[str]) -> None:
    project.write("requirements.txt", requirement)
    assert _levels(project, "train.py", _text(PRODUCTS, ADAM), "SPD501") == levels


@pytest.mark.parametrize(
    ("required", "update", "spelling"),
    [
        ("torch==1.10.0", ["note"], []),
        ("torch>=1.10,<2", ["note"], []),
        ("torch>=1.10", ["warning"], ["note"]),
        ("torch>=1.10,<2.3", ["warning"], []),
        ("torch>=2.4", ["warning"], ["note"]),
    ],
)
def test_what_newer_releases_have_that_a_requirement_lets_by(
    project: Project, required: str, update: list[str], spelling: list[str]
) -> None:
    """Who installs ``torch>=1.10`` today gains what is told; nothing is written that the oldest of these releases lacks."""
    project.write("requirements.txt", required)
    text = _text(CONVOLUTIONS, ADAM)
    assert _levels(project, "train.py", text, "SPD502") == update
    [found] = project.findings("train.py", "--notes")
    assert found["fix"]["applicable"] is (required == "torch>=2.4")
    scaled = text.replace("optimizer.zero_grad()", "torch.cuda.amp.GradScaler()\n            optimizer.zero_grad()")
    assert _levels(project, "scaled.py", scaled, "SPD104") == spelling


DEEP = ", ".join(["nn.Conv{kind}(64, 64, 3)"] * 4)


@pytest.mark.parametrize(
    ("told", "also", "level"),
    [
        ("* PyTorch 1.0.1", "", "note"),
        ("* PyTorch 1.0.1", "torch.backends.mps.is_available()", "warning"),
        ("* PyTorch 1.0.1+", "", "warning"),
        ("- [PyTorch 1.0.0](https://pytorch.org/)", "", "note"),
        ("- pytorch 1.2.0, torchvision 0.4.0, cuda10", "", "note"),
        ("2. CUDA 10.0, [PyTorch 1.2.0](https://pytorch.org/get-started/) (not tested with others)", "", "note"),
        ("* [Pytorch 1.1](https://pytorch.org/get-started/previous-versions/)", "", "note"),
        ("* [Pytorch 1.1](https://pytorch.org/)", "", "warning"),
        ("* [PyTorch](http://pytorch.org/) (0.3.1)", "", "note"),
        ("* PyTorch 0.4.0 or Tensorflow 1.9.0", "", "note"),
        ("The code was implemented in PyTorch 1.4.0.", "", "note"),
        ("Tested under Python 3.8.0 and PyTorch 1.4.0.", "", "warning"),
        ("Developed with PyTorch 1.4.0, and runnable with PyTorch versions >=1.4.0", "", "warning"),
        ("pip install torch-scatter==latest+cu101 -f https://pytorch-geometric.com/whl/torch-1.4.0.html", "", "note"),
        ("pip install torch==2.5.1", "", "warning"),
        ("python 3.7、pytorch 1.2.0-1.4.1、gym 0.17.0-0.19.0", "", "note"),
        ("pytorch 1.4.0 - 2.5.1", "", "warning"),
    ],
)
@pytest.mark.parametrize("code", ["SPD101", "SPD203", "SPD502"])
def test_what_the_release_of_a_readme_lacks(project: Project, code: str, told: str, also: str, level: str) -> None:
    project.configure(f"select = ['{code}']")
    project.write("README.md", f"# Requirements\n{told}\n")
    text = _text(CLASSIFIER, ADAM, 'torchvision.datasets.CIFAR100("data")', also)
    (found,) = project.findings(project.write("train.py", text), "--notes")
    assert (found["code"], found["level"]) == (code, level)
    assert ("README" in found["because"]) is (level == "note")


@pytest.mark.parametrize(("told", "level"), [("1.4.0", "note"), ("2.1.0", "warning")])
def test_an_average_that_the_release_of_a_readme_takes_by_parameter(project: Project, told: str, level: str) -> None:
    project.configure("select = ['SPD510']")
    project.write("README.md", f"conda install -y pytorch={told} torchvision -c pytorch\n")
    mean = """optimizer.step()
            for held, given in zip(mean.parameters(), model.parameters()):
                held.data = torch.lerp(given.data, held.data, 0.999)"""
    text = _text(CONVOLUTIONS, f"{ADAM}\n    mean = copy.deepcopy(model)", imports="import copy")
    text = text.replace("optimizer.step()", mean)
    (found,) = project.findings(project.write("train.py", text), "--notes")
    assert (found["code"], found["level"]) == ("SPD510", level)


@pytest.mark.parametrize(("told", "is_written"), [("2.3.0", False), ("2.4.0", True)])
def test_a_fused_update_of_what_is_moved_later_in_the_release_of_a_readme(
    project: Project, told: str, is_written: bool
) -> None:
    project.configure("select = ['SPD502']")
    project.write("README.md", f"conda install pytorch=={told} torchvision -c pytorch\n")
    text = """
import torch
from torch import nn

model = nn.Sequential(*[nn.Linear(512, 512) for _ in range(40)])
optimizer = torch.optim.Adam(model.parameters())
model.to(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
for batch in torch.load("batches.pt"):
    loss = model(batch.cuda()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
    (found,) = project.findings(project.write("train.py", text), "--notes")
    assert (found["fix"] is not None) is is_written


@pytest.mark.parametrize(
    ("imports", "words", "is_found"),
    [
        ("from words import read", "def read():\n    print 'no words'\n", False),
        ("from words import read", "def read():\n    print('no words')\n", True),
        ("from words import read", "def read():\n    return (\n", True),
        ("", "def read():\n    print 'no words'\n", True),
    ],
)
def test_what_no_python_2_has(project: Project, imports: str, words: str, is_found: bool) -> None:
    project.configure("select = ['SPD502']")
    project.write("words.py", words)
    text = _text(CLASSIFIER, ADAM, 'torchvision.datasets.CIFAR100("data")', imports)
    assert bool(project.findings(project.write("train.py", text), "--notes")) is is_found


@pytest.mark.parametrize(("workers", "level"), [(8, "warning"), (0, "note")])
def test_convolutions_behind_a_loader_that_decodes(project: Project, workers: int, level: str) -> None:
    layers = f"self.run = nn.Sequential({DEEP.format(kind='2d')})"
    text = _text(layers, ADAM).replace("num_workers=8", f"num_workers={workers}")
    assert _levels(project, "train.py", text, "SPD402") == [level]


@pytest.mark.parametrize(
    ("network", "level"),
    [('timm.create_model("vit_base_patch16_224")', "note"), ('timm.create_model("resnet50")', "warning")],
)
def test_convolutions_of_a_library_transformer(project: Project, network: str, level: str) -> None:
    text = _text(f"self.run, self.first = {network}, nn.Conv2d(3, 3, 1)", ADAM, imports="import timm")
    assert _levels(project, "train.py", text, "SPD402") == [level]


@pytest.mark.parametrize(
    ("data", "size", "level"),
    [("CIFAR10", 64, "note"), ("CIFAR10", 512, "warning"), ("Flowers102", 64, "warning"), ("CIFAR10", "SIZE", "warning")],
)
def test_convolutions_of_small_batches_of_thumbnails(project: Project, data: str, size: int | str, level: str) -> None:
    layers = "self.run = torchvision.models.resnet18()"
    text = _text(layers, ADAM, f'torchvision.datasets.{data}("data")', "import os\nSIZE = int(os.environ['SIZE'])")
    assert _levels(project, "train.py", text.replace("batch_size=64", f"batch_size={size}"), "SPD402") == [level]


@pytest.mark.parametrize(
    ("layers", "level"),
    [
        ("nn.Conv2d(1, 64, 3)", "note"),
        ("nn.Sequential(*[nn.Conv2d(512, 512, 3) for _ in range(9)])", "warning"),
        (f"nn.Sequential({DEEP.format(kind='2d')})".replace("64", "512"), "warning"),
    ],
)
def test_one_convolution_beside_attention(project: Project, layers: str, level: str) -> None:
    text = _text(f"self.run = nn.Sequential({layers}, nn.MultiheadAttention(64, 8), {DEEP.format(kind='1d')})", ADAM)
    assert _levels(project, "train.py", text, "SPD402") == [level]


@pytest.mark.parametrize(("kind", "level"), [("2d", "warning"), ("1d", "note")])
def test_convolutions_beside_recurrent_layers(project: Project, kind: str, level: str) -> None:
    layers = f"self.run = nn.Sequential({DEEP.format(kind=kind)}, nn.LSTM(64, 512))"
    text = _text(layers, ADAM, imports="import torchvision.models")
    assert _levels(project, "train.py", text, "SPD402") == [level]


SCORES = """
import torch
from torch import nn


def score(model, loader):
    total = 0
    with torch.no_grad():
        for images, labels in loader:
            total += (model(images.to("cuda")).argmax(1) == labels.to("cuda")).sum()
    return total
"""
TRAINS = """

def train(model, loader, optimizer):
    for images, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images.to("cuda")), labels.to("cuda")).backward()
        optimizer.step()
    print(score(model, loader))
"""


@pytest.mark.parametrize("more", ["", TRAINS])
def test_copies_of_an_evaluation_beside_no_training(project: Project, more: str) -> None:
    levels = _levels(project, "scores.py", SCORES + more, "SPD205")
    assert levels and ("warning" in levels) is bool(more)


VOLUMES = "self.run = nn.Sequential(nn.Conv3d(1, 16, 3), nn.Conv3d(16, 16, 3), nn.Conv3d(16, 16, 3), nn.Flatten())"
PLANES = "self.run = nn.Sequential(nn.Conv2d(1, 16, 3), nn.Conv2d(16, 16, 3), nn.Conv2d(16, 16, 3), nn.Flatten())"
NOISE = "loss = loss + torch.zeros(64).cuda().sum()\n            optimizer.zero_grad()"


@pytest.mark.parametrize(("layers", "level"), [(VOLUMES, "note"), (PLANES, "warning")])
def test_what_costs_the_same_in_each_step_is_nothing_beside_volumes(project: Project, layers: str, level: str) -> None:
    text = _text(layers, ADAM, 'torch.load("rows.pt")')
    assert _levels(project, "train.py", text, "SPD502") == [level]
    assert _levels(project, "noise.py", text.replace("optimizer.zero_grad()", NOISE), "SPD308") == [level]
    project.write("requirements.txt", "torch==1.10.0\n")
    assert _levels(project, "old.py", text, "SPD501") == [level]


@pytest.mark.parametrize(
    ("required", "levels"), [("torch==1.10.0", ["warning"]), ("torch==1.4.0", ["note"]), ("torch>=1.4", [])]
)
def test_zeroed_gradients_are_left_with_a_loop_before_there_was_an_argument(
    project: Project, required: str, levels: list[str]
) -> None:
    project.write("requirements.txt", f"{required}\n")
    assert _levels(project, "old.py", _text(PLANES, ADAM, 'torch.load("rows.pt")'), "SPD501") == levels


@pytest.mark.parametrize(
    ("data", "size", "level"), [("Places365", 224, "note"), ("Places365", 64, "warning"), ("Flowers102", 224, "warning")]
)
def test_an_update_beside_images_of_a_large_public_set(project: Project, data: str, size: int, level: str) -> None:
    images = f'torchvision.datasets.{data}("images", transform=torchvision.transforms.Resize({size}))'
    assert _levels(project, "train.py", _text(CONVOLUTIONS, ADAM, images), "SPD502") == [level]


PROBE = """
import torch
import torchvision
from torch import nn
from torch.utils.data import DataLoader


def train(loader):
    body = torchvision.models.resnet50().cuda().eval()
    head = nn.Linear(1000, 10).cuda()
    optimizer = torch.optim.Adam(head.parameters(), lr=1e-3)
    for epoch in range(90):
        for images, labels in loader:
            UNDER
                features = body(images.cuda())
            loss = nn.functional.cross_entropy(head(features), labels.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


train(DataLoader(torchvision.datasets.ImageFolder("images"), batch_size=64, num_workers=8, pin_memory=True))
"""


@pytest.mark.parametrize(("under", "level"), [("with torch.no_grad():", "note"), ("if True:", "warning")])
def test_an_update_of_a_head_behind_a_network_without_gradients(project: Project, under: str, level: str) -> None:
    assert _levels(project, "train.py", PROBE.replace("UNDER", under), "SPD502") == [level]


SETS = """
import soundfile
import torch
from torch.utils.data import DataLoader, Dataset


class NAME(Dataset):
    def __init__(self, names):
        self.names = names

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        return torch.from_numpy(soundfile.read(self.names[index])[0]).float()


def train(names):
    loader = DataLoader(NAME(names), batch_size=24, num_workers=8)
    model = torch.nn.Conv1d(1, 64, 16).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(90):
        for sound in loader:
            loss = model(sound.cuda()).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    train(["a.wav"])
"""


@pytest.mark.parametrize(
    ("name", "level"), [("WhamDataset", "note"), ("Wsj0Mix", "note"), ("WhammyDataset", "warning"), ("Sounds", "warning")]
)
def test_loaders_of_a_large_public_set_of_recordings(project: Project, name: str, level: str) -> None:
    text = SETS.replace("NAME", name)
    assert _levels(project, "pins.py", text, "SPD202") == [level]
    assert _levels(project, "starts.py", text, "SPD203") == [level]


HEAD = """
import torch
import torchvision
from torch import nn
from torch.utils.data import DataLoader


class Contrast(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder()
        self.head = nn.Sequential(nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 128))

    def forward(self, x):
        return self.head(self.encoder(x))


def train(loader, name):
    model = Contrast(MODELS).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for images, _ in loader:
        loss = model(images.cuda()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


train(DataLoader(torch.load("rows.pt"), batch_size=64), "resnet50")
"""


@pytest.mark.parametrize(
    ("encoder", "levels"),
    [("torchvision.models.__dict__[name]", []), ("torchvision.models.resnet50", []), ("nn.Identity", ["warning"])],
)
def test_wide_layers_behind_convolutions_that_are_handed_to_them(project: Project, encoder: str, levels: list[str]) -> None:
    assert _levels(project, "train.py", HEAD.replace("MODELS", encoder), "SPD105") == levels


TURNS = """
import torch
import torchvision
from torch import nn
from torch.utils.data import DataLoader

few = torchvision.datasets.ImageFolder("few", torchvision.transforms.ToTensor())


def main():
    labelled = DataLoader(few, batch_size=64, shuffle=True)
    model = torchvision.models.resnet18().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(90):
        rows = iter(labelled)
        for _ in range(1024):
            try:
                images, labels = next(rows)
            except StopIteration:
                AGAIN
            loss = nn.functional.cross_entropy(model(images.cuda()), labels.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(("again", "is_written"), [("rows = iter(labelled)", False), ("break", True)])
def test_workers_for_a_loader_that_is_begun_again_amid_the_steps(project: Project, again: str, is_written: bool) -> None:
    project.configure("select = ['SPD201']")
    (found,) = project.findings(project.write("train.py", TURNS.replace("AGAIN", again)))
    assert (found["fix"] is not None) is is_written


PART = """
import torch
import torchvision
from torch import nn
from torch.utils.data import DataLoader


class Scores(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = BODY
        self.last = LAST

    def forward(self, x):
        return self.last(self.body(x))


def train(loader):
    model = Scores().cuda()
    optimizer = torch.optim.Adam(model.last.parameters(), lr=1e-3)
    for epoch in range(90):
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images.cuda()), labels.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


train(DataLoader(torchvision.datasets.ImageFolder("images"), batch_size=64, num_workers=8, pin_memory=True))
"""
RESNET, DENSE = "torchvision.models.resnet50()", "nn.Sequential(nn.Flatten(), nn.Linear(4096, 2048), nn.ReLU())"
TWO = "nn.Sequential(nn.Linear(2048, 4096), nn.ReLU(), nn.Linear(4096, 10))"


@pytest.mark.parametrize(
    ("body", "last", "level"),
    [(RESNET, "nn.Linear(2048, 10)", "note"), (RESNET, TWO, "warning"), (DENSE, "nn.Linear(2048, 10)", "warning")],
)
def test_an_update_of_the_last_layer_alone(project: Project, body: str, last: str, level: str) -> None:
    text = PART.replace("BODY", body).replace("LAST", last)
    assert _levels(project, "train.py", text, "SPD502") == [level]


HELD_OUT = """
import argparse

import h5py
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--patches", required=True)
parser.add_argument("--held-out", OPTION)
args = parser.parse_args()


class Pairs(Dataset):
    def __init__(self, path):
        self.path = path

    def __len__(self):
        with h5py.File(self.path) as file:
            return len(file["low"])

    def __getitem__(self, index):
        with h5py.File(self.path) as file:
            return file["low"][index], file["high"][index]


model = nn.Sequential(nn.Conv2d(1, 64, 9), nn.ReLU(), nn.Conv2d(64, 1, 5)).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loader = DataLoader(Pairs(args.patches), batch_size=16, num_workers=8, pin_memory=True)
held_out = DataLoader(dataset=Pairs(args.held_out), batch_size=1)
for epoch in range(400):
    for low, high in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(low.cuda()), high.cuda()).backward()
        optimizer.step()
    with torch.no_grad():
        print(torch.stack([nn.functional.mse_loss(model(low.cuda()), high.cuda()) for low, high in held_out]).mean())
"""


@pytest.mark.parametrize(
    ("option", "command", "level"),
    [
        ("required=True", "python train.py --patches 91.h5 --held-out data/Set5_x3.h5", "note"),
        ('default="Set14.h5"', "", "note"),
        ("required=True", "python train.py --patches Set5.h5 --held-out photos.h5", "warning"),
        ("required=True", "python train.py --patches 91.h5 --held-out data/dataset5.h5", "warning"),
        ("required=True", "", "warning"),
    ],
)
def test_workers_for_a_handful_of_images(project: Project, option: str, command: str, level: str) -> None:
    project.write("README.md", command)
    assert _levels(project, "train.py", HELD_OUT.replace("OPTION", option), "SPD201") == [level]


CLIENTS = """
import copy
import random

import torch
import torchvision
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Share(Dataset):
    def __init__(self, data, rows):
        self.data, self.rows = data, list(rows)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.data[self.rows[index]]


class Client:
    def __init__(self, data, rows):
        self.loader = DataLoader(Share(data, rows), batch_size=10, shuffle=True)

    def train(self, model):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(5):
            for images, labels in self.loader:
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(images.cuda()), labels.cuda()).backward()
                optimizer.step()
        return model.state_dict()


def main():
    data = torchvision.datasets.CIFAR10("data", transform=torchvision.transforms.ToTensor())
    rows = [random.sample(range(len(data)), 500) for _ in range(100)]
    model = nn.Sequential(nn.Conv2d(3, 64, 3), nn.Flatten(), nn.LazyLinear(10)).cuda()
    TURNS


main()
"""
ROUNDS = """for _ in range(200):
        states = []
        for client in random.sample(range(100), 10):
            states.append(Client(data, rows[client]).train(copy.deepcopy(model)))
        model.load_state_dict({key: sum(each[key] for each in states) / 10 for key in states[0]})
"""
FOLDS = """for fold in range(5):
        Client(data, rows[fold]).train(copy.deepcopy(model))
"""


@pytest.mark.parametrize(("turns", "level"), [(ROUNDS, "note"), (FOLDS, "warning")])
def test_workers_for_the_shares_of_many_clients(project: Project, turns: str, level: str) -> None:
    assert _levels(project, "train.py", CLIENTS.replace("TURNS", turns), "SPD201") == [level]


TABLE = """
import torch
from torch import nn
from torch.utils.data import DataLoader


def scores_of(model, rows):
    table = torch.from_numpy(rows)
    return [model(part.cuda()).argmax(1) for part in DataLoader(table, batch_size=64)]


def train(model, loader, rows):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(90):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x.cuda()), y.cuda()).backward()
            optimizer.step()
        print(scores_of(model, rows))
"""


def test_workers_for_the_rows_of_a_tensor(project: Project) -> None:
    assert _levels(project, "train.py", TABLE, "SPD201") == ["note"]


@pytest.mark.parametrize(
    ("layers", "data", "size", "level"),
    [
        (CONVOLUTIONS, "Places365", 256, "note"),
        (CONVOLUTIONS, "Flowers102", 256, "warning"),
        ("self.run = Decoder()", "Flowers102", 16, "note"),
    ],
)
def test_an_update_in_a_long_step(project: Project, layers: str, data: str, size: int, level: str) -> None:
    """What it saves is nothing there; a read keeps the host from the next step all the same, and is told."""
    images = f'torchvision.datasets.{data}("images", transform=torchvision.transforms.Resize(224))'
    text = _text(layers, ADAM, images, DECODER).replace(
        "optimizer.step()", "optimizer.step()\n            print(loss.item())"
    )
    text = text.replace("batch_size=64", f"batch_size={size}")
    assert _levels(project, "train.py", text, "SPD502") == [level]
    assert _levels(project, "train.py", text, "SPD301") == ["warning"]


HUGGING = "transformers.AutoModelForImageClassification.from_pretrained("


DETECTED = "torch.autograd.set_detect_anomaly(True)"


@pytest.mark.parametrize(
    ("network", "also", "worth"),
    [
        (f'{HUGGING}"google/vit-base-patch16-224")', "", "low"),
        (f"{HUGGING}NAME)", "", "low"),
        (f'{HUGGING}"WinKawaks/vit-tiny-patch16-224")', "", "medium"),
        ('timm.create_model("deit_base_distilled_patch16_224")', "", "low"),
        ("nn.Conv2d(3, 64, 3)", "", "medium"),
        ("nn.Conv2d(3, 64, 3)", DETECTED, "low"),
        ("nn.Conv2d(3, 64, 3)", DETECTED.replace("True", "False"), "medium"),
    ],
)
def test_a_read_is_worth_less_in_a_long_step(project: Project, network: str, also: str, worth: str) -> None:
    layers = f"self.run, self.head = {network}, nn.Linear(64, 10)"
    text = _text(layers, ADAM, imports=f"import timm, transformers, sys\nNAME = sys.argv[1]\n{also}")
    text = text.replace("optimizer.step()", "optimizer.step()\n            print(loss.item())")
    project.configure("select = ['SPD301']")
    (found,) = project.findings(project.write("train.py", text))
    assert (found["level"], found["worth"]) == ("warning", worth)


@pytest.mark.parametrize(
    ("network", "level"),
    [
        (f'{HUGGING}"google/vit-base-patch16-224")', "note"),
        (f"{HUGGING}NAME)", "note"),
        (f'{HUGGING}"WinKawaks/vit-tiny-patch16-224")', "warning"),
        ('timm.create_model("deit_base_distilled_patch16_224")', "note"),
        ('timm.create_model("resnet18")', "warning"),
        ("transformers.AutoTokenizer.from_pretrained(NAME)", "warning"),
    ],
)
def test_workers_that_start_for_a_pass_of_a_library_transformer(project: Project, network: str, level: str) -> None:
    """A start is nothing beside such a pass; a read in each of its steps is told."""
    layers = f"self.run, self.head = {network}, nn.Linear(64, 10)"
    text = _text(layers, ADAM, imports="import timm, transformers, sys\nNAME = sys.argv[1]")
    text = text.replace("optimizer.step()", "optimizer.step()\n            print(loss.item())")
    assert _levels(project, "train.py", text, "SPD203") == [level]
    assert _levels(project, "train.py", text, "SPD301") == ["warning"]


NETWORKS = """
import argparse
import timm
import torch
from torch import nn
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--net", default="{default}")
args = parser.parse_args()
if args.net == "vit":
    model = timm.create_model("vit_base_patch16_384")
elif args.net == "large":
    model = timm.create_model("vit_large_patch16_384")
else:
    model = nn.Sequential(nn.Conv2d(3, 64, 3), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.Flatten(), nn.LazyLinear(10))
model = model.cuda()
optimizer = torch.optim.Adam(model.parameters())
loader = DataLoader(torch.load("rows.pt"), batch_size=512, num_workers=8, pin_memory=True)
for epoch in range(90):
    total = 0.0
    for images, labels in loader:
        loss = nn.functional.cross_entropy(model(images.cuda()), labels.cuda())
        total += loss.item()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(total)
"""


@pytest.mark.parametrize(
    ("default", "commands", "level"),
    [
        ("small", "", "warning"),
        ("vit", "", "note"),
        ("small", "python train.py --net vit\npython train.py --net small\n", "warning"),
        ("small", "python train.py --net vit\npython train.py --net large\n", "warning"),
        ("small", "python train.py --net vit\n", "warning"),
        ("vit", "python train.py --net vit\n", "note"),
    ],
)
def test_workers_that_start_for_one_of_several_networks(project: Project, default: str, commands: str, level: str) -> None:
    project.write("README.md", commands)
    assert _levels(project, "train.py", NETWORKS.format(default=default), "SPD203") == [level]


@pytest.mark.parametrize(
    "made", ["model = adapted(model).cuda()", "if torch.cuda.device_count():\n    model = torch.load('saved.pt')['model']"]
)
def test_workers_that_start_for_a_transformer_that_is_changed_or_saved(project: Project, made: str) -> None:
    text = NETWORKS.format(default="vit").replace("model = model.cuda()", f"model = model.cuda()\n{made}")
    adapts = "def adapted(model):\n    model.head = nn.Linear(768, 10)\n    return model\n\n\nparser ="
    assert _levels(project, "train.py", text.replace("parser =", adapts, 1), "SPD203") == ["note"]


@pytest.mark.parametrize(
    ("imports", "call", "level"),
    [
        ("import transformers", "policy.generate(images.cuda(), max_new_tokens=64)", "note"),
        ("import transformers", "policy.generate(images.cuda())", "warning"),
        ("import torch", "policy.generate(images.cuda(), max_length=64)", "warning"),
    ],
)
def test_an_update_beside_text_that_each_step_generates(project: Project, imports: str, call: str, level: str) -> None:
    text = _text(CLASSIFIER, ADAM, imports=f"{imports}\npolicy = torch.load('policy.pt')")
    text = text.replace("for images, labels in loader:", f"for images, labels in loader:\n            print({call})")
    assert _levels(project, "train.py", text, "SPD502") == [level]


def test_a_read_of_an_evaluation_by_a_transformer(project: Project) -> None:
    layers = f"self.run, self.head = {HUGGING}'google/vit-base-patch16-224'), nn.Linear(64, 10)"
    told = """optimizer.step()
        with torch.no_grad():
            for images, labels in loader:
                print(model(images.cuda()).mean().item())"""
    text = _text(layers, ADAM, imports="import transformers").replace("optimizer.step()", told)
    assert _levels(project, "train.py", text, "SPD301") == ["warning"]


PASS = """
import torch
from torch import nn
from torch.utils.data import DataLoader


def test(model, loader):
    model.eval()
    total = 0.0
    for images, labels in loader:
        total += (model(images.cuda()).argmax(1) == labels.cuda()).sum().item()
    return total


def again(model, loader):
    return test(model, loader)


def train(data):
    model = nn.Sequential(nn.Conv2d(3, 64, 3), nn.Flatten(), nn.LazyLinear(10)).cuda()
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    loader = DataLoader(data, batch_size=64, num_workers=4)
    for epoch in range(90):
        for images, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images.cuda()), labels.cuda()).backward()
            optimizer.step()
        print(EACH)
    print(test(model, loader))


train(torch.load("data.pt"))
"""


@pytest.mark.parametrize(
    ("each", "level"),
    [("epoch", "note"), ("test(model, loader)", "warning"), ("again(model, loader)", "warning")],
)
@pytest.mark.parametrize("code", ["SPD205", "SPD301", "SPD505"])
def test_what_one_pass_after_the_training_costs(project: Project, code: str, each: str, level: str) -> None:
    text = PASS.replace("EACH", each)
    project.configure(f"select = ['{code}']")
    line = next(number for number, one in enumerate(text.splitlines(), 1) if "total += (" in one)
    found = project.findings(project.write("train.py", text), "--notes")
    assert {one["level"] for one in found if one["line"] == line} == {level}


def test_what_a_script_costs_that_only_evaluates(project: Project) -> None:
    text = (
        PASS[: PASS.index("def train")]
        + """
model = nn.Sequential(nn.Conv2d(3, 64, 3), nn.Flatten(), nn.LazyLinear(10)).cuda()
print(test(model, DataLoader(torch.load("data.pt"), batch_size=64, num_workers=4)))
"""
    )
    assert _levels(project, "evaluate.py", text, "SPD301") == ["warning"]


GRAPH = """
import torch
from torch import nn


def evaluate(model, graph):
    MODE
    with torch.no_grad():
        return (model(graph.x).argmax(1) == graph.y).float().mean().item()


def train(graph):
    graph = graph.to("cuda")
    model = nn.Sequential(nn.Linear(1433, 64), nn.ReLU(), nn.Linear(64, 7)).cuda()
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    for epoch in range(200):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(graph.x), graph.y)
        loss.backward()
        optimizer.step()
        WHEN
        print(epoch, loss.item())


train(torch.load("graph.pt"))
"""


@pytest.mark.parametrize(
    ("mode", "when", "level"),
    [
        ("model.eval()", "accuracy = evaluate(model, graph)", "note"),
        ("model.eval()", "accuracy = evaluate(model, graph) if epoch % 50 == 0 else None", "warning"),
        ("model.eval()", "if epoch % 50 == 0: accuracy = evaluate(model, graph)", "warning"),
        ("pass", "targets = evaluate(model, graph)", "warning"),
        ("model.eval()", "pass", "warning"),
    ],
)
def test_a_read_beside_an_evaluation_in_each_step(project: Project, mode: str, when: str, level: str) -> None:
    text = GRAPH.replace("MODE", mode).replace("WHEN", when)
    project.configure("select = ['SPD301']")
    found = project.findings(project.write("train.py", text), "--notes")
    line = text.splitlines().index("        print(epoch, loss.item())") + 1
    assert [each["level"] for each in found if each["line"] == line] == [level]


STORED = """
import h5py
from torch.utils.data import Dataset


class Stored(Dataset):
    def __init__(self, path):
        self.path, self.file = path, None

    def __len__(self):
        return 60000

    def __getitem__(self, index):
        if self.file is None:
            self.file = h5py.File(self.path, "r")
        return self.file["images"][index], self.file["labels"][index]
"""


@pytest.mark.parametrize(("workers", "level"), [(0, "note"), (4, "warning")])
@pytest.mark.parametrize("code", ["SPD402", "SPD502"])
def test_steps_that_wait_for_items_out_of_a_file_of_arrays(project: Project, code: str, workers: int, level: str) -> None:
    text = _text(CLASSIFIER, ADAM, 'Stored("images.h5")', STORED)
    text = text.replace("nn.Conv2d(3, 64, 3)", "nn.Conv2d(3, 64, 3), nn.Conv2d(64, 64, 3), nn.Conv2d(64, 64, 3)")
    assert _levels(project, "train.py", text.replace("num_workers=8", f"num_workers={workers}"), code) == [level]


LOADERS = """
import torch
import torchvision
from torch.utils.data import DataLoader


def make():
    return DataLoader(DATA, batch_size=64, shuffle=True)
"""


@pytest.mark.parametrize(
    ("data", "level"),
    [
        ('torchvision.datasets.ImageFolder("images", torchvision.transforms.ToTensor())', "warning"),
        ('torch.utils.data.TensorDataset(*torch.load("rows.pt"))', "note"),
    ],
)
def test_a_copy_of_what_a_loader_elsewhere_reads_without_workers(project: Project, data: str, level: str) -> None:
    """To pin what lies in memory takes as long as to copy it; files want workers first, which pin beside the steps."""
    project.write("loaders.py", LOADERS.replace("DATA", data))
    text = _text(CONVOLUTIONS, ADAM, imports="from loaders import make")
    text = text.replace(f"train(DataLoader({FOLDER}, batch_size=64, num_workers=8, pin_memory=True))", "train(make())")
    assert set(_levels(project, "train.py", text, "SPD205")) == {level}


@pytest.mark.parametrize(
    ("switch", "levels"),
    [
        ("torch.backends.cudnn.enabled = False", []),
        ("if 'slow' in torch.__version__:\n    torch.backends.cudnn.enabled = False", ["warning"]),
        ("def slow():\n    torch.backends.cudnn.enabled = False", ["warning"]),
        ("torch.backends.cudnn.enabled = True", ["warning"]),
    ],
)
def test_convolutions_that_an_import_takes_from_cudnn(project: Project, switch: str, levels: list[str]) -> None:
    project.write("evaluating.py", f"import torch\n\n{switch}\n")
    text = _text(f"self.run = nn.Sequential({DEEP.format(kind='2d')})", ADAM, imports="import evaluating")
    assert _levels(project, "train.py", text, "SPD402") == levels


@pytest.mark.parametrize(
    ("imported", "levels"), [("seeded", []), ("sizes", ["warning"])], ids=["which is called", "which nothing calls"]
)
@pytest.mark.parametrize("switch", ["benchmark", "deterministic"])
def test_a_switch_in_a_function(project: Project, imported: str, levels: list[str], switch: str) -> None:
    functions = (
        f"import torch\n\n\ndef seeded():\n    torch.backends.cudnn.{switch} = True\n\n\ndef sizes():\n    return 3\n"
    )
    project.write("tools.py", functions)
    text = _text(f"self.run = nn.Sequential({DEEP.format(kind='2d')})", ADAM, imports=f"from tools import {imported}")
    assert _levels(project, "train.py", f"{text}\n{imported}()\n", "SPD402") == levels


@pytest.mark.parametrize(
    ("kept", "found"),
    [
        ("filter(lambda p: p.requires_grad, self.model.parameters())", 1),
        ("[p for p in self.model.parameters() if p.requires_grad]", 1),
        ("[torch.zeros(3, requires_grad=True)]", 0),
    ],
)
def test_parameters_that_an_object_keeps(project: Project, kept: str, found: int) -> None:
    project.configure("select = ['SPD502']\ntorch = '2.13'")
    text = KEEPS.format(kept=kept)
    assert len(project.findings(project.write("train.py", text))) == found


KEEPS = """
import torch


class Trainer:
    def __init__(self):
        self.model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(30)]).cuda()
        self.trained = {kept}
        self.optimizer = torch.optim.Adam(self.trained, lr=1e-4)

    def fit(self, loader):
        for rows in loader:
            loss = self.model(rows.cuda()).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


Trainer().fit(torch.utils.data.DataLoader(torch.load("rows.pt"), batch_size=64, num_workers=4))
"""


@pytest.mark.parametrize(
    ("visible", "level"), [('"0"', "note"), ('"0,1"', "warning"), ("args.gpu", "note"), ("args.gpus", "warning")]
)
def test_a_wrapper_for_the_one_gpu_that_is_visible(project: Project, visible: str, level: str) -> None:
    parsed = """
import argparse
import os

parser = argparse.ArgumentParser()
parser.add_argument("--gpu", default="0")
parser.add_argument("--gpus", default="0,1,2,3")
args = parser.parse_args()
os.environ["CUDA_VISIBLE_DEVICES"] = WHICH
""".replace("WHICH", visible)
    text = _text(CONVOLUTIONS, ADAM, imports=parsed).replace("Body().cuda()", "nn.DataParallel(Body()).cuda()")
    assert _levels(project, "train.py", text, "SPD603") == [level]


def test_wrappers_side_by_side_are_one_finding(project: Project) -> None:
    wraps = (
        "Body().cuda()\n    other = nn.DataParallel(Body().cuda())\n    model = nn.DataParallel(nn.Sequential(model, other))"
    )
    text = _text(CONVOLUTIONS, ADAM).replace("Body().cuda()", wraps, 1)
    assert _levels(project, "train.py", text, "SPD603") == ["warning", "warning"]
    assert len({each["cause"] for each in project.findings("train.py", "--notes")}) == 1


@pytest.mark.parametrize(
    ("ids", "level"),
    [
        ("[0]", "note"),
        ("several", "warning"),
        ("one", "note"),
        ("[*one]", "note"),
        ("[i for i in range(len(one))]", "note"),
        ("[i for i in range(len(several))]", "warning"),
        ("list(range(torch.cuda.device_count()))", "warning"),
        ("None", "warning"),
    ],
)
def test_a_wrapper_that_is_told_of_one_gpu(project: Project, ids: str, level: str) -> None:
    text = _text(CONVOLUTIONS, ADAM, imports="one = [1]\nseveral = [0, 1]")
    text = text.replace("Body().cuda()", f"nn.DataParallel(Body(), device_ids={ids}).cuda()")
    assert _levels(project, "train.py", text, "SPD603") == [level]


@pytest.mark.parametrize(
    ("batch", "item", "planes", "level"),
    [
        (16, 'file["low"][index]', 64, "note"),
        (64, 'file["low"][index]', 64, "warning"),
        (16, 'file["low"][index]', 128, "warning"),
        (16, 'torchvision.io.read_image(file["low"][index])', 64, "warning"),
    ],
)
def test_half_precision_for_few_narrow_convolutions(
    project: Project, batch: int, item: str, planes: int, level: str
) -> None:
    text = HELD_OUT.replace("OPTION", "required=True").replace("batch_size=16", f"batch_size={batch}")
    text = (
        text.replace('file["low"][index]', item)
        .replace("64", str(planes))
        .replace("import torch\n", "import torch, torchvision\n")
    )
    assert _levels(project, "train.py", text, "SPD101") == [level]


def test_half_precision_for_a_network_that_is_trained_through_a_narrow_one(project: Project) -> None:
    made = """
class Judge(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 64, 9), nn.Conv2d(64, 1, 5)

    def forward(self, x):
        return self.second(self.first(x))


class Pair:
    def __init__(self):
        self.maker, self.judge = nn.Sequential(*[nn.Conv2d(1, 512, 9)] * 9).cuda(), Judge().cuda()

    def made(self, low):
        return self.maker(low.cuda())


pair = Pair()
model = pair.judge
optimizer = torch.optim.Adam([*pair.maker.parameters(), *pair.judge.parameters()], lr=1e-3)
loader ="""
    text = HELD_OUT.replace("OPTION", "required=True")
    start, end = text.index("model = "), text.index("loader =")
    text = text[:start] + made.lstrip("\n") + text[end + len("loader =") :]
    text = text.replace(
        "nn.functional.mse_loss(model(low.cuda()), high.cuda()).backward()", "model(pair.made(low)).mean().backward()"
    )
    assert _levels(project, "train.py", text, "SPD101") == ["warning"]


def test_a_project_may_have_a_module_of_its_own_called_datasets(project: Project) -> None:
    text = HELD_OUT.replace("OPTION", "required=True")
    start, end = text.index("class Pairs"), text.index("model = ")
    project.write("datasets.py", "import h5py\nfrom torch.utils.data import Dataset\n\n\n" + text[start:end])
    text = text[:start] + text[end:]
    text = text.replace("import h5py\n", "").replace(
        "import DataLoader, Dataset\n", "import DataLoader\nfrom datasets import Pairs\n"
    )
    assert _levels(project, "train.py", text, "SPD201") == ["warning"]
    assert _levels(project, "train.py", text, "SPD101") == ["note"]


SPOKEN = """
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FOLDER = "DATA/LJSpeech-1.1"


class Frames(Dataset):
    def __init__(self, table, folder):
        self.names, self.folder = open(table).read().splitlines(), folder

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        return torch.load(os.path.join(self.folder, self.names[index])), index % 10


model = nn.GRU(80, 512).cuda()
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(100):
    loader = DataLoader(Frames(os.path.join(FOLDER, "table.csv"), FOLDER), batch_size=32, num_workers=8, pin_memory=True)
    for frames, wanted in loader:
        loss = nn.functional.l1_loss(model(frames.cuda())[0], wanted.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
"""


@pytest.mark.parametrize(("folder", "level"), [("DATA/LJSpeech-1.1", "note"), ("DATA/sensors", "warning")])
def test_an_update_in_a_step_over_a_public_set_of_sound(project: Project, folder: str, level: str) -> None:
    text = SPOKEN.replace("DATA/LJSpeech-1.1", folder)
    assert _levels(project, "train.py", text, "SPD502") == [level]


GRAPHS = """
import torch
from torch import nn
{imports}

model = nn.Sequential(nn.Conv2d(3, 256, 3), nn.AdaptiveAvgPool2d(1)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train(loader):
    for batch in loader:
        graph, labels = batch
        graph = graph.to("cuda")
        labels = labels.to("cuda")
        loss = nn.functional.cross_entropy(model(graph), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    train({loader}(torch.load("graphs.pt"), batch_size=32, num_workers=2, pin_memory=True))
"""


@pytest.mark.parametrize(
    ("imports", "loader", "levels"),
    [
        ("from dgl.dataloading import GraphDataLoader", "GraphDataLoader", ["note", "warning"]),
        ("from torch.utils.data import DataLoader", "DataLoader", ["warning", "warning"]),
    ],
)
def test_a_graph_of_dgl_is_copied_from_memory_that_nothing_pins(
    project: Project, imports: str, loader: str, levels: list[str]
) -> None:
    project.configure("select = ['SPD205']\ntorch = '2.4'")
    path = project.write("train.py", GRAPHS.format(imports=imports, loader=loader))
    assert [each["level"] for each in project.findings(path, "--notes")] == levels


@pytest.mark.parametrize(("torch", "level"), [("1.0", "note"), ("1.8", "warning")])
def test_a_batch_that_takes_no_non_blocking_is_a_note(project: Project, torch: str, level: str) -> None:
    project.configure(f"select = ['SPD205']\ntorch = '{torch}'")
    text = GRAPHS.format(imports="from torch_geometric.data import DataLoader", loader="DataLoader")
    text = text.replace(
        '        graph, labels = batch\n        graph = graph.to("cuda")\n        labels = labels.to("cuda")\n', ""
    )
    text = text.replace("model(graph), labels", 'model(batch.to("cuda").x), batch.y')
    (found,) = project.findings(project.write("train.py", text), "--notes")
    assert found["level"] == level


@pytest.mark.parametrize("code", ["SPD101", "SPD105"])
@pytest.mark.parametrize(
    ("model", "is_told"),
    [
        ("Body().cuda()", True),
        ("Body().to(torch.double).cuda()", False),
        ('Body().to("cuda", torch.float64)', False),
        ("Body().double().cuda()", False),
    ],
)
def test_nothing_that_speeds_float32_up_is_said_of_a_network_in_double_precision(
    project: Project, code: str, model: str, *, is_told: bool
) -> None:
    text = _text(PRODUCTS.replace("784, 256", "784, 2048"), ADAM).replace("Body().cuda()", model)
    assert bool(_levels(project, "train.py", text, code)) is is_told


TRAINERS = """
import torch
from torch import nn


class Forecasting:
    def fit(self, network, loader):
        network = network.cuda()
        optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
        for epoch in range(60):
            for series, after in loader:
                loss = nn.functional.mse_loss(network(series.cuda()), after.cuda())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()


class Smoothing(Forecasting):
    def fit(self, network, loader):
        network.train()
        super().fit(network, loader)
"""
CHOSEN = """
import argparse
import sys

sys.path.append("../nets")
sys.path.append("../fitting")

from torch.utils.data import DataLoader

from networks import Series
from trainers import Forecasting, Smoothing


class Model:
    def __init__(self, how):
        self.trainer = None
        if how == "forecast":
            self.trainer = Forecasting()
        if how == "smooth":
            self.trainer = Smoothing()

    def fit(self, loader):
        self.trainer.fit(Series(), loader)


parser = argparse.ArgumentParser()
parser.add_argument("--how")
Model(parser.parse_args().how).fit(DataLoader(open("series.bin"), batch_size=32, num_workers=4))
"""
SERIES = """
from torch import nn


class Series(nn.Module):
    def __init__(self, size=32):
        super().__init__()
        self.size = size
        self.first = {layer}
        self.head = nn.Linear(64 * 100, {size})

    def forward(self, x):
        return self.head(self.first(x)[0].flatten(1))
"""


@pytest.mark.parametrize(
    ("layer", "size", "level"),
    [
        ("nn.LSTM(64, 64, batch_first=True)", "self.size", "note"),
        ("nn.LSTM(64, 64, batch_first=True)", "4096", "note"),
        ("nn.Linear(64, 64)", "4096", "warning"),
        ("nn.LSTM(64, 2048, batch_first=True)", "self.size", "warning"),
        ("nn.Conv1d(64, 64, 9)", "self.size", "warning"),
    ],
)
def test_half_precision_for_a_network_that_a_trainer_is_handed(project: Project, layer: str, size: str, level: str) -> None:
    project.write("pyproject.toml", "")
    project.write("main/main.py", CHOSEN)
    project.write("nets/networks.py", SERIES.format(layer=layer, size=size))
    assert _levels(project, "fitting/trainers.py", TRAINERS, "SPD101") == [level]


ESTIMATE = """
import torch
import torchvision
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Words(Dataset):
    def __init__(self, words):
        self.words = words

    def __len__(self):
        return len(self.words)

    def __getitem__(self, number):
        word = self.words[number]
        return torch.tensor([ord(letter) for letter in word]), READ


@torch.inference_mode()
def evaluate(model, words, most=None):
    model.eval()
    losses = []
    for number, (x, y) in enumerate(DataLoader(words, batch_size=50, shuffle=True)):
        losses.append(nn.functional.cross_entropy(model(x.cuda()), y.cuda()).item())
        LEFT
    return sum(losses) / len(losses)


def train(model, words):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(100000):
        x, y = words[step]
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 500 == 0:
            print(evaluate(model, words, GIVEN))


if __name__ == "__main__":
    train(nn.Sequential(nn.Embedding(128, 512), nn.Linear(512, 512)).cuda(), Words(open("words.txt").read().split()))
"""


@pytest.mark.parametrize(
    ("left", "given", "read", "level"),
    [
        ("if most is not None and number >= most: break", "most=10", "number", "note"),
        ("if number >= most: break", "10", "number", "note"),
        ("if number == 10: break", "None", "number", "note"),
        ("if most is not None and number >= most: break", "None", "number", "warning"),
        ("if most is not None and number >= most: break", "most=len(words)", "number", "warning"),
        ("if number >= most: break", "1000", "number", "warning"),
        ("if number >= 10: break", "None", "torchvision.io.read_image(word)", "warning"),
        ("if number >= 10: print(number)", "None", "number", "warning"),
    ],
)
def test_workers_for_a_loop_that_is_left_after_some_batches(
    project: Project, left: str, given: str, read: str, level: str
) -> None:
    project.configure("select = ['SPD201']\ntorch = '2.13'")
    text = ESTIMATE.replace("LEFT", left).replace("GIVEN", given).replace("READ", read)
    (found,) = project.findings(project.write("train.py", text), "--notes")
    assert (found["level"], found["fix"] is None) == (level, level == "note")


SIGNALS = """
import torch
from torch import nn
from torch.utils.data import DataLoader


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 16, {first}, bias=False)
        self.second = nn.Conv2d(16, {channels}, (2, 1), groups=16)
        self.third = nn.Conv2d({channels}, {channels}, kernel_size=(1, 15), padding=(0, 7))
        self.head = nn.Linear({channels}, 2)

    def forward(self, x):
        return self.head(self.third(self.second(self.first(x)).relu()).relu().mean((2, 3)))


net = Net().cuda()
optimizer = torch.optim.Adam(net.parameters())
for signals, labels in DataLoader(torch.load("signals.pt"), 64, num_workers=4, pin_memory=True):
    loss = nn.functional.cross_entropy(net(signals.cuda(non_blocking=True)), labels.cuda(non_blocking=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("first", "channels", "level"),
    [("(1, 51)", 32, "note"), ("(51, 1)", 32, "warning"), ("(1, 51)", 256, "warning"), ("(3, 51)", 32, "warning")],
)
def test_convolutions_along_the_samples_of_a_signal(project: Project, first: str, channels: int, level: str) -> None:
    """A kernel that is one high is a convolution of a sequence, whatever its class."""
    text = SIGNALS.format(first=first, channels=channels)
    assert _levels(project, "train.py", text, "SPD101") == [level]


PLAYS = """
import gymnasium
import torch
from torch import nn

env = gymnasium.make("LunarLander-v3")
policy = nn.Sequential(nn.Linear(8, 512), nn.ReLU(), nn.Linear(512, 4)).cuda()
optimizer = torch.optim.Adam(policy.parameters())


def play(turns):
    state, _ = env.reset()
    states = []
    for turn in range(turns):
        states.append(torch.as_tensor(state, device="cuda"))
        with torch.no_grad():
            action = policy(states[-1]).argmax()
        state, reward, done, cut, _ = env.step(action.item())
    return torch.stack(states)


def update(states):
    loss = policy(states).logsumexp(-1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


states, total = play(1000), 0.0
for epoch in range(10_000):
    {plays}
    total += update(states)
    if epoch % 10 == 0:
        torch.save(policy.state_dict(), "policy.pt")
print(total)
"""


@pytest.mark.parametrize(
    ("plays", "levels"),
    [
        ("states = play(1000)", ["note"]),
        ("pass", ["warning", "warning"]),
        ("if epoch % 100 == 0:\n        states = play(1000)", ["note", "warning", "warning"]),
        ("if len(states) < 500:\n        states = play(1000)", ["warning", "warning"]),
        ("while len(states) < 500:\n        states = play(1000)", ["warning", "warning"]),
        ("for _ in range(4):\n        env.step(env.action_space.sample())", ["warning", "warning"]),
        ("done = False\n    while not done:\n        _, _, done, _, _ = env.step(env.action_space.sample())", ["note"]),
    ],
)
def test_a_step_that_plays_episodes_first(project: Project, plays: str, levels: list[str]) -> None:
    """One read, and a file of the policy, are nothing beside a thousand turns of an environment."""
    project.configure("select = ['SPD301', 'SPD703']\ntorch = '2.13'")
    found = project.findings(project.write("train.py", PLAYS.format(plays=plays)), "--notes")
    assert [each["level"] for each in found] == levels


TIMED = """
import time

import torch

model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(30)]).cuda()
{made}
began = time.time()
for rows in torch.utils.data.DataLoader(torch.load("rows.pt"), batch_size=64, num_workers=4):
    {zeroed}
    model(rows.cuda()).mean().backward()
    {stepped}
print(time.time() - began)
"""
ADAM = "torch.optim.Adam(model.parameters(), 1e-4)"


@pytest.mark.parametrize(
    ("made", "zeroed", "stepped", "found"),
    [
        (f"optimizer = {ADAM}", "model.zero_grad()", "pass", 0),
        (f"optimizer = {ADAM}", "optimizer.zero_grad()", "print(optimizer.param_groups[0]['lr'])", 0),
        (f"optimizer = {ADAM}", "optimizer.zero_grad()", "optimizer.step()", 1),
        (f"updated = lambda each: each.step()\noptimizer = {ADAM}", "optimizer.zero_grad()", "updated(optimizer)", 1),
        (f"optimizer = {ADAM}\nstep = optimizer.step", "optimizer.zero_grad()", "step()", 1),
        (f"optimizers = [{ADAM}]", "model.zero_grad()", "for each in optimizers: each.step()", 1),
        (f"class held:\n    optimizer = {ADAM}", "held.optimizer.zero_grad()", "held.optimizer.step()", 1),
        (f"optimizer = {ADAM}", "optimizer.zero_grad()", "globals()['optimizer'].step()", 1),
    ],
)
def test_an_optimizer_that_takes_no_step(project: Project, made: str, zeroed: str, stepped: str, found: int) -> None:
    project.configure("select = ['SPD502']\ntorch = '2.13'")
    text = TIMED.format(made=made, zeroed=zeroed, stepped=stepped)
    assert len(project.findings(project.write("train.py", text))) == found


SCENES = """
import argparse
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--{size}", type=int, default={value})
args = parser.parse_args()


class Scenes(Dataset):
    def __init__(self, tracks, bounds):
        self.tracks, self.bounds = tracks, bounds

    def __len__(self):
        return len(self.bounds)

    def __getitem__(self, index):
        start, end = self.bounds[index]
        return self.tracks[:, :, start:end]


model = nn.Sequential(*[nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.ReLU()) for _ in range(9)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(Scenes(torch.load("tracks.pt"), torch.load("bounds.pt")), batch_size=1, num_workers=4, pin_memory=True)
for epoch in range(10):
    for tracks in loader:
        loss = model(tracks.cuda(non_blocking=True)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("size", "value", "is_found"), [("input_size", 2, False), ("input_size", 224, True), ("crop_size", 64, True)]
)
def test_single_items_of_what_has_no_size(project: Project, size: str, value: int, is_found: bool) -> None:
    """Two numbers for each point are no size of a picture: each scene has as many points as it has."""
    project.configure("select = ['SPD402']\ntorch = '2.13'")
    assert bool(project.findings("--notes", project.write("train.py", SCENES.format(size=size, value=value)))) is is_found


OWN_CELL = """
class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.gates = nn.Linear(512 + 80, 512)

    def forward(self, x, state):
        return torch.tanh(self.gates(torch.cat([x, state], 1)))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = Cell(), nn.Linear(512, 80)

    def forward(self, x):
        state = x.new_zeros(x.shape[0], 512)
        for t in range({steps}):
            state = self.cell({taken}, state)
        return self.out(state)
"""


@pytest.mark.parametrize(
    ("steps", "taken", "level"),
    [("x.shape[1]", "x[:, t]", "note"), ("3", "x[:, t]", "warning"), ("x.shape[1]", "x[:, 0]", "warning")],
)
def test_an_update_beside_a_loop_of_ones_own_over_time(project: Project, steps: str, taken: str, level: str) -> None:
    text = _text("self.run = Decoder()", ADAM, imports=OWN_CELL.replace("{steps}", steps).replace("{taken}", taken))
    assert _levels(project, "train.py", text, "SPD502") == [level]
