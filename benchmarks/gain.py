"""Times the fixture projects before and after `speedlint fix --apply`, as whole processes on a CPU.

    python benchmarks/gain.py [PROJECT ...] [--pairs 6] [--steps 30] [--risk numeric] [--json FILE]

Runs alternate in ABBA order, so that a machine whose speed drifts slows both sides alike. The ratio is the geometric mean of
the pairs' wall times, after divided by before, start-up included, with its 95% t interval on the logarithms. Most fixes are
for a GPU and cannot show here: what a CPU shows is loading beside training.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TypedDict

PROJECTS = Path(__file__).parent.parent / "fixtures" / "projects"
T_95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228, 11: 2.201}


def seconds(folder: Path, steps: int) -> float:
    """Wall time of one run with one compute thread."""
    command = [sys.executable, "train.py", "--device", "cpu", "--steps", str(steps)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    start = time.perf_counter()
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    return time.perf_counter() - start


class Gain(TypedDict):
    """A project's wall times in seconds, and their ratio, after divided by before, with its 95% interval."""

    project: str
    before: list[float]
    after: list[float]
    ratio: float
    interval: tuple[float, float]


def measure(project: Path, scratch: Path, pairs: int, steps: int, risk: str) -> Gain:
    """Runs both sides in turn."""
    before, after = (shutil.copytree(project, scratch / side / project.name) for side in ("before", "after"))
    fix = [sys.executable, "-m", "speedlint", "fix", "--apply", "--risk", risk, "."]
    subprocess.run(fix, cwd=after, check=True, capture_output=True)
    times: dict[Path, list[float]] = {before: [], after: []}
    for folder in (before, after):
        seconds(folder, steps)
    for pair in range(pairs):
        for folder in (before, after) if pair % 2 == 0 else (after, before):
            times[folder].append(seconds(folder, steps))
    logs = [math.log(b / a) for a, b in zip(times[before], times[after], strict=True)]
    half = T_95[pairs - 1] * statistics.stdev(logs) / math.sqrt(pairs)
    mean = statistics.fmean(logs)
    return {
        "project": project.name,
        "before": times[before],
        "after": times[after],
        "ratio": math.exp(mean),
        "interval": (math.exp(mean - half), math.exp(mean + half)),
    }


def processor() -> str:
    """The machine's processor, as it calls itself."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor())


def main() -> None:
    """Prints one line a project."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("projects", nargs="*", default=sorted(path.name for path in PROJECTS.iterdir() if path.is_dir()))
    parser.add_argument("--pairs", type=int, default=6, choices=range(2, 13))
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--risk", default="numeric", choices=["exact", "numeric", "behavior"])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = []
    for name in options.projects:
        with tempfile.TemporaryDirectory() as scratch:
            result = measure(PROJECTS / name, Path(scratch), options.pairs, options.steps, options.risk)
        results.append(result)
        low, high = result["interval"]
        print(f"{name:22} after/before {result['ratio']:.3f} [{low:.3f}, {high:.3f}] over {options.pairs} pairs")
    if options.json:
        machine = {"processor": processor(), "cores": os.cpu_count(), "system": platform.platform(), "python": sys.version}
        setting = {"pairs": options.pairs, "steps": options.steps, "risk": options.risk}
        options.json.write_text(json.dumps({"machine": machine, **setting, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
