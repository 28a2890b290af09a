"""What a check costs beside other tools, and how its cost grows with the number of files.

    python benchmarks/speed.py FOLDER_OR_FILE... [--rounds 3] [--skip NAME,...] [--json FILE]
    python benchmarks/speed.py --growth [--sizes 100,1000,5000] [--json FILE]
    python benchmarks/speed.py --edits FOLDER FILE... [--rounds 3] [--json FILE]

Each round runs every tool once over the same files, one after the other, so that a machine that changes its speed favours
none: speedlint with an empty cache (cold) and again with the cache that this leaves (warm), TorchFix, Ruff with all of its
rules and without its cache, a bare parse by libcst, and one by `ast.parse`; all run from compiled code, as installed tools
do. It prints the medians of the CPU seconds (of all processes of a tool), the wall seconds, the memory of the largest
process at its peak, and the median over the rounds of each tool's time divided by that of a cold check. A tool that is not
found is left out with a word; `--torchfix COMMAND` and `--ruff COMMAND` say where it is, `--speedlint COMMAND` checks with
another version.

`--growth` makes packages of plain modules, one in fifty of them a training script that imports others, and prints the time
of a check per file.

`--edits` works on a copy of FOLDER. A line is added to another Python file of it, picked at random, the same on every run of
this, before each check of one of its FILES: first each check is a run of its own, with the cache that those before it have
left; then one process stays up, as a server does, where the file itself is edited too, and of the others those that
the check has read. It prints medians of CPU seconds, and the largest.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import random
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

CACHE = "SPEEDLINT_CACHE_DIR"
FAILED = 3
"""From this exit code on, and where a signal ended it, a tool has failed; 2 says that some file could not be read."""
PARSE = """
import sys
from pathlib import Path
{importing}
for given in map(Path, sys.argv[1:]):
    for path in sorted(given.rglob("*.py")) if given.is_dir() else [given]:
        try:
            {parse}(path.read_bytes())
        except Exception:
            print("not parsed:", path)
"""
MODULE = '''"""Module {number} of a package."""

import math

from .module_{first:05} import Block as First
from .module_{second:05} import scaled as second


class Block:
    """A value with a name."""

    def __init__(self, name, size=4):
        self.name, self.size = name, size
        self.parts = [First(name, size - 1)] if size > 1 else []

    def total(self):
        found = 0.0
        for part in self.parts:
            found += part.total() if hasattr(part, "total") else part.size
        return found + math.sqrt(self.size)

    def __repr__(self):
        return f"Block({{self.name!r}}, {{self.size}})"


def scaled(values, factor={number}):
    """The values, each taken times a factor."""
    result = []
    for position, value in enumerate(values):
        if position % 2 == 0:
            result.append(value * factor)
        else:
            result.append(second([value])[0] if factor > 100 else value)
    return result
'''
FIRST = '''"""The first module of a package."""


class Block:
    """A value."""

    def __init__(self, name, size=4):
        self.name, self.size = name, size


def scaled(values, factor=2):
    """The values, each taken times a factor."""
    return [value * factor for value in values]
'''
TRAIN = '''"""Training script {number}."""

import torch
from torch.utils.data import DataLoader

from .module_{first:05} import Block
from .module_{second:05} import scaled


def train(rows):
    model = torch.nn.Linear(16, 4).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    total = 0.0
    for features, target in DataLoader(rows, batch_size=Block("batch", 32).size):
        loss = (model(features.cuda()) - target.cuda()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(scaled([total]))


if __name__ == "__main__":
    train([])
'''
UP = """
import json, random, sys, time
from pathlib import Path
from speedlint.server.analysis import Analyst

path, rounds = Path(sys.argv[1]).resolve(), int(sys.argv[2])
analyst, texts, taken = Analyst(), {path: path.read_bytes()}, {"own": [], "other": []}

def checked():
    began = time.process_time()
    found = analyst.check(path, texts)
    return found, time.process_time() - began

found, _ = checked()
others = sorted(each for each in found.rests_on if each.endswith(".py") and each != str(path))
chosen = random.Random(1).sample(others, min(rounds, len(others)))
for kind, edited in [("own", path)] * rounds + [("other", Path(each)) for each in chosen]:
    texts[edited] = texts.get(edited, edited.read_bytes()) + b"\\n# edited\\n"
    taken[kind].append(checked()[1])
