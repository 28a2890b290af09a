"""A GPU for machines without one: a queue with a clock of its own, which a project under test imports after torch.

Kernels are `launch`ed and move the queue's clock by what they take, however slow the host is, so that every time between
two events is exact. The probe sees the queue through the functions of ``torch.cuda`` that it uses.
"""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import torch

_state: dict[str, Any] = {"clock": 0.0, "mode": "default"}


class Event:
    """A point in the queue."""

    def __init__(self, enable_timing: bool = False) -> None:
        assert enable_timing
        self.at = 0.0

    def record(self) -> None:
        """Reached when all that was launched before is done."""
        self.at = _state["clock"]

    def elapsed_time(self, other: Event) -> float:
        """The milliseconds to another point."""
        return (other.at - self.at) * 1e3


def launch(seconds: float) -> None:
    """A kernel: returns at once."""
    _state["clock"] += seconds


def read() -> None:
    """What `.item()` does: waits for the queue."""
    if _state["mode"] == "warn":
        warnings.warn("called a synchronizing CUDA operation (Triggered internally)", stacklevel=2)
    synchronize()


def synchronize() -> None:
    """Waits for the queue, whose clock has no host to wait."""


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
