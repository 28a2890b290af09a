"""What a training meets that this machine lacks: a GPU, whose kernels are the CPU's, and packages that show and draw.

Autocast follows CUDA's lists of operations, the loss scaler is torch's own, what has no kernel in half precision raises,
and `torch.compile` hands the module back. What a GPU computes is not emulated to the bit: both sides run on it alike.
"""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn
from torch.overrides import TorchFunctionMode
from torch.utils.data import DataLoader
from torch.utils.data._utils.pin_memory import pin_memory

CORES = 2
"""How many cores trainings are told of: the number of workers that a fix writes."""
_FLOAT32 = frozenset(
    """__pow__ __rdiv__ __rpow__ __rtruediv__ acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan
    pow softplus layer_norm native_layer_norm group_norm norm frobenius_norm nuclear_norm cosine_similarity poisson_nll_loss
    cosine_embedding_loss nll_loss nll_loss2d hinge_embedding_loss kl_div l1_loss smooth_l1_loss huber_loss mse_loss
    margin_ranking_loss multilabel_margin_loss soft_margin_loss triplet_margin_loss multi_margin_loss
    binary_cross_entropy_with_logits dist pdist cdist renorm logsumexp softmax log_softmax softmin cumprod cumsum prod sum
    cross_entropy gaussian_nll_loss multilabel_soft_margin_loss ctc_loss""".split()
)
"""What CUDA's autocast computes in float32."""
_NO_HALF = frozenset(
    """cholesky cholesky_solve cholesky_inverse inverse svd det logdet slogdet qr lu eig eigh solve lstsq triangular_solve
    quantile nanquantile histc matrix_exp pinverse lobpcg""".split()
)
"""What has no kernel in half precision, besides ``linalg_...``."""
_RECURRENT = frozenset("lstm gru rnn_tanh rnn_relu lstm_cell gru_cell".split())
"""What the host has no kernels for in float16, and a GPU has."""
_CUDA: dict[str, object] = {
    "is_available": True,
    "device_count": 1,
    "current_device": 0,
    "get_device_name": "emulated",
    "get_device_capability": (8, 0),
    "is_bf16_supported": True,
    **dict.fromkeys(("memory_allocated", "max_memory_allocated", "memory_reserved"), 0),
    **dict.fromkeys(
        ("synchronize", "empty_cache", "set_device", "reset_peak_memory_stats", "manual_seed", "manual_seed_all")
    ),
}

_pin: Callable[[Any], Any] = pin_memory


def _on_host(device: Any) -> Any:
    is_cuda = device.type == "cuda" if isinstance(device, torch.device) else str(device).split(":")[0] == "cuda"
    return torch.device("cpu") if is_cuda else device


def _narrowed(value: Any) -> Any:
    """In the type that autocast computes in."""
    if isinstance(value, tuple):
        return tuple(map(_narrowed, value))
    return value.to(torch.get_autocast_dtype("cpu")) if isinstance(value, torch.Tensor) else value


