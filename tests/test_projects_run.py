"""The fixture projects, fixed, still run and still train: `exact` bit for bit, `numeric` within what its name promises."""

from __future__ import annotations

import math
import os
import re
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECTS = sorted(path for path in (ROOT / "fixtures" / "projects").iterdir() if (path / "train.py").exists())
OTHER_SEEDS = ("101", "102", "103", "104")
LOSS = re.compile(r"loss (\S+)")

FEW = "10"
each_project = pytest.mark.parametrize("original", PROJECTS, ids=lambda path: path.name)


def sampled(name: str) -> pytest.MarkDecorator:
    """One of the projects; all of them with `-m slow`."""
    paths = [pytest.param(path, marks=() if path.name == name else pytest.mark.slow) for path in PROJECTS]
    return pytest.mark.parametrize("original", paths, ids=[path.name for path in PROJECTS])


def copied(original: Path, folder: Path) -> Path:
    """A copy of a project, without what its runs leave behind."""
    return shutil.copytree(original, folder / original.name, ignore=shutil.ignore_patterns("__pycache__", "runs", "outputs"))


def fix(project: Path, risk: str) -> str:
    """What `speedlint fix --apply` says."""
    command = [sys.executable, "-m", "speedlint", "fix", "--apply", "--risk", risk, "."]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def train(project: Path, *options: str) -> list[str]:
    """The lines with losses that 30 steps on a CPU print."""
    command = [sys.executable, "train.py", "--device", "cpu", "--steps", "30", *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return [line for line in done.stdout.splitlines() if "loss" in line]


def losses(lines: list[str]) -> list[float]:
    """The numbers behind the word `loss`."""
    return [float(number) for line in lines for number in LOSS.findall(line)]


@sampled("toxic_gpt2")
def test_exact_fixes_print_the_same_losses(original: Path, tmp_path: Path) -> None:
    before = train(copied(original, tmp_path / "before"))
    exact = copied(original, tmp_path / "exact")
    fix(exact, "exact")
    assert train(exact) == before


@sampled("air_quality_lstm")
def test_numeric_fixes_settle_near_the_first_loss(original: Path, tmp_path: Path, uncompiled: None) -> None:
    before = losses(train(copied(original, tmp_path / "before"), "--steps", FEW))
    numeric = copied(original, tmp_path / "numeric")
    fix(numeric, "numeric")
    settled = {path: path.read_bytes() for path in numeric.rglob("*.py")}
    assert losses(train(numeric, "--steps", FEW))[0] == pytest.approx(before[0], rel=1e-5)
    fix(numeric, "numeric")
    assert {path: path.read_bytes() for path in numeric.rglob("*.py")} == settled


@pytest.mark.slow
@each_project
def test_the_last_losses_of_five_seeds_agree(original: Path, tmp_path: Path) -> None:
    """Where the random stream moves, a run is one more draw: a harmless change leaves the difference of the means within
    four standard errors in all but one of some two hundred cases (Student's t, eight degrees of freedom)."""
    before, after = copied(original, tmp_path / "before"), copied(original, tmp_path / "after")
    fix(after, "numeric")
    seeds = ((), *(("--seed", seed) for seed in OTHER_SEEDS))
    first, then = ([losses(train(project, *seed))[-1] for seed in seeds] for project in (before, after))
    error = math.sqrt((statistics.variance(first) + statistics.variance(then)) / len(seeds))
    assert abs(statistics.mean(then) - statistics.mean(first)) <= 4 * error
