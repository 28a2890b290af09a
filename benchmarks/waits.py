"""Whether the lines said to wait for the GPU do, and which others do: composed trainings, run on a real GPU.

    python benchmarks/waits.py record FILE [--count 300] [--seed 0] [--jobs 8]
    python benchmarks/waits.py judge FILE [--show N] [--json FILE]

``record`` needs a GPU. It runs the trainings of ``benchmarks/trainings/`` and the projects of ``fixtures/projects`` at their
small size, with torch's own warnings of waits (``torch.cuda.set_sync_debug_mode``), and writes which line waited how often.
``judge`` needs none: it checks the same scripts and prints, for each rule about waits, how many of its findings in lines
that ran did wait, with those that did not; then the lines that wait whenever they run, and have no finding.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import runpy
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.trainings import execute  # noqa: E402
from benchmarks.trainings.compose import compose  # noqa: E402
from benchmarks.trainings.waits import Lines, Watch  # noqa: E402
from speedlint.api import check_paths  # noqa: E402

RULES = frozenset("SPD205 SPD301 SPD302 SPD303 SPD304 SPD305 SPD308 SPD309 SPD311".split())
"""Rules that say a line waits. SPD306 is left out: torch does not warn of what `torch.cuda.synchronize()` waits."""
_OFTEN = 4
"""How often a line has run that waits in steps: more than the epochs of a training."""
_STEPS = "12"
"""How many steps of a project are recorded."""
_PREFIX = "[waits.json] "
_PROJECTS = ROOT / "fixtures" / "projects"


def record(file: Path, seeds: range, jobs: int) -> None:
    """Runs everything, and writes what waited."""
    execute.prepare()
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("fork")) as pool:
        rows = [*pool.map(_training, seeds), *pool.map(_project, sorted(each.name for each in _PROJECTS.iterdir()))]
    import torch

    result = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows}
    file.write_text(json.dumps(result) + "\n")
    print(f"{len(rows)} recorded, {sum(bool(row['stopped']) for row in rows)} of them stopped")


def _training(seed: int) -> dict[str, Any]:
    files = {name: text.encode() for name, text in compose(seed).files.items()}
    ran = execute.execute(files, execute.Way(gpu=True, real=True, watched=True))
    found = [line for line in ran.output.splitlines() if line.startswith(_PREFIX)]
    return {"name": str(seed), "stopped": "" if found else ran.last or "no output", "counts": _counts(found)}


def _project(name: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="waits_") as place:
        command = [sys.executable, str(Path(__file__).resolve()), "run", str(_PROJECTS / name / "train.py")]
        done = subprocess.run(
            [*command, "--device", "cuda", "--steps", _STEPS], cwd=place, capture_output=True, text=True, check=False
        )
    found = [line for line in done.stdout.splitlines() if line.startswith(_PREFIX)]
    return {"name": name, "stopped": "" if found else done.stderr[-500:] or "no output", "counts": _counts(found)}


def _counts(found: list[str]) -> dict[str, Lines]:
    return json.loads(found[-1].removeprefix(_PREFIX)) if found else {"waits": {}, "through": {}, "runs": {}}


def run(script: Path, arguments: list[str]) -> None:
    """Runs one script under watch."""
    script = script.resolve()
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.parent))
    watch = Watch(script.parent)
    runpy.run_path(str(script), run_name="__main__")
    print(_PREFIX + json.dumps(watch.counts()))


def judge(file: Path, show: int, summary: Path | None) -> None:
    """Compares what waited with what is found."""
    recorded = json.loads(file.read_text())
    said, true, wrong = Counter[str](), Counter[str](), list[str]()
    silent, waited = list[str](), 0
    for row in recorded["rows"]:
        if row["stopped"]:
            print(f"{row['name']} stopped: {row['stopped']}")
            continue
        with tempfile.TemporaryDirectory(prefix="waits_") as place:
            folder = _PROJECTS / row["name"]
            if not folder.is_dir():
                folder = Path(place).resolve()
                for name, text in compose(int(row["name"])).files.items():
                    (folder / name).write_text(text)
            found = _found(folder)
            lines = {name: (folder / name).read_text().splitlines() for name in row["counts"]["runs"]}
        for (name, line), codes in sorted(found.items()):
            if _count(row, "runs", name, line):
                said.update(codes)
                where = f"{row['name']} {name}:{line}: {lines[name][line - 1].strip()}"
                if _count(row, "through", name, line):
                    true.update(codes)
                else:
                    wrong += [f"{code} {where}" for code in codes]
        for name, counts in row["counts"]["waits"].items():
            for line, waits in counts.items():
                if waits >= _count(row, "runs", name, int(line)) >= _OFTEN:
                    waited += 1
                    if (name, int(line)) not in found:
                        silent.append(f"{row['name']} {name}:{line}: {lines[name][int(line) - 1].strip()}")
    print(f"on {recorded['gpu']}, torch {recorded['torch']}")
    for code in sorted(said):
        print(f"{code}: {true[code]} of {said[code]} findings in lines that ran waited")
    print("\n".join(sorted(wrong)[:show]))
    print(f"{waited - len(silent)} of {waited} lines that waited whenever they ran, {_OFTEN} times or more, have a finding")
    print("\n".join(silent[:show]))
    if summary is not None:
        counts = {code: {"ran": said[code], "waited": true[code]} for code in sorted(said)}
        lines = {"waited_whenever_they_ran": waited, "found": waited - len(silent)}
        machine = {name: recorded[name] for name in ("gpu", "torch")}
        names = [row["name"] for row in recorded["rows"] if not row["stopped"]]
        summary.write_text(
            json.dumps({"machine": machine, "scripts": names, "findings": counts, "lines": lines}, indent=1) + "\n"
        )


def _count(row: Mapping[str, Any], what: str, name: str, line: int) -> int:
    return int(row["counts"][what].get(name, {}).get(str(line), 0))


def _found(folder: Path) -> dict[tuple[str, int], set[str]]:
    """The codes of each line that is said to wait."""
    found: dict[tuple[str, int], set[str]] = {}
    for each in check_paths([folder], select=sorted(RULES), cache=False).findings:
        place = each.place
        found.setdefault((str(place.path.resolve().relative_to(folder)), place.line), set()).add(each.code)
    return found


def main() -> None:
    """Records, or judges."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record")
    recording.add_argument("file", type=Path)
    recording.add_argument("--count", type=int, default=300)
    recording.add_argument("--seed", type=int, default=0, help="the first training's")
    recording.add_argument("--jobs", type=int, default=8)
    judging = commands.add_parser("judge")
    judging.add_argument("file", type=Path)
    judging.add_argument("--show", type=int, default=40)
    judging.add_argument("--json", type=Path)
    running = commands.add_parser("run")
    running.add_argument("script", type=Path)
    running.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if options.command == "record":
        record(options.file, range(options.seed, options.seed + options.count), options.jobs)
    elif options.command == "judge":
        judge(options.file, options.show, options.json)
    else:
        run(options.script, options.arguments)


if __name__ == "__main__":
    main()
