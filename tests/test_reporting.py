"""Where `speedlint check` reports to, and how much: files, counts, exit codes, and outputs that take no more."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from speedlint import config
from tests.conftest import ROOT, Project

FOUR = "x.item()\ny.item()\nexactly()\nrisky()\n"


def test_output_file_holds_what_would_be_printed(project: Project) -> None:
    path = project.write("a.py", FOUR)
    for style in ("json", "sarif", "junit", "concise"):
        printed = project.run("check", path, "--format", style).stdout
        result = project.run("check", path, "--format", style, "--output-file", "found.txt", "--color", "always")
        assert (result.exit_code, result.stdout) == (1, "")
        written = (project.root / "found.txt").read_text("utf-8")
        assert written.split() == printed.split()


def test_output_file_that_cannot_be_written_is_one_line(project: Project) -> None:
    path = project.write("a.py", FOUR)
    result = project.run("check", path, "--output-file", "missing/found.txt")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "error: missing/found.txt: cannot be written (No such file or directory)\n"


def test_statistics_count_the_findings_of_each_rule(project: Project) -> None:
    path = project.write("a.py", FOUR)
    lines = project.run("check", path, "--statistics").stdout.splitlines()
    assert lines[:3] == [
        "2 TOY301 called-item (2 with a fix)",
        "1 TOY306 risky-call (1 with a fix)",
        "1 TOY308 exact-call (1 with a fix)",
    ]
    assert lines[3].startswith("4 findings: ")
    rows = json.loads(project.run("check", path, "--statistics", "--format", "json").stdout)
    assert rows[0] == {"code": "TOY301", "rule": "called-item", "count": 2, "fixable": 2}
    assert project.run("check", project.write("b.py", ""), "--statistics").stdout == "Nothing slow found in 1 file.\n"


def test_statistics_know_no_other_format(project: Project) -> None:
    result = project.run("check", project.write("a.py", FOUR), "--statistics", "--format", "sarif")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "error: --statistics knows no format `sarif`; leave --format out, or take json\n"


def test_exit_zero_is_for_findings_not_for_errors(project: Project) -> None:
    path = project.write("a.py", FOUR)
    result = project.run("check", path, "--exit-zero")
    assert result.exit_code == 0
    assert "4 findings" in result.stdout
    assert project.run("check", path, "missing.py", "--exit-zero").exit_code == 2


def test_exit_non_zero_on_fix(project: Project) -> None:
    path = project.write("a.py", FOUR)
    assert project.run("fix", path, "--apply", "--exit-non-zero-on-fix").exit_code == 1
    assert "print()" in (project.root / path).read_text()
    assert project.run("fix", path, "--apply", "--exit-non-zero-on-fix").exit_code == 0


def test_show_files(project: Project) -> None:
    project.write("b.py", FOUR)
    project.write("sub/a.py", "broken(\n")
    result = project.run("check", ".", "--show-files", "--exclude", "none.py")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "b.py\nsub/a.py\n", "")
    assert project.run("check", "b.py", "missing.py", "--show-files").exit_code == 2


def test_show_settings_prints_a_configuration_that_says_the_same(project: Project) -> None:
    project.configure("select = ['TOY']\nrisk = 'numeric'\n[per-file-ignores]\n'é\"s.py' = ['TOY301']")
    project.write("requirements.txt", "torch>=2.1\n")
    result = project.run("check", "--show-settings", "--ignore", "TOY302,TOY303")
    assert result.exit_code == 0
    assert 'torch = "2.1"  # from requirements.txt' in result.stdout
    assert 'ignore = ["TOY302", "TOY303"]' in result.stdout
    before = config.load((project.root,))
    project.write("speedlint.toml", result.stdout)
    after = config.load((project.root,))
    assert (after.select, after.risk, after.per_file_ignores) == (before.select, before.risk, before.per_file_ignores)
    assert (after.torch, after.ignore) == ((2, 1), ("TOY302", "TOY303"))


def _shell(command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = command.replace("speedlint", f"{sys.executable} -m speedlint", 1)
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("command", ["check a.py", "check a.py --format json", "fix a.py", "explain TOY301", "--help"])
def test_a_full_disk_under_standard_output_is_one_line(project: Project, command: str) -> None:
    project.write("a.py", FOUR)
    result = _shell(f"speedlint {command} > /dev/full", project.root)
    assert result.returncode == 2
    assert result.stderr == "error: standard output cannot be written (No space left on device)\n"


@pytest.mark.skipif(os.name == "nt", reason="needs a shell")
def test_a_reader_that_goes_is_no_error(project: Project) -> None:
    project.write("a.py", FOUR * 200)
    result = _shell("speedlint check a.py --format json | head -n 1", project.root)
    assert (result.returncode, result.stdout, result.stderr) == (1, "{\n", "")


@pytest.mark.skipif(os.name == "nt", reason="needs a shell")
def test_standard_output_may_be_closed(project: Project) -> None:
    project.write("a.py", FOUR)
    result = _shell("speedlint check a.py >&-", project.root)
    assert (result.returncode, result.stderr) == (1, "")


@pytest.mark.skipif(os.name == "nt", reason="needs a shell")
def test_standard_input_that_is_closed_is_one_line(project: Project) -> None:
    result = _shell("speedlint check - <&-", project.root)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "error: `-` is standard input, which is closed; give it the text, or name a file\n"
