"""Reports that are kept: as plain values, with the notes of all that they rest on."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from speedlint import __version__
from speedlint.config import Settings
from speedlint.diagnostic import Diagnostic, Place, Proposal, Report
from speedlint.disk import Disk, Note
from speedlint.facts.store import Store
from speedlint.files import Problem
from speedlint.registry import own_rules, stamp
from speedlint.rule import Edit, Level, Risk

_KIND = "reports"


def key(files: Sequence[Path], settings: Settings) -> str:
    """The name of a run: which files were asked for, how, of which speedlint, Python and installed packages."""
    asked = (os.getcwd(), *map(str, files))  # noqa: PTH109
    said = (__version__, sys.version, *sys.path, repr(settings), *_code(settings), *asked)
    return hashlib.sha256("\0".join(said).encode("utf-8", "surrogateescape")).hexdigest()


def _code(settings: Settings) -> Iterable[str]:
    """The files of speedlint itself and of the user's rules, by what tells one version from another."""
    for folder in (Path(__file__).parent, own_rules(), *settings.rule_paths):
        yield from map(stamp, sorted(folder.rglob("*.py")))


def find(store: Store, name: str) -> list[Report] | None:
    """The reports of a run under its name, if all that they rest on is as it was."""
    held = store.value(_KIND, name)
    if held is None:
        return None
    try:
        notes, reports = held
        return [_report(each) for each in reports] if Disk().holds(_notes(notes)) else None
    except (ValueError, TypeError, KeyError, IndexError, re.error):
        return None


def keep(store: Store, name: str, reports: Iterable[Report], notes: Mapping[Note, Hashable]) -> None:
    """Keeps the reports of a run."""
    store.keep(_KIND, name, (plain(notes), [_plain_report(each) for each in reports]))


# Notes


def plain(notes: Mapping[Note, Hashable]) -> list[tuple[Any, ...]]:
    """Notes as plain values."""
    return [(note[0], note[1], *_plain_mark(note[2] if len(note) == 3 else None), answer) for note, answer in notes.items()]


def _plain_mark(mark: bytes | re.Pattern[bytes] | None) -> tuple[bytes, int]:
    if mark is None:
        return b"", -2
    return (mark, -1) if isinstance(mark, bytes) else (mark.pattern, mark.flags)


def _notes(held: Iterable[tuple[Any, ...]]) -> dict[Note, Hashable]:
    found: dict[Note, Hashable] = {}
    for kind, path, mark, flags, answer in held:
        if flags == -2:
            found[kind, path] = answer
        else:
            found[kind, path, mark if flags == -1 else re.compile(mark, flags)] = answer
    return found


# Reports


def _plain_report(report: Report) -> tuple[Any, ...]:
    problems = [(str(each.path), each.line, each.what) for each in report.problems]
    return [_plain_diagnostic(each) for each in report.diagnostics], problems, list(report.bounds)


def _plain_diagnostic(found: Diagnostic) -> tuple[Any, ...]:
    fix = found.fix
    edits = [(str(each.path), each.start, each.end, each.text) for each in fix.edits] if fix is not None else []
    return (
        (found.line, found.column, found.end_line, found.end_column, found.code, found.rule, found.message, found.advice),
        (str(found.path), found.level.value, found.frequency, found.excerpt),
        [(str(each.path), each.line, each.message) for each in found.related],
        (int(fix.risk), edits, fix.withheld) if fix is not None else None,
    )


def _report(held: tuple[Any, ...]) -> Report:
    diagnostics, problems, bounds = held
    told = (Problem(Path(path), line, what) for path, line, what in problems)
    return Report(tuple(map(_diagnostic, diagnostics)), tuple(told), tuple(bounds))


def _diagnostic(held: tuple[Any, ...]) -> Diagnostic:
    (line, column, end_line, end_column, code, rule, message, advice), (path, level, frequency, excerpt), related, fix = held
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
        frequency=frequency,
        related=tuple(Place(Path(place), at, what) for place, at, what in related),
        fix=_proposal(*fix) if fix is not None else None,
        excerpt=tuple(excerpt),
    )


def _proposal(risk: int, edits: Iterable[tuple[str, int, int, str]], withheld: str) -> Proposal:
    made = tuple(Edit(Path(path), start, end, text) for path, start, end, text in edits)
    return Proposal(Risk(risk), made, withheld)
