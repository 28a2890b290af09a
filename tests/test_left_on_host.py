"""A network that a function makes and moves nowhere computes on the host, whatever the rest of the project does."""

from __future__ import annotations

import pytest

from tests.conftest import Project

TRAINS = """
import torch
from torch import nn
from torch.utils.data import DataLoader


class Probe(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Linear(512, 512)

    def forward(self, x):
        return self.layers(x)


def fit(pairs):
    probe = Probe(){moved}
    compared = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(probe.parameters())
    {handed}
    total = 0.0
    for epoch in range(9):
        for inputs, labels in DataLoader(pairs, batch_size=256):
            optimizer.zero_grad()
            loss = compared(probe(inputs.float()), labels)
            loss.backward()
            optimizer.step()
            total += loss.item()
    return probe, total


def features(network, images):
    return network(images.cuda()).cpu()


fit(list(zip(features(torch.load("network.pt").cuda(), torch.load("images.pt")), torch.load("labels.pt"))))
"""


@pytest.mark.parametrize(
    ("moved", "handed", "reads"),
    [("", "pass", 0), (".cuda()", "pass", 1), ("", "probe.cuda()", 1), ("", "placed(probe)", 1)],
)
def test_reads_of_a_network_on_the_host(project: Project, moved: str, handed: str, reads: int) -> None:
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    project.write("placing.py", "def placed(module):\n    return module.cuda()\n")
    text = f"from placing import placed\n{TRAINS.format(moved=moved, handed=handed)}"
    assert len(project.findings(project.write("train.py", text))) == reads


MOVES = """
import torch
from torch.utils.data import DataLoader

model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(torch.load("rows.pt"), batch_size=64, num_workers=4, pin_memory=True)


def prepared(batch):
    moved = {{}}
    for key, value in batch.items():
        {moves}
    return moved


for epoch in range(10):
    for batch in loader:
        batch = prepared(batch)
        loss = model(batch["x"]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("{{}}".format(batch[{read}]))
"""
KEEPS = 'if key == "name":\n            moved[key] = value\n        else:\n            moved[key] = value.cuda()'


@pytest.mark.parametrize(
    ("moves", "read", "reads"),
    [
        (KEEPS, '"name"', 0),
        (KEEPS, '"y"', 1),
        (KEEPS.replace('"name"', '"other"'), '"name"', 1),
        ("moved[key] = value.cuda()", '"name"', 1),
        (KEEPS.replace("if key ==", "if value =="), '"name"', 1),
    ],
)
def test_an_entry_of_a_batch_that_is_told_from_the_others_by_its_key(
    project: Project, moves: str, read: str, reads: int
) -> None:
    project.configure("select = ['SPD303']")
    assert len(project.findings(project.write("train.py", MOVES.format(moves=moves, read=read)))) == reads


TRAINER = """
import torch


class Settings:
    def __init__(self, rate=1e-3, place="cpu"):
        self.rate, self.place = rate, place


class Trainer:
    def __init__(self, model, settings):
        self.device = torch.device(settings.place)
        self.model = model.to(self.device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=settings.rate)

    def train(self, loader):
        total = 0.0
        for inputs, labels in loader:
            logits = self.model(inputs.to(self.device))
            loss = torch.nn.functional.cross_entropy(logits, labels.to(self.device))
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total


def features(network, images):
    return network(images.cuda()).cpu()
"""
STARTS = """
import sys

import torchvision
from torch.utils.data import DataLoader

from fitting import Settings, Trainer

pictures = torchvision.datasets.ImageFolder("images", torchvision.transforms.ToTensor())
print(Trainer(torchvision.models.resnet50(), {settings}).train(DataLoader(pictures, 64, num_workers=8)))
"""


@pytest.mark.parametrize(
    ("settings", "level"),
    [
        ("Settings()", "note"),
        ("Settings(1e-4)", "note"),
        ("Settings(place='cuda')", "warning"),
        ("Settings(place=sys.argv[1])", "warning"),
    ],
)
def test_a_network_that_is_moved_to_what_each_caller_leaves_at_the_cpu(project: Project, settings: str, level: str) -> None:
    project.configure("select = ['SPD101', 'SPD301']\ntorch = '2.13'")
    project.write("start.py", STARTS.format(settings=settings))
    found = project.findings("--notes", project.write("fitting.py", TRAINER))
    assert {(each["code"], each["level"]) for each in found} == {("SPD101", level), ("SPD301", level)}


