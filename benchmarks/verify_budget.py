"""Whether `verify --budget` keeps its promise: planning, losses and pairs together within 10% or one step of the script.

    python benchmarks/verify_budget.py [--budgets 60,120,300] [--only start:step:workers,...] [--json FILE]
    python benchmarks/verify_budget.py --table FILE

Each script sleeps for some seconds before it trains a small network, and for a part of each step; the other version sleeps
less in a step. It prints for each script and budget the wall time, the verdict, and what the losses say. The result is added
to a file that is there already; `--table` prints the table of `docs/verify.md` from one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SCRIPT = """
import time
time.sleep({start})
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rows = torch.randn(3200, 64)
loader = DataLoader(TensorDataset(rows, rows.sum(1, keepdim=True)), batch_size=32, num_workers={workers})
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for epoch in range(1000):
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep({step})
"""
SCRIPTS = (
    (0.0, 0.001, 0),
    (0.0, 0.01, 2),
    (0.0, 0.1, 0),
    (0.0, 1.0, 0),
    (0.0, 2.0, 0),
    (5.0, 0.01, 0),
    (5.0, 0.1, 2),
    (10.0, 0.01, 0),
    (20.0, 0.001, 0),
    (20.0, 0.5, 2),
)
"""Seconds before the training, seconds slept in a step, workers."""
FASTER = 0.8
SLACK = 0.1


def main() -> None:
    """Prints the table, and exits with 1 where a budget was not kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budgets", default="60,120,300")
    parser.add_argument("--only")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--table", type=Path, metavar="JSON")
    options = parser.parse_args()
    if options.table:
        print(_table(json.loads(options.table.read_text())["rows"]))
        return
    scripts = SCRIPTS if options.only is None else [_script(each) for each in options.only.split(",")]
    found: list[dict[str, Any]] = []
    if options.json and options.json.exists():
        found = json.loads(options.json.read_text())["rows"]
    command = " ".join(("python", "benchmarks/verify_budget.py", *sys.argv[1:]))
    print("| start, s | step, s | workers | budget, s | took, s | kept | verdict | losses |\n" + "|---" * 8 + "|")
    for budget in map(float, options.budgets.split(",")):
        for start, step, workers in scripts:
            machine, row = _timed(start, step, workers, budget)
            found.append(row)
            cells = (start, step, workers, f"{budget:.0f}", f"{row['took']:.0f}", row["kept"], row["verdict"], row["losses"])
            print("| " + " | ".join(map(str, cells)) + " |", flush=True)
            if options.json:
                result = {"command": command, "machine": machine, "rows": found}
                options.json.write_text(json.dumps(result, indent=1) + "\n")
    sys.exit(not all(row["kept"] for row in found))


def _table(rows: list[dict[str, Any]]) -> str:
    """A line for each script: the seconds that each budget took, and the first word of the verdict."""
    budgets = sorted({row["budget"] for row in rows})
    lines = ["| start, s | step, s | workers | " + " | ".join(f"{each:.0f} s" for each in budgets) + " |"]
    lines.append("|---" * (3 + len(budgets)) + "|")
    for script in dict.fromkeys((row["start"], row["step"], row["workers"]) for row in rows):
        took = {row["budget"]: row for row in rows if (row["start"], row["step"], row["workers"]) == script}
        shown = [f"{took[each]['took']:.0f}, {_verdict(took[each])}" if each in took else "" for each in budgets]
        lines.append("| " + " | ".join([*(f"{each:g}" for each in script), *shown]) + " |")
    return "\n".join(lines)


def _verdict(row: dict[str, Any]) -> str:
    return str(row["verdict"]).partition(":")[0].partition(",")[0].partition(" (")[0] + ("" if row["kept"] else ", too late")


def _script(text: str) -> tuple[float, float, int]:
    start, step, workers = text.split(":")
    return float(start), float(step), int(workers)


def _timed(start: float, step: float, workers: int, budget: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """The machine, and what became of one script under one budget."""
    with tempfile.TemporaryDirectory() as folder:
        for name, factor in (("train.py", 1.0), ("other.py", FASTER)):
            Path(folder, name).write_text(SCRIPT.format(start=start, step=step * factor, workers=workers))
        command = (sys.executable, "-m", "speedlint", "verify", "train.py", "--against", "other.py", "--json", "report.json")
        began = time.monotonic()
        done = subprocess.run((*command, "--budget", str(budget)), cwd=folder, capture_output=True, text=True, check=False)
        took = time.monotonic() - began
        report = json.loads(Path(folder, "report.json").read_text())
    kept = took <= budget + max(SLACK * budget, step)
    row = {
        "start": start,
        "step": step,
        "workers": workers,
        "budget": budget,
        "took": took,
        "kept": kept,
        "verdict": done.stdout.splitlines()[0],
        "losses": report["parity"]["tier"],
        "load": os.getloadavg()[0],
        "wanting": report["wanting"],
    }
    return report["machine"], row


if __name__ == "__main__":
    main()
