"""`--baseline` and `speedlint baseline`: what is known is not told, wherever edits have moved it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Project

NAME = ".speedlint-baseline.json"
CODE = "def f(x):\n    return x.item()\n\n\nclass Net:\n    def f(self, x):\n        return x.item(), x.item()\n"


@pytest.fixture
def old(project: Project) -> Project:
    """A project whose findings are in its baseline."""
    project.write("a.py", CODE)
    project.write("sub/b.py", "exactly()\n")
    result = project.run("baseline", ".")
    assert (result.exit_code, result.stdout) == (0, f"{NAME}: 4 findings, 4 new; 0 dropped.\n")
    return project


def test_what_is_known_is_not_told(old: Project) -> None:
    result = old.run("check", "--baseline", NAME)
    assert result.exit_code == 0
    assert result.stdout == "Nothing slow found in 2 files.\n"
    assert result.stderr == f"note: 4 findings that {NAME} knows are not shown\n"


def test_it_is_used_only_when_asked_for_or_configured(old: Project) -> None:
    assert len(old.findings(".")) == 4
    old.configure(f"select = ['TOY']\nbaseline = '{NAME}'")
    assert old.findings(".") == []
    assert old.findings("sub/b.py") == []


def test_edits_elsewhere_leave_findings_known(old: Project) -> None:
    moved = CODE.replace("return x.item(), x", "if x:\n            # moved\n            return x.item(), x")
    old.write("a.py", f"import os\n\n{moved}")
    result = old.run("check", "--baseline", NAME)
    assert (result.exit_code, result.stdout) == (0, "Nothing slow found in 2 files.\n")


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ("return x.item()\n\n", "return x.item() + x.item()\n\n", 2),
        ("return x.item()\n\n", "return y.item()\n\n", 2),
        ("def f(x)", "def g(x)", 2),
        ("class Net", "class Model", 7),
    ],
)
def test_what_is_new_is_told(old: Project, before: str, after: str, line: int) -> None:
    old.write("a.py", CODE.replace(before, after))
    assert {each["line"] for each in old.findings("--baseline", NAME)} == {line}


def test_what_is_gone_is_said_and_dropped(old: Project) -> None:
    old.write("a.py", "x = 1\n")
    assert (
        f"note: 3 findings of {NAME} are gone; `speedlint baseline` drops such\n"
        in old.run("check", "--baseline", NAME).stderr
    )
    assert "gone" not in old.run("check", "--baseline", NAME, "--ignore", "TOY301").stderr
    assert "gone" not in old.run("check", "--baseline", NAME, "sub").stderr
    assert old.run("baseline", ".").stdout == f"{NAME}: 1 finding, 0 new; 3 dropped.\n"


def test_what_cannot_be_read_is_not_said_to_be_gone(old: Project) -> None:
    old.write("a.py", "x.item(\n")
    assert "gone" not in old.run("check", "--baseline", NAME).stderr


def test_the_next_command_leaves_out_what_is_known_too(old: Project) -> None:
    old.write("sub/b.py", "exactly(2)\n")
    assert f"Next: speedlint fix --baseline {NAME} .\n" in old.run("check", "--baseline", NAME, ".").stdout


def test_it_is_told_how_to_use_it_where_nothing_does(old: Project) -> None:
    said = f"`check` and `fix` leave these out with `--baseline {NAME}`, or where the configuration says `baseline = "
    assert said in old.run("baseline", ".").stderr
    old.configure(f"select = ['TOY']\nbaseline = '{NAME}'")
    assert old.run("baseline", ".").stderr == ""


def test_other_files_and_rules_stay(old: Project) -> None:
    before = (old.root / NAME).read_bytes()
    assert old.run("baseline", "sub").stdout == f"{NAME}: 4 findings, 0 new; 0 dropped.\n"
    assert old.run("baseline", ".", "--select", "TOY308").exit_code == 0
    assert (old.root / NAME).read_bytes() == before
    (old.root / "sub" / "b.py").unlink()
    assert "3 findings, 0 new; 1 dropped" in old.run("baseline", "a.py").stdout


def test_a_file_that_cannot_be_read_keeps_what_is_known(old: Project) -> None:
    old.write("a.py", "x.item(\n")
    result = old.run("baseline", ".")
    assert result.exit_code == 2
    assert "4 findings, 0 new; 0 dropped" in result.stdout


def test_fix_leaves_what_is_known(old: Project) -> None:
    old.write("sub/b.py", "exactly()\nexactly(1)\n")
    old.run("fix", "--apply", "--baseline", NAME)
    assert (old.root / "sub/b.py").read_text() == "exactly()\nprint(1)\n"


def test_notes_are_known_too(project: Project) -> None:
    project.write("a.py", "noted()\n")
    project.run("baseline", "--output", "known.json")
    assert project.findings("--notes", "--baseline", "known.json") == []


def test_it_is_found_from_a_folder_of_the_project(old: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(old.root / "sub")
    old.write("sub/b.py", "")
    assert "3 findings, 0 new; 1 dropped." in old.run("baseline", ".").stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "there is no such baseline; `speedlint baseline` writes one"),
        ("<<<<<<< HEAD\n{}", "is no JSON, perhaps after a merge; remove it"),
        ("[]", "is no baseline; remove it"),
        ('{"version": 2, "findings": {}}', "has version 2, and this speedlint reads 1; remove it"),
        ('{"version": 1, "findings": {"a.py": [{"code": "TOY301"}]}}', "is no baseline; remove it"),
        ('{"version": 1, "findings": {"a.py": 3}}', "is no baseline; remove it"),
        ("[" * 100_000, "is no JSON"),
        (b"\xff", "is no JSON"),
    ],
)
def test_a_wrong_baseline_is_one_line(project: Project, text: str | bytes | None, said: str) -> None:
    project.write("a.py", CODE)
    if text is not None:
        project.write("known.json", text)
    result = project.run("check", "--baseline", "known.json")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: known.json: {said}")
    assert result.stderr.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs /dev/zero")
def test_a_baseline_is_a_file(project: Project) -> None:
    project.write("a.py", CODE)
    for command in (("check", "--baseline"), ("baseline", "--output")):
        result = project.run(*command, "/dev/zero", "a.py")
        assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
        assert "/dev/zero: is no file" in result.stderr


def test_the_file_is_the_same_for_the_same_findings(old: Project) -> None:
    held = (old.root / NAME).read_text()
    old.run("baseline", "sub", "a.py", "--no-cache")
    assert (old.root / NAME).read_text() == held
    assert json.loads(held)["findings"]["a.py"] == [
        {"code": "TOY301", "in": "Net.f", "text": "x.item()", "count": 2},
        {"code": "TOY301", "in": "f", "text": "x.item()", "count": 1},
    ]
