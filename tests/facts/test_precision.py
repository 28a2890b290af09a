"""What the precision rules rest on, asked of the installed torch."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn

OLD: dict[str, Callable[[], Any]] = {
    "allow_tf32": lambda: setattr(matmul, "allow_tf32", True),
    "set_float32_matmul_precision": lambda: torch.set_float32_matmul_precision("high"),
}


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    _reset()


def _reset() -> None:
    torch.set_float32_matmul_precision("highest")
    cudnn.allow_tf32 = True
    matmul.fp32_precision = "none"


def _state() -> tuple[object, ...]:
    old = (matmul.allow_tf32, torch.get_float32_matmul_precision(), cudnn.allow_tf32)
    return (*old, matmul.fp32_precision, cudnn.conv.fp32_precision, cudnn.rnn.fp32_precision)


def _after(*sets: Callable[[], None]) -> tuple[object, ...]:
    _reset()
    for each in sets:
        each()
    return _state()


def _allow_matmul() -> None:
    matmul.fp32_precision = "tf32"


def test_the_old_setting_cannot_be_read_once_the_new_one_allows_tf32() -> None:
    _allow_matmul()
    for read in (torch.get_float32_matmul_precision, lambda: matmul.allow_tf32):
        with pytest.raises(RuntimeError, match="mix"):
            read()


@pytest.mark.parametrize("old", OLD)
def test_the_new_setting_adds_nothing_to_an_old_one_that_says_the_same(old: str) -> None:
    assert _after(OLD[old]) == _after(OLD[old], _allow_matmul) == _after(_allow_matmul, OLD[old])


def test_the_same_of_convolutions() -> None:
    def old() -> None:
        cudnn.allow_tf32 = True

    def new() -> None:
        cudnn.conv.fp32_precision = "tf32"

    assert _after(old) == _after(old, new) == _after(new, old)


@pytest.mark.parametrize("old", OLD)
def test_of_two_settings_the_last_holds(old: str) -> None:
    _after(OLD[old])
    matmul.fp32_precision = "ieee"
    assert matmul.fp32_precision == "ieee"
    OLD[old]()
    assert matmul.fp32_precision == "tf32"


def _trained(*, is_enabled: bool) -> list[Any]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9, weight_decay=0.1)
    scaler = torch.amp.GradScaler("cpu", enabled=is_enabled)
    for _ in range(5):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(torch.randn(8, 16)), torch.randint(4, (8,)))
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    return [parameter.detach() for parameter in model.parameters()]


def test_finite_gradients_come_out_the_same_without_a_scaler() -> None:
    pairs = zip(_trained(is_enabled=True), _trained(is_enabled=False), strict=True)
    assert all(torch.equal(scaled, plain) for scaled, plain in pairs)


def test_a_scaler_skips_infinite_gradients_and_a_disabled_one_does_not() -> None:
    found = []
    for is_enabled in (True, False):
        weight = torch.nn.Parameter(torch.ones(2))
        optimizer = torch.optim.SGD([weight], lr=1.0)
        scaler = torch.amp.GradScaler("cpu", enabled=is_enabled)
        scaler.scale((weight * float("inf")).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        found.append(bool(torch.isfinite(weight).all()))
    assert found == [True, False]


def test_a_disabled_scaler_ignores_a_saved_state() -> None:
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    scaler.load_state_dict(torch.amp.GradScaler("cpu").state_dict())
    assert scaler.state_dict() == {}
    assert scaler.get_scale() == 1.0


def test_where_enabled_stands_among_the_arguments() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        old = torch.cpu.amp.GradScaler(65536.0, 2.0, 0.5, 2000, False)
    assert not old.is_enabled()
    assert not torch.amp.GradScaler("cpu", 65536.0, 2.0, 0.5, 2000, False).is_enabled()


def test_what_makes_a_network_double() -> None:
    layer = torch.nn.Linear(2, 2)
    assert layer.double().weight.dtype is torch.float64
    assert torch.nn.Linear(2, 2).to("cpu", torch.float64).weight.dtype is torch.float64
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.nn.Linear(2, 2).weight.dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


HALF, ROWS = torch.ones(4, 4, dtype=torch.bfloat16), torch.arange(4)
MET: dict[str, Callable[[Any], Any]] = {
    "linear": lambda full: torch.nn.Linear(4, 4)(HALF),
    "convolution": lambda full: torch.nn.Conv1d(4, 4, 1)(HALF),
    "recurrent": lambda full: torch.nn.LSTM(4, 4)(HALF),
    "product": lambda full: HALF @ full,
    "einsum": lambda full: torch.einsum("ij,jk", HALF, full),
    "rows": lambda full: full.__setitem__(ROWS, HALF),
    "index_copy_": lambda full: full.index_copy_(0, ROWS, HALF),
    "index_add_": lambda full: full.index_add_(0, ROWS, HALF),
    "scatter_": lambda full: full.scatter_(0, ROWS.expand(4, 4), HALF),
    "masked_scatter_": lambda full: full.masked_scatter_(full > 0, HALF),
    "put_": lambda full: full.put_(ROWS, HALF[0]),
    "lerp_": lambda full: full.lerp_(HALF, 0.1),
    "quantile": lambda full: HALF.quantile(0.5),
    "inverse": lambda full: torch.inverse(HALF),
    "numpy": lambda full: HALF.numpy(),
}
CAST: dict[str, Callable[[Any], Any]] = {
    "slice": lambda full: full.__setitem__(slice(0, 4), HALF),
    "copy_": lambda full: full.copy_(HALF),
    "cat": lambda full: torch.cat([full, HALF]),
    "mul_": lambda full: full.mul_(HALF),
    "mse_loss": lambda full: torch.nn.functional.mse_loss(HALF, full),
}


@pytest.mark.parametrize("name", MET)
def test_half_precision_raises_where_it_meets_float32(name: str) -> None:
    with pytest.raises((RuntimeError, TypeError, ValueError)):
        MET[name](torch.ones(4, 4))


@pytest.mark.parametrize("fill", ["masked_fill", "full_like"])
def test_what_half_precision_does_not_hold_is_not_filled_in(fill: str) -> None:
    many = torch.zeros(4, dtype=torch.float16)
    fills: dict[str, Callable[[float], Any]] = {
        "masked_fill": lambda value: many.masked_fill(many == 0, value),
        "full_like": lambda value: torch.full_like(many, value),
    }
    assert fills[fill](-1e4) is not None
    with pytest.raises(RuntimeError, match="without overflow"):
        fills[fill](-1e9)


def test_numpy_adds_up_in_half_precision() -> None:
    many = torch.full((300,), 300.0, dtype=torch.float16)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not math.isfinite(float(many.numpy().sum()))
    assert float(many.float().numpy().sum()) == 90_000


@pytest.mark.parametrize("name", CAST)
def test_half_precision_is_cast_where_it_meets_float32(name: str) -> None:
    CAST[name](torch.ones(4, 4))
