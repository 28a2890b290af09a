"""The rooms of the house: each knows those below it alone."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

ROOMS = ("facts", "torch", "program", "solve", "ask", "shapes", "cures", "rules")
"""From below to above: what stands in one imports nothing of those behind it. `edits` is the room of cures and rules."""
HANDED_DOWN = {"speedlint.ask.script", "speedlint.ask.program"}
"""Whose objects every room is handed: those below may name them in annotations."""
VERDICTS = {"Estimate", "Worth"}
"""All that shapes take of what a rule reports."""


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_knows_those_below_it_alone(room: str) -> None:
    above = ROOMS[ROOMS.index(room) + 1 :]
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in _files(room)
        for module, _, is_for_types in _imports(path)
        if _room(module) in above and not (is_for_types and module in HANDED_DOWN)
    ]
    assert not wrong


@pytest.mark.parametrize("room", ROOMS[: ROOMS.index("cures")])
def test_only_cures_and_rules_write_edits(room: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {name or module}"
        for path in _files(room)
        for module, name, _ in _imports(path)
        if module == "speedlint.edits" or (module == "speedlint.rule" and not (room == "shapes" and name in VERDICTS))
    ]
    assert not wrong


def test_the_engine_names_no_rule() -> None:
    paths = [path for path in (ROOT / "speedlint").rglob("*.py") if "verify/probe" not in path.as_posix()]
    assert not [path for path in paths for module, _, _ in _imports(path) if module.split(".")[0] == "rules"]


def _files(room: str) -> Iterator[Path]:
    found = sorted((ROOT / room if room == "rules" else ROOT / "speedlint" / room).rglob("*.py"))
    assert found
    return iter(found)


def _room(module: str) -> str:
    parts = module.split(".")
    return parts[1] if parts[0] == "speedlint" and len(parts) > 1 else parts[0]


@functools.cache
def _imports(path: Path) -> tuple[tuple[str, str, bool], ...]:
    """Each module that is imported, the name that is taken from it, if any, and whether that is for annotations alone."""
    tree = ast.parse(path.read_text("utf-8"))
    nodes = list(ast.walk(tree))
    checks = (each for each in nodes if isinstance(each, ast.If) and ast.unparse(each.test) == "TYPE_CHECKING")
    for_types = {id(inner) for check in checks for inner in ast.walk(check)}
    found = []
    for node in nodes:
        if isinstance(node, ast.Import):
            found += [(each.name, "", id(node) in for_types) for each in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            for each in node.names:
                is_module = _is_module(f"{node.module}.{each.name}")
                module, name = (f"{node.module}.{each.name}", "") if is_module else (node.module, each.name)
                found.append((module, name, id(node) in for_types))
    return tuple(found)


def _is_module(dotted: str) -> bool:
    path = ROOT.joinpath(*dotted.split("."))
    return path.is_dir() or path.with_suffix(".py").exists()
