"""Modules of a project that are named like a library: `datasets`."""

from __future__ import annotations

from pathlib import Path

import pytest

from speedlint.ask.program import Program
from speedlint.ask.script import Options
from speedlint.config import Settings
from speedlint.engine import Engine
from speedlint.facts import syntax
from speedlint.registry import Registry

TRAIN = """
import torch
from torch import nn
from torch.utils.data import DataLoader
from datasets import {name}

model = nn.Linear(16, 4).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader({name}("train.h5"), batch_size=16, num_workers=4)
for epoch in range(10):
    for inputs, targets in loader:
        loss = nn.functional.mse_loss(model(inputs.cuda()), targets.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
ROWS = """
import h5py
from torch.utils.data import Dataset

class Rows(Dataset):
    def __init__(self, path):
        self.path = path

    def __len__(self):
        return 1000

    def __getitem__(self, index):
        with h5py.File(self.path) as held:
            return held["x"][index], held["y"][index]
"""


@pytest.mark.parametrize("place", ["datasets.py", "datasets/rows.py"])
def test_a_module_of_the_project_is_read(tmp_path: Path, place: str) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_text(ROWS)
    if place.endswith("rows.py"):
        (tmp_path / "datasets" / "__init__.py").write_text("from .rows import Rows\n")
    (tmp_path / "train.py").write_text(TRAIN.format(name="Rows"))
    report = Engine(Settings(tmp_path, select=("SPD209",)), Registry.load()).check(tmp_path / place)
    assert [(each.path.name, each.code) for each in report.diagnostics] == [(Path(place).name, "SPD209")]


def test_the_library_in_its_own_repository_is_the_library(tmp_path: Path) -> None:
    (tmp_path / "datasets").mkdir()
    (tmp_path / "datasets" / "__init__.py").write_text(ROWS)
    (tmp_path / "datasets" / "arrow_dataset.py").write_text("")
    (tmp_path / "train.py").write_text(TRAIN.format(name="Rows"))
    script = Program(Options((2, 13))).script(tmp_path / "train.py")
    assert not script.imports
    assert {script.name(call.func) for call in script.source.of(syntax.Call)} >= {"datasets.Rows"}
