"""Check and fix over real training scripts: the regression test on code that nobody wrote for speedlint.

    python benchmarks/corpus.py ROOT [--list repos.json] [--whole] [--risk behavior] [--json FILE]

ROOT holds repositories as OWNER__NAME folders. The list names the training files of each (``repo``, ``training_files``);
without one, every Python file that calls ``.backward(`` is taken; ``--whole`` hands over each repository's folder instead.
All work happens in a copy. Every count but those of
findings and changed files must be zero: the exit status is 1 otherwise.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import shutil
import subprocess
import sys
import tempfile
import time
import tokenize
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from pyflakes.checker import Checker
from pyflakes.messages import UndefinedName

KEPT = {".py", ".toml", ".cfg", ".txt", ".md", ".rst", ".yml", ".yaml"}


@dataclass
class Tally:
    """What happened over all repositories; see the module's docstring."""

    files: int = 0
    seconds_check: float = 0.0
    seconds_fix: float = 0.0
    findings: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    unreadable: list[str] = field(default_factory=list)
    changed: int = 0
    no_longer_parses: list[str] = field(default_factory=list)
    undefined_names: list[str] = field(default_factory=list)
    comments_lost: list[str] = field(default_factory=list)
    not_settled: list[str] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)

    def failures(self) -> int:
        """How many files or runs went wrong."""
        wrong = (
            self.no_longer_parses,
            self.undefined_names,
            self.comments_lost,
            self.not_settled,
            self.given_up,
            self.crashes,
        )
        return sum(map(len, wrong))


