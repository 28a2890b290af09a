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
    ],
)
def test_reads_of_what_a_function_out_of_sight_gives(project: Project, computed: str, reads: int) -> None:
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    indented = "\n".join(f"{'':12}{line}" for line in computed.splitlines())
    found = project.findings(project.write("train.py", TRAINS.format(computed=indented)))
    assert len(found) == reads
    assert all(each["fix"] is None for each in found)
