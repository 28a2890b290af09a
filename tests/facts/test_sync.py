"""What the rules of the sync family rest on, asked of the installed torch."""

from __future__ import annotations

import gc
import importlib
import inspect

import numpy as np
import pytest
import torch

from speedlint.torch import distributions

META = torch.device("meta")


@pytest.mark.parametrize("name", ["zeros", "ones", "full", "eye", "arange", "empty", "linspace", "rand", "randn", "randint"])
def test_factories_take_a_device_and_keep_shape_and_dtype(name: str) -> None:
    given = {"full": ((2, 3), 1), "eye": (3,), "arange": (5,), "linspace": (0, 1, 5), "randint": (0, 4, (2, 3))}
    factory, arguments = getattr(torch, name), given.get(name, (2, 3))
    there, here = factory(*arguments, device=META), factory(*arguments)
    assert there.device == META
    assert (there.shape, there.dtype, there.requires_grad) == (here.shape, here.dtype, here.requires_grad)


@pytest.mark.parametrize("name", ["randperm", "tril_indices", "triu_indices"])
def test_index_factories_take_a_device(name: str) -> None:
    assert getattr(torch, name)(*([3] if name == "randperm" else [3, 3]), device="cpu").device.type == "cpu"


def test_a_device_may_be_a_number_or_none() -> None:
    assert torch.zeros(2, device=None).device.type == "cpu"
    with pytest.raises((RuntimeError, AssertionError)):
        torch.zeros(2, device=0) if not torch.cuda.is_available() else torch.zeros(2, device=10**4)


def test_a_copy_of_what_asks_for_its_gradient_is_no_leaf() -> None:
    assert not torch.zeros(2, requires_grad=True).to(META).is_leaf
    assert torch.zeros(2, requires_grad=True, device=META).is_leaf


def test_a_generator_belongs_to_its_device() -> None:
    with pytest.raises(RuntimeError):
        torch.rand(2, generator=torch.Generator(), device=META).to("cpu")


def test_conversion_then_copy_is_copy_then_conversion() -> None:
    assert torch.equal(torch.eye(3).to(torch.half), torch.eye(3, dtype=torch.half))
    assert torch.equal(torch.arange(5).view(-1, 1).repeat(1, 2), torch.arange(5, device="cpu").view(-1, 1).repeat(1, 2))


def test_full_makes_the_dtype_of_a_number_as_tensor_does() -> None:
    for number in (3, 0.5, True):
        assert torch.full((), number).dtype == torch.tensor(number).dtype
        assert torch.equal(torch.full((), number), torch.tensor(number))


def test_an_empty_cache_is_no_state_of_training() -> None:
    assert not inspect.signature(torch.cuda.empty_cache).parameters
    torch.cuda.empty_cache()
    before = torch.get_rng_state()
    gc.collect()
    assert torch.equal(before, torch.get_rng_state())


def test_caches_are_emptied_under_these_names() -> None:
    for module in (torch.cuda, torch.cuda.memory, torch.xpu, torch.mps, torch.accelerator):
        assert callable(module.empty_cache)


def test_a_single_number_as_an_index_is_read_on_the_host() -> None:
    table, chosen = torch.arange(6).reshape(3, 2), torch.tensor([2, 0])
    with torch.profiler.profile() as one_by_one:
        stacked = torch.stack([table[each] for each in chosen])
    with torch.profiler.profile() as at_once:
        gathered = table[chosen]
    reads = [sum(event.name == "aten::_local_scalar_dense" for event in run.events()) for run in (one_by_one, at_once)]
    assert reads == [2, 0]
    assert torch.equal(stacked, gathered)


@pytest.mark.parametrize(
    "start",
    [torch.tensor([]), torch.empty(0), torch.zeros(0, 3), torch.zeros((0, 3), dtype=torch.float64), torch.LongTensor([])],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.float16])
def test_tensors_are_the_same_joined_at_once_or_one_by_one(start: torch.Tensor, dtype: torch.dtype) -> None:
    parts = [torch.arange(6).reshape(2, 3).to(dtype) + each for each in range(3)]
    grown, again = start, start
    for part in parts:
        grown, again = torch.cat([grown, part]), torch.vstack((again, part)) if start.ndim > 1 else again
    joined = torch.cat([start, *parts])
    assert joined.dtype == grown.dtype
    assert torch.equal(joined, grown)
    assert start.ndim == 1 or torch.equal(torch.vstack([start, *parts]), again)
    assert torch.equal(torch.cat([start]), start)


@pytest.mark.parametrize("start", [np.array([]), np.array([], dtype=int), np.empty(0, np.float32), np.zeros((0,), np.uint8)])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8])
def test_arrays_are_the_same_joined_at_once_or_one_by_one(start: np.ndarray, dtype: type) -> None:
    parts = [np.arange(6).reshape(2, 3).astype(dtype) + dtype(each) for each in range(3)]
    appended, joined = start, start
    for part in parts:
        appended, joined = np.append(appended, part), np.concatenate([joined, part.ravel()])
    at_once = np.concatenate([start, *(np.array(part).ravel() for part in parts)])
    assert at_once.dtype == appended.dtype == joined.dtype
    assert np.array_equal(at_once, appended) and np.array_equal(at_once, joined)
    wide = np.zeros((0, 3))
    for part in parts:
        wide = np.append(wide, part, axis=0)
    assert np.array_equal(np.concatenate([np.zeros((0, 3)), *parts], axis=0), wide)


@pytest.mark.parametrize("name", distributions.CHECKED)
def test_distributions_ask_whether_their_arguments_are_valid(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[torch.Tensor] = []
    truth = torch.Tensor.__bool__

    def ask(tensor: torch.Tensor) -> bool:
        asked.append(tensor)
        return truth(tensor)

    monkeypatch.setattr(torch.Tensor, "__bool__", ask)
    monkeypatch.setattr(torch.distributions.Distribution, "_validate_args", True)
    made = getattr(torch.distributions, name)
    parameters = [each for each in distributions.CHECKED[name] if each != "logits"]
    given = {each: torch.full((3,), 1.5 if each == "high" else 0.5) for each in parameters}
    assert tuple(inspect.signature(made).parameters)[: len(distributions.CHECKED[name])] == distributions.CHECKED[name]
    drawn = made(**given).sample()
    assert asked
    asked.clear()
    made(**given, validate_args=False).log_prob(drawn)
    assert not asked


def test_compiling_switches_the_checks_of_distributions_off() -> None:
    switched = "torch.distributions.Distribution.set_default_validate_args(False)"
    assert switched in inspect.getsource(importlib.import_module("torch._dynamo.eval_frame"))
