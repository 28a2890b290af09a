"""What the probe adds to a training step of 500 microseconds.

    python benchmarks/probe_overhead.py [--steps 40000] [--json FILE]

One process trains a small network from a DataLoader with AdamW. Before each step a coin decides whether it goes through
verify's hooks (loader, backward pass) or past them, so that whatever the machine does befalls both kinds alike. In each
block of 40 steps the medians of both kinds make a pair; the mean of the pairs' differences is what the hooks add. What a
median does not show is timed apart and added: the looks at what was noted, fifty a second, and the audit of calls.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
import timeit
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, dataloader

from speedlint.verify import machine, stats
from speedlint.verify.nvml import Meter

PROBE = Path(machine.__file__).parent / "probe"
AIM, MOST = 500e-6, 0.02
WARM, BLOCK = 200, 40


class Hooks:
    """The probe's hooks, which a step may go past."""

    def __init__(self, folder: str, step: Iterator[float]) -> None:
        sys.path.insert(0, str(PROBE))
        import speedlint_guard
        import speedlint_probe

        batches: Any = dataloader._BaseDataLoaderIter
        tensor: Any = torch.Tensor
        past = (batches.__next__, tensor.backward)
        settings = {"mode": "time", "steps": 10**9, "seconds": 1e9, "warmup": 5, "longest_warmup": 40}
        whole = {**settings, "unit": "step", "turn": 0, "blocks": 1, "results": folder}
        self.probe = speedlint_probe.arm(torch, whole)
        for _ in range(WARM):  # the hook on the backward pass is a longer one until the clock is chosen
            next(step)
        through = (batches.__next__, tensor.backward)
        self.on, self.audited, self.looked = True, 0, 0.0
        look = self.probe.ask

        def looking(at: float, event: Any, workers: int) -> float:
            began = time.perf_counter()
            found = look(at, event, workers)
            self.looked += time.perf_counter() - began
            return found

        self.probe.ask = looking  # type: ignore[method-assign]
        batches.__next__ = lambda it: through[0](it) if self.on else past[0](it)
        tensor.backward = lambda *args, **options: (through if self.on else past)[1](*args, **options)
        before = _of_an_event()
        speedlint_guard.GUARD = guard = speedlint_guard.Guard(folder, [], [folder], confined=True)
        sys.addaudithook(lambda event, args: guard(event, args) if event in speedlint_guard.WATCHED else None)
        self.an_event = _of_an_event() - before
        sys.addaudithook(self._count)

    def _count(self, _event: str, _args: object) -> None:
        self.audited += 1


def _of_an_event() -> float:
    """The seconds that one audited operation takes."""
    count = 100_000
    return min(timeit.repeat("id(None)", number=count, repeat=5)) / count


def main() -> None:
    """Prints the figures, and exits with 1 where they miss the bar."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=40_000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        step = _step(_rows())
        hooks = Hooks(folder, step)
        result = _measured(step, hooks, options.steps)
        hooks.probe.written = True
    result["command"] = " ".join(("python", "benchmarks/probe_overhead.py", *sys.argv[1:]))
    result["machine"] = machine.fingerprint(Path(__file__).parent, {"torch": torch.__version__, "threads": 1}, Meter())
    us = {name: result[name] * 1e6 for name in ("step", "hooks", "half_width", "looks", "audit")}
    print(
        f"step {us['step']:.0f} us; hooks {us['hooks']:.1f} +- {us['half_width']:.1f} us, looks {us['looks']:.2f} us, "
        f"audit {us['audit']:.2f} us: {result['share']:.2%} of the step (at most {MOST:.0%})"
    )
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    sys.exit(result["share"] > MOST)


def _measured(step: Iterator[float], hooks: Hooks, count: int) -> dict[str, Any]:
    coin = random.Random(0)
    differences, past, audited = [], [], 0
    hooks.looked = 0.0
    for _ in range(count // BLOCK):
        block: dict[bool, list[float]] = {True: [], False: []}
        for _ in range(BLOCK):
            hooks.on = coin.random() < 0.5
            before = hooks.audited
            block[hooks.on].append(next(step))
            audited += hooks.audited - before
        differences.append(statistics.median(block[True]) - statistics.median(block[False]))
        past.append(statistics.median(block[False]))
    found = stats.estimate(differences)
    whole, audit, looks = statistics.median(past), audited / count * hooks.an_event, hooks.looked / count
    return {
        "step": whole,
        "hooks": found.log,
        "half_width": found.half,
        "audited_events": audited / count,
        "audit": audit,
        "looks": looks,
        "share": (found.log + audit + looks) / whole,
        "pairs": len(differences),
    }


def _step(rows: int) -> Iterator[float]:
    """The seconds of one step after another."""
    loader = DataLoader(TensorDataset(torch.randn(2000, rows, 64)), batch_size=None)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 1))
    optimizer = torch.optim.AdamW(model.parameters())
    began = time.perf_counter()
    while True:
        for (x,) in loader:
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
            yield time.perf_counter() - began
            began = time.perf_counter()


def _rows() -> int:
    """The rows of a batch with which a step takes about as long as it should."""
    took = {}
    for rows in (32, 512):
        step = _step(rows)
        took[rows] = statistics.median(next(step) for _ in range(600))
    each = (took[512] - took[32]) / 480
    return max(1, round(32 + (AIM - took[32]) / each))


if __name__ == "__main__":
    main()
