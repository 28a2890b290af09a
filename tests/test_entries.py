"""Networks that are taken out of a dict which the program writes out."""

from __future__ import annotations

import pytest

from tests.conftest import Project

TRAIN = """
import torch
from torch import nn
from torch.utils.data import DataLoader


class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(*[nn.Sequential(nn.Conv2d(3 if i == 0 else 256, 256, 3), nn.ReLU()) for i in range(9)])
        self.head = nn.Linear(256, 10)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


class Gated(Wide):
    def forward(self, x):
        scores = super().forward(x)
        return scores * nn.functional.binary_cross_entropy(scores.sigmoid(), torch.ones_like(scores))


def train(options):
    net = options["model"]
    net.cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for images, labels in DataLoader(torch.load("images.pt"), batch_size=256, num_workers=4, pin_memory=True):
        images, labels = images.cuda(non_blocking=True), labels.cuda(non_blocking=True)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(images), labels)
        loss.backward()
        optimizer.step()


options = {made}
{sets}
train(options)
"""


@pytest.mark.parametrize(
    ("made", "sets", "is_written"),
    [
        ("{'model': Wide()}", "options['width'] = 64", True),
        ("{}", "options['model'] = Wide()", True),
        ("dict(model=Wide())", "print(options)", True),
        ("{'model': Gated()}", "pass", False),
        ("{'model': Wide()}", "options['model'] = Gated()", False),
        ("{'model': Wide()}", "options.update({'model': Gated()})", False),
        ("{'model': Wide()}", "options |= {'model': Gated()}", False),
        ("{'model': Wide()}", "options['width'], options['model'] = 64, Gated()", False),
        ("{'model': Wide()}", "def change(settings):\n    settings['model'] = Gated()\n\n\nchange(options)", False),
        ("{'model': Wide()}", "kept = options\nkept['model'] = Gated()", False),
        ("{'model': Wide()}", "options.update([('model', Gated())])", False),
        ("{'model': Wide()}", "for key in ('model', 'width'):\n    options[key] = Gated()", False),
    ],
)
def test_autocast_around_a_network_out_of_a_dict(project: Project, made: str, sets: str, is_written: bool) -> None:
    """What raises under autocast may have been put there."""
    project.configure("select = ['SPD101']\ntorch = '2.13'")
    text = TRAIN.replace("{made}", made).replace("{sets}", sets)
    found = project.findings(project.write("train.py", text), "--notes")
    assert [each["fix"] is not None for each in found] == [is_written]