BY_OPTION = """
import argparse

import torch
import torchvision
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--device", type=str, default="cpu", help="cpu, or cuda")
args = parser.parse_args()
model = torchvision.models.resnet50()
model.to(args.device)
optimizer = torch.optim.Adam(model.parameters())
pictures = torchvision.datasets.ImageFolder("images", torchvision.transforms.ToTensor())
for inputs, labels in DataLoader(pictures, 64, num_workers=8):
    loss = torch.nn.functional.cross_entropy(model(inputs.to(args.device)), labels.to(args.device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if args.device.startswith("cuda"):
        torch.cuda.synchronize()
"""


@pytest.mark.parametrize(
    ("command", "level"),
    [
        ("python train.py", "note"),
        ("python train.py --device cuda", "warning"),
        ("CUDA_VISIBLE_DEVICES=1 python train.py", "warning"),
    ],
)
def test_a_device_that_is_the_cpu_unless_a_command_says_otherwise(project: Project, command: str, level: str) -> None:
    project.configure("select = ['SPD101']\ntorch = '2.13'")
    project.write("README.md", f"# Training\n\n    {command}\n")
    (found,) = project.findings("--notes", project.write("train.py", BY_OPTION))
    assert found["level"] == level


BY_ITSELF = """
import argparse

import torch
import torchvision
from torch.utils.data import DataLoader
{imports}

parser = argparse.ArgumentParser()
parser.add_argument("--device", type=str, default="cpu", help="where the average of the weights is kept")
args = parser.parse_args()
pictures = torchvision.datasets.ImageFolder("images", torchvision.transforms.ToTensor())
loader = DataLoader(pictures, 64, num_workers=8)
model = torchvision.models.resnet50(){moved}
optimizer = torch.optim.Adam(model.parameters())
{prepared}
mean = torch.optim.swa_utils.AveragedModel(model).to(args.device)
for inputs, labels in loader:
    loss = torch.nn.functional.cross_entropy(model(inputs), labels)
    optimizer.zero_grad()
    {backward}
    optimizer.step()
    print(loss.item())
torch.save(model.to("cpu"), "model.pt")
"""


@pytest.mark.parametrize(
    ("imports", "moved", "prepared", "backward"),
    [
        (
            "from accelerate import Accelerator",
            "",
            "accelerator = Accelerator()\nmodel, optimizer, loader = accelerator.prepare(model, optimizer, loader)",
            "accelerator.backward(loss)",
        ),
        ("torch.set_default_device('cuda')", "", "", "loss.backward()"),
    ],
)
def test_what_is_put_on_the_gpu_by_itself(project: Project, imports: str, moved: str, prepared: str, backward: str) -> None:
    """A network that is saved from the CPU, and an average that an option keeps there, say nothing of where it trains."""
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    project.write("README.md", "# Training\n\n    python train.py\n")
    text = BY_ITSELF.format(imports=imports, moved=moved, prepared=prepared, backward=backward)
    (found,) = project.findings("--notes", project.write("train.py", text))
    assert found["level"] == "warning", found["because"]


KERNELS = """
import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
        self.layer = nn.Linear(512, 512)

    def forward(self, x, mask):
        if {asked}.is_cuda:
            return self.layer(x)
        {rest}


model = Scaled().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.utils.data.DataLoader(torch.load("rows.pt")):
    loss = model(x.cuda(), torch.ones(3)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("asked", "rest", "is_found"),
    [
        ("x", "elif x.dim() == 2:\n            return self.layer(x) * self.scale.item()", False),
        ("self.layer.weight", "else:\n            return self.layer(x) * self.scale.item()", False),
        ("x", "return self.layer(x) * self.scale.item()", False),
        ("x", "print(self.scale.max().item())\n        return self.layer(x)", True),
    ],
)
def test_what_runs_beside_a_kernel_for_the_gpu(project: Project, asked: str, rest: str, is_found: bool) -> None:
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    found = project.findings(project.write("train.py", KERNELS.format(asked=asked, rest=rest)))
    assert bool(found) is is_found


LOSS = """
import torch

device = torch.device("cuda")


def padded(x):
    return torch.cat([x, torch.zeros(x.shape[0], 3).to(device)], dim=1)
"""
USES_LOSS = """
import torch
from loss import padded

net = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.utils.data.DataLoader(torch.load("rows.pt")):
    loss = padded(net(x.cuda())).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("other", "is_found"),
    [
        ("from loss import padded\n\ntorch.set_default_device('cuda')\nprint(padded(torch.load('x.pt')))", True),
        ("torch.set_default_device('cuda')\nimport train", False),
    ],
)
def test_what_another_start_chooses_for_its_own_run(project: Project, other: str, is_found: bool) -> None:
    project.configure("select = ['SPD308']\ntorch = '2.13'")
    project.write("README.md", "# Training\n\n    python train.py\n")
    project.write("train.py", USES_LOSS)
    project.write("show.py", f"import torch\n{other}\n")
    assert bool(project.findings(project.write("loss.py", LOSS))) is is_found
