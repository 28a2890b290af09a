"""Trainings that can only run on the CPU, since torch refuses on a GPU what they do in each epoch."""

from __future__ import annotations

import pytest

from tests.conftest import Project

TRAIN = """
import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def score(model, loader):
    outputs, actual = [], []
    with torch.no_grad():
        for x, y in loader:
            x = x.to(device)
            y = y.to({device})
            outputs.append(model(x).cpu().numpy())
            {reads}
    return outputs, actual


def train(model, loader, optimizer):
    total = 0.0
    for epoch in range(100):
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            loss = torch.nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        {scored}
    return total


rows = TensorDataset(torch.load("rows.pt"), torch.load("labels.pt"))
net = torch.nn.Sequential(torch.nn.Linear(512, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 10)).to(device)
train(net, DataLoader(rows, 512, shuffle=True), torch.optim.Adam(net.parameters()))
"""


@pytest.mark.parametrize(
    ("device", "reads", "scored", "is_on_gpu"),
    [
        ("device", "actual.append(y.detach().numpy())", "score(model, loader)", False),
        ("device", "actual.append(y.numpy())", "score(model, loader)", False),
        ("device", "actual.append(y.cpu().numpy())", "score(model, loader)", True),
        ("'cpu'", "actual.append(y.numpy())", "score(model, loader)", True),
        ("device", "if device.type == 'cpu':\n                actual.append(y.numpy())", "score(model, loader)", True),
        ("device", "actual.append(y.numpy())", "pass", True),
        ("device", "actual.append(y.numpy())", "if device.type == 'cpu':\n            score(model, loader)", True),
        ("device", "y = y.cpu()\n            actual.append(y.numpy())", "score(model, loader)", True),
        ("device", "actual.append(y.numpy(force=True))", "score(model, loader)", True),
        ("torch.device('cuda:1')", "actual.append(y.numpy())", "score(model, loader)", True),
        ("kept_on", "actual.append(y.numpy())", "score(model, loader)", True),
        (
            "device",
            "if y.is_cuda:\n                continue\n            actual.append(y.numpy())",
            "score(model, loader)",
            True,
        ),
        (
            "device",
            "for each in actual:\n                break\n            actual.append(y.numpy())",
            "score(model, loader)",
            False,
        ),
        (
            "device",
            "try:\n                actual.append(y.numpy())\n            except TypeError:\n                pass",
            "score(model, loader)",
            True,
        ),
    ],
)
def test_arrays_of_what_was_moved(project: Project, device: str, reads: str, scored: str, is_on_gpu: bool) -> None:
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    text = TRAIN.format(device=device, reads=reads, scored=scored)
    assert [each["code"] for each in project.findings(project.write("train.py", text))] == ["SPD301"] * is_on_gpu
