"""Environment variables that slow a training down, or that nobody reads any more.

Sources: torch's documentation of its environment variables (CUDA, distributed, threading, debugging), NCCL's, and the CUDA
C++ programming guide's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from speedlint.doctor.advice import Advice, counted, fine, note, warning
from speedlint.doctor.facts import Facts

_OFF = ("", "0", "false", "no", "off", "n", "f")


class _Switch(NamedTuple):
    """A variable, the values at which it costs time, and what it does."""

    name: str
    costs: Callable[[str], bool]
    say: Callable[[str, str, str], Advice]
    what: str
    advice: str = ""


def _on(value: str) -> bool:
    return value.strip().lower() not in _OFF


def _zero(value: str) -> bool:
    return value.strip() == "0"


def _among(*values: str) -> Callable[[str], bool]:
    return lambda value: value.strip().upper() in values


_CHECKED = ("DEBUG", "MALLOC_DEBUG", "PYMALLOC_DEBUG")
_SWITCHES = (
    _Switch("CUDA_LAUNCH_BLOCKING", _on, warning, "waits for the GPU after every kernel"),
    _Switch("PYTORCH_NO_CUDA_MEMORY_CACHING", _on, warning, "asks the driver for every tensor's memory"),
    _Switch("CUDA_CACHE_DISABLE", _on, warning, "compiles kernels anew at every start"),
    _Switch("NVIDIA_TF32_OVERRIDE", _zero, warning, "forbids TF32, whatever the script asks for"),
    _Switch("TORCH_COMPILE_DISABLE", _among("1"), warning, "turns `torch.compile` off"),
    _Switch("TORCHDYNAMO_DISABLE", _among("1"), warning, "turns `torch.compile` off"),
    _Switch("PYTORCH_JIT", _zero, note, "runs scripted models in Python"),
    _Switch("TORCH_DISTRIBUTED_DEBUG", _among("DETAIL"), warning, "checks every collective operation between all processes"),
    _Switch("TORCH_DISTRIBUTED_DEBUG", _among("INFO"), note, "logs each step of DistributedDataParallel"),
    _Switch("NCCL_DEBUG", _among("INFO", "TRACE"), note, "writes a line for much of what NCCL does"),
    _Switch("NCCL_BLOCKING_WAIT", _on, note, "waits on the host for each collective operation"),
    _Switch("TORCH_NCCL_BLOCKING_WAIT", _on, note, "waits on the host for each collective operation"),
    _Switch("NCCL_P2P_DISABLE", _on, note, "sends what GPUs of one machine exchange through its memory"),
    _Switch("TORCH_SHOW_CPP_STACKTRACES", _on, note, "collects a C++ stack trace for each exception"),
    _Switch("CUBLAS_WORKSPACE_CONFIG", _among(":4096:8", ":16:8"), note, "keeps cuBLAS to workspaces for repeatable runs"),
    _Switch("TORCH_CUDNN_V8_API_ENABLED", _on, note, "has no effect in torch 2, which does what it asked for by default"),
    _Switch("PYTHONTRACEMALLOC", _on, warning, "records every allocation of Python's"),
    _Switch("PYTHONMALLOC", _among(*_CHECKED), warning, "checks every allocation of Python's"),
    _Switch("PYTHONDEVMODE", _on, warning, "turns on Python's checks for development"),
)
_ALLOCATOR = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


def environment(facts: Facts) -> Iterator[Advice]:
    """Debug switches that were left on, and what the allocator is told."""
    said = [
        switch.say("environment", f"{switch.name}={value} {switch.what}", switch.advice or "unset it for training")
        for switch in _SWITCHES
        if (value := facts.environment.get(switch.name)) is not None and switch.costs(value)
    ]
    yield from said
    if not said:
        yield fine("environment", "no debug switch is on")
    if facts.torch.gpus:
        yield from _allocator(facts.environment)
    yield from _threads(facts)


def _allocator(environment: Mapping[str, str]) -> Iterator[Advice]:
    for name in _ALLOCATOR:
        if name in environment:
            yield fine("allocator", f"{name}={environment[name]}")
            return
    yield note(
        "allocator",
        "memory is kept in blocks of fixed size",
        "where the sizes of batches vary and memory runs out, `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` keeps it"
        " from falling apart (torch 2.1 and newer)",
    )


def _threads(facts: Facts) -> Iterator[Advice]:
    for name in _THREADS:
        value = facts.environment.get(name, "")
        if value.isdigit() and int(value) > facts.cores:
            what = f"is {value}, on {counted(facts.cores, 'core')}: threads take turns"
            yield warning(name, what, f"set it to {facts.cores} or less")
