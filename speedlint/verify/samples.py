"""What a run brings back: the probe's results, read and joined over the ranks."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from speedlint.verify.gpus import Gpu, Rank, Reading, measured

RESULTS = "rank-*.json"
"""The files that processes leave."""


@dataclass(frozen=True)
class Sample:
    """One run of one version.

    Attributes:
        version: its name.
        steps: the time of each measured step, in seconds; of the slowest rank where there are several.
        warmup: the time of each step before those.
        waits: the time of each measured step that was spent waiting for data, in seconds.
        samples: how many samples the measured steps had together, by the sizes of some of their batches.
        window: the seconds from the first measured step to the last, evaluation and all between them.
        turns: where the run took turns, the measured steps and the window until the end of each.
        losses: what each backward pass started from; of the first rank.
        syncs: how often the host waited for the GPU in each step, where that was counted.
        flops, tokens: what a step computes and reads, of all ranks together, where that was counted; 0 where it was not.
        seeds: the functions with which the script itself seeds generators, and the seed of each call; None where the system
            was to choose it.
        stored, computed: the unit roundoff of the parameters, and of the coarsest arithmetic seen; 0 where there was none.
        evaluations: in a rehearsal, the passes over a loader without a backward pass.
        memory: peak bytes: ``peak_resident``, ``peak_allocated``, ``peak_reserved``, and the ``total`` of the GPU.
        environment: versions and device, as the process saw them.
        ranks: the number of processes that trained.
        parts: each of them, in order.
        workers: the most workers that a loader had.
        ended_at: the reading of ``time.monotonic()`` when the measured steps were over.
        ended: ``steps`` if all were measured, ``script`` if the script ended before.
        wall: the seconds of the whole process.
        log: the file with what it printed.
        refused: the paths outside of the copy that it wanted to write to.
        astray: the changed files that were imported from the project in place of the copy.
        note: what went wrong, or nothing.
        failed: whether the script ended with an error, or by a signal that verify did not send.
    """

    version: str
    steps: tuple[float, ...] = ()
    warmup: tuple[float, ...] = ()
    waits: tuple[float, ...] = ()
    samples: int = 0
    window: float | None = None
    turns: tuple[tuple[int, float], ...] = ()
    losses: tuple[float, ...] = ()
    syncs: tuple[int, ...] = ()
    flops: float = 0.0
    tokens: float = 0.0
    seeds: tuple[tuple[str, int | None], ...] = ()
    stored: float = 0.0
    computed: float = 0.0
    evaluations: int = 0
    optimizers: int = 0
    memory: dict[str, int] = field(default_factory=dict)
    environment: dict[str, Any] = field(default_factory=dict)
    clock: str = "loader"
    ranks: int = 1
    workers: int = 0
    ended_at: float = 0.0
    ended: str = "steps"
    wall: float = 0.0
    log: str = ""
    refused: tuple[str, ...] = ()
    astray: tuple[str, ...] = ()
    note: str = ""
    failed: bool = False
    parts: tuple[Rank, ...] = ()

    @property
    def step(self) -> float:
        """The median time of a step, in seconds."""
        return median(self.steps)

    @property
    def done(self) -> int:
        """The steps it came through, measured or not."""
        return len(self.warmup) + len(self.steps)

    @property
    def waiting(self) -> float:
        """The share of the measured steps' time that the process waited for data."""
        whole = sum(self.steps)
        return sum(self.waits) / whole if whole else 0.0

    def during(self, first: int, last: int) -> Sample:
        """What was measured from turn ``first`` on, counted from 0, until before turn ``last``."""
        begin, start = self.turns[first - 1] if first else (0, 0.0)
        end, stop = self.turns[last - 1]
        steps = self.steps[begin:end]
        samples = round(self.samples * len(steps) / len(self.steps))
        waits = self.waits[begin:end]
        return replace(self, steps=steps, waits=waits, window=stop - start, samples=samples, turns=())

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """All that its processes used."""
        return tuple(gpu for part in self.parts for gpu in part.gpus)

    def said(self, name: str) -> float | None:
        """The mean of what its GPUs say, such as ``busy``; None where one of them does not."""
        found = [getattr(gpu, name) for gpu in self.gpus]
        return sum(found) / len(found) if found and None not in found else None

    @property
    def joules(self) -> float | None:
        """What a step takes of all its GPUs; None where one of them does not say."""
        mean = self.said("joules")
        return None if mean is None or not self.steps else mean * len(self.gpus) / len(self.steps)

    def with_readings(self, rows: list[Reading]) -> Sample:
        """The same with what was read of its GPUs while the measured steps ran."""
        if not rows or not self.window:
            return self
        span = self.ended_at - self.window, self.ended_at
        parts = [replace(part, gpus=tuple(measured(gpu, rows, *span) for gpu in part.gpus)) for part in self.parts]
        return replace(self, parts=tuple(parts))

    @property
    def warmup_cost(self) -> float:
        """The seconds that the steps before the measured ones took beyond as many measured ones."""
        return max(0.0, sum(self.warmup) - len(self.warmup) * self.step) if self.steps else 0.0


