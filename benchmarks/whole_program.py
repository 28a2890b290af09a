"""What reading the whole program costs: checks of real training files where they stand, and of each file by itself.

    python benchmarks/whole_program.py ROOT --list repos.json [--json FILE]

ROOT holds repositories as OWNER__NAME folders; the list names the training files of each. For every repository three
processes of one worker each check its files: where they stand; each copied into an empty folder, so that nothing is around
it; and where they stand again. The first and the last are averaged, so that a machine that changes its speed does not favour
one. It prints the CPU seconds, in which other work on the machine has little part, their ratio, and the peak memory of the
largest process.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any


def measured(folder: Path, files: list[str]) -> tuple[float, float]:
    """The CPU seconds and the peak memory in megabytes of one check, on one core so that it is one process."""
    command = [sys.executable, "-m", "speedlint", "check", "--format", "json", "--notes", *files]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def alone(repository: Path, files: list[str], folder: Path) -> list[str]:
    """Each file copied into a folder of its own."""
    copies = []
    for number, name in enumerate(files):
        target = folder / str(number) / Path(name).name
        target.parent.mkdir(parents=True)
        (target.parent / "pyproject.toml").write_text("")
        shutil.copyfile(repository / name, target)
        copies.append(str(target.relative_to(folder)))
    return copies


def main() -> None:
    """Prints the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path)
    parser.add_argument("--list", type=Path, required=True)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    rows: list[dict[str, Any]] = []
    for entry in sorted(json.loads(options.list.read_text()), key=lambda entry: str(entry["repo"])):
        repository = options.root / entry["repo"].replace("/", "__")
        files = [name for name in entry["training_files"] if (repository / name).is_file()]
        with tempfile.TemporaryDirectory() as folder:
            copies = alone(repository, files, Path(folder))
            first, memory = measured(repository, files)
            single, _ = measured(Path(folder), copies)
            second, _ = measured(repository, files)
        whole = (first + second) / 2
        rows.append({"repo": entry["repo"], "files": len(files), "whole": whole, "single": single, "megabytes": memory})
        print(f"{entry['repo']:50} {len(files):3} files {whole:6.1f} s {single:6.1f} s {memory:5.0f} MB", flush=True)
    whole, single = sum(row["whole"] for row in rows), sum(row["single"] for row in rows)
    largest = max(rows, key=lambda row: row["megabytes"])
    print(
        f"together {whole:.0f} s, {single:.0f} s: {whole / single:.2f}x; {largest['megabytes']:.0f} MB in {largest['repo']}"
    )
    if options.json:
        machine = {"python": platform.python_version(), "processor": platform.processor() or platform.machine()}
        result = {"machine": machine, "ratio": whole / single, "megabytes": largest["megabytes"], "repositories": rows}
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