print(json.dumps({"files": len(found.rests_on), **taken}))
"""
"""Checks in one process: a file after edits of itself, and of others that the check has looked at."""
TRAINS = 50
"""One in so many generated files is a training script."""


@dataclass(frozen=True)
class Tool:
    """A command that takes files and folders, and the environment that it needs."""

    name: str
    command: tuple[str, ...]
    environment: dict[str, str]


@dataclass(frozen=True)
class Run:
    """What one run took: seconds of CPU and of the clock, megabytes of the largest process, and the exit code."""

    cpu: float
    wall: float
    megabytes: float
    code: int


def measured(tool: Tool, paths: Sequence[str]) -> Run:
    """Runs a tool; what the processes take that it starts and waits for counts as its own."""
    began = time.monotonic()
    environment = {**os.environ, **tool.environment}
    quiet = subprocess.DEVNULL
    with subprocess.Popen([*tool.command, *paths], env=environment, stdout=quiet, stderr=quiet) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - began
    size = usage.ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
    return Run(usage.ru_utime + usage.ru_stime, wall, size, process.returncode)


def tools(options: argparse.Namespace) -> tuple[list[Tool], list[str]]:
    """The tools beside speedlint that can be run, and a word about each that cannot."""
    ruff = _command(options.ruff, "ruff", "check", "--select", "ALL", "--isolated", "--no-cache", "--quiet")
    found = {
        "torchfix": _command(options.torchfix, "torchfix", "--select", "ALL"),
        "ruff": ruff,
        "libcst": _parser("import libcst", "libcst.parse_module") if importlib.util.find_spec("libcst") else None,
        "ast": _parser("import ast", "ast.parse"),
    }
    chosen = {name: command for name, command in found.items() if name not in options.skip.split(",")}
    missing = [f"{name} is not installed, and left out" for name, command in chosen.items() if command is None]
    return [Tool(name, command, {}) for name, command in chosen.items() if command is not None], missing


def _command(given: str | None, name: str, *arguments: str) -> tuple[str, ...] | None:
    words = shlex.split(given) if given else [name]
    program = shutil.which(words[0])
    return (program, *words[1:], *arguments) if program is not None else None


def _parser(importing: str, parse: str) -> tuple[str, ...]:
    return (sys.executable, "-c", PARSE.format(importing=importing, parse=parse))


def speedlint(options: argparse.Namespace, name: str, cache: Path) -> Tool:
    """A check that keeps what it may keep in a folder."""
    command = shlex.split(options.speedlint) if options.speedlint else [sys.executable, "-m", "speedlint"]
    return Tool(name, (*command, "check", "--notes", "--format", "json"), {CACHE: str(cache)})


def checked(options: argparse.Namespace, paths: Sequence[str]) -> dict[str, Run]:
    """A check with an empty cache, and one with the cache that it leaves."""
    with tempfile.TemporaryDirectory() as folder:
        cold = measured(speedlint(options, "speedlint cold", Path(folder)), paths)
        return {"cold": cold, "warm": measured(speedlint(options, "speedlint warm", Path(folder)), paths)}


def compare(options: argparse.Namespace) -> dict[str, Any]:
    """Times all tools in turn, and prints the table."""
    others, missing = tools(options)
    for word in missing:
        print(word)
    rounds: list[dict[str, Run]] = []
    for number in range(options.rounds):
        both = checked(options, options.paths)
        found = {"speedlint cold": both["cold"], "speedlint warm": both["warm"]}
        found.update((tool.name, measured(tool, options.paths)) for tool in others)
        rounds.append(found)
        print(f"round {number + 1}: " + ", ".join(f"{name} {run.cpu:.2f} s" for name, run in found.items()), flush=True)
    rows = [_row(name, rounds) for name in rounds[0]]
    size = sum(path.stat().st_size for path in _files(options.paths))
    print(f"\n{len(_files(options.paths))} files, {size / 1e6:.1f} MB; medians of {options.rounds} rounds")
    print(f"{'':16}{'CPU s':>9}{'wall s':>9}{'MB':>7}{'CPU / cold':>12}{'wall / cold':>13}")
    for row in rows:
        failed = f"   exit code {row['code']}" if row["code"] >= FAILED or row["code"] < 0 else ""
        figures = f"{row['cpu']:>9.2f}{row['wall']:>9.2f}{row['megabytes']:>7.0f}"
        print(f"{row['tool']:16}{figures}{row['cpu_ratio']:>12.3g}{row['wall_ratio']:>13.3g}{failed}")
    return {"rows": rows, "rounds": [{name: asdict(run) for name, run in each.items()} for each in rounds], "bytes": size}


def _row(name: str, rounds: Sequence[dict[str, Run]]) -> dict[str, Any]:
    runs = [(each[name], each["speedlint cold"]) for each in rounds]
    return {
        "tool": name,
        "cpu": statistics.median(run.cpu for run, _ in runs),
        "wall": statistics.median(run.wall for run, _ in runs),
        "megabytes": statistics.median(run.megabytes for run, _ in runs),
        "cpu_ratio": statistics.median(run.cpu / cold.cpu for run, cold in runs),
        "wall_ratio": statistics.median(run.wall / cold.wall for run, cold in runs),
        "code": max((run.code for run, _ in runs), key=abs),
    }


def _files(paths: Sequence[str]) -> list[Path]:
    return [file for path in map(Path, paths) for file in (path.rglob("*.py") if path.is_dir() else [path])]


def grow(options: argparse.Namespace) -> dict[str, Any]:
    """Times checks of generated packages, and prints the time per file."""
    rows: list[dict[str, Any]] = []
    print(f"{'files':>6}{'cold ms/file':>14}{'growth':>8}{'warm ms/file':>14}{'growth':>8}{'wall s':>9}{'MB':>6}")
    for size in map(int, options.sizes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            generate(Path(folder), size)
            runs = [checked(options, [folder]) for _ in range(options.rounds)]
        row = {"files": size, "megabytes": statistics.median(each["cold"].megabytes for each in runs)}
        row |= {kind: statistics.median(each[kind].cpu for each in runs) / size * 1e3 for kind in ("cold", "warm")}
        row["wall"] = statistics.median(each["cold"].wall for each in runs)
        rows.append(row)
        figures = "".join(f"{row[kind]:>14.2f}{row[kind] / rows[0][kind]:>7.2f}x" for kind in ("cold", "warm"))
        print(f"{size:>6}{figures}{row['wall']:>9.1f}{row['megabytes']:>6.0f}", flush=True)
    return {"rows": rows}


def generate(root: Path, size: int) -> None:
    """Writes a package of ``size`` files, of which each imports two of those before it."""
    package = root / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "module_00000.py").write_text(FIRST)
    for number in range(1, size - 1):
        trains = number % TRAINS == 0
        before = [each - (each % TRAINS == 0 and each > 0) for each in (number // 2, number // 3)]
        text = (TRAIN if trains else MODULE).format(number=number, first=before[0], second=before[1])
        (package / f"{'train' if trains else 'module'}_{number:05}.py").write_text(text)


def edit(options: argparse.Namespace) -> dict[str, Any]:
    """Times checks after one other file was edited, and prints the seconds of CPU."""
    root, *files = map(Path, options.edits)
    rows: list[dict[str, Any]] = []
    print(f"{'file':40}{'files':>7}{'cold':>8}{'a run':>8}{'most':>8}{'up: own':>9}{'other':>8}{'most':>8}")
    for file in files:
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as cache:
            copy = Path(folder) / root.name
            shutil.copytree(root, copy, symlinks=True)
            tool, asked = speedlint(options, "speedlint", Path(cache)), str(copy / file)
            cold = measured(tool, [asked]).cpu
            others = sorted(each for each in copy.rglob("*.py") if each != copy / file and each.is_file())
            runs = []
            for other in random.Random(1).sample(others, min(options.rounds, len(others))):
                with other.open("ab") as stream:
                    stream.write(b"\n# edited\n")
                runs.append(measured(tool, [asked]).cpu)
            command = [sys.executable, "-c", UP, asked, str(options.rounds)]
            up = subprocess.run(command, capture_output=True, check=True, env={**os.environ, CACHE: cache})
            row = {"file": str(file), "cold": cold, "runs": runs, **json.loads(up.stdout)}
        rows.append(row)
        figures = (*_typical(runs), statistics.median(row["own"]), *_typical(row["other"]))
        told = "".join(f"{each:>{9 if place == 2 else 8}.2f}" for place, each in enumerate(figures))
        print(f"{str(file)[-39:]:40}{row['files']:>7}{cold:>8.2f}{told}", flush=True)
    return {"rows": rows}


def _typical(seconds: Sequence[float]) -> tuple[float, float]:
    return statistics.median(seconds), max(seconds)


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--skip", default="", metavar="NAME,...")
    for name in ("speedlint", "torchfix", "ruff"):
        parser.add_argument(f"--{name}", metavar="COMMAND")
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--edits", nargs="+", metavar="FOLDER_OR_FILE")
    parser.add_argument("--sizes", default="100,1000,5000", metavar="N,...")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if not options.paths and not options.growth and not options.edits:
        parser.error("name the folders or files to check, or --growth, or --edits")
    found: dict[str, Any] = {"machine": {"python": platform.python_version(), "cores": os.cpu_count()}}
    if options.paths:
        found["comparison"] = compare(options)
    if options.growth:
        found["growth"] = grow(options)
    if options.edits:
        found["edits"] = edit(options)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
