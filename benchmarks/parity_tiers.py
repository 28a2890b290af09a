"""Which tier verify gives to changes whose effect on a training is known.

    python benchmarks/parity_tiers.py [--json FILE] [NAME ...]

The script trains a network with BatchNorm and dropout on shuffled rows, with labels that are partly noise. Each change is
one replacement in it; the table in `docs/verify.md` comes from here.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from speedlint.config import Settings
from speedlint.verify import machine, parity
from speedlint.verify.nvml import Meter
from speedlint.verify.parity import Parity, Tier
from speedlint.verify.plan import Command, Plan, Version
from speedlint.verify.runner import Limits, Runner
from speedlint.verify.scratch import scratch

SCRIPT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rows = torch.randn(2560, 20)
labels = (rows[:, :5].sum(1) + torch.randn(2560) > 0).long()
loader = DataLoader(TensorDataset(rows, labels), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(20, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(10):
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
CHANGES: dict[str, tuple[str, str, Tier]] = {
    "nothing": ("", "", Tier.IDENTICAL),
    "gradients kept as zeros": ("zero_grad()", "zero_grad(set_to_none=False)", Tier.IDENTICAL),
    "another order of summation": (
        "cross_entropy(model(x), y)",
        "cross_entropy(model(x), y, reduction='none').view(4, 8).sum(0).sum() / 32",
        Tier.NUMERIC,
    ),
    "float32 weights, bf16 arithmetic": (
        "loss = nn.functional.cross_entropy(model(x), y)",
        "with torch.autocast('cpu', torch.bfloat16): loss = nn.functional.cross_entropy(model(x), y)",
        Tier.NUMERIC,
    ),
    "random stream moved": ("for epoch", "torch.rand(1)\nfor epoch", Tier.STATISTICAL),
    "data in another order": (
        "shuffle=True",
        "shuffle=True, generator=torch.Generator().manual_seed(torch.initial_seed() + 7)",
        Tier.STATISTICAL,
    ),
    "learning rate x1.1": ("lr=1e-3", "lr=1.1e-3", Tier.DIFFERENT),
    "learning rate x10": ("lr=1e-3", "lr=1e-2", Tier.DIFFERENT),
    "BatchNorm removed": ("nn.BatchNorm1d(64)", "nn.Identity()", Tier.DIFFERENT),
    "dropout removed": ("nn.Dropout(0.1)", "nn.Identity()", Tier.DIFFERENT),
}


def main() -> None:
    """Prints a row for each change, and exits with 1 where one is given another tier than it belongs to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    result: dict[str, Any] = {"command": " ".join(("python", "benchmarks/parity_tiers.py", *sys.argv[1:])), "changes": {}}
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, (old, new, belongs) in CHANGES.items():
            if options.names and name not in options.names:
                continue
            found, environment = _judged(Path(folder), SCRIPT.replace(old, new) if old else SCRIPT)
            wrong += found.tier is not belongs
            mark = "" if found.tier is belongs else f"  <- belongs to {belongs.words}"
            print(
                f"{name:34} {found.tier.words:18} first {found.first:.1e} drift {found.drift:.1e}; {found.why}{mark}",
                flush=True,
            )
            result["changes"][name] = {
                "tier": found.tier.words,
                "belongs": belongs.words,
                "why": found.why,
                "first": found.first,
                "drift": found.drift,
            }
            result["machine"] = machine.fingerprint(Path(__file__).parent, environment, Meter())
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    sys.exit(wrong > 0)


def _judged(root: Path, text: str) -> tuple[Parity, dict[str, Any]]:
    entry = root / "train.py"
    entry.write_text(SCRIPT)
    command = Command(sys.executable, "train.py", False, (), (), root)
    original, other = Version("original", root, command), Version("other", root, command, {entry: text.encode()})
    plan = Plan(original, other, root, (root,), (), Settings(root), entry, (entry,))
    with scratch(None) as folders:
        runner = Runner(plan, folders, Limits(), Meter(), lambda _seconds, _steps: None)
        return parity.judge(runner, original, other), runner.environment


if __name__ == "__main__":
    main()
