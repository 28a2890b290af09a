"""fixtures/scripts: whole scripts that look like others which were judged wrongly once; all codes, notes included."""

from __future__ import annotations

from pathlib import Path

import pytest

from speedlint import engine
from speedlint.config import Settings
from speedlint.registry import Registry
from tests.conftest import ROOT
from tests.marks import difference, found, marks

REGISTRY = Registry.load()
SCRIPTS = sorted((ROOT / "fixtures" / "scripts").glob("*.py"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_marked_lines_are_found_and_nothing_else_is(path: Path) -> None:
    report, text = engine.Engine(Settings(path.parent, torch=(2, 13)), REGISTRY).check(path), path.read_text()
    assert not report.problems
    wrong = difference(path.name, text, [mark.expected for mark in marks(text)], found(report.diagnostics))
    assert not wrong, "\n" + "\n".join(wrong)
