"""`speedlint explain`, `speedlint rules`, and the command line as a whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from speedlint import __version__
from speedlint.output import rules_markdown
from speedlint.registry import Registry
from tests.conftest import ROOT, Project

REGISTRY = Registry.load()


def test_explain_prints_the_documentation(project: Project) -> None:
    by_code, by_name = project.run("explain", "TOY301"), project.run("explain", "called-item")
    assert by_code.stdout == by_name.stdout
    assert by_code.stdout.startswith("# TOY301 called-item\n\nCalls `.item()`.\n\n## Why it is slow\n")


def test_explain_takes_several_codes_and_families(project: Project) -> None:
    def explained(*words: str) -> list[str]:
        lines = project.run("explain", *words).stdout.splitlines()
        return [line.split()[1] for line in lines if line.startswith("# ")]

    assert explained("TOY302,TOY301", "TOY302") == ["TOY302", "TOY301"]
    assert explained("TOY30", "exact-call") == [
        "TOY301",
        "TOY302",
        "TOY303",
        "TOY304",
        "TOY305",
        "TOY306",
        "TOY307",
        "TOY308",
    ]
    assert explained("spd31") == ["SPD310", "SPD311"]


def test_explain_names_the_nearest(project: Project) -> None:
    result = project.run("explain", "called-itm")
    assert result.exit_code == 2
    assert (
        result.stderr == "error: there is no rule `called-itm` (did you mean `called-item`?); `speedlint rules` lists them\n"
    )


def test_rules_lists_them(project: Project) -> None:
    lines = project.run("rules").stdout.splitlines()
    assert lines[0].split() == ["code", "name", "what", "is", "slow"]
    assert any(line.split()[:2] == ["TOY301", "called-item"] and "Calls `.item()`." in line for line in lines)
    assert any("TOY305" in line and "(only when selected)" in line for line in lines)


def test_the_page_of_all_rules_is_what_their_documentation_says(request: pytest.FixtureRequest) -> None:
    page, path = rules_markdown.render([*map(REGISTRY.loaded, REGISTRY.rules)]), ROOT / "docs" / "rules.md"
    if request.config.getoption("--bless"):
        path.write_text(page)
    assert path.read_text() == page, "`speedlint rules --format markdown > docs/rules.md` writes it anew"


def test_rules_as_markdown(project: Project) -> None:
    page = project.run("rules", "--format", "markdown").stdout
    assert "## Others\n\n| code | name | what is slow |\n" in page
    assert "| [TOY305](#toy305-off-call) | off-call | Calls `off`. Only when selected. |" in page
    assert "### TOY301 called-item\n\nCalls `.item()`.\n\n#### Why it is slow\n" in page


def test_rules_as_json(project: Project) -> None:
    rows = json.loads(project.run("rules", "--format", "json").stdout)
    assert {"code": "TOY305", "name": "off-call", "summary": "Calls `off`.", "off": True} in rows


def test_help_and_version(project: Project) -> None:
    assert project.run("--version").stdout == f"speedlint {__version__}\n"
    for command in ((), ("check",), ("fix",), ("explain",), ("rules",)):
        result = project.run(*command, "--help")
        assert result.exit_code == 0
        assert "Usage:" in result.stdout


def test_the_list_of_commands_fits_80_columns(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = project.run("--help").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert not [each for each in lines[lines.index("Commands:") :] if each.endswith("...")]


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("chek", " (did you mean `check`?)"),
        ("train.py", " (did you mean `speedlint check train.py`?)"),
        ("src", " (did you mean `speedlint check src`?)"),
        ("xyzzy", ""),
    ],
)
def test_what_is_no_command_is_one_line(project: Project, word: str, meant: str) -> None:
    project.write("src/a.py", "")
    result = project.run(word)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"error: there is no command `{word}`{meant}; `speedlint --help` lists them\n"


def test_runs_as_a_module(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "speedlint", "check", "missing.py"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=_environment())
    assert (result.returncode, result.stderr) == (2, "error: missing.py: does not exist; check the spelling\n")


def test_output_that_cannot_be_encoded_is_escaped(project: Project) -> None:
    path = project.write("a.py", "x.item('\u6f22')\n")
    command = [sys.executable, "-m", "speedlint", "check", str(path)]
    env = {**_environment(), "PYTHONIOENCODING": "latin-1"}
    result = subprocess.run(command, cwd=project.root, capture_output=True, text=True, env=env)
    assert (result.returncode, result.stderr) == (1, "")
    assert "x.item('\\u6f22')" in result.stdout


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}
