"""What Hydra makes of a configuration, and imports for it."""

from __future__ import annotations

import pytest

from tests.conftest import Project

AGENT = """
import torch
from torch import nn


class Agent:
    def __init__(self, device, rate, every):
        self.device, self.every = device, every
        self.critic = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(8)]).to(device)
        self.optimizer = torch.optim.SGD(self.critic.parameters(), lr=rate)
        self.shown = {}

    def update(self, batches, step):
        if step % self.every != 0:
            return
        states, values = next(batches)
        self.fit(states.to(self.device), values.to(self.device))
        self.shown["mean"] = values.mean()

    def fit(self, states, values):
        loss = nn.functional.mse_loss(self.critic(states), values)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.shown["loss"] = loss.item()
"""
TRAIN = """
import hydra
import torch
from torch.utils.data import DataLoader


def made(config):
    config.rate = 0.1
    return hydra.utils.instantiate(config)


class Workspace:
    def __init__(self, config):
        self.config = config
        self.agent = made(self.config.agent)
        self.batches = iter(DataLoader(torch.load("rows.pt"), batch_size=256, num_workers=4))

    def train(self):
        step = 0
        while step < self.config.steps:
            self.agent.update(self.batches, step)
            step += 1


@hydra.main(config_path="conf", config_name="config", version_base=None)
def main(config):
    from train import Workspace as W
    W(config).train()


main()
"""


@pytest.mark.parametrize(
    ("configs", "is_found"),
    [
        ({"conf/config.yaml": "steps: 9000\nagent:\n  _target_: agents.Agent\n  device: cuda\n  every: 2\n"}, True),
        (
            {
                "conf/config.yaml": "defaults:\n  - agent: wide\nsteps: 9000\n",
                "conf/agent/wide.yaml": "_target_: agents.Agent\ndevice: cuda\nevery: 2\n",
            },
            True,
        ),
        ({"conf/config.yaml": "steps: 9000\nother:\n  _target_: agents.Agent\n  device: cuda\n"}, False),
        ({"conf/config.yaml": "steps: 9000\nagent:\n  _target_: gone.Agent\n  device: cuda\n"}, False),
        ({"conf/config.yaml": "steps: 9000\nagent: [\n"}, False),
        (
            {
                "conf/config.yaml": "steps: 9000\nzoo:\n  _target_: others.Agent\nagent: ${zoo}\n",
                "conf/old.yaml": "agent:\n  _target_: agents.Agent\n  device: cuda\n",
            },
            False,
        ),
        (
            {
                "conf/config.yaml": "steps: 9000\nagent:\n  _target_: agents.Agent\n  device: cuda\n",
                "README.md": "    python train.py agent._target_=others.Agent\n",
            },
            False,
        ),
        (
            {"conf/config.yaml": "steps: 9000\nagent:\n  _target_: agents.Agent\n  _partial_: true\n  device: cuda\n"},
            False,
        ),
        (
            {
                "conf/config.yaml": "defaults:\n  - other@agent: wide\nsteps: 9000\n",
                "conf/other/wide.yaml": "_target_: others.Agent\n",
                "conf/old.yaml": "agent:\n  _target_: agents.Agent\n  device: cuda\n",
            },
            False,
        ),
    ],
)
def test_an_agent_that_a_configuration_names_trains_where_it_is_called(
    project: Project, configs: dict[str, str], is_found: bool
) -> None:
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    project.write("train.py", TRAIN)
    for name, text in configs.items():
        project.write(name, text)
    found = project.findings("--notes", project.write("agents.py", AGENT))
    assert [(each["level"], "in every training step" in each["message"]) for each in found] == [("warning", True)] * is_found


def test_an_edit_of_the_configuration_is_seen(project: Project) -> None:
    """What the last run kept holds only for the configurations that it read."""
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    project.write("train.py", TRAIN)
    agents = project.write("agents.py", AGENT)
    project.write("conf/config.yaml", "steps: 9000\nagent:\n  _target_: others.Agent\n  device: cuda\n")
    assert not project.findings(agents)
    project.write("conf/config.yaml", "steps: 9000\nagent:\n  _target_: agents.Agent\n  device: cuda\n")
    assert len(project.findings(agents)) == 1
    project.write("conf/config.yaml", "steps: 9000\n")
    assert not project.findings(agents)


THROTTLES = """
import torch
from torch import nn
from torch.utils.data import DataLoader


class Trainer:
    def __init__(self, every):
        self.model, self.every, self.total = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(8)]).cuda(), every, 0.0
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def take(self, step, x, y):
        BEFORE
        if step % self.every != 0:
            return
        loss = nn.functional.mse_loss(self.model(x.cuda()), y.cuda())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.total += loss.item()


trainer = Trainer(4)
for step, (x, y) in enumerate(DataLoader(torch.load("rows.pt"), batch_size=64, num_workers=4)):
    trainer.take(step, x, y)
"""


@pytest.mark.parametrize(
    ("before", "level"),
    [
        ("pass", "warning"),
        ("nn.functional.mse_loss(self.model(x.cuda()), y.cuda()).backward()", "note"),
    ],
)
def test_a_function_that_is_left_before_it_trains(project: Project, before: str, level: str) -> None:
    """What follows runs in each step that is taken; not where the gradients were gathered before."""
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    text = THROTTLES.replace("BEFORE", before)
    (found,) = [each for each in project.findings("--notes", project.write("train.py", text)) if each["code"] == "SPD301"]
    assert found["level"] == level


def test_a_step_that_is_taken_beside_the_others_now_and_then(project: Project) -> None:
    """A regularizer with an optimizer step of its own in each fourth turn, and the training in each."""
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    beside = """    def regular(self, x, y):
        loss = nn.functional.mse_loss(self.model(x.cuda()), y.cuda())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


trainer = Trainer(4)"""
    text = THROTTLES.replace("BEFORE", "pass").replace("\ntrainer = Trainer(4)", beside)
    text = text.replace("    trainer.take(step, x, y)", "    trainer.regular(x, y)\n    trainer.take(step, x, y)")
    (found,) = project.findings("--notes", project.write("train.py", text))
    assert (found["level"], "now and then" in found["message"]) == ("note", True)


LOOKED_UP = """
import argparse

import torch
from torch.utils.data import DataLoader

import models

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="wide")
args = parser.parse_args()
model = models.__dict__[args.model]().cuda()
optimizer = torch.optim.Adam(model.parameters())
for x, y in DataLoader(torch.load("rows.pt"), batch_size=64, num_workers=4):
    loss = torch.nn.functional.mse_loss(model(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
MODELS = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*[nn.Conv2d(64, 64, 3) for _ in range(20)])

    def forward(self, x):
        x = self.layers(x)
        return LOSS


def wide():
    return Net()
"""


@pytest.mark.parametrize("loss", ["x", "nn.functional.binary_cross_entropy(x.sigmoid(), x.detach().sigmoid())"])
@pytest.mark.parametrize("name", ["wide", "gone"])
def test_a_network_that_is_looked_up_is_told_and_not_proven(project: Project, loss: str, name: str) -> None:
    """Its size is known from the classes that the names lead to; what float16 breaks in it is not looked for."""
    project.configure("select = ['SPD101']\ntorch = '2.13'")
    project.write("models.py", MODELS.replace("LOSS", loss))
    text = LOOKED_UP.replace('default="wide"', f'default="{name}"')
    (found,) = project.findings("--notes", project.write("train.py", text))
    assert found["fix"] is None
    assert found["level"] == ("warning" if name == "wide" else "note")
