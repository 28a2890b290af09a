"""What the README shows is what speedlint prints, and its first screen is one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from speedlint.cli import main
from tests.conftest import ROOT

README = (ROOT / "README.md").read_text()
SCREEN = 40
"""The lines of a screen."""


@pytest.fixture(autouse=True)
def _in_the_clone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("COLUMNS", raising=False)


def printed(command: str) -> str:
    """What a command line of the README prints."""
    return CliRunner().invoke(main, command.split()[1:], catch_exceptions=False).stdout


def test_the_first_screen_is_one() -> None:
    first, _, _ = README.partition("\n## What a fix looks like\n")
    assert len(first.splitlines()) <= SCREEN
    for word in ("pip install", "verify", "never runs your code", "docs/trust.md"):
        assert word in first


def test_the_findings_are_what_is_printed() -> None:
    ((command, findings),) = re.findall(r"```\n\$ ([^\n]*)\n(.*?)```", README, re.DOTALL)
    assert printed(command) == findings


def test_the_lines_of_the_diff_are_those_of_the_fix() -> None:
    (command,) = re.findall(r"`(speedlint fix [^`]*)` shows this", README)
    (diff,) = re.findall(r"```diff\n(.*?)```", README, re.DOTALL)
    whole = printed(command).splitlines()
    assert [line for line in diff.splitlines() if line != "..." and line not in whole] == []


def test_the_example_names_no_answer() -> None:
    assert "SPD" not in Path("examples/train.py").read_text()
