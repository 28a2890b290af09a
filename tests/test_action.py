"""The scripts of action.yml, run by bash as GitHub runs them, with a Python that writes down what it is told."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import ROOT

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
SHELL = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c")
PYTHON = """#!/bin/sh
echo "$@" >>"$LOG"
case "$*" in *--exit-zero*) if [ -n "$REPORT" ]; then touch "$REPORT"; fi; exit "${WRITTEN:-0}" ;; esac
exit "$STATUS"
"""


def run(folder: Path, step: str, status: int = 0, /, **given: str) -> tuple[int, list[str]]:
    """Runs a step with its inputs at their defaults, but for those given; its exit status, and what Python was told."""
    script = next(each for each in ACTION["runs"]["steps"] if each.get("name") == step)
    python = folder / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    defaults = {name.upper(): entry["default"] for name, entry in ACTION["inputs"].items()}
    environment = {name: defaults.get(name, "") for name in script["env"]}
    paths = {"PYTHON": str(python), "LOG": str(folder / "log"), "GITHUB_OUTPUT": str(folder / "out")}
    paths |= {"RUNNER_TEMP": str(folder), "REPORT": str(folder / "speedlint.sarif")}
    environment |= {"PATH": "/usr/bin:/bin", "STATUS": str(status), **paths, **given}
    done = subprocess.run((*SHELL, script["run"]), cwd=folder, env=environment, check=False)
    return done.returncode, (folder / "log").read_text().splitlines()


def test_a_push_is_checked_twice(tmp_path: Path) -> None:
    status, told = run(tmp_path, "Check")
    assert told == [
        f"-m speedlint check --exit-zero --format sarif --output-file {tmp_path}/speedlint.sarif -- .",
        "-m speedlint check --format github -- .",
    ]
    assert status == 0
    assert (tmp_path / "out").read_text() == f"sarif-file={tmp_path}/speedlint.sarif\n"


def test_a_pull_request_asks_for_changed_lines(tmp_path: Path) -> None:
    _, told = run(tmp_path, "Check", BASE="abc", SARIF="false", PATHS="train.py src/*", ARGUMENTS="--notes --torch 2.4")
    assert told == ["-m speedlint check --notes --torch 2.4 --changed=abc --format github -- train.py src/*"]


def test_changed_may_be_turned_off(tmp_path: Path) -> None:
    _, told = run(tmp_path, "Check", BASE="abc", SARIF="false", CHANGED="false")
    assert told == ["-m speedlint check --format github -- ."]


@pytest.mark.parametrize(("fail", "found", "status"), [("true", 1, 1), ("false", 1, 0), ("false", 2, 2)])
def test_what_fails_the_job(tmp_path: Path, fail: str, found: int, status: int) -> None:
    assert run(tmp_path, "Check", found, FAIL=fail)[0] == status


def test_what_cannot_be_read_is_annotated_and_uploaded(tmp_path: Path) -> None:
    status, told = run(tmp_path, "Check", 2, WRITTEN="2")
    assert (status, len(told)) == (2, 2), "the first run is silent: what is wrong is in its file"
    assert (tmp_path / "out").read_text() == f"sarif-file={tmp_path}/speedlint.sarif\n"


def test_without_a_report_there_is_none_to_upload(tmp_path: Path) -> None:
    (tmp_path / "speedlint.sarif").write_text("of an earlier step")
    assert run(tmp_path, "Check", 2, WRITTEN="2", REPORT="")[0] == 2
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("version", "what"), [("", "/action"), ("0.2.0", "speedlint==0.2.0")])
def test_what_is_installed(tmp_path: Path, version: str, what: str) -> None:
    _, told = run(tmp_path, "Install speedlint", VERSION=version, ACTION_FOLDER="/action")
    assert told == [f"-m pip install --quiet --disable-pip-version-check {what}"]


def test_the_check_as_it_runs(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text((ROOT / "examples" / "train.py").read_text())
    (tmp_path / "log").touch()
    real = {"PYTHON": sys.executable, "PYTHONPATH": str(ROOT), "RUNNER_TEMP": str(tmp_path)}
    status, _ = run(tmp_path, "Check", PATHS="train.py", ARGUMENTS="--torch 2.13", **real)
    assert status == 1
    (report,) = json.loads((tmp_path / "speedlint.sarif").read_text())["runs"]
    assert {result["ruleId"] for result in report["results"]} == {"SPD301", "SPD502", "SPD505"}


def test_no_input_is_pasted_into_a_script() -> None:
    assert not [step for step in ACTION["runs"]["steps"] if "${{" in step.get("run", "")]


def test_the_guide_names_each_input() -> None:
    guide = (ROOT / "docs" / "ci.md").read_text()
    assert [name for name in ACTION["inputs"] if f"| `{name}` |" not in guide] == []
