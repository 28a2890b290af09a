"""Draws findings from real training scripts for a person to judge, or whole files to read for what was missed.

    python benchmarks/draw.py ROOT --list repos.json --commit HASH [--count 60] [--codes SPD301,..] > findings.json
    python benchmarks/draw.py ROOT --list repos.json --commit HASH --files [--count 40] > files.json

The draw is seeded with the commit hash, so that nobody chooses what is judged. Findings with one cause are one. It prints
one object a finding: repository, path, line, code, what it is said to be worth, message, its other places, and an empty
``verdict`` (``right``, ``worthless`` or ``wrong``) and ``reason`` to fill in; or one a file: repository, path and an empty
list of what was ``missed``. Messages quote the script; leave them out of what is committed.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any


def _is_named_by_another(found: dict[str, Any]) -> bool:
    """Whether a finding's cause bears the name of another one, which is worth more or comes first."""
    return str(found["cause"]) != f"{found['code']}:{found['line']}:{found['column']}"


def findings(repository: Path, files: list[str]) -> list[dict[str, Any]]:
    """The warnings of ``speedlint check`` over one repository's training files, one a cause, with its other places."""
    command = [sys.executable, "-m", "speedlint", "check", "--format", "json", *files]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    causes: dict[tuple[str, str], dict[str, Any]] = {}
    for found in sorted(json.loads(done.stdout)["findings"], key=_is_named_by_another):
        first = causes.setdefault((found["path"], found["cause"]), {**found, "places": []})
        first["places"].append(f"{found['line']} {found['code']}")
    return list(causes.values())


def main() -> None:
    """Prints the drawn findings as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path)
    parser.add_argument("--list", type=Path, required=True)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--codes", help="only these comma-separated codes")
    parser.add_argument("--files", action="store_true", help="draw training files instead of findings")
    options = parser.parse_args()
    everything: list[dict[str, Any]] = []
    for entry in sorted(json.loads(options.list.read_text()), key=lambda entry: str(entry["repo"])):
        if options.files:
            everything += [{"repo": entry["repo"], "path": path, "missed": []} for path in entry["training_files"]]
            continue
        repository = options.root / entry["repo"].replace("/", "__")
        for found in findings(repository, entry["training_files"]):
            if options.codes is None or found["code"] in options.codes.split(","):
                place = {"repo": entry["repo"], "path": found["path"], "line": found["line"], "code": found["code"]}
                told = {"worth": found["worth"], "message": found["message"], "places": found["places"][1:]}
                everything.append({**place, **told, "verdict": "", "reason": ""})
    drawn = random.Random(options.commit).sample(everything, min(options.count, len(everything)))
    kind = "files" if options.files else "findings"
    json.dump({"commit": options.commit, "of": len(everything), kind: drawn}, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
