"""Which tier verify gives to changes whose effect on a training is known.

    python benchmarks/parity_tiers.py [--networks NAME ...] [--changes NAME ...] [--repetitions 5] [--json FILE]
    python benchmarks/parity_tiers.py --table FILE

Four networks, the changes of `parity/networks.py`, five repetitions under other seeds. The result is appended to a JSON file
that is there already; `--table` prints the table of `docs/verify.md` from one. A change is judged wrongly where one that
changes the training is called identical or numeric, where one with other random numbers is called that or different, and
where the same training is called different or not known. Runs are forks of one process that has imported torch;
`--processes` starts each as verify does.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.parity.forks import Forks
from benchmarks.parity.networks import CHANGES, NETWORKS, Kind, texts
from speedlint.config import Settings
from speedlint.verify import machine, parity
from speedlint.verify.nvml import Meter
from speedlint.verify.parity import Parity, Tier
from speedlint.verify.plan import Command, Plan, Version
from speedlint.verify.runner import Limits, Runner
from speedlint.verify.scratch import scratch

WRONG = {
    Kind.SAME: (Tier.DIFFERENT, Tier.UNKNOWN),
    Kind.RANDOM: (Tier.IDENTICAL, Tier.NUMERIC, Tier.DIFFERENT, Tier.UNKNOWN),
    Kind.CHANGED: (Tier.IDENTICAL, Tier.NUMERIC),
}


def main() -> None:
    """Prints a line for each cell and exits with 1 where one is judged wrongly."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS), metavar="NAME")
    parser.add_argument("--changes", nargs="+", choices=CHANGES, default=list(CHANGES), metavar="NAME")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--processes", action="store_true")
    parser.add_argument("--table", type=Path, metavar="JSON")
    options = parser.parse_args()
    if options.table:
        print(_table(json.loads(options.table.read_text())["cells"]))
        return
    cells = _done(options.json)
    environment: dict[str, Any] = {}
    for seed in range(options.repetitions):
        for change in options.changes:
            for network in options.networks:
                if (key := f"{network}; {change}; {seed}") in cells:
                    continue
                began = time.monotonic()
                scripts = texts(network, CHANGES[change], seed)
                found, environment = _judged(scripts, Runner if options.processes else Forks)
                cells[key] = _cell(network, change, seed, found, time.monotonic() - began)
                print(_line(cells[key]), flush=True)
                if options.json:
                    result = {
                        "command": "python benchmarks/parity_tiers.py --json FILE",
                        "machine": machine.fingerprint(Path(__file__).parent, environment, Meter()),
                        "cells": list(cells.values()),
                    }
                    options.json.write_text(json.dumps(result, indent=1) + "\n")
    wrong = sum(cell["wrong"] for cell in cells.values())
    print(f"{len(cells)} cells, {wrong} judged wrongly")
    sys.exit(wrong > 0)


def _done(path: Path | None) -> dict[str, dict[str, Any]]:
    """The cells that the file holds."""
    if path is None or not path.exists():
        return {}
    cells = json.loads(path.read_text())["cells"]
    return {f"{cell['network']}; {cell['change']}; {cell['seed']}": cell for cell in cells}


def _judged(scripts: tuple[str, str], kind: type[Runner]) -> tuple[Parity, dict[str, Any]]:
    original, other = scripts
    with tempfile.TemporaryDirectory() as folder, scratch(None) as folders:
        root = Path(folder)
        entry = root / "train.py"
        entry.write_text(original)
        command = Command(sys.executable, "train.py", False, (), (), root)
        versions = Version("original", root, command), Version("other", root, command, {entry: other.encode()})
        plan = Plan(*versions, root, (root,), (), Settings(root), entry, (entry,))
        runner = kind(plan, folders, Limits(), Meter(), lambda _seconds, _steps: None)
        return parity.judge(runner, *versions), runner.environment


def _cell(network: str, change: str, seed: int, found: Parity, seconds: float) -> dict[str, Any]:
    return {
        "network": network,
        "change": change,
        "seed": seed,
        "kind": CHANGES[change].kind.value,
        "tier": found.tier.words,
        "wrong": found.tier in WRONG[CHANGES[change].kind],
        "why": found.why,
        "first": found.first,
        "drift": found.drift,
        "allowed": found.allowed,
        "seconds": round(seconds, 2),
    }


def _line(cell: dict[str, Any]) -> str:
    mark = "  <- wrong" if cell["wrong"] else ""
    numbers = f"first {cell['first']:.1e} drift {cell['drift']:.1e} {cell['seconds']:4.1f} s"
    return f"{cell['seed']} {cell['network']:14} {cell['change']:50} {cell['tier']:18} {numbers}; {cell['why']}{mark}"


def _table(cells: list[dict[str, Any]]) -> str:
    """A row for each change, a column for each network: how often each tier was given."""
    names = [name for name in NETWORKS if any(cell["network"] == name for cell in cells)]
    rows = [f"| change | training | {' | '.join(names)} |", "|---" * (len(names) + 2) + "|"]
    for change, each in CHANGES.items():
        counts = [
            Counter(cell["tier"] for cell in cells if (cell["change"], cell["network"]) == (change, name)) for name in names
        ]
        if any(counts):
            given = [[f"{count} {tier.split()[0]}" for tier, count in tiers.most_common()] for tiers in counts]
            shown = " | ".join(map(", ".join, given))
            rows.append(f"| {change} | {each.kind.value} | {shown} |")
    return "\n".join(rows)


if __name__ == "__main__":
    main()
