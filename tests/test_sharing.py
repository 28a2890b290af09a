"""Loaders that nothing shares among the processes of a distributed training: SPD214, where no file of its own can show it
beside those that do share."""

from __future__ import annotations

from pathlib import Path

import pytest

from speedlint.config import Settings
from speedlint.engine import Engine
from speedlint.registry import Registry

REGISTRY = Registry.load()
SCRIPT = """
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, RandomSampler


class Rows(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __getitem__(self, index):
        return self.rows[index], 0


def main(gpu, rows, epochs):
    model = DistributedDataParallel(nn.Linear(3, 3).to(gpu), device_ids=[gpu])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Rows(rows), batch_size=64, shuffle=True)
    for _ in range(epochs):
        for images, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
"""
LOADER = "DataLoader(Rows(rows), batch_size=64, shuffle=True)"


def _found(folder: Path, text: str) -> list[int]:
    path = folder / "train.py"
    path.write_text(text)
    report = Engine(Settings(folder, select=("SPD214",), torch=(2, 13)), REGISTRY).check(path)
    assert not report.problems
    return [each.line for each in report.diagnostics]


def test_a_loader_that_nothing_shares(tmp_path: Path) -> None:
    assert _found(tmp_path, SCRIPT) == [19]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("model = DistributedDataParallel(nn.Linear(3, 3).to(gpu), device_ids=[gpu])", "model = nn.Linear(3, 3)"),
        (LOADER, "DataLoader(Rows(rows[gpu_rank::2]), batch_size=64)"),
        (LOADER, "DataLoader(Rows(rows), batch_size=64, sampler=RandomSampler(rows))"),
        (LOADER, "DataLoader(rows, **options)"),
        ("self.rows = rows", "self.rows = rows[int(os.environ['LOCAL_RANK']) :: world_size]"),
        ("epochs):", "epochs, made=torch.utils.data.distributed.DistributedSampler):"),
        ("for _ in range(epochs):", "if epochs:"),
        ("import torch\n", "import torch\nimport horovod.torch as hvd\n"),
    ],
)
def test_loaders_that_are_shared_or_read_by_one_process(tmp_path: Path, before: str, after: str) -> None:
    assert before in SCRIPT
    assert _found(tmp_path, SCRIPT.replace(before, after)) == []
