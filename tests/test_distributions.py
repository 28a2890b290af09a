"""What probability distributions give lies where their parameters do."""

from __future__ import annotations

import pytest

from tests.conftest import Project

TEXT = """
import gymnasium as gym
import torch
from torch import distributions as pyd
from torch import nn
from torch.distributions import Categorical, Independent, Normal, kl_divergence
from torch.utils.data import DataLoader


class Squashed(pyd.Normal):
    def __init__(self, loc, scale, low=-1.0):
        super().__init__(loc, scale)
        self.low = low

    def perplexity(self):
        return 2.0


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Linear(1024, 1024)

    def forward(self, x):
        return Squashed(self.layers(x), torch.ones_like(x))


def train(loader, world):
    model, actor = nn.Linear(1024, 1024).cuda(), Actor().cuda()
    optimizer = torch.optim.SGD([*model.parameters(), *actor.parameters()], lr=0.1)
    total = 0.0
    for x, y in loader:
        x = x.cuda()
        choice, own, fixed = Categorical(logits=model(x)), actor(x), Normal(torch.zeros(4), torch.ones(4))
        loss = -choice.log_prob(y.cuda()).mean() + own.rsample().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        READS
    return total


train(DataLoader(torch.load("rows.pt"), batch_size=64, num_workers=2), gym.make("CartPole-v1"))
"""


@pytest.mark.parametrize(
    ("reads", "count"),
    [
        ("total += choice.entropy().mean().item()", 1),
        ("total += own.entropy().sum(-1).mean().item()", 1),
        ("total += own.loc.mean().item()", 1),
        ("total += Independent(own, 1).entropy().mean().item()", 1),
        ("total += kl_divergence(choice, choice).mean().item()", 1),
        ("total += own.perplexity()", 0),
        ("total += own.low", 0),
        ("total += fixed.sample().sum().item()", 0),
        ("world.step(choice.sample()[0].item())", 0),
    ],
)
def test_reads_of_what_a_distribution_gives(project: Project, reads: str, count: int) -> None:
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    assert len(project.findings(project.write("train.py", TEXT.replace("READS", reads)))) == count
