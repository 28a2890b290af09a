"""The GPUs while a run goes on, through NVML where `nvidia-ml-py` is installed; nothing where it is not."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from speedlint.verify.gpus import Reading

_EVERY = 0.1
"""Seconds between two readings: the driver renews its own averages less often."""
_PREFIXES = ("GPU-", "MIG-")


class Meter:
    """Reads the GPUs that the runs use, by the identifiers that their processes tell: numbers depend on CUDA_VISIBLE_DEVICES
    and on the order that CUDA is told to take.

    ``library`` is the module ``pynvml``; it is imported where none is given.

    Attributes:
        why: why they are not read; empty where they are.
    """

    def __init__(self, library: Any = None) -> None:
        self.why = ""
        self._nvml: Any = None
        self._devices: dict[str, Any] = {}
        try:
            if library is None:
                import pynvml as library  # type: ignore[no-redef]
            library.nvmlInit()
            self._nvml = library
        except ImportError:
            self.why = "install `nvidia-ml-py` to have it measured"
        except Exception as error:
            self.why = f"NVML cannot be used ({error})"

    def watch(self, uuids: Sequence[str]) -> None:
        """Reads these GPUs from now on, beside those before; a process without an identifier uses the first one visible."""
        if self._nvml is None:
            return
        for uuid in uuids:
            if uuid not in self._devices:
                try:
                    self._devices[uuid] = self._handle(uuid)
                except Exception as error:
                    self.why = f"NVML does not know the GPU {uuid} ({error})"

    def others(self) -> list[int]:
        """The processes that use the GPUs now, by id."""
        found: set[int] = set()
        for device in self._devices.values():
            found |= {each.pid for each in self._asked(self._nvml.nvmlDeviceGetComputeRunningProcesses, device) or ()}
        return sorted(found)

    def describe(self) -> list[dict[str, Any]]:
        """Each GPU that is read: its name, its driver, its highest clocks in MHz, and its power limit in watts."""
        nvml = self._nvml
        found = []
        for uuid, device in self._devices.items():
            asked: dict[str, Callable[[], Any]] = {
                "name": lambda device=device: _text(nvml.nvmlDeviceGetName(device)),  # type: ignore[misc]
                "driver": lambda: _text(nvml.nvmlSystemGetDriverVersion()),
                "highest_clock": lambda device=device: nvml.nvmlDeviceGetMaxClockInfo(device, nvml.NVML_CLOCK_SM),  # type: ignore[misc]
                "power_limit": lambda device=device: nvml.nvmlDeviceGetPowerManagementLimit(device) / 1000,  # type: ignore[misc]
            }
            answers = {name: self._asked(ask) for name, ask in asked.items()}
            found.append({"uuid": uuid, **{name: answer for name, answer in answers.items() if answer is not None}})
        return found

    @contextmanager
    def reading(self) -> Iterator[list[Reading]]:
        """Fills a list with what the GPUs say while the block runs."""
        rows: list[Reading] = []
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

    def _fill(self, rows: list[Reading], done: threading.Event) -> None:
        while not done.wait(_EVERY):
            rows += [self._read(uuid, device) for uuid, device in tuple(self._devices.items())]

    def _read(self, uuid: str, device: Any) -> Reading:
        nvml = self._nvml
        rates = self._asked(nvml.nvmlDeviceGetUtilizationRates, device)
        watts = self._asked(nvml.nvmlDeviceGetPowerUsage, device)
        return Reading(
            time.monotonic(),
            uuid,
            busy=None if rates is None else rates.gpu / 100,
            watts=None if watts is None else watts / 1000,
            energy=self._asked(lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(device) / 1000),
            clock=self._asked(lambda: nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_SM)),
            temperature=self._asked(lambda: nvml.nvmlDeviceGetTemperature(device, nvml.NVML_TEMPERATURE_GPU)),
            reasons=self._asked(lambda: _reasons(nvml, device)) or 0,
        )

    def _handle(self, uuid: str) -> Any:
        """NVML's handle of a GPU, or of the part of one, by its identifier."""
        if not uuid:
            return self._first_visible()
        for prefix in _PREFIXES:
            found = self._asked(self._nvml.nvmlDeviceGetHandleByUUID, prefix + uuid)
            if found is not None:
                return found
        raise LookupError("by no identifier")

    def _first_visible(self) -> Any:
        """That of the first one that CUDA_VISIBLE_DEVICES names, by its number or by the begin of its identifier."""
        first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()
        if first.isdigit():
            return self._nvml.nvmlDeviceGetHandleByIndex(int(first))
        handles = map(self._nvml.nvmlDeviceGetHandleByIndex, range(self._nvml.nvmlDeviceGetCount()))
        return next(each for each in handles if _text(self._nvml.nvmlDeviceGetUUID(each)).startswith(first))

    def _asked(self, ask: Callable[..., Any], *args: Any) -> Any:
        """An answer; None where this GPU or this driver has none."""
        try:
            return ask(*args)
        except Exception:
            return None


def _reasons(nvml: Any, device: Any) -> int:
    """Why its clock is held back; newer drivers' libraries have another name for the question."""
    name = "nvmlDeviceGetCurrentClocksEventReasons"
    ask = getattr(nvml, name, None) or nvml.nvmlDeviceGetCurrentClocksThrottleReasons
    return int(ask(device))


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