def speedlint(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs the command as a user would, in ``folder``."""
    command = [sys.executable, "-m", "speedlint", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def training_files(repository: Path, listed: list[str] | None) -> list[str]:
    """Paths relative to the repository."""
    if listed is not None:
        return [path for path in listed if (repository / path).is_file()]
    found = (path for path in sorted(repository.rglob("*.py")) if b".backward(" in path.read_bytes())
    return [str(path.relative_to(repository)) for path in found]


def copied(repository: Path, folder: Path) -> Path:
    """A copy of the repository's Python and configuration files."""

    def unwanted(directory: str, names: list[str]) -> list[str]:
        return [
            name
            for name in names
            if (Path(directory, name).is_file() and Path(name).suffix not in KEPT)
            or (Path(directory, name).is_symlink() and not Path(directory, name).exists())
        ]

    target = folder / repository.name
    shutil.copytree(repository, target, ignore=unwanted, symlinks=True)
    return target


def contents(folder: Path) -> dict[Path, bytes]:
    """The bytes of each Python file."""
    return {path: path.read_bytes() for path in sorted(folder.rglob("*.py")) if path.is_file()}


def parses(data: bytes) -> ast.Module | None:
    """The file's tree, or None."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(data)
        except (SyntaxError, ValueError):
            return None


def undefined(tree: ast.Module) -> Counter[str]:
    """The names that pyflakes holds to be undefined, and how often."""
    messages = Checker(tree).messages
    return Counter(str(message.message_args[0]) for message in messages if isinstance(message, UndefinedName))


def comments(data: bytes) -> Counter[str]:
    """The file's comments."""
    tokens = tokenize.tokenize(io.BytesIO(data).readline)
    return Counter(token.string for token in tokens if token.type == tokenize.COMMENT)


def compare(name: str, before: bytes, after: bytes, tally: Tally) -> None:
    """Notes what a fix did to one file beyond its edits."""
    old, new = parses(before), parses(after)
    if old is None:
        return
    if new is None:
        tally.no_longer_parses.append(name)
        return
    tally.undefined_names += [f"{name}: {lost}" for lost in sorted(undefined(new) - undefined(old))]
    tally.comments_lost += [f"{name}: {lost}" for lost in sorted(comments(before) - comments(after))]


def check(folder: Path, files: list[str], tally: Tally) -> None:
    """Counts the findings of one repository; ``files`` may be its folder."""
    start = time.perf_counter()
    done = speedlint(["check", "--format", "json", "--notes", *files], folder)
    tally.seconds_check += time.perf_counter() - start
    tally.files += len(contents(folder)) if files == ["."] else len(files)
    try:
        report = json.loads(done.stdout)
    except json.JSONDecodeError:
        tally.crashes.append(f"{folder.name}: check exited {done.returncode}: {done.stderr.strip()[-300:]}")
        return
    for finding in report["findings"]:
        (tally.notes if finding["level"] == "note" else tally.findings)[finding["code"]] += 1
    for error in report["errors"]:
        text = error if isinstance(error, str) else json.dumps(error)
        (tally.crashes if "internal error" in text else tally.unreadable).append(f"{folder.name}: {text}")


def fix(folder: Path, files: list[str], risk: str, tally: Tally) -> None:
    """Fixes one repository twice and compares."""
    before = contents(folder)
    command = ["fix", "--apply", "--risk", risk, *files]
    start = time.perf_counter()
    done = speedlint(command, folder)
    tally.seconds_fix += time.perf_counter() - start
    if "Traceback" in done.stderr or "internal error" in done.stderr:
        tally.crashes.append(f"{folder.name}: fix: {done.stderr.strip()[-300:]}")
    tally.given_up += [
        f"{folder.name}: {line}" for line in done.stderr.splitlines() if "SPD" in line and "internal" not in line
    ]
    after = contents(folder)
    changed = [path for path in after if after[path] != before.get(path)]
    tally.changed += len(changed)
    for path in changed:
        compare(f"{folder.name}/{path.relative_to(folder)}", before[path], after[path], tally)
    speedlint(command, folder)
    again = contents(folder)
    tally.not_settled += [f"{folder.name}/{path.relative_to(folder)}" for path in again if again[path] != after[path]]


def report(tally: Tally) -> None:
    """Prints the counts, and each thing that went wrong."""
    print(f"{tally.files} files, check {tally.seconds_check:.1f} s, fix {tally.seconds_fix:.1f} s")
    print(f"warnings {sum(tally.findings.values())}: {dict(sorted(tally.findings.items()))}")
    print(f"notes    {sum(tally.notes.values())}: {dict(sorted(tally.notes.items()))}")
    print(f"files changed {tally.changed}")
    for name in ("no_longer_parses", "undefined_names", "comments_lost", "not_settled", "given_up", "crashes", "unreadable"):
        found = getattr(tally, name)
        print(f"{name.replace('_', ' ')} {len(found)}")
        for line in found:
            print(f"    {line}")


def main() -> int:
    """Runs the benchmark; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path)
    parser.add_argument("--list", type=Path, help="JSON: the training files of each repository")
    parser.add_argument("--risk", default="behavior", choices=["exact", "numeric", "behavior"])
    parser.add_argument("--whole", action="store_true", help="every file of each repository, not its training files only")
    parser.add_argument("--only", help="only the repository folders whose name contains this")
    parser.add_argument("--json", type=Path, help="also write the tally here")
    options = parser.parse_args()
    listed = {}
    if options.list:
        listed = {
            entry["repo"].replace("/", "__"): entry["training_files"] for entry in json.loads(options.list.read_text())
        }
    tally = Tally()
    for repository in sorted(path for path in options.root.resolve().iterdir() if path.is_dir()):
        if options.only and options.only not in repository.name:
            continue
        files = ["."] if options.whole else training_files(repository, listed.get(repository.name) if listed else None)
        if not files:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            folder = copied(repository, Path(scratch))
            check(folder, files, tally)
            fix(folder, files, options.risk, tally)
    report(tally)
    if options.json:
        options.json.write_text(json.dumps(vars(tally), indent=1, sort_keys=True) + "\n")
    return 1 if tally.failures() else 0


if __name__ == "__main__":
    sys.exit(main())