def read(folder: Path, version: str, wall: float, log: str, least: int) -> Sample:
    """The results that the processes of one run left; one without steps where they left none."""
    found = []
    for path in sorted(folder.glob(RESULTS)):
        try:
            found.append(json.loads(path.read_text()))
        except (OSError, ValueError):
            continue
    trained = [result for result in found if result["steps"] or result["losses"]]
    trained.sort(key=lambda result: (result["rank"], -len(result["losses"]), -len(result["steps"]), result["pid"]))
    if not trained:
        note = "" if found else "no result was left"
        return Sample(version, wall=wall, log=log, ended="nothing", note=note)
    return _joined(trained, version, wall, log, least)


def _joined(results: list[dict[str, Any]], version: str, wall: float, log: str, least: int) -> Sample:
    first = results[0]
    warm = [_warmup(result, least) for result in results]
    steps = [(result["gpu_steps"] or result["steps"])[n:] for result, n in zip(results, warm)]  # noqa: B905
    slowest = max(range(len(results)), key=lambda i: median(steps[i]) if steps[i] else 0.0)
    chosen, n = results[slowest], warm[slowest]
    return Sample(
        version,
        steps=tuple(steps[slowest]),
        warmup=tuple(chosen["steps"][:n]),
        waits=tuple(chosen["waits"][n:]),
        samples=round(sum(result["batch"] * len(times) for result, times in zip(results, steps))),  # noqa: B905
        window=chosen["window"],
        turns=tuple((count, window) for count, window in chosen["turns"]),
        losses=tuple(first["losses"]),
        syncs=tuple(first["syncs"]),
        flops=sum(result["work"].get("flops", 0.0) for result in results),
        tokens=sum(result["work"].get("tokens", 0.0) for result in results),
        seeds=tuple((name, seed) for name, seed in first["seeds"]),
        stored=first["stored"],
        computed=first["computed"],
        evaluations=first["evaluations"],
        optimizers=first["optimizers"],
        memory={key: max(result["memory"].get(key, 0) for result in results) for key in first["memory"]},
        environment=first["environment"],
        clock=first["clock"],
        ranks=len(results),
        parts=tuple(_part(result, times, n) for result, times, n in zip(results, steps, warm)),  # noqa: B905
        workers=max(result["workers"] for result in results),
        ended_at=chosen["ended_at"],
        ended=first["ended"],
        wall=wall,
        log=log,
        astray=tuple(sorted({path for result in results for path in result["astray"]})),
    )


def _part(result: dict[str, Any], times: list[float], warmup: int) -> Rank:
    whole = sum(times)
    waiting = sum(result["waits"][warmup:]) / whole if whole else 0.0
    keys = ("index", "uuid", "name", "allocated", "reserved", "total")
    gpus = tuple(Gpu(**{key: gpu[key] for key in keys}) for gpu in result["gpus"])
    return Rank(result["rank"], median(times) if times else 0.0, waiting, gpus)


def _warmup(result: dict[str, Any], least: int) -> int:
    """The steps before the measured ones; for a script that ended while it warmed up, the fewest allowed or half of all."""
    if result["warmup"] is not None:
        return int(result["warmup"])
    return min(least, len(result["steps"]) // 2)
