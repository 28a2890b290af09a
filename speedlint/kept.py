"""Reports that are kept: as plain values, with the notes of all that they rest on."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
import sys
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from speedlint import __version__
from speedlint.config import Given, Nearest, Settings
from speedlint.diagnostic import Diagnostic, Place, Proposal, Report, Unused
from speedlint.disk import CONTENTS, OF_CONTENTS, OF_SOMETHING, Disk, Note
from speedlint.facts.store import Store
from speedlint.files import Problem
from speedlint.registry import own_rules, stamp
from speedlint.rule import Edit, Estimate, Level, Risk, Worth

_KIND = "reports"


def key(files: Sequence[Path], settings: Settings) -> str:
    """The name of a run: which files were asked for, how, of which speedlint, Python and installed packages."""
    asked = (os.getcwd(), *map(str, files))  # noqa: PTH109
    said = (__version__, sys.version, *sys.path, *_settings(files, settings), *_code(settings), *asked)
    return hashlib.sha256("\0".join(said).encode("utf-8", "surrogateescape")).hexdigest()


def _settings(files: Sequence[Path], settings: Settings) -> Iterable[str]:
    """The settings of each file, but for those that what is found does not hang on."""
    nearest = Nearest(settings)
    for own in {id(each): each for each in (settings, *map(nearest.of, files))}.values():
        yield repr(dataclasses.replace(own, baseline=None, notes=False, format="", given=Given()))


def _code(settings: Settings) -> Iterable[str]:
    """The files of speedlint itself and of the user's rules, by what tells one version from another."""
    for folder in (Path(__file__).parent, own_rules(), *settings.rule_paths):
        found = (os.path.join(at, name) for at, _, names in os.walk(folder) for name in names)  # noqa: PTH118
        yield from map(stamp, sorted(file for file in found if file.endswith(".py")))


def find(store: Store, name: str) -> list[Report] | None:
    """The reports of a run under its name, if all that they rest on is as it was."""
    held = store.value(_KIND, name)
    if held is None:
        return None
    try:
        notes, reports = held
        return [_report(each) for each in reports] if _hold(notes, Disk()) else None
    except (ValueError, TypeError, KeyError, IndexError, re.error):
        return None


def keep(store: Store, name: str, reports: Iterable[Report], notes: Mapping[Note, Hashable]) -> None:
    """Keeps the reports of a run."""
    store.keep(_KIND, name, (_by_file(notes), [_plain_report(each) for each in reports]))


# Notes

_Plain = tuple[str, str, bytes, bytes, int, Any]
"""A note: kind, path, the bytes of its mark, its pattern, the pattern's flags (-1 without one), answer."""


def _by_file(notes: Mapping[Note, Hashable]) -> dict[str, tuple[str, list[_Plain]]]:
    """Notes as plain values, those that a file's bytes answer by its path, with the name of these bytes."""
    found: dict[str, tuple[str, list[_Plain]]] = {}
    for note, answer in notes.items():
        kind, path = note[:2]
        known = str(notes[CONTENTS, path]) if kind in OF_CONTENTS else ""
        if kind != CONTENTS:
            found.setdefault(path if known else "", (known, []))[1].append((kind, path, *_plain_mark(note), answer))
    return found


def _hold(held: Mapping[str, tuple[str, Sequence[_Plain]]], disk: Disk) -> bool:
    """Whether all questions have the answers that they had: those about a file's bytes, where these are the same."""
    return all(
        (known and disk.digest(path) == known) or disk.holds(dict(_note(*each) for each in asked))
        for path, (known, asked) in held.items()
    )


def _plain_mark(note: Note) -> tuple[bytes, bytes, int]:
    match note:
        case (_, _, bytes() as literal):
            return literal, b"", -1
        case (_, _, (literal, pattern)):
            return literal, pattern.pattern, pattern.flags
        case (_, _, re.Pattern() as pattern):
            return b"", pattern.pattern, pattern.flags
    return b"", b"", -1


def _note(kind: str, path: str, literal: bytes, pattern: bytes, flags: int, answer: Any) -> tuple[Note, Any]:
    if flags == -1:
        return ((kind, path, literal) if kind in OF_SOMETHING else (kind, path)), answer
    compiled = re.compile(pattern, flags)
    return (kind, path, (literal, compiled) if literal else compiled), answer


# Reports


def _plain_report(report: Report) -> tuple[Any, ...]:
    problems = [(str(each.path), each.line, each.what, each.cell, each.is_partial) for each in report.problems]
    unused = [(str(each.path), each.line, each.why, _plain_edits(each.edits)) for each in report.unused]
    return [_plain_diagnostic(each) for each in report.diagnostics], problems, list(report.bounds), unused


def _plain_diagnostic(found: Diagnostic) -> tuple[Any, ...]:
    fix = found.fix
    edits = _plain_edits(fix.edits) if fix is not None else []
    return (
        (found.line, found.column, found.end_line, found.end_column, found.start, found.end, found.cell),
        (found.code, found.rule, found.message, found.advice),
        (str(found.path), found.level.value, found.frequency, found.excerpt),
        (found.worth.worth.value, found.worth.because, found.cause, found.case, found.scope, found.text),
        [(str(each.path), each.line, each.message, each.cell) for each in found.related],
        (int(fix.risk), edits, fix.withheld, fix.cells) if fix is not None else None,
    )


def _plain_edits(edits: Iterable[Edit]) -> list[tuple[str, int, int, str]]:
    return [(str(each.path), each.start, each.end, each.text) for each in edits]


def _report(held: tuple[Any, ...]) -> Report:
    diagnostics, problems, bounds, ignores = held
    told = (Problem(Path(path), *problem) for path, *problem in problems)
    unused = (Unused(Path(path), line, why, _edits(edits)) for path, line, why, edits in ignores)
    return Report(tuple(map(_diagnostic, diagnostics)), tuple(told), tuple(bounds), tuple(unused))


def _diagnostic(held: tuple[Any, ...]) -> Diagnostic:
    place, (code, rule, message, advice), of_file, (worth, because, cause, case, scope, text), related, fix = held
    line, column, end_line, end_column, start, end, cell = place
    path, level, frequency, excerpt = of_file
    return Diagnostic(
        path=Path(path),
        line=line,
        column=column,
        end_line=end_line,
        end_column=end_column,
        code=code,
        rule=rule,
        message=message,
        advice=advice,
        level=Level(level),
        worth=Estimate(Worth(worth), because),
        cause=cause,
        frequency=frequency,
        related=tuple(Place(Path(place), at, what, its_cell) for place, at, what, its_cell in related),
        fix=_proposal(*fix) if fix is not None else None,
        excerpt=tuple(excerpt),
        case=case,
        scope=scope,
        text=text,
        start=start,
        end=end,
        cell=cell,
    )


def _proposal(
    risk: int, edits: Iterable[tuple[str, int, int, str]], withheld: str, cells: tuple[tuple[int, int], ...]
) -> Proposal:
    return Proposal(Risk(risk), _edits(edits), withheld, cells)


def _edits(edits: Iterable[tuple[str, int, int, str]]) -> tuple[Edit, ...]:
    return tuple(Edit(Path(path), start, end, text) for path, start, end, text in edits)
