"""Classes of a library's that a program looks up by a name, and steps that run backward whole or by parts."""

from __future__ import annotations

import pytest

from tests.conftest import Project

TRAINS = """
import sys
import torch
from torch import nn, optim
import torchvision.models


def train(model, optimizer, loader, chunks):
    total = 0.0
    for rows, labels in loader:
        rows, labels = rows.cuda(), labels.cuda()
        model.zero_grad()
        {backward}
        optimizer.step()
        total += loss.item()
    return total


net = {network}
net.cuda()
train(net, {optimizer}, torch.load("batches.pt"), int(sys.argv[3]))
"""
WHOLE = "loss = nn.functional.cross_entropy(model(rows), labels)\n        loss.backward()"
PARTS = """if chunks > 1:
            loss = 0.0
            for part, each in zip(rows.chunk(chunks), labels.chunk(chunks)):
                some = nn.functional.cross_entropy(model(part), each) / chunks
                some.backward()
                loss = loss + some.detach()
        else:
            loss = nn.functional.cross_entropy(model(rows), labels)
            loss.backward()"""
BY_PARTS = """loss = 0.0
        for part, each in zip(rows.chunk(chunks), labels.chunk(chunks)):
            some = nn.functional.cross_entropy(model(part), each) / chunks
            some.backward()
            loss = loss + some.detach()"""
LAYERS = "nn.Sequential(*[nn.Linear(512, 512) for _ in range(9)])"


@pytest.mark.parametrize(
    ("turns", "level"),
    [
        ("for rows, labels in loader:", "warning"),
        ("for step in range(900):\n        rows, labels = next(loader)", "note"),
    ],
)
def test_a_step_by_parts(project: Project, turns: str, level: str) -> None:
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    optimizer = "optim.SGD(net.parameters(), lr=0.1)"
    text = TRAINS.format(backward=BY_PARTS, network=LAYERS, optimizer=optimizer)
    text = text.replace("for rows, labels in loader:", turns)
    assert [each["level"] for each in project.findings(project.write("train.py", text), "--notes")] == [level]


@pytest.mark.parametrize(
    ("backward", "network", "optimizer"),
    [
        (WHOLE, LAYERS, "getattr(optim, sys.argv[1])(net.parameters(), lr=0.1)"),
        (PARTS, LAYERS, "getattr(optim, sys.argv[1])(net.parameters(), lr=0.1)"),
        (PARTS, LAYERS, "optim.__dict__[sys.argv[1]](net.parameters(), lr=0.1)"),
        (PARTS, "getattr(torchvision.models, sys.argv[2])()", "optim.SGD(net.parameters())"),
        (PARTS, "torchvision.models.__dict__[sys.argv[2]]()", "optim.SGD(net.parameters())"),
    ],
)
def test_how_often_a_loss_is_read(project: Project, backward: str, network: str, optimizer: str) -> None:
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    text = TRAINS.format(backward=backward, network=network, optimizer=optimizer)
    assert [each["level"] for each in project.findings(project.write("train.py", text), "--notes")] == ["warning"]
