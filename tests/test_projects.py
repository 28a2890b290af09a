"""fixtures/projects: every marked line is found, and nothing else is; marks that say ``program`` stand where only the whole
program shows what is slow, those that say ``alone`` where another file is, which is told there when it is asked for too."""

from __future__ import annotations

from pathlib import Path

import pytest

from speedlint import engine
from speedlint.config import Settings
from speedlint.files import discover
from speedlint.registry import Registry
from tests.conftest import ROOT
from tests.marks import Expected, difference, found, marks

REGISTRY = Registry.load()
PROJECTS = sorted(path for path in (ROOT / "fixtures" / "projects").iterdir() if path.is_dir())
ON = {rule.code for rule in REGISTRY.rules if not rule.off}
every_project = pytest.mark.parametrize("project", PROJECTS, ids=lambda path: path.name)


@every_project
def test_each_file_alone_has_its_marked_lines_and_nothing_else(project: Path) -> None:
    looking = engine.Engine(Settings(project, torch=(2, 13)), REGISTRY)
    wrong: list[str] = []
    for path in discover((project,)).paths:
        report, text = looking.check(path), path.read_text()
        assert not report.problems
        wrong += difference(path.name, text, asked(text), found(report.diagnostics))
    assert not wrong, "\n" + "\n".join(wrong)


@every_project
def test_the_whole_project_says_the_same_and_each_wait_once(project: Path) -> None:
    paths = discover((project,)).paths
    looking = engine.Engine(Settings(project, torch=(2, 13)), REGISTRY, asked=paths)
    wrong: list[str] = []
    for path in paths:
        text = path.read_text()
        got = found(looking.check(path).diagnostics)
        at_calls = [each for each in asked(text) if each.code == "SPD311" and each not in got]
        wrong += difference(path.name, text, (each for each in asked(text, "alone") if each not in at_calls), got)
    assert not wrong, "\n" + "\n".join(wrong)


def asked(text: str, *but: str) -> list[Expected]:
    """What the marks of a file ask for, of the rules that are on; ``but`` those with one of some words."""
    return [mark.expected for mark in marks(text) if mark.code in ON and not mark.words & {"off", *but}]
