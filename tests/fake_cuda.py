"""GPUs for machines without one: queues with clocks of their own, which a project under test imports after torch.

Kernels are `launch`ed and move a queue's clock by what they take, however slow the host is, so that every time between two
events is exact. The probe sees the queues through the functions of ``torch.cuda`` that it uses.
"""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import torch

UUIDS = ("aaaa0000-0000-0000-0000-000000000000", "bbbb0000-0000-0000-0000-000000000000")
"""Those of the machine's GPUs, by the driver's numbers."""
_state: dict[str, Any] = {"clocks": [0.0, 0.0], "mode": "default"}


class Event:
    """A point in a queue."""

    def __init__(self, enable_timing: bool = False) -> None:
        assert enable_timing
        self.at, self.device = 0.0, 0

    def record(self, stream: Any = None) -> None:
        """Reached when all that was launched before on its GPU is done."""
        self.device = 0 if stream is None else stream.device
        self.at = _state["clocks"][self.device]

    def elapsed_time(self, other: Event) -> float:
        """The milliseconds to another point of the same queue."""
        assert self.device == other.device
        return (other.at - self.at) * 1e3


def launch(seconds: float, device: int = 0) -> None:
    """A kernel: returns at once."""
    _state["clocks"][device] += seconds


def read() -> None:
    """What `.item()` does: waits for the queue."""
    if _state["mode"] == "warn":
        warnings.warn("called a synchronizing CUDA operation (Triggered internally)", stacklevel=2)


def install(reserved: tuple[int, ...] = (850,), order: tuple[int, ...] = (0, 1)) -> None:
    """Puts GPUs with 1000 bytes of memory in the place of ``torch.cuda``'s, of which the script has reserved so many; the
    first one is the current one. ``order``: the driver's number of each."""
    cuda: Any = torch.cuda
    cuda.is_available = cuda.is_initialized = lambda: True
    cuda.Event, cuda.synchronize = Event, lambda _device=0: None
    cuda.set_sync_debug_mode = lambda mode: _state.update(mode=mode)
    cuda.reset_peak_memory_stats = lambda _device=0: None
    cuda.max_memory_allocated = lambda device=0: max(0, reserved[device] - 150)
    cuda.max_memory_reserved = lambda device=0: reserved[device]
    cuda.current_device = lambda: 0
    cuda.current_stream = lambda device=0: SimpleNamespace(device=device)
    cuda.device_count = lambda: len(reserved)
    cuda.get_device_properties = lambda device: SimpleNamespace(total_memory=1000, uuid=UUIDS[order[device]])
    cuda.get_device_name = lambda device=0: f"Fake GPU {order[device]}"
    cuda.get_device_capability = lambda _device=0: (9, 0)
