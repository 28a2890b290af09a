"""`speedlint fix --interactive`: one question for each finding, and only what was agreed to is written."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from speedlint.cli import main
from tests.conftest import Project

TEXT = "exactly(1)\nexactly(2)\nx.item()\nexactly(3)\n"


def _fix(project: Project, answers: str, *arguments: str) -> Result:
    project.write("a.py", TEXT)
    command = ["fix", "--interactive", "--risk", "numeric", "a.py", *arguments]
    return CliRunner().invoke(main, command, input=answers, catch_exceptions=False)


@pytest.mark.parametrize(
    ("answers", "after"),
    [
        ("y\nn\ny\nn\n", "print(1)\nexactly(2)\nx.detach()\nexactly(3)\n"),
        ("n\nr\nn\n", "exactly(1)\nprint(2)\nx.item()\nprint(3)\n"),
        ("y\nq\n", "print(1)\nexactly(2)\nx.item()\nexactly(3)\n"),
        ("n\nn\nn\nn\n", TEXT),
        ("what\ny\nq\n", "print(1)\nexactly(2)\nx.item()\nexactly(3)\n"),
    ],
)
def test_what_was_agreed_to_is_written(project: Project, answers: str, after: str) -> None:
    result = _fix(project, answers)
    assert result.exit_code == 0
    assert (project.root / "a.py").read_text() == after
    assert ("fixed a.py" in result.stdout) is (after != TEXT)


def test_each_question_has_the_change_why_and_the_risk(project: Project) -> None:
    shown = _fix(project, "n\nn\nn\nn\n").stdout
    assert shown.count("Apply it? [y]es, [n]o, this [r]ule everywhere, [q]uit") == 4
    assert "# a.py:3 TOY301 called-item: `x.item()` is slow\n--- a/a.py\n" in shown
    assert "numeric: rounding or the random stream may differ\n" in shown
    assert shown.count("why:  The CPU waits for the GPU.\n") == 1


REPEATED = "if exactly(2):\n    x.item()\nif exactly(2):\n    x.item()\n"


def test_lines_that_are_the_same_are_asked_about_one_by_one(project: Project) -> None:
    project.write("b.py", REPEATED)
    command = ["fix", "-i", "--risk", "numeric", "b.py"]
    CliRunner().invoke(main, command, input="y\ny\ny\nn\n", catch_exceptions=False)
    assert (project.root / "b.py").read_text() == "if print(2):\n    x.detach()\nif print(2):\n    x.item()\n"


def test_cells_that_are_the_same_are_asked_about_one_by_one(project: Project) -> None:
    cells = [{"cell_type": "code", "source": "exactly(1)"}] * 3
    path = project.root / project.write("b.ipynb", json.dumps({"cells": cells, "nbformat": 4}))
    CliRunner().invoke(main, ["fix", "-i", "b.ipynb"], input="y\nn\ny\n", catch_exceptions=False)
    assert [cell["source"] for cell in json.loads(path.read_text())["cells"]] == ["print(1)", "exactly(1)", "print(1)"]


def test_only_the_named_lines_of_several_that_are_the_same_are_fixed(project: Project) -> None:
    path = project.write("b.py", REPEATED)
    shown = project.run("fix", "b.py:3", "b.py:4", "--risk", "numeric", "--apply").stdout
    assert "fixed b.py: 2 fixes" in shown
    assert (project.root / path).read_text() == "if exactly(2):\n    x.item()\nif print(2):\n    x.detach()\n"
    project.write("b.py", REPEATED)
    project.run("fix", "b.py:1", "b.py:2", "--risk", "numeric", "--apply")
    assert (project.root / path).read_text() == "if print(2):\n    x.detach()\nif exactly(2):\n    x.item()\n"


def test_it_can_be_taken_back(project: Project) -> None:
    _fix(project, "r\nn\n")
    assert project.run("undo").stdout == "taken back: a.py\n"
    assert (project.root / "a.py").read_text() == TEXT


def test_without_an_answer_nothing_is_written(project: Project) -> None:
    assert _fix(project, "y\n").exit_code == 130
    assert (project.root / "a.py").read_text() == TEXT


def test_a_line_and_a_wrong_combination(project: Project) -> None:
    project.write("a.py", TEXT)
    result = CliRunner().invoke(main, ["fix", "-i", "a.py:2"], input="y\n", catch_exceptions=False)
    assert "fixed a.py: 1 fix (TOY308)\n" in result.stdout
    assert _fix(project, "", "--diff").exit_code == 2


def test_nothing_to_ask(project: Project) -> None:
    project.write("b.py", "x = 1\n")
    assert project.run("fix", "-i", "b.py").stdout == "Nothing to fix.\n"


def test_text_of_files_cannot_drive_the_terminal(project: Project) -> None:
    project.write("b.py", "exactly('\x1b[2J')\n")
    result = CliRunner().invoke(main, ["fix", "-i", "b.py"], input="n\n", color=True)
    assert "\x1b[2J" not in result.stdout
