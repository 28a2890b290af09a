"""What the rules about loaders and copies rest on, asked of the installed torch."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler, TensorDataset  # noqa: E402


class Noisy(Dataset):  # type: ignore[type-arg]
    """Items that draw from their worker's own stream."""

    def __len__(self) -> int:
        return 24

    def __getitem__(self, index: int) -> Any:
        return torch.tensor(float(index)) + torch.rand(())


def _passes(prefetch_factor: int, *, is_batched: bool = False) -> list[Any]:
    torch.manual_seed(0)
    rows = Noisy()
    sampler = BatchSampler(RandomSampler(rows), 4, drop_last=True) if is_batched else None
    settings = {"batch_sampler": sampler} if is_batched else {"batch_size": 4, "shuffle": True}
    loader = DataLoader(rows, num_workers=2, prefetch_factor=prefetch_factor, **settings)
    return [*loader, torch.rand(3), *loader]


@pytest.mark.parametrize("is_batched", [False, True])
def test_batches_stay_the_same_however_many_are_ready(is_batched: bool) -> None:
    pairs = zip(_passes(1, is_batched=is_batched), _passes(4, is_batched=is_batched), strict=True)
    assert all(torch.equal(one, four) for one, four in pairs)


def test_prefetch_factor_needs_workers() -> None:
    with pytest.raises(ValueError, match="prefetch_factor"):
        DataLoader(Noisy(), prefetch_factor=1)
    assert DataLoader(Noisy(), num_workers=1).prefetch_factor == 2


def test_a_shuffled_pass_draws_once_more_at_its_end() -> None:
    """Why a generator that is handed in and a pass that is broken off make the depth of reading ahead show."""
    generator = torch.Generator().manual_seed(0)
    sampler = iter(RandomSampler(range(3), generator=generator))
    states = [generator.get_state()]
    for _ in range(3):
        next(sampler)
    states.append(generator.get_state())
    assert next(sampler, None) is None
    assert not torch.equal(states[-1], generator.get_state())


@pytest.mark.parametrize("kind", ["float64", "float32", "float16", "int64", "int32", "uint8", "bool", "complex64"])
def test_a_tensor_of_arrays_of_one_kind_is_the_tensor_of_their_array(kind: str) -> None:
    arrays = [np.arange(6).reshape(2, 3).astype(kind)] * 2
    listed, joined = torch.tensor(arrays), torch.tensor(np.array(arrays))
    assert listed.dtype is joined.dtype
    assert torch.equal(listed, joined)


@pytest.mark.parametrize("maker", ["FloatTensor", "DoubleTensor", "Tensor"])
@pytest.mark.parametrize("kinds", [("float64",), ("float32", "float64"), ("float32", "int64"), ()])
def test_a_tensor_of_a_given_kind_of_any_arrays_is_that_of_their_array(maker: str, kinds: tuple[str, ...]) -> None:
    arrays = [(np.arange(6) / 7).astype(kind) for kind in kinds]
    listed, joined = (getattr(torch, maker)(data) for data in (arrays, np.array(arrays)))
    assert listed.dtype is joined.dtype
    assert torch.equal(listed, joined)
    given = torch.float32
    assert torch.equal(torch.tensor(arrays, dtype=given), torch.tensor(np.array(arrays), dtype=given))


def test_without_a_kind_mixed_and_missing_arrays_make_another_one() -> None:
    for arrays in ([np.zeros(2, "float32"), np.zeros(2, "int64")], []):
        assert torch.tensor(arrays).dtype is torch.float32
        assert torch.tensor(np.array(arrays)).dtype is torch.float64


def test_fractions_are_cut_alike() -> None:
    arrays = [np.array([1.7, -2.7])]
    assert torch.equal(torch.LongTensor(arrays), torch.LongTensor(np.array(arrays)))


def test_torch_calls_a_list_of_arrays_slow_and_one_of_their_numbers_not() -> None:
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            torch.tensor([np.zeros(3)])
            torch.tensor([np.float32(3)])
    finally:
        torch.set_warn_always(False)
    assert sum("extremely slow" in str(each.message) for each in caught) == 1


def test_to_takes_non_blocking_and_cpu_does_not() -> None:
    tensor = torch.ones(3)
    assert torch.equal(tensor.to("cpu", non_blocking=True), tensor)
    with warnings.catch_warnings(), pytest.raises(TypeError):
        warnings.simplefilter("ignore")
        tensor.cpu(non_blocking=True)


@pytest.mark.parametrize("is_part", [False, True])
def test_batches_of_row_numbers_give_the_batches_that_are_stacked_of_rows(is_part: bool) -> None:
    rows: Any = TensorDataset(torch.arange(100.0), torch.arange(200).view(100, 2))
    if is_part:
        rows = torch.utils.data.Subset(rows, list(range(7, 60)))
    torch.manual_seed(0)
    stacked = [*DataLoader(rows, batch_size=8, shuffle=True), torch.rand(2)]
    torch.manual_seed(0)
    sampler = BatchSampler(RandomSampler(rows), 8, drop_last=False)
    indexed = [*DataLoader(rows, sampler=sampler, batch_size=None), torch.rand(2)]
    assert len(stacked) == len(indexed)
    for one, other in zip(stacked, indexed, strict=True):
        assert all(torch.equal(left, right) for left, right in zip(one, other, strict=True))
