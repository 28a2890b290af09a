"""Reports that are kept: as plain values, with the notes of all that they rest on."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from speedlint import __version__
from speedlint.config import Given, Nearest, Settings
from speedlint.diagnostic import Diagnostic, Place, Proposal, Report, Unused
from speedlint.disk import CONTENTS, OF_CONTENTS, Disk, Mark, Notes
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
    yield from _own_code()
    for folder in settings.rule_paths:
        yield from _stamps(folder)


@functools.cache
def _own_code() -> tuple[str, ...]:
    """The files of speedlint itself, as they are when a process begins to ask: it goes on with what it has imported."""
    return tuple(each for folder in (Path(__file__).parent, own_rules()) for each in _stamps(folder))


def _stamps(folder: Path) -> Iterable[str]:
    found = (os.path.join(at, name) for at, _, names in os.walk(folder) for name in names)  # noqa: PTH118
    return map(stamp, sorted(file for file in found if file.endswith(".py")))


def find(store: Store, name: str, disk: Disk) -> list[Report] | None:
    """The reports of a run under its name, if all that they rest on is as it was; if not, the disk takes over what still
    holds of it."""
    held = store.value(_KIND, name)
    if held is None:
        return None
    try:
        notes, reports = held
        if hold(notes, disk):
            if any(disk.digest(path) != known for path, (known, *_) in notes[2].items()):
                store.keep(_KIND, name, (of_now(notes, disk), reports))
            return [_report(each) for each in reports]
        disk.begin(of_same_bytes(notes, disk))
    except (ValueError, TypeError, KeyError, IndexError, re.error):
        disk.begin(Notes())
    return None


def keep(store: Store, name: str, reports: Iterable[Report], notes: Notes) -> None:
    """Keeps the reports of a run."""
    store.keep(_KIND, name, (plain(notes), [_plain_report(each) for each in reports]))


# Notes

_Answer = tuple[tuple[Any, ...], Any]
"""A question that is no mark, and its answer."""
_PlainMark = tuple[tuple[bytes, ...], bytes, bytes, int]
"""A mark: the words or the bytes that are looked for, the pattern, and its flags (-1 without one)."""
_OfFile = tuple[str, list[_Answer], list[int], list[int]]
"""What rests on one file: the name of its bytes, the questions, and the places of the marks that it holds and does not."""


PlainNotes = tuple[list[_PlainMark], list[_Answer], dict[str, _OfFile]]


def plain(notes: Notes) -> PlainNotes:
    """Notes as plain values: the marks, what no file's bytes answer, and the rest by file."""
    apart: list[_Answer] = []
    found: dict[str, _OfFile] = {}

    def of(path: str) -> _OfFile:
        known = found.get(path)
        if known is None:
            known = found[path] = (str(notes.answers[CONTENTS, path]), [], [], [])
        return known

    for note, answer in notes.answers.items():
        if note[0] in OF_CONTENTS:
            of(note[1])[1].append((note, answer))
        elif note[0] != CONTENTS:
            apart.append((note, answer))
    for place, known in enumerate(notes.marks.values()):
        for path, is_held in known.items():
            _, _, holds, lacks = of(path)
            (holds if is_held else lacks).append(place)
    return [_plain_mark(mark) for mark in notes.marks], apart, found


def hold(notes: PlainNotes, disk: Disk) -> bool:
    """Whether all questions have the answers that they had: those about a file's bytes, where these are the same."""
    marks, apart, held = notes
    if not disk.holds(Notes(dict(apart))):
        return False
    for path, (known, asked, holds, lacks) in held.items():
        if disk.digest(path) != known:
            looked_for = {_mark(*marks[place]): {path: True} for place in holds}
            looked_for |= {_mark(*marks[place]): {path: False} for place in lacks}
            if not disk.holds(Notes(dict(asked), looked_for)):
                return False
    return True


def of_now(notes: PlainNotes, disk: Disk) -> PlainNotes:
    """Notes that hold, under the names that the files' bytes have now."""
    marks, apart, held = notes
    now = {path: (disk.digest(path), asked, holds, lacks) for path, (_, asked, holds, lacks) in held.items()}
    return marks, apart, now


def files(notes: PlainNotes) -> Iterable[str]:
    """The files whose bytes some notes rest on."""
    return notes[2].keys()


def of_same_bytes(notes: PlainNotes, disk: Disk) -> Notes:
    """The notes that speak of the texts of files whose bytes are as they were."""
    marks, _, held = notes
    known: list[dict[str, bool]] = [{} for _ in marks]
    found = Notes(marks={_mark(*mark): answers for mark, answers in zip(marks, known, strict=True)})
    for path, (name, asked, holds, lacks) in held.items():
        if disk.digest(path) == name:
            found.answers.update(asked)
            for place in holds:
                known[place][path] = True
            for place in lacks:
                known[place][path] = False
    return found


def _plain_mark(mark: Mark) -> _PlainMark:
    first, pattern = mark if isinstance(mark, tuple) else (b"", mark) if isinstance(mark, re.Pattern) else (mark, None)
    words, literal = (tuple(sorted(first)), b"") if isinstance(first, frozenset) else ((), first)
    return (words, literal, pattern.pattern, pattern.flags) if pattern is not None else (words, literal, b"", -1)


def _mark(words: tuple[bytes, ...], literal: bytes, pattern: bytes, flags: int) -> Mark:
    first = frozenset(words) if words else literal
    if flags == -1:
        return first
    compiled = re.compile(pattern, flags)
    return (first, compiled) if first else compiled


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
