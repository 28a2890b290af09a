"""What the rules of the backend family rest on, asked of the installed torch."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import pytest
import torch
from torch import nn
from torch.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly

dist: Any = importlib.import_module("torch.distributed")
deterministic: Any = importlib.import_module("torch.utils.deterministic")


def _weights(anomaly: bool) -> list[torch.Tensor]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 2))
    with set_detect_anomaly(anomaly):
        for _ in range(5):
            loss = model(torch.randn(16, 4)).square().mean()
            gradients = torch.autograd.grad(loss, list(model.parameters()))
            with torch.no_grad():
                for weight, gradient in zip(model.parameters(), gradients, strict=True):
                    weight.sub_(gradient, alpha=0.1)
    return [each.detach() for each in model.parameters()]


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_training_is_the_same_without_anomaly_detection() -> None:
    assert all(torch.equal(on, off) for on, off in zip(_weights(True), _weights(False), strict=True))


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_set_detect_anomaly_is_a_call_and_a_context() -> None:
    assert list(inspect.signature(set_detect_anomaly).parameters) == ["mode", "check_nan"]
    assert torch.autograd.set_detect_anomaly is set_detect_anomaly
    assert torch.autograd.detect_anomaly is detect_anomaly
    assert not torch.is_anomaly_enabled()
    with set_detect_anomaly(True):
        assert torch.is_anomaly_enabled()
        with set_detect_anomaly(False):
            assert not torch.is_anomaly_enabled()
        assert torch.is_anomaly_enabled()
    with detect_anomaly():
        assert torch.is_anomaly_enabled()
    assert not torch.is_anomaly_enabled()


@pytest.mark.filterwarnings("ignore:Anomaly Detection", "ignore:Error detected in")
def test_a_nan_ends_the_run_only_under_anomaly_detection() -> None:
    def backward() -> None:
        x = torch.zeros(1, requires_grad=True)
        (torch.sqrt(x) * 0).sum().backward()  # type: ignore[no-untyped-call]

    backward()
    with set_detect_anomaly(True), pytest.raises(RuntimeError, match="nan"):
        backward()


def test_flags_of_cudnn_switch_it_off_unless_told() -> None:
    parameters = inspect.signature(torch.backends.cudnn.flags).parameters
    assert next(iter(parameters)) == "enabled"
    assert parameters["enabled"].default is False
    with torch.backends.cudnn.flags(benchmark=True):
        assert not torch.backends.cudnn.enabled
    assert torch.backends.cudnn.enabled


def test_deterministic_algorithms_fill_new_memory() -> None:
    assert list(inspect.signature(torch.use_deterministic_algorithms).parameters) == ["mode", "warn_only"]
    assert deterministic.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True)
    try:
        assert torch.empty(4).isnan().all()
    finally:
        torch.use_deterministic_algorithms(False)


def test_debug_modes_other_than_zero_are_deterministic() -> None:
    try:
        for mode in (1, 2, "warn", "error"):
            torch.set_deterministic_debug_mode(mode)
            assert torch.are_deterministic_algorithms_enabled()
    finally:
        torch.set_deterministic_debug_mode("default")
    assert not torch.are_deterministic_algorithms_enabled()


def test_profilers_and_their_switches() -> None:
    for made in (torch.autograd.profiler.profile, torch.autograd.profiler.emit_nvtx, torch.autograd.profiler.emit_itt):
        assert next(iter(inspect.signature(made).parameters)) == "enabled"
        assert inspect.signature(made).parameters["enabled"].default is True
    parameters = inspect.signature(torch.profiler.profile).parameters
    assert parameters["schedule"].default is None
    assert all(each.kind is inspect.Parameter.KEYWORD_ONLY for each in parameters.values())


def test_gradcheck_leaves_gradients_and_random_numbers_alone() -> None:
    x = torch.rand(3, dtype=torch.double, requires_grad=True)
    before = torch.get_rng_state()
    assert torch.autograd.gradcheck(torch.nn.functional.softplus, (x,))
    assert x.grad is None
    assert torch.equal(before, torch.get_rng_state())


def test_levels_of_distributed_debugging(monkeypatch: pytest.MonkeyPatch) -> None:
    for said, level in (("detail", "DETAIL"), ("INFO", "INFO"), ("OFF", "OFF")):
        monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", said)
        dist.set_debug_level_from_env()
        assert dist.get_debug_level().name == level


def test_detail_wraps_each_process_group() -> None:
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    try:
        dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
        assert dist.group.WORLD is not None
        assert type(dist.group.WORLD._get_backend(torch.device("cpu"))).__name__ == "_ProcessGroupWrapper"
    finally:
        dist.set_debug_level(dist.DebugLevel.OFF)
        dist.destroy_process_group()