def _is_half(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype in (torch.float16, torch.bfloat16)


def _widened(value: Any) -> Any:
    if type(value) in (list, tuple):
        return type(value)(_widened(each) for each in value)
    return value.float() if _is_half(value) else value


class _Device(TorchFunctionMode):
    """Every tensor is on the GPU as far as a script can ask, and on the host."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if name == "cuda":
            return args[0] if args[0].requires_grad else args[0].clone()
        if name == "cpu":
            return func(*args, **kwargs).clone()
        if name == "pin_memory":
            return args[0]
        if name == "__get__" and getattr(getattr(func, "__self__", None), "__name__", "") == "is_cuda":
            return True
        if name == "to":
            args = (args[0], *(_on_host(each) if isinstance(each, (str, torch.device)) else each for each in args[1:]))
        if kwargs.get("device") is not None:
            kwargs["device"] = _on_host(kwargs["device"])
        return self._computed(func, name, args, kwargs)

    def _computed(self, func: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        if torch.is_autocast_enabled("cpu"):
            if name in _RECURRENT:
                with torch.autocast("cpu", enabled=False):
                    return _narrowed(func(*_widened(args), **kwargs))
            if name in _FLOAT32 or (name.startswith("__") and name.strip("_") in _FLOAT32):
                args, kwargs = tuple(map(_widened, args)), {key: _widened(value) for key, value in kwargs.items()}
            elif name == "binary_cross_entropy":
                raise RuntimeError("emulated GPU: binary_cross_entropy is unsafe to autocast")
        if (name in _NO_HALF or name.startswith("linalg_")) and any(map(_is_half, args)):
            raise RuntimeError(f'emulated GPU: "{name}" not implemented for half precision')
        return func(*args, **kwargs)


class _Pinned:
    """An iterator over a loader that pins, in the training process, what its workers send."""

    def __init__(self, batches: Iterator[Any]) -> None:
        self._batches = batches

    def __iter__(self) -> _Pinned:
        return self

    def __next__(self) -> Any:
        return _pin(next(self._batches))


def _always(value: object) -> Callable[..., object]:
    return lambda *_args, **_options: value


def gpu() -> None:
    """Puts the GPU in place, for the rest of this process."""
    autocast: Any = torch.amp.autocast_mode.autocast
    scaler: Any = torch.amp.grad_scaler.GradScaler
    loader: Any = DataLoader
    make_autocast, make_scaler = autocast.__init__, scaler.__init__
    make_loader, iterate, load = loader.__init__, loader.__iter__, torch.load

    def autocasts(self: Any, device_type: str, dtype: Any = None, *rest: Any, **options: Any) -> None:
        if device_type == "cuda":
            device_type, dtype = "cpu", dtype or torch.get_autocast_dtype("cuda")
        make_autocast(self, device_type, dtype, *rest, **options)

    def scales(self: Any, device: str = "cuda", *rest: Any, **options: Any) -> None:
        make_scaler(self, "cpu" if device == "cuda" else device, *rest, **options)

    def loads(self: Any, *args: Any, **options: Any) -> None:
        self.__dict__["_pins_here"] = bool(options.pop("pin_memory", False))
        options.pop("pin_memory_device", None)
        make_loader(self, *args, **options)

    autocast.__init__, scaler.__init__, loader.__init__ = autocasts, scales, loads
    loader.__iter__ = lambda self: _Pinned(iterate(self)) if self.__dict__["_pins_here"] else iterate(self)
    torch.load = lambda f, map_location=None, **options: load(f, map_location="cpu", **options)
    for name, value in _CUDA.items():
        setattr(torch.cuda, name, _always(value))
    device: Any = _Device()
    device.__enter__()


def host() -> None:
    """What holds with and without the GPU: a known number of cores, and a compiler that changes nothing."""
    os.cpu_count = lambda: CORES
    compiler: Any = torch
    compiler.compile = lambda model=None, **_: model if model is not None else (lambda function: function)
    module: Any = torch.nn.Module
    module.compile = lambda self, *_args, **_options: None


# Packages that need not be installed


class _Bar:
    def __init__(self, iterable: Any = None, **options: Any) -> None:
        self._iterable = iterable

    def __iter__(self) -> Iterator[Any]:
        return iter(self._iterable)

    def set_postfix(self, refresh: bool = True, **values: Any) -> None:
        """Draws the bar; with ``refresh=False`` the next drawing would show the values, which is a matter of the clock."""
        if refresh:
            print("bar", {key: value if isinstance(value, str) else f"{value:.4f}" for key, value in values.items()})

    def set_description(self, text: str, refresh: bool = True) -> None:
        if refresh:
            print("bar", text)

    def update(self, _count: int = 1) -> None:
        """Moves nothing."""

    close = update


class _Writer:
    def __init__(self, folder: str) -> None:
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103
        self._file = open(f"{folder}/scalars.txt", "w")  # noqa: PTH123, SIM115

    def add_scalar(self, name: str, value: Any, step: int) -> None:
        self._file.write(f"{name} {step} {float(value)!r}\n")

    def close(self) -> None:
        self._file.close()


_drawn: list[Any] = []


def _save(path: str) -> None:
    with open(path, "w") as file:  # noqa: PTH123
        file.write(repr([[round(float(value), 6) for value in line] for line in _drawn]))


def packages() -> None:
    """Stand-ins for packages that a training shows its progress with."""
    modules: dict[str, dict[str, Any]] = {
        "tqdm": {"tqdm": _Bar},
        "matplotlib": {},
        "matplotlib.pyplot": {"plot": _drawn.append, "savefig": _save},
        "torch.utils.tensorboard": {"SummaryWriter": _Writer},
    }
    for name, parts in modules.items():
        module = types.ModuleType(name)
        module.__dict__.update(parts)
        sys.modules[name] = module
    sys.modules["matplotlib"].pyplot = sys.modules["matplotlib.pyplot"]  # type: ignore[attr-defined]
