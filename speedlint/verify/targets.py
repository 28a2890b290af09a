"""What the guides aim for, beside what was measured, and what to do where it is missed."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from speedlint.verify.gpus import LEAST_WINDOW
from speedlint.verify.samples import Sample

WAITING, BUSY, MEMORY = 0.10, 0.90, 0.80
_UNREAD = f"NVML gave no answer, or the steps took less than the {LEAST_WINDOW:g} s (`--seconds`) that its averages need"


@dataclass(frozen=True, slots=True)
class Target:
    """One aim.

    Attributes:
        name: what is measured.
        value: a share from 0 to 1, or None where it cannot be measured here.
        aim: what it should be, in words.
        is_met: whether it is; None where it cannot be measured.
        advice: what follows, or nothing.
    """

    name: str
    value: float | None
    aim: str
    is_met: bool | None
    advice: str


def targets(runs: list[Sample], unmeasured: str = "") -> list[Target]:
    """The targets for the runs of one version. ``unmeasured``: why the GPU was not read."""
    waiting = median([run.waiting for run in runs])
    by_loader = runs[0].clock == "loader"
    return [
        Target(
            "waiting for data",
            waiting if by_loader else None,
            f"under {WAITING:.0%}",
            waiting < WAITING if by_loader else None,
            _on_waiting(waiting) if by_loader else "no DataLoader feeds the training steps: what they wait for is not known",
        ),
        *_of_gpu(runs, unmeasured),
    ]


def _on_waiting(share: float) -> str:
    if share < WAITING:
        return ""
    return "more workers, items decoded once and kept, or cheaper transforms: the step is not what to speed up first"


def _of_gpu(runs: list[Sample], unmeasured: str) -> list[Target]:
    if "total" not in runs[0].memory:
        aims = {"GPU busy": f"above {BUSY:.0%}", "GPU memory": f"under {MEMORY:.0%}"}
        return [Target(name, None, aim, None, "nothing ran on a GPU") for name, aim in aims.items()]
    reserved = max(run.memory["peak_reserved"] / run.memory["total"] for run in runs)
    shares = [busy for run in runs if (busy := run.said("busy")) is not None]
    busy = median(shares) if shares else None
    found = [Target("GPU memory", reserved, f"under {MEMORY:.0%}", reserved < MEMORY, _on_memory(reserved))]
    advice = (unmeasured or _UNREAD) if busy is None else _on_busy(busy, reserved)
    return [Target("GPU busy", busy, f"above {BUSY:.0%}", None if busy is None else busy > BUSY, advice), *found]


def _on_busy(busy: float, reserved: float) -> str:
    if busy > BUSY and reserved < 0.5:
        return "the GPU is busy and has memory left: a larger batch may use it better"
    return "" if busy > BUSY else "the GPU waits: for data, for the host between kernels, or for synchronisations"


def _on_memory(reserved: float) -> str:
    return "" if reserved < MEMORY else "close to the limit: gradient checkpointing, a smaller batch, or half precision"
