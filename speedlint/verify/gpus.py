"""What GPUs did while steps were measured: readings by the tenth of a second, and what they come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median

AVERAGED = 1.0
"""Seconds over which drivers average how busy a GPU was, at most (NVML, ``nvmlUtilization_t``)."""
LEAST_WINDOW = 2.0
"""Seconds that the measured steps must take for that to be known of them alone."""
HELD_BACK = {
    0x4: "its power limit",
    0x8: "a hardware slowdown",
    0x20: "heat",
    0x40: "heat",
    0x80: "the power supply",
}
"""Why a GPU runs below its clock (NVML, ``nvmlClocksEventReasons``); that it is idle, or told to, is none of these."""
PEAKS = (
    ("B200", 2250.0),
    ("H200", 989.4),
    ("GH200", 989.4),
    ("H100 PCIe", 756.0),
    ("H100 NVL", 835.0),
    ("H100", 989.4),
    ("A100", 312.0),
    ("A10", 125.0),
    ("A30", 165.0),
    ("A40", 149.7),
    ("L40S", 362.0),
    ("L4", 121.0),
    ("T4", 65.0),
    ("V100-PCIE", 112.0),
    ("V100", 125.0),
    ("GeForce RTX 4090", 165.2),
    ("GeForce RTX 3090", 71.2),
)
"""TFLOP/s of dense products in half precision, by words of a GPU's name, the more special ones first; from NVIDIA's data
sheets, without sparsity, and with sums in float32."""
OFTEN = 0.1
"""The share of the readings from which on that is worth a note."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What one GPU said at one time; None where it did not.

    Attributes:
        at: the reading of ``time.monotonic()``.
        busy: the share of the time before in which a kernel ran.
        energy: joules since the driver was loaded.
        clock: MHz.
        temperature: degrees Celsius.
        reasons: why the clock is held back, as NVML's bits.
    """

    at: float
    uuid: str
    busy: float | None = None
    watts: float | None = None
    energy: float | None = None
    clock: float | None = None
    temperature: float | None = None
    reasons: int = 0


@dataclass(frozen=True)
class Gpu:
    """One GPU that a process used, over its measured steps.

    Attributes:
        index: its number in that process.
        uuid: its identifier.
        allocated, reserved, total: bytes; the first two at their peak.
        busy, clock, temperature: means of the readings; None where there are none.
        joules: of all measured steps together.
        held_back: for each reason, the share of the readings in which it held the clock back.
    """

    index: int
    uuid: str
    name: str
    allocated: int
    reserved: int
    total: int
    busy: float | None = None
    clock: float | None = None
    temperature: float | None = None
    joules: float | None = None
    held_back: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Rank:
    """One of several processes that train together.

    Attributes:
        rank: its number.
        step: the median time of its measured steps, in seconds.
        waiting: the share of them that it waited for data.
        gpus: those it used.
    """

    rank: int
    step: float
    waiting: float
    gpus: tuple[Gpu, ...]


def peak(name: str) -> float | None:
    """The most operations a second that a GPU of this name does in half precision; None for one that is not in the table."""
    words = f" {name.replace('-', ' ')} "
    return next((peak * 1e12 for known, peak in PEAKS if f" {known.replace('-', ' ')} " in words), None)


def measured(gpu: Gpu, rows: Sequence[Reading], began: float, ended: float) -> Gpu:
    """The GPU with what its readings say of the time from ``began`` to ``ended``."""
    mine = [row for row in rows if row.uuid == gpu.uuid]
    within = [row for row in mine if began <= row.at <= ended] or mine[-1:]  # steps of less than a tenth of a second
    if not within:
        return gpu
    clocks = [row.clock for row in within if row.clock is not None]
    return replace(
        gpu,
        busy=_mean([row.busy for row in within if row.busy is not None and row.at >= began + AVERAGED]),
        clock=median(clocks) if clocks else None,
        temperature=max((row.temperature for row in within if row.temperature is not None), default=None),
        joules=_joules(within, ended - began),
        held_back=_held_back(within),
    )


def _joules(rows: Sequence[Reading], seconds: float) -> float | None:
    """By the GPU's own count where it keeps one, else by its watts."""
    counted = [(row.at, row.energy) for row in rows if row.energy is not None]
    if len(counted) > 1 and counted[-1][1] > counted[0][1]:
        return (counted[-1][1] - counted[0][1]) / (counted[-1][0] - counted[0][0]) * seconds
    watts = _mean([row.watts for row in rows if row.watts is not None])
    return None if watts is None else watts * seconds


def _held_back(rows: Sequence[Reading]) -> dict[str, float]:
    found: dict[str, int] = {}
    for row in rows:
        for reason in {why for bit, why in HELD_BACK.items() if row.reasons & bit}:
            found[reason] = found.get(reason, 0) + 1
    return {reason: number / len(rows) for reason, number in sorted(found.items())}


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None
