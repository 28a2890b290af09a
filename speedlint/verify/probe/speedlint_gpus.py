"""The GPUs that a process uses, whichever is the current one. Python 3.8, torch 1.13 and later."""

import ctypes
import os
from typing import Any, Dict, List, Optional, Tuple

Mark = Optional[Dict[int, Any]]
"""A point in the queue of each GPU, by the process's own numbers; None before a GPU was used."""
_OF_CUDA = ("nvidia0", "dxg")
"""What stands in ``/dev`` for a GPU of CUDA's; the last one is Windows' (WSL 2)."""
_LONGEST = 300
"""Characters of a reason that are shown."""


class Gpus:
    """Those on which the process has memory.

    Attributes:
        used: their numbers in this process.
    """

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.used: List[int] = []

    def look(self) -> bool:
        """Sees which are used by now. Returns whether there is another than before."""
        cuda = self.torch.cuda
        if not (cuda.is_available() and cuda.is_initialized()):
            return False
        found = [index for index in range(cuda.device_count()) if _has_memory(cuda, index)]
        if found == self.used or (self.used and not found):
            return False
        self.used = found or [cuda.current_device()]
        return True

    def mark(self) -> Dict[int, Any]:
        """A point in the queue of each."""
        found = {}
        for index in self.used:
            event = self.torch.cuda.Event(enable_timing=True)
            event.record(self.torch.cuda.current_stream(index))
            found[index] = event
        return found

    def synchronize(self) -> None:
        """Waits for all of them."""
        for index in self.used:
            self.torch.cuda.synchronize(index)

    def reset_peak(self) -> None:
        """Peak memory counts from here on."""
        for index in self.used:
            self.torch.cuda.reset_peak_memory_stats(index)

    def times(self, marks: List[Tuple[Mark, Mark]], warmup: int) -> Tuple[Optional[int], List[float]]:
        """The GPU that is busy longest in the measured steps, and the seconds of each step on it, 0 before there were marks;
        None for it where no GPU has a mark at both ends of each measured step."""
        self.synchronize()
        best: Tuple[Optional[int], List[float]] = (None, [])
        for index in self.used:
            both = [(None, None) if a is None or b is None else (a.get(index), b.get(index)) for a, b in marks]
            if len(both) == warmup or any(a is None or b is None for a, b in both[warmup:]):
                continue
            found = [0.0 if a is None or b is None else a.elapsed_time(b) / 1000 for a, b in both]
            if best[0] is None or sum(found[warmup:]) > sum(best[1][warmup:]):
                best = (index, found)
        return best

    def describe(self) -> List[Dict[str, Any]]:
        """What is to be known of each: its place, its name, its peak memory in bytes."""
        cuda = self.torch.cuda
        return [
            {
                "index": index,
                "uuid": uuid(cuda, index),
                "name": cuda.get_device_name(index),
                "capability": list(cuda.get_device_capability(index)),
                "allocated": cuda.max_memory_allocated(index),
                "reserved": cuda.max_memory_reserved(index),
                "total": cuda.get_device_properties(index).total_memory,
            }
            for index in self.used
        ]


def uuid(cuda: Any, index: int) -> str:
    """The identifier of the GPU itself, without a prefix: CUDA's numbers depend on CUDA_VISIBLE_DEVICES and on an order that
    is not the driver's. Empty where nobody knows it."""
    found = getattr(cuda.get_device_properties(index), "uuid", None)
    return str(found) if found is not None else _of_driver(index)


def lost(torch: Any, folder: str = "/dev") -> str:
    """Why torch, built for CUDA, does not find the machine's GPU; empty where it does, where there is none, or where it is
    hidden on purpose."""
    is_hidden = os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1")
    if torch.version.cuda is None or is_hidden or not any(os.path.exists(os.path.join(folder, name)) for name in _OF_CUDA):
        return ""
    try:
        torch.cuda.init()
    except Exception as error:
        return str(error).partition("\n")[0][:_LONGEST]
    return ""


def _of_driver(index: int) -> str:
    """The same of CUDA's driver, for releases of torch that do not tell it."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        device, raw = ctypes.c_int(), (ctypes.c_ubyte * 16)()
        if driver.cuDeviceGet(ctypes.byref(device), index) or driver.cuDeviceGetUuid(raw, device):
            return ""
    except (OSError, AttributeError):
        return ""
    text = bytes(raw).hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _has_memory(cuda: Any, index: int) -> bool:
    try:
        return bool(cuda.max_memory_reserved(index))
    except RuntimeError:  # an allocator of the script's own keeps no account
        return False
