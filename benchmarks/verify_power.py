"""How often verify's timing is right: a script against itself, against a slower copy, and against a faster one.

    python benchmarks/verify_power.py [--runs 20] [--epochs 1] [--minutes 60] [--json FILE]

The script trains a small network and multiplies some matrices beside it in each step. The slower copy multiplies as many
more as take 10% of a step, the faster copy as many fewer as make it 15% faster: real work, found by timing the script with
one and two times the matrices. It prints for each copy how often each verdict was given, the ratios, the spread of the
pairs and how many pairs it took. With ``--epochs`` whole epochs are timed, of 100 steps each. With ``--minutes`` nothing
is begun that would not be over by then, by the longest so far, and the bars are those of as many as were made.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import statistics
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from speedlint import host
from speedlint.config import Settings
from speedlint.verify import machine
from speedlint.verify.nvml import Meter
from speedlint.verify.plan import Command, Plan, Version
from speedlint.verify.runner import Limits, Runner
from speedlint.verify.scratch import scratch
from speedlint.verify.timing import Timing, measure

SCRIPT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

UNITS = {units}

torch.manual_seed(0)
rows = torch.randn(12800, 64)
loader = DataLoader(TensorDataset(rows, rows.sum(1, keepdim=True)), batch_size=128, shuffle=True)
model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
beside = torch.eye(192)
for epoch in range(100):
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for _ in range(UNITS):
            beside = beside @ beside
"""
UNITS = 30
SLOWER, FASTER = 1.10, 1.15


def main() -> None:
    """Prints the counts, and exits with 1 where the bars are missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--epochs", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    began, limits = time.monotonic(), Limits(threads=max(1, host.cores() - 1), epochs=options.epochs)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        whole, step = _calibrated(root, replace(limits, epochs=0))
        cases = {"itself": UNITS, f"slower by {SLOWER - 1:.0%}": _units(whole, step, SLOWER)}
        cases[f"faster by {FASTER - 1:.0%}"] = _units(whole, step, 1 / FASTER)
        found: dict[str, list[Timing]] = {name: [] for name in cases}
        longest = 0.0
        for name, units in itertools.chain.from_iterable([cases.items()] * options.runs):
            if (at := time.monotonic()) + longest > began + options.minutes * 60:
                break
            found[name].append(_timed(root, units, limits))
            longest = max(longest, time.monotonic() - at)
            if options.json:
                options.json.write_text(json.dumps(_result(found, cases, whole, step, began), indent=1) + "\n")
    if not all(found.values()):
        sys.exit(f"{options.minutes:g} minutes do not suffice for a comparison of each kind")
    result = _result(found, cases, whole, step, began)
    for name, summary in result["cases"].items():
        print(f"{name:16} {summary}")
    print(f"threads {result['machine']['process']['threads']}, step {whole * 1e3:.2f} ms, {result['seconds']:.0f} s")
    sys.exit(not _holds(result["cases"]))


def _result(
    found: dict[str, list[Timing]], cases: dict[str, int], whole: float, step: float, began: float
) -> dict[str, Any]:
    """What the verdicts so far come to."""
    return {
        "command": " ".join(("python", "benchmarks/verify_power.py", *sys.argv[1:])),
        "machine": machine.fingerprint(Path(__file__).parent, found["itself"][0].pairs[0][0].environment, Meter()),
        "step": whole,
        "unit": step,
        "units": cases,
        "cases": {name: _summary(timings) for name, timings in found.items() if timings},
        "seconds": time.monotonic() - began,
    }


def _holds(cases: dict[str, Any]) -> bool:
    itself, slower, faster = (Counter(each["verdicts"]) for each in cases.values())
    return (
        itself["faster"] + itself["slower"] <= itself.total() // 20
        and slower["slower"] >= 0.9 * slower.total()
        and not slower["faster"]
        and faster["faster"] >= 0.9 * faster.total()
        and not faster["slower"]
    )


def _calibrated(root: Path, limits: Limits) -> tuple[float, float]:
    """The seconds of a step, and those of one multiplication."""
    once, twice = (_timing(root, UNITS, units, 4, 4, limits) for units in (UNITS, 2 * UNITS))
    steps = [statistics.median(pair[1].step for pair in timing.pairs) for timing in (once, twice)]
    return steps[0], (steps[1] - steps[0]) / UNITS


def _units(whole: float, unit: float, factor: float) -> int:
    return max(0, UNITS + round(whole * (factor - 1) / unit))


def _timed(root: Path, units: int, limits: Limits) -> Timing:
    timing = _timing(root, UNITS, units, 6, 20, limits)
    print(f"  {units} units: {timing.verdict.value}, {timing.estimate.ratio:.3f}, {len(timing.pairs)} pairs", flush=True)
    return timing


def _timing(root: Path, mine: int, theirs: int, pairs: int, most: int, limits: Limits) -> Timing:
    entry = root / "train.py"
    entry.write_text(SCRIPT.format(units=mine))
    command = Command(sys.executable, "train.py", False, (), (), root)
    other = Version("other", root, command, {entry: SCRIPT.format(units=theirs).encode()})
    plan = Plan(Version("original", root, command), other, root, (root,), (), Settings(root), entry, (entry,))
    timing = Timing(unit="epoch" if limits.epochs else "step")
    with scratch(None) as folders:
        runner = Runner(plan, folders, limits, Meter(), lambda _seconds, _steps: None)
        measure(runner, (plan.original, plan.fixed), timing, pairs, most, math.inf, lambda _timing: None)
    return timing


def _summary(timings: list[Timing]) -> dict[str, Any]:
    ratios = [timing.estimate.ratio for timing in timings]
    spreads = [statistics.stdev(timing.logs) for timing in timings]
    return {
        "verdicts": dict(Counter(timing.verdict.value for timing in timings)),
        "ratio": [round(min(ratios), 3), round(statistics.median(ratios), 3), round(max(ratios), 3)],
        "spread_of_pairs": round(statistics.median(spreads), 4),
        "floor": round(statistics.median(math.expm1(timing.floor) for timing in timings), 4),
        "pairs": dict(sorted(Counter(len(timing.pairs) for timing in timings).items())),
        "starts": dict(sorted(Counter(timing.starts for timing in timings).items())),
        "in_turns": sum(timing.in_turns for timing in timings),
    }


if __name__ == "__main__":
    main()
