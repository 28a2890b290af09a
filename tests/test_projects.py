"""fixtures/projects: every marked line is found, and nothing else is.

Marks that say ``program`` need the whole program to be understood, and may be found or not.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from speedlint import engine
from speedlint.config import Settings
from speedlint.files import discover
from speedlint.registry import Registry
from tests.conftest import ROOT
from tests.marks import difference, found, marks

REGISTRY = Registry.load()
PROJECTS = sorted(path for path in (ROOT / "fixtures" / "projects").iterdir() if path.is_dir())
ON = {rule.code for rule in REGISTRY.rules if not rule.off}


@pytest.mark.parametrize("project", PROJECTS, ids=lambda path: path.name)
def test_marked_lines_are_found_and_nothing_else_is(project: Path) -> None:
    settings = Settings(project, torch=(2, 13))
    looking = engine.Engine(settings, REGISTRY)
    wrong: list[str] = []
    for path in discover((project,)).paths:
        report, text = looking.check(path), path.read_text()
        assert not report.problems
        asked = [mark for mark in marks(text) if mark.code in ON and "off" not in mark.words]
        waiting = {(mark.line, mark.code) for mark in asked if "program" in mark.words}
        wanted = [mark.expected for mark in asked if "program" not in mark.words]
        got = [each for each in found(report.diagnostics) if (each.line, each.code) not in waiting]
        wrong += difference(path.name, text, wanted, got)
    assert not wrong, "\n" + "\n".join(wrong)
