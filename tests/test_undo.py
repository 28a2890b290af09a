"""`speedlint undo`: the last fixes are taken back, whole, where nothing has changed since."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.conftest import Project

BEFORE = "exactly()\r\n# é"


@pytest.fixture
def fixed(project: Project) -> Project:
    """A project with two files that were fixed."""
    project.write("a.py", BEFORE)
    project.write("sub/b.py", "exactly()\n")
    project.run("fix", "--apply", ".")
    assert (project.root / "sub/b.py").read_text() == "print()\n"
    return project


def test_the_files_are_as_they_were(fixed: Project) -> None:
    result = fixed.run("undo")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "taken back: a.py\ntaken back: sub/b.py\n", "")
    assert (fixed.root / "a.py").read_bytes() == BEFORE.encode()
    assert (fixed.root / "sub/b.py").read_text() == "exactly()\n"


def test_once(fixed: Project) -> None:
    fixed.run("undo")
    result = fixed.run("undo")
    assert result.exit_code == 2
    assert "no fixes are kept that were written here" in result.stderr


def test_from_another_folder_of_the_project(fixed: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(fixed.root / "sub")
    assert fixed.run("undo").exit_code == 0
    assert (fixed.root / "sub/b.py").read_text() == "exactly()\n"


def test_a_project_does_not_touch_another(fixed: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    fixed.write("other/pyproject.toml", "")
    monkeypatch.chdir(fixed.root / "other")
    assert fixed.run("undo").exit_code == 2
    assert (fixed.root / "sub/b.py").read_text() == "print()\n"


def test_refused_where_a_file_has_changed_since(fixed: Project) -> None:
    fixed.write("sub/b.py", "print()\nx = 1\n")
    for _ in range(2):
        result = fixed.run("undo")
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr == "error: sub/b.py: has changed since it was fixed, so nothing is taken back\n"
    assert b"print()" in (fixed.root / "a.py").read_bytes()
    (fixed.root / "sub/b.py").unlink()
    assert "sub/b.py: cannot be read (No such file or directory)" in fixed.run("undo").stderr


def test_what_was_undone_by_hand_is_no_obstacle(fixed: Project) -> None:
    fixed.write("a.py", BEFORE)
    assert fixed.run("undo").stdout == "taken back: sub/b.py\n"


def test_a_run_without_fixes_or_writing_leaves_it(fixed: Project) -> None:
    fixed.run("fix", "--apply", ".")
    fixed.write("c.py", "exactly()\n")
    fixed.run("fix", ".")
    assert fixed.run("undo").exit_code == 0


def test_the_next_fixes_take_its_place(fixed: Project) -> None:
    fixed.write("c.py", "exactly()\n")
    fixed.run("fix", "--apply", ".")
    assert fixed.run("undo").stdout == "taken back: c.py\n"


def test_nothing_is_kept_without_a_cache(project: Project) -> None:
    project.write("a.py", BEFORE)
    project.run("fix", "--apply", "--no-cache", ".")
    assert project.run("undo").exit_code == 2


def test_a_read_only_file_leaves_all(fixed: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: not str(path).endswith("b.py"))
    result = fixed.run("undo")
    assert result.exit_code == 2
    assert "it is read-only" in result.stderr
    assert b"print()" in (fixed.root / "a.py").read_bytes()
    monkeypatch.undo()


def test_fixes_of_which_none_is_written_leave_the_ones_before(fixed: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    fixed.write("c.py", "exactly()\n")
    with monkeypatch.context() as read_only:
        read_only.setattr("os.access", lambda path, mode: not str(path).endswith("c.py"))
        assert fixed.run("fix", "--apply", ".").exit_code == 2
    assert fixed.run("undo").stdout == "taken back: a.py\ntaken back: sub/b.py\n"


NOTEBOOK = {
    "cells": [
        {"cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": [], "source": ["exactly()\n", "x = 1"]}
    ],
    "metadata": {"language_info": {"name": "python"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}


def test_a_notebook_is_taken_back_and_has_a_diff_that_git_applies(project: Project) -> None:
    text = json.dumps(NOTEBOOK, indent=1) + "\n"
    path = project.root / project.write("a.ipynb", text)
    patch = project.run("fix", "--diff", path.name).stdout_bytes
    project.run("fix", "--apply", path.name)
    fixed = path.read_text()
    assert "print()" in fixed
    assert project.run("undo").stdout == "taken back: a.ipynb\n"
    assert json.loads(path.read_text()) == NOTEBOOK
    path.write_text(text)
    subprocess.run(("git", "apply"), input=patch, check=True)
    assert path.read_text() == fixed


def test_comments_are_not_added_to_a_notebook(project: Project) -> None:
    path = project.root / project.write("a.ipynb", json.dumps(NOTEBOOK))
    result = project.run("check", "--add-ignores", path.name)
    assert result.exit_code == 2
    assert "a.ipynb: is a notebook, to which no comments are added" in result.stderr
    assert json.loads(path.read_text()) == NOTEBOOK
