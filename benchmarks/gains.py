"""What `speedlint fix` brings to training scripts as people write them, on this machine, as `speedlint verify` finds it.

    python benchmarks/gains.py [--only NAME ...] [--clones FOLDER] [--minutes 20] [--budget SECONDS] [--json FILE]

Each script of `fixtures/gains` has a slowness that a fix is written for and a CPU can show. `speedlint fix --apply` fixes a
copy, at the lowest risk that writes it; `speedlint verify` compares each with its fixed version, with default flags, but for
`--budget` where that is given or less than its default is left of `--minutes`, and `--epochs 1` for a gain that lies between
the steps. Exits with 1 where fewer than five of eight, without the latter, are faster by 1.3 times or more, and the training
identical or numeric.

With `--clones` the same is done with two public scripts, from their own folders in clones there (`OWNER__NAME`); they do not
count for the bar. `wgan_gp` wants torchvision, and its MNIST at hand or a network.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = {
    "vae_anomaly": ("SPD406", "exact"),
    "tabular_adam": ("SPD502", "numeric"),
    "gestures_collate": ("SPD208", "exact"),
    "series_attention": ("SPD606", "numeric"),
    "sounds_loader": ("SPD201", "numeric"),
    "reviews_gc": ("SPD307", "exact"),
    "words_zeroed": ("SPD501", "exact"),
    "names_validated": ("SPD505", "numeric"),
}
"""The rule whose fix each is about, and the risk at which it is written."""
PUBLIC = {
    "bigram": ("karpathy/ng-video-lecture", "bigram.py", "SPD502", "numeric"),
    "wgan_gp": ("eriklindernoren/PyTorch-GAN", "implementations/wgan_gp/wgan_gp.py", "SPD502", "numeric"),
}
"""The repository, the script in it, and the same for public scripts, which are run from their own folders."""
FLAGS = {"names_validated": ("--epochs", "1")}
"""Those of a gain that lies between the steps; such a script does not count for the bar, which is of default flags."""
_DEFAULT_BUDGET = 300.0
"""Seconds that `speedlint verify` takes at most unless it is told."""
_LEAST = 1.3
_BAR = 5 / 8
_SAME = ("identical", "numeric")


def main() -> None:
    """Prints the table, and exits with 1 where too few gains are shown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=SCRIPTS, default=list(SCRIPTS), metavar="NAME")
    parser.add_argument("--clones", type=Path)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--budget", type=float)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    until = time.monotonic() + options.minutes * 60
    rows: list[dict[str, Any]] = []
    print("| script | rule | risk | verdict | training | took, s |\n" + "|---" * 6 + "|")
    for name in (*options.only, *(PUBLIC if options.clones else ())):
        budget = options.budget
        if until - time.monotonic() < (budget or _DEFAULT_BUDGET):
            budget = max(1.0, until - time.monotonic())
        machine, row = _measured(name, budget, options.clones)
        rows.append(row)
        print(_line(row), flush=True)
        if options.json:
            command = " ".join(("python", "benchmarks/gains.py", *sys.argv[1:]))
            result = {"command": command, "machine": machine, "rows": rows}
            options.json.write_text(json.dumps(result, indent=1) + "\n")
    ours = [row for row in rows if row["script"] in SCRIPTS]
    shown = sum(row["shown"] and row["script"] not in FLAGS for row in ours)
    print(f"{shown} of {len(ours)} are faster by {_LEAST} or more with default flags, and the same training; {_on(machine)}")
    sys.exit(shown < _BAR * len(ours))


def _put(name: str, clones: Path | None, folder: Path) -> tuple[Path, str, str]:
    """Copies a script, or the clone that holds it, into a folder. Returns its path, its rule and the risk."""
    if name in SCRIPTS:
        shutil.copy(ROOT / "fixtures" / "gains" / f"{name}.py", folder)
        return folder / f"{name}.py", *SCRIPTS[name]
    assert clones is not None
    repository, script, code, risk = PUBLIC[name]
    shutil.copytree(clones / repository.replace("/", "__"), folder / "clone", symlinks=True)
    return folder / "clone" / script, code, risk


def _measured(name: str, budget: float | None, clones: Path | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The machine, and what became of one script."""
    words = [*FLAGS.get(name, ()), *(() if budget is None else ("--budget", f"{budget:.0f}"))]
    with tempfile.TemporaryDirectory() as temporary:
        path, code, risk = _put(name, clones, Path(temporary))
        folder, file, before = path.parent, path.name, path.read_bytes()
        began = time.monotonic()
        done = _speedlint(folder, "verify", *words, "--json", "report.json", file)
        took = time.monotonic() - began
        if done.returncode == 2:
            sys.exit(f"{name}: {done.stderr}")
        report = json.loads((folder / "report.json").read_text())
        _speedlint(folder, "fix", "--apply", "--risk", risk, file)
        is_written = path.read_bytes() != before
    ratio = (report["timing"] or {}).get("ratio") or {}
    is_faster = report["verdict"] == "faster" and ratio["ratio"] >= _LEAST
    row = {
        "script": name,
        "command": " ".join(("speedlint", "verify", *words, file)),
        "rule": code,
        "risk": risk,
        "fixes": report["fixes"],
        "written": is_written,
        "verdict": report["verdict"],
        "said": done.stdout.splitlines()[0],
        "ratio": ratio,
        "parity": report["parity"]["tier"],
        "why": report["parity"]["why"],
        "shown": is_written and is_faster and report["parity"]["tier"] in _SAME,
        "notes": report["notes"],
        "took": took,
        "load": os.getloadavg()[0],
    }
    return report["machine"], row


def _speedlint(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = (sys.executable, "-m", "speedlint", *words)
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def _line(row: dict[str, Any]) -> str:
    cells = (row["script"], row["rule"], row["risk"], row["said"], row["parity"], f"{row['took']:.0f}")
    return "| " + " | ".join(cells) + " |"


def _on(machine: dict[str, Any]) -> str:
    process = machine["process"]
    threads = f"{process['threads']} thread{'s' if process['threads'] > 1 else ''}"
    return f"{machine['processor']}, {machine['cores']} cores, {threads}, torch {process['torch']}"


if __name__ == "__main__":
    main()
