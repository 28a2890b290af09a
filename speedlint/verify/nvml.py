"""The GPU while a run goes on, through NVML where `nvidia-ml-py` is installed; nothing where it is not."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_EVERY = 0.1


class Meter:
    """Reads the GPU that the runs use: the first one visible.

    ``library`` is the module ``pynvml``; it is imported where none is given.

    Attributes:
        why: why it is not read; empty where it is.
    """

    def __init__(self, library: Any = None) -> None:
        self.why = ""
        self._nvml, self._device = None, None
        try:
            if library is None:
                import pynvml as library  # type: ignore[no-redef]
            library.nvmlInit()
            self._device = library.nvmlDeviceGetHandleByIndex(_visible())
            self._nvml = library
        except ImportError:
            self.why = "install `nvidia-ml-py` to have it measured"
        except Exception as error:
            self.why = f"NVML cannot be used ({error})"

    def others(self) -> list[int]:
        """The processes that use the GPU now, by id."""
        if self._nvml is None:
            return []
        try:
            return sorted(each.pid for each in self._nvml.nvmlDeviceGetComputeRunningProcesses(self._device))
        except Exception:
            return []

    def describe(self) -> dict[str, Any]:
        """Name, driver, and clocks in MHz."""
        if self._nvml is None:
            return {}
        nvml, device = self._nvml, self._device
        asked: dict[str, Callable[[], Any]] = {
            "name": lambda: _text(nvml.nvmlDeviceGetName(device)),
            "driver": lambda: _text(nvml.nvmlSystemGetDriverVersion()),
            "clock_sm": lambda: nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_SM),
            "clock_memory": lambda: nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_MEM),
            "power_limit": lambda: nvml.nvmlDeviceGetPowerManagementLimit(device) / 1000,
        }
        found = {}
        for name, ask in asked.items():
            try:
                found[name] = ask()
            except Exception:
                continue
        return found

    @contextmanager
    def reading(self) -> Iterator[list[tuple[float, float, float]]]:
        """Fills a list with the time, the share of time the GPU is busy, and watts, while the block runs."""
        rows: list[tuple[float, float, float]] = []
        if self._nvml is None:
            yield rows
            return
        done = threading.Event()
        thread = threading.Thread(target=self._fill, args=(rows, done), daemon=True)
        thread.start()
        try:
            yield rows
        finally:
            done.set()
            thread.join()

    def _fill(self, rows: list[tuple[float, float, float]], done: threading.Event) -> None:
        nvml = self._nvml
        assert nvml is not None
        while not done.wait(_EVERY):
            try:
                busy = nvml.nvmlDeviceGetUtilizationRates(self._device).gpu / 100
                watts = nvml.nvmlDeviceGetPowerUsage(self._device) / 1000
            except Exception:
                return
            rows.append((time.monotonic(), busy, watts))


def _visible() -> int:
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    return int(first) if first.isdigit() else 0


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
