"""What the rules about datasets and loaders rest on, asked of the torch that is installed."""

from __future__ import annotations

import inspect
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset
from torch.utils.data.distributed import DistributedSampler

RELEASE = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])


class Counted(Dataset[int]):
    def __init__(self) -> None:
        self.reads = 0

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        self.reads += 1
        return index


def test_each_pass_reads_each_item_again() -> None:
    dataset = Counted()
    loader = DataLoader(dataset, batch_size=2)
    for _ in range(3):
        list(loader)
    assert dataset.reads == 12


def test_pin_memory_device_is_a_keyword_and_changes_nothing_but_a_warning() -> None:
    parameter = inspect.signature(DataLoader.__init__).parameters["pin_memory_device"]
    assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
    assert parameter.default == ""
    if RELEASE < (2, 9):
        pytest.skip("it is not deprecated yet")
    dataset = TensorDataset(torch.arange(8))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        given = [batch for (batch,) in DataLoader(dataset, 2, pin_memory=True, pin_memory_device="cuda")]
    assert any("pin_memory_device is deprecated" in str(warning.message) for warning in caught)
    plain = [batch for (batch,) in DataLoader(dataset, 2, pin_memory=torch.cuda.is_available())]
    assert all(torch.equal(left, right) for left, right in zip(given, plain, strict=True))


def test_workers_beyond_the_cores_warn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1}, raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    with pytest.warns(UserWarning, match="running slow or even freeze"):
        DataLoader(TensorDataset(torch.arange(4)), num_workers=17)


def test_a_sampler_has_one_order_until_it_is_told_the_epoch() -> None:
    sampler: DistributedSampler[Any] = DistributedSampler(TensorDataset(torch.arange(100)), num_replicas=2, rank=0)
    first = list(sampler)
    assert list(sampler) == first
    sampler.set_epoch(1)
    assert list(sampler) != first


def test_where_a_sampler_is_told_to_shuffle() -> None:
    parameters = list(inspect.signature(DistributedSampler.__init__).parameters)
    assert parameters[1:5] == ["dataset", "num_replicas", "rank", "shuffle"]
    assert inspect.signature(DistributedSampler.__init__).parameters["shuffle"].default is True


def test_processes_without_a_sampler_read_all_of_the_data() -> None:
    dataset = TensorDataset(torch.arange(10))
    shares: list[DistributedSampler[Any]] = [
        DistributedSampler(dataset, num_replicas=2, rank=rank, shuffle=False) for rank in range(2)
    ]
    assert sorted(index for share in shares for index in share) == list(range(10))
    assert len(list(DataLoader(dataset))) == 10


def test_a_loader_made_anew_shuffles_anew() -> None:
    dataset = TensorDataset(torch.arange(64))
    torch.manual_seed(0)
    orders = [torch.cat([batch for (batch,) in DataLoader(dataset, 8, shuffle=True)]) for _ in range(2)]
    once = DataLoader(dataset, 8, shuffle=True)
    orders += [torch.cat([batch for (batch,) in once]) for _ in range(2)]
    assert len({tuple(order.tolist()) for order in orders}) == 4


def test_an_archive_is_unpacked_again_each_time_it_is_asked(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "scan.npz", image=np.zeros((4, 4)))
    with np.load(tmp_path / "scan.npz") as archive:
        assert archive["image"] is not archive["image"]
    np.save(tmp_path / "scan.npy", np.arange(8))
    assert isinstance(np.load(tmp_path / "scan.npy", mmap_mode="r"), np.memmap)
