"""Batches that a memory of the project's own hands over, part by part."""

from __future__ import annotations

import pytest

from tests.conftest import Project

TEXT = """
import random
from collections import deque

import numpy as np
import torch
from torch import nn


class Memory:
    def __init__(self):
        self.rows = deque(maxlen=100_000)
        self.states = np.zeros((100_000, 8))

    def push(self, *row):
        self.rows.append(row)

    def sample(self, count):
        drawn = random.sample(self.rows, count)
        places = np.random.randint(0, 100_000, count)
        states = {states}
        return states, np.array([row[1] for row in drawn], dtype=np.float32)


class Agent:
    def __init__(self, device=None):
        self.device = device or torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.net, self.memory = nn.Linear(8, 1).to(self.device), Memory()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def update(self):
        states, rewards = self.memory.sample(256)
        states = torch.FloatTensor(states).to(self.device)
        loss = (self.net(states) - torch.ones(256, 1, device=self.device)).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


agent = Agent()
for _ in range(100_000):
    agent.memory.push(np.zeros(8), 1.0)
    agent.update()
"""


@pytest.mark.parametrize(
    ("states", "is_found"),
    [
        ("np.array([row[0] for row in drawn], dtype=np.float32)", True),
        ("np.array([state for state, reward in drawn])", True),
        ("np.stack([row[0] for row in drawn])", True),
        ("self.states[places]", True),
        ("np.zeros((count, 8))", False),
        ("np.array([len(drawn) for row in drawn])", False),
    ],
)
def test_what_a_memory_hands_over_is_a_part_of_what_it_holds(project: Project, states: str, is_found: bool) -> None:
    project.configure("select = ['SPD205']")
    project.write("README.md", "# Training\n")
    found = project.findings(project.write("train.py", TEXT.replace("{states}", states)))
    assert ["`self.memory`" in each["message"] for each in found] == [True] * is_found
