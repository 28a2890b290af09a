"""A validation every so many steps that is one an epoch, by the rows of a public data set and the batch."""

from __future__ import annotations

import pytest

from tests.conftest import Project

TRAINS = """
import torch
import torchvision
from torch.nn import functional as F
from torch.utils.data import DataLoader

device = torch.device("cuda")
loader = DataLoader({data}("data", train=True), batch_size={batch}, shuffle=True)
held_out = DataLoader({data}("data", train=False), batch_size=64)
model = torchvision.models.resnet18().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


@torch.no_grad()
def right():
    model.eval()
    found = 0
    for images, labels in held_out:
        found += (model(images.to(device)).argmax(1) == labels.to(device)).sum()
    model.train()
    return found


step = 0
for epoch in range(90):
    for images, labels in loader:
        loss = F.cross_entropy(model(images.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 100 == 0:
            print(right())
"""


@pytest.mark.parametrize(
    ("data", "batch", "found"),
    [
        ("torchvision.datasets.CIFAR10", "512", False),
        ("torchvision.datasets.CIFAR10", "64", True),
        ("torchvision.datasets.SVHN", "512", True),
        ("torchvision.datasets.CIFAR10", "int(input())", True),
        ("torchvision.datasets.Flowers102", "512", True),
    ],
)
def test_a_pass_after_so_many_steps(project: Project, data: str, batch: str, found: bool) -> None:
    project.configure("select = ['SPD701']\ntorch = '2.13'")
    assert bool(project.findings(project.write("train.py", TRAINS.format(data=data, batch=batch)))) is found
