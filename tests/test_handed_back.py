"""What a function is handed and gives back is that of its own call: a helper that moves tensors and networks alike."""

from __future__ import annotations

import pytest

from tests.conftest import Project

FACTORS = """
import sys
import torch
from torch import nn


def gpu(what, on=True):
    {body}


class Factors(nn.Module):
    def __init__(self):
        super().__init__()
        self.users, self.items = nn.Embedding(10000, 64), nn.Embedding(10000, 64)

    def forward(self, users, items):
        return (self.users(users) * self.items(items)).sum(1)


class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 4096))

    def forward(self, users, items):
        return self.layers(users)


class Recommender:
    def __init__(self, network=None):
        self.network = network
        self.net = None

    def fit(self, loader):
        self.net = gpu(self.network) if self.network is not None else gpu({made}())
        optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        for users, items, ratings in loader:
            loss = nn.functional.mse_loss(self.net(gpu(users), gpu(items)), gpu(ratings))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


other = gpu(Wide())
Recommender().fit(torch.utils.data.DataLoader(torch.load("ratings.pt"), num_workers=4))
"""


@pytest.mark.parametrize(
    "body",
    [
        "return what.cuda() if on else what",
        "if on:\n        what = what.cuda()\n    return what",
        "moved = what.cuda()\n    return moved",
    ],
)
@pytest.mark.parametrize(("made", "is_found"), [("Factors", False), ("Wide", True)])
def test_networks_that_a_helper_gives_back(project: Project, body: str, made: str, is_found: bool) -> None:
    """Half precision gains nothing on embeddings, however wide the other networks are that the helper moves."""
    project.configure("select = ['SPD101']\ntorch = '2.13'")
    text = FACTORS.format(body=body, made=made)
    levels = [each["level"] for each in project.findings("--notes", project.write("train.py", text))]
    assert ("warning" in levels) is is_found


WRAPPED = """
import torch
from torch import nn
from tqdm import tqdm as bar


def tqdm(*args, **kwargs):
    return bar(*args, **kwargs)


class Meter:
    def __init__(self, kept=None):
        self.total, self.kept = 0.0, kept

    def update(self, losses):
        for name, value in losses.items():
            self.total += value.item() if torch.is_tensor(value) else value


class Trainer:
    def __init__(self, net):
        self.net = net
        self.make = lambda kept=None: Meter(kept)
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def run(self, loader):
        meter, steps = self.make(), tqdm(loader)
        for number, batch in enumerate(steps):
            loss = self.net(batch["rows"].float().to("cuda")).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            meter.update({"loss": loss})


Trainer(nn.Linear(512, 512).cuda()).run(torch.utils.data.DataLoader(torch.load("rows.pt"), num_workers=4, pin_memory=True))
"""


def test_a_wrapper_of_ones_own_around_a_bar_and_a_lambda_that_an_object_keeps(project: Project) -> None:
    project.configure("select = ['SPD205', 'SPD301']")
    found = project.findings(project.write("train.py", WRAPPED))
    assert {each["code"] for each in found} == {"SPD205", "SPD301"}
