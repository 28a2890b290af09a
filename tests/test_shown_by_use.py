"""What a function out of sight gives is known by what is done with it: read by ``.item()``, a part of the loss."""

from __future__ import annotations

import pytest

from tests.conftest import Project

TRAINS = """
import torch


class Trainer:
    def __init__(self, model, losses, weight):
        self.model, self.losses, self.weight = model.cuda(), losses, weight
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.total = 0.0

    def fit(self, loader):
        for images, labels in loader:
            images, labels = images.cuda(), labels.cuda()
            output = self.model(images)
            loss = 0.0
{computed}
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return self.total


Trainer(torch.nn.Linear(512, 512), *torch.load("losses.pt")).fit(torch.utils.data.DataLoader(torch.load("pairs.pt")))
"""
EACH = "for name, each in self.losses(output).items():\n    one = each.mean()\n"


@pytest.mark.parametrize(
    ("computed", "reads"),
    [
        # A part of what backward begins at.
        ("l1 = self.losses['l1'](self.weight(output))\nloss += l1\nself.total += l1.item()", 1),
        ("l1 = self.losses['l1'](self.weight(output))\npart = 0.5 * l1\nloss = loss + part\nself.total += l1.item()", 1),
        ("l1 = self.losses['l1'](self.weight(output))\nscaled = l1 * 2\nself.total += l1.item()\nloss = output.sum()", 0),
        # What is given tensors that may lie on the GPU.
        ("mean = self.losses['mean'](output, labels)\nself.total += mean.item()\nloss = output.sum()", 1),
        ("mean = self.losses['mean'](output.tolist())\nself.total += mean.item()\nloss = output.sum()", 0),
        ("mean = self.losses['mean'](output.detach().cpu())\nself.total += mean.item()\nloss = output.sum()", 0),
        ("mean = self.losses['mean'](output, labels)\nself.total += mean\nloss = output.sum()", 0),
        # A sum that backward begins at.
        ("for each in self.losses:\n    loss += each(output, labels)\nloss /= 3\nself.total += loss.item()", 1),
        ("mean = 0\nfor each in self.losses:\n    mean += each\nself.total += mean.item()\nloss = output.sum()", 0),
        # The mean of each part of it.
        (f"{EACH}    loss += one\n    self.total += float(one)", 1),
        (f"{EACH}    self.total += float(one)\nloss = output.sum()", 0),
    ],
)
def test_reads_of_what_a_function_out_of_sight_gives(project: Project, computed: str, reads: int) -> None:
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    indented = "\n".join(f"{'':12}{line}" for line in computed.splitlines())
    found = project.findings(project.write("train.py", TRAINS.format(computed=indented)))
    assert len(found) == reads
    assert all(each["fix"] is None for each in found)


ANNOTATED = """
import torch
from omegaconf import OmegaConf

from made import made
from nets import Net, Rows

class Run:
    def __init__(self, config):
        self.model: {annotation} = made(config.model)

    def fit(self, loader: torch.utils.data.DataLoader):
        self.model.cuda()
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        for images, labels in loader:
            loss = self.model.loss(images.cuda(), labels.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


Run(OmegaConf.load("run.yaml")).fit(torch.utils.data.DataLoader(torch.load("pairs.pt"), num_workers=4))
"""
NETS = """
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 256, 3), nn.ReLU(), nn.Conv2d(256, 256, 3), nn.AdaptiveAvgPool2d(1))

    def forward(self, images):
        return self.body(images).flatten(1)

    def loss(self, images, labels):
        return nn.functional.cross_entropy(self(images), labels)


class Rows:
    def loss(self, images, labels):
        return images.mean()
"""


@pytest.mark.parametrize(("annotation", "count"), [("Net", 1), ("Rows", 0), ("object", 0)])
def test_what_is_made_out_of_sight_is_what_it_is_annotated_with(project: Project, annotation: str, count: int) -> None:
    """A network of the project's own, from another file, whose method runs the step; nothing is written for it."""
    project.configure("select = ['SPD101']\ntorch = '2.13'")
    project.write("nets.py", NETS)
    found = project.findings(project.write("train.py", ANNOTATED.format(annotation=annotation)), "--notes")
    assert [each["fix"] for each in found] == [None] * count


MODES = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(512, 512)

    def forward(self, data, mode):
        data.update({{"size": data["x"].shape[1:], "other": data["y"].shape[1:]}})
        {body}
        return (self.layer(data["x"]) - data["y"]).square().mean()


model = Net().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in torch.utils.data.DataLoader(torch.load("rows.pt"), num_workers=4):
    loss = model({{"x": x.cuda(), "y": y.cuda()}}, {mode})
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("body", "mode", "count"),
    [
        ("print(f'{mode} loss')", "'train'", 0),
        ("print(f'{mode} loss')", "y.cuda().mean()", 1),
        ("assert data['size'] == data['other']", "'train'", 0),
        ("assert data['x'].sum() == data['y'].sum()", "'train'", 1),
        ("data.update({'size': data['y']}); assert data['size'].sum() == 1", "'train'", 1),
    ],
)
def test_what_a_forward_is_handed_and_puts_into_its_batch(project: Project, body: str, mode: str, count: int) -> None:
    project.configure("select = ['SPD303', 'SPD304']\ntorch = '2.13'")
    found = project.findings(project.write("train.py", MODES.format(body=body, mode=mode)))
    assert len(found) == count


UNSEEN = """
import elsewhere
import numpy as np
import torch

model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for turn, rows in enumerate(torch.utils.data.DataLoader(torch.load("rows.pt"), batch_size=512, num_workers=4)):
    loss, info = elsewhere.losses(model, rows.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    {read}
"""


@pytest.mark.parametrize(
    ("read", "is_found"),
    [
        ('print(info["losses"]["total"].item())', True),
        ("print(info[1].mean().item())", True),
        ("print(info.norm.mean().item())", False),
        ('if isinstance(info["total"], np.ndarray):\n        print(info["total"].item())', False),
        ("try:\n        print(info[1].item())\n    except AttributeError:\n        pass", False),
        ('print(info["total"].detach().cpu().item())', False),
        ("for each in info:\n        print(each.item())", False),
        ("print((info - 1).sum().item())", False),
        ("print(np.mean(info).item())", False),
        ("if turn % 50 == 0:\n        print(info.item())", False),
        ("print(elsewhere.rate(turn).item())", False),
        ('while elsewhere.deeper(info):\n        info = info["inner"]\n    print(info["total"].item())', True),
        ("first, last = info\n    while turn:\n        first = last\n        last = first\n    print(last.item())", True),
        ('if hasattr(info["total"], "item"):\n        print(info["total"].item())', False),
        ("try:\n        print(info[1].item())\n    except KeyboardInterrupt:\n        raise", True),
    ],
)
def test_a_number_of_what_comes_out_of_sight(project: Project, read: str, is_found: bool) -> None:
    """What has an `item` is a tensor or one of NumPy's; what a step is handed back beside its loss is a tensor."""
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    found = project.findings(project.write("train.py", UNSEEN.format(read=read)))
    assert bool(found) is is_found
    assert all(each["fix"] is None for each in found)
