"""What the server knows of open documents: their findings, and their text as fixes leave it."""

from __future__ import annotations

import collections
import contextlib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from speedlint import config, kept, reading, run, stages
from speedlint.apply import apply_edits
from speedlint.ask.program import Cache
from speedlint.config import Settings
from speedlint.diagnostic import Diagnostic, Proposal, Report
from speedlint.disk import Disk
from speedlint.edits import CannotEdit
from speedlint.engine import Engine
from speedlint.facts.store import Store
from speedlint.registry import Registry
from speedlint.rule import Level, Risk
from speedlint.sound import fault
from speedlint.source import Source, SourceError
from speedlint.torch.words import Frequency

_MOST_HELD = 200_000_000
"""Bytes of memory for the parsed files of all documents."""

_MOST_KNOWN = 32
"""Documents of which it is held what was found, with notes of up to a megabyte each."""

Texts = Mapping[Path, bytes]
"""What the open documents hold."""
IsCancelled = Callable[[], bool]
"""Whether the answer is not wanted any more."""


class CancelledError(Exception):
    """The answer is not wanted any more."""


@dataclass(frozen=True, slots=True)
class LoopCost:
    """The 1-based line of a training loop, in its cell if it stands in one, and how many of its findings are worth how
    much."""

    cell: int | None
    line: int
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Checked:
    """The findings in one document, notes included, what kept speedlint from it, what its training loops cost, the rules
    that looked, what the files held that fixes edit, and the real paths of all that was read."""

    report: Report
    loops: tuple[LoopCost, ...]
    registry: Registry
    held: Mapping[Path, bytes]
    rests_on: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Known:
    """What a check has found, under the name of its run, with the notes of all that it rests on."""

    name: str
    checked: Checked
    notes: kept.PlainNotes


class Analyst:
    """Checks documents as they are in their editor. One thread at a time may ask it."""

    def __init__(self) -> None:
        self._store = Store.of_user()
        self._cache = Cache(self._store)
        self._registries: dict[tuple[Path, ...], Registry] = {}
        self._known: dict[Path, _Known] = {}

    def check(self, path: Path, texts: Texts, is_cancelled: IsCancelled = lambda: False) -> Checked:
        """What slows down the document at ``path``. Raises UserError for its configuration, and CancelledError."""
        settings, registry = self._prepared(path)
        name, disk = kept.key([path], settings), Disk(reading.over(texts))
        known = self._known.get(path)
        if known is not None:
            if known.name == name and kept.hold(known.notes, disk):
                self._known[path] = replace(known, notes=kept.of_now(known.notes, disk))
                return known.checked
            disk.begin(kept.of_same_bytes(known.notes, disk))
        if self._cache.held() > _MOST_HELD:
            self._cache.drop()
        engine = Engine(settings, registry, disk, cache=self._cache, asked=[path], store=self._store)
        reports = []
        for rule in registry.chosen(settings):
            if is_cancelled():
                raise CancelledError
            reports.append(engine.check(path, rule.code))
        self._store.flush()
        report = run.merge(reports)
        loops = _loops(engine, path, report) if report.diagnostics and not report.problems else ()
        edited = {edit.path for each in report.diagnostics if each.fix is not None for edit in each.fix.edits}
        notes = kept.plain(disk.notes)
        read = frozenset(map(os.path.realpath, kept.files(notes)))
        checked = Checked(report, loops, registry, held(edited, texts), read)
        self._known.pop(path, None)
        self._known[path] = _Known(name, checked, notes)
        if len(self._known) > _MOST_KNOWN:
            del self._known[next(iter(self._known))]
        return checked

    def fixed(self, path: Path, texts: Texts, is_cancelled: IsCancelled = lambda: False) -> bytes:
        """The document with its exact fixes. Raises UserError for its configuration, and CancelledError."""

        def look(_: Path) -> None:
            if is_cancelled():
                raise CancelledError

        settings, registry = self._prepared(path)
        settings = replace(settings, risk=Risk.EXACT)
        read = reading.over(texts)
        staged = stages.fix([path], settings, registry, store=self._store, watch=look, read=read, alone=True)
        return next((outcome.after for outcome in staged.outcomes), texts[path])

    def _prepared(self, path: Path) -> tuple[Settings, Registry]:
        settings = config.load((path,))
        registry = self._registries.get(settings.rule_paths)
        if registry is None:
            registry = self._registries[settings.rule_paths] = Registry.load(settings.rule_paths, self._store)
        registry.chosen(settings)
        return settings, registry


def held(paths: Iterable[Path], texts: Texts) -> dict[Path, bytes]:
    """What files hold, as the open documents have them, else as they are on disk; without those that cannot be read."""
    read, found = reading.over(texts), {}
    for path in paths:
        with contextlib.suppress(OSError):
            found[path] = read(path)
    return found


def is_sound(fix: Proposal, texts: Texts) -> bool:
    """Whether the fix, applied to the documents by itself, leaves files that parse and name nothing unbound."""
    read = reading.over(texts)
    for path in {edit.path for edit in fix.edits}:
        try:
            source = Source.parse(path, read(path))
            if fault(source, apply_edits(source, [edit for edit in fix.edits if edit.path == path])):
                return False
        except (SourceError, CannotEdit, OSError):
            return False
    return True


def _loops(engine: Engine, path: Path, report: Report) -> tuple[LoopCost, ...]:
    """The training loops that findings stand in; a finding elsewhere counts for a loop that is the only one."""
    script = engine.script(path)
    cells = script.source.cells
    loops = [(script.source.span(each), each) for each in script.loops.all if script.loops.kind(each) is Frequency.STEP]
    found: dict[int, collections.Counter[str]] = {}
    for each in report.diagnostics:
        start = each.start + (cells.start(each.cell) if cells is not None and each.cell is not None else 0)
        around = [(span, loop) for span, loop in loops if span.start <= start < span.end]
        if each.level is not Level.WARNING or not (around or (len(loops) == 1 and _is_of_step(each))):
            continue
        _, loop = max(around or loops, key=lambda one: one[0].start)
        found.setdefault(script.source.line(loop), collections.Counter())[each.worth.worth.value] += 1
    if cells is None:
        return tuple(LoopCost(None, line, found[line]) for line in sorted(found))
    places = {line: cells.place(line) for line in sorted(found)}
    return tuple(LoopCost(place.cell, place.line, found[line]) for line, place in places.items())


def _is_of_step(found: Diagnostic) -> bool:
    return found.frequency == Frequency.STEP.name.lower()
