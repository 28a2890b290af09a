"""Scripts that are slow on any machine, and what they compute once they are fixed: the same."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch

from speedlint import stages
from speedlint.ask.script import Options
from speedlint.config import Settings
from speedlint.registry import Registry
from speedlint.rule import Risk

REGISTRY = Registry.load()
HEAD = """
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 4)
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x):
        return self.norm(self.body(x))


torch.manual_seed(0)
model = Net()
loader = DataLoader(TensorDataset(torch.randn(50, 6), torch.randint(0, 4, (50,))), batch_size=8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train():
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
"""
GROWN = """

@torch.no_grad()
def predict():
    model.eval()
    outputs = torch.tensor([])
    firsts = torch.empty(0)
    scores = np.zeros((0, 4), dtype=np.float32)
    labels = np.array([], dtype=int)
    none = torch.empty(0)
    sizes = []
    for x, y in loader:
        out = model(x)
        outputs = torch.cat((outputs, out))
        firsts = torch.cat([firsts, out[:, 0]], dim=0)
        scores = np.concatenate([scores, out.numpy()], axis=0)
        labels = np.append(labels, y)
        sizes = sizes + [len(x), 1]
        out.zero_()
    for x, y in list(loader)[:0]:
        none = torch.cat([none, model(x)])
    return outputs, firsts, scores, labels, sizes, none


for epoch in range(2):
    train()
    result = predict()
"""
ROWS = """

@torch.no_grad()
def predict():
    model.eval()
    found = []
    for x, y in loader:
        outputs = []
        for i in range(x.size(0)):
            outputs.append(model(x[i].unsqueeze(0)))
        found.append(torch.cat(outputs))
    return found


for epoch in range(2):
    train()
    result = predict()
"""


def _fixed(text: str, code: str, folder: Path) -> str:
    path = folder / "train.py"
    path.write_text(text)
    settings = Settings(folder, select=(code,), risk=Risk.BEHAVIOR)
    staged = stages.fix((path,), settings, REGISTRY, Options((2, 13), "fp16"))
    assert not staged.problems
    return next((outcome.after.decode() for outcome in staged.outcomes), text)


def _run(text: str) -> Any:
    names: dict[str, Any] = {}
    exec(compile(text, "train.py", "exec"), names)
    return names["result"]


@pytest.mark.parametrize(
    ("body", "code", "gone"),
    [
        (GROWN, "SPD215", ["= torch.cat([", "= np.append", "= np.concatenate([", "= sizes +"]),
        (ROWS, "SPD310", ["in range(x"]),
    ],
    ids=["grown", "rows"],
)
def test_a_fixed_script_computes_the_same(body: str, code: str, gone: list[str], tmp_path: Path) -> None:
    before = HEAD + textwrap.dedent(body)
    after = _fixed(before, code, tmp_path)
    assert not [each for each in gone if each in after]
    for old, new in zip(_run(before), _run(after), strict=True):
        assert type(old) is type(new)
        assert getattr(old, "dtype", None) == getattr(new, "dtype", None)
        if code == "SPD310":
            torch.testing.assert_close(new, old)
        else:
            assert torch.equal(torch.as_tensor(old), torch.as_tensor(new))
