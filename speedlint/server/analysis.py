"""What the server knows of open documents: their findings, and their text as fixes leave it."""

from __future__ import annotations

import collections
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from speedlint import config, docs, reading, run, stages
from speedlint.apply import apply_edits
from speedlint.config import Settings
from speedlint.diagnostic import Diagnostic, Proposal, Report
from speedlint.edits import CannotEdit
from speedlint.engine import Engine
from speedlint.facts.store import Store
from speedlint.registry import Registry
from speedlint.rule import Level, Risk
from speedlint.semantics.program import Cache
from speedlint.semantics.terms import Frequency
from speedlint.sound import fault
from speedlint.source import Source, SourceError

_MOST_HELD = 200_000_000
"""Bytes of memory for the parsed files of all documents."""

Texts = Mapping[Path, bytes]
"""What the open documents hold."""


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
    """The findings in one document, notes included, what kept speedlint from it, and what its training loops cost."""

    report: Report
    loops: tuple[LoopCost, ...]


class Analyst:
    """Checks documents as they are in their editor. One thread at a time may ask it."""

    def __init__(self) -> None:
        self._store = Store.of_user()
        self._cache = Cache(self._store)
        self._registries: dict[tuple[Path, ...], Registry] = {}

    def check(self, path: Path, texts: Texts, is_cancelled: Callable[[], bool] = lambda: False) -> Checked:
        """What slows down the document at ``path``. Raises UserError for its configuration, and CancelledError."""
        settings, registry = self._prepared(path)
        if self._cache.held() > _MOST_HELD:
            self._cache.drop()
        engine = Engine(settings, registry, reading.over(texts), cache=self._cache, asked=[path], store=self._store)
        reports = []
        for rule in registry.chosen(settings):
            if is_cancelled():
                raise CancelledError
            reports.append(engine.check(path, rule.code))
        self._store.flush()
        report = run.merge(reports)
        return Checked(report, _loops(engine, path, report) if report.diagnostics and not report.problems else ())

    def fixed(self, path: Path, texts: Texts) -> bytes:
        """The document with its exact fixes. Raises UserError for its configuration."""
        settings, registry = self._prepared(path)
        settings = replace(settings, risk=Risk.EXACT)
        staged = stages.fix([path], settings, registry, store=self._store, read=reading.over(texts), alone=True)
        return next((outcome.after for outcome in staged.outcomes), texts[path])

    def _prepared(self, path: Path) -> tuple[Settings, Registry]:
        settings = config.load((path,))
        registry = self._registries.get(settings.rule_paths)
        if registry is None:
            registry = self._registries[settings.rule_paths] = Registry.load(settings.rule_paths, self._store)
        registry.chosen(settings)
        return settings, registry

    def page(self, path: Path, code: str) -> str:
        """The documentation of a rule."""
        _, registry = self._prepared(path)
        return docs.page(registry.by_code[code])


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
