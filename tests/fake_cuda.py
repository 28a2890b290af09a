"""A GPU for machines without one: a queue with a clock of its own, which a project under test imports after torch.

Kernels are `launch`ed and take their time on the queue; the host waits for them only where it asks for a result, as on a
real GPU. The probe sees it through the functions of ``torch.cuda`` that it uses.
"""

from __future__ import annotations

import time
import warnings
from types import SimpleNamespace
from typing import Any

import torch

_state: dict[str, Any] = {"free_at": 0.0, "mode": "default", "waits": 0}


class Event:
    """A point in the queue."""

    def __init__(self, enable_timing: bool = False) -> None:
        assert enable_timing
        self.at = 0.0

    def record(self) -> None:
        """Reached when all that was launched before is done."""
        self.at = max(time.perf_counter(), _state["free_at"])

    def elapsed_time(self, other: Event) -> float:
        """The milliseconds to another point."""
        return (other.at - self.at) * 1e3


def launch(seconds: float) -> None:
    """A kernel: returns at once."""
    _state["free_at"] = max(time.perf_counter(), _state["free_at"]) + seconds


def read() -> None:
    """What `.item()` does: waits for the queue."""
    if _state["mode"] == "warn":
        warnings.warn("called a synchronizing CUDA operation (Triggered internally)", stacklevel=2)
    synchronize()


def synchronize() -> None:
    """Waits for the queue."""
    _state["waits"] += 1
    time.sleep(max(0.0, _state["free_at"] - time.perf_counter()))


def waits() -> int:
    """How often the host has waited."""
    return int(_state["waits"])


def install(reserved: int = 850) -> None:
    """Puts the GPU, with 1000 bytes of memory, in the place of ``torch.cuda``'s."""
    cuda: Any = torch.cuda
    cuda.is_available = cuda.is_initialized = lambda: True
    cuda.Event, cuda.synchronize = Event, synchronize
    cuda.set_sync_debug_mode = lambda mode: _state.update(mode=mode)
    cuda.reset_peak_memory_stats = lambda: None
    cuda.max_memory_allocated = lambda: 700
    cuda.max_memory_reserved = lambda: reserved
    cuda.current_device = lambda: 0
    cuda.device_count = lambda: 1
    cuda.get_device_properties = lambda _device: SimpleNamespace(total_memory=1000)
    cuda.get_device_name = lambda: "Fake GPU"
    cuda.get_device_capability = lambda: (9, 0)
