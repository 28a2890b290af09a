"""`check -` and `fix -`: a text from standard input, as the file that it is of."""

from __future__ import annotations

import json
import subprocess

import pytest
from click.testing import CliRunner, Result

from speedlint.cli import main
from tests.conftest import Project
from tests.test_cli_fix import CALLER, LOSSES


def _run(text: str | bytes, *arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, input=text, catch_exceptions=False)


def test_the_text_is_checked(project: Project) -> None:
    result = _run("x = 1\nx.item()\n", "check", "-")
    assert result.exit_code == 1
    assert result.stdout.startswith("stdin.py:2:1 TOY301 called-item: `x.item()` is slow\n")
    assert _run("x = 1\n", "check", "-").exit_code == 0


def test_the_next_command_names_its_file_too(project: Project) -> None:
    said = _run("exactly()\n", "check", "-", "--stdin-filename", "sub/a.py").stdout
    assert said.endswith("Next: speedlint fix --stdin-filename sub/a.py -\n")


def test_it_stands_for_its_file(project: Project) -> None:
    project.write(
        "sub/speedlint.toml",
        "extend = '../speedlint.toml'\nselect = ['TOY308']\nper-file-ignores = { 'c.py' = ['TOY308'] }\n",
    )
    project.write("sub/a.py", "saved(exactly())\n")
    wanted = {"sub/a.py": ["TOY308"], "sub/new.py": ["TOY308"], "sub/c.py": [], "a.py": ["TOY301", "TOY308"]}
    for name, codes in wanted.items():
        result = _run("x.item(), exactly()\n", "check", "-", "--format", "json", "--stdin-filename", name)
        found = json.loads(result.stdout)["findings"]
        assert [(each["path"], each["code"]) for each in found] == [(name, code) for code in codes]
    assert (project.root / "sub/a.py").read_text() == "saved(exactly())\n"


def test_the_program_around_it_is_read(project: Project) -> None:
    project.configure("select = ['SPD311']")
    project.write("losses.py", LOSSES)
    project.write("train.py", "x = 1\n")
    assert "train.py:17:" in _run(CALLER, "check", "-", "--stdin-filename", "train.py").stdout


@pytest.mark.parametrize(
    ("text", "after"),
    [
        (b"exactly()\n", b"print()\n"),
        (b"\xef\xbb\xbfexactly()\r\n# \xc3\xa9", b"\xef\xbb\xbfprint()\r\n# \xc3\xa9"),
        (b"# coding: latin-1\n'\xe9'; exactly()\n", b"# coding: latin-1\n'\xe9'; print()\n"),
        (b"x = 1\n", b"x = 1\n"),
        (b"x = 1  # speedlint: ignore[TOY301]\n", b"x = 1\n"),
        (b"", b""),
    ],
)
def test_the_fixed_text_is_printed(project: Project, text: bytes, after: bytes) -> None:
    result = _run(text, "fix", "-", "--stdin-filename", "a.py")
    assert (result.exit_code, result.stderr, result.stdout_bytes) == (0, "", after)
    assert not (project.root / "a.py").exists()


def test_a_notebook_that_is_not_called_one(project: Project) -> None:
    cells = '{"cells": [{"cell_type": "code", "source": "exactly()"}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'
    for command in ("check", "fix"):
        result = _run(cells, command, "-")
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.endswith("looks like a notebook; say so with `--stdin-filename notebook.ipynb`\n")
    assert "cell 1:1:1 TOY308" in _run(cells, "check", "-", "--stdin-filename", "a.ipynb").stdout


def test_standard_input_is_not_written(project: Project) -> None:
    result = _run("exactly()\n", "fix", "--apply", "-")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "error: --apply writes files, and `-` is none; leave --apply out: the fixed text is printed\n"


def test_the_exit_code_tells_of_a_change_where_that_is_asked_for(project: Project) -> None:
    for text, code in (("exactly()\n", 1), ("print()\n", 0)):
        assert _run(text, "fix", "-", "--exit-non-zero-on-fix").exit_code == code


def test_text_that_cannot_be_read_is_given_back(project: Project) -> None:
    result = _run("exactly(\n", "fix", "-")
    assert (result.exit_code, result.stdout) == (2, "exactly(\n")
    assert result.stderr.startswith("error: stdin.py:1: ")


def test_what_would_change_another_file_is_not_fixed(project: Project) -> None:
    project.configure("select = ['SPD311']")
    project.write("losses.py", LOSSES)
    assert "losses.py" in _run("", "fix", "--risk", "numeric", str(project.write("train.py", CALLER))).stdout
    result = _run(CALLER, "fix", "-", "--risk", "numeric", "--stdin-filename", "train.py")
    assert (result.exit_code, result.stdout) == (0, CALLER)


def test_a_diff_of_the_text(project: Project) -> None:
    result = _run("exactly()\n", "fix", "-", "--diff", "--stdin-filename", "a.py")
    assert result.exit_code == 1
    assert result.stdout == "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-exactly()\n+print()\n"


def test_changed_lines_of_the_text(project: Project) -> None:
    project.write("a.py", "x.item()\n")
    for command in (("init", "-q"), ("add", "."), ("-c", "user.name=x", "-c", "user.email=x@y.org", "commit", "-qm", "x")):
        subprocess.run(("git", *command), check=True)
    text = "x.item()\nexactly()\n"
    options = ("-", "--changed=HEAD", "--stdin-filename", "a.py")
    assert _run(text, "check", *options).stdout.startswith("a.py:2:1 TOY308")
    assert _run(text, "fix", *options, "--risk", "numeric").stdout == "x.item()\nprint()\n"


def test_excluded_text_is_left(project: Project) -> None:
    project.configure("select = ['TOY']\nexclude = ['old/']")
    for name in ("old/a.py", "tests/a.py"):
        options = ("-", "--stdin-filename", name)
        assert _run("exactly()\n", "check", *options).exit_code == 1
        assert _run("exactly()\n", "check", *options, "--force-exclude").exit_code == 0
        assert _run("exactly()\n", "fix", *options, "--force-exclude").stdout == "exactly()\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("check", "-", "a.py"), "stands alone"),
        (("check", "--stdin-filename", "a.py"), "add `-`"),
        (("check", "-", "--add-ignores"), "`-` is none"),
        (("fix", "-", "-i"), "name the file"),
    ],
)
def test_what_makes_no_sense_is_one_line(project: Project, arguments: tuple[str, ...], said: str) -> None:
    result = _run("", *arguments)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert said in result.stderr
