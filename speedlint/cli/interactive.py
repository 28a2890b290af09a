"""``speedlint fix --interactive``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click

from speedlint import docs, reading, stages
from speedlint.ask.program import Cache
from speedlint.choice import Choice
from speedlint.config import Settings
from speedlint.diagnostic import Diagnostic
from speedlint.disk import Disk
from speedlint.engine import Engine
from speedlint.facts.store import Store
from speedlint.fixer import Applied, Outcome
from speedlint.output import diff
from speedlint.output.problems import report_problems
from speedlint.output.terminal import coloured, visible
from speedlint.registry import Registry
from speedlint.stages import Staged
from speedlint.trail import Trail

_QUESTION = "Apply it? [y]es, [n]o, this [r]ule everywhere, [q]uit"
_ANSWERS = ("y", "n", "r", "q")
_Key = tuple[Path, int | None, int, str, str]
"""What tells a finding from others while files change: file, cell, line on disk, code, message."""


@dataclass(frozen=True)
class _One(Choice):
    """One finding."""

    key: _Key | None = None

    def of(self, found: Sequence[Diagnostic], line: Callable[[int], int] = int) -> list[Diagnostic]:
        """The finding, if it is among those found."""
        return [each for each in found if _key(each, line) == self.key]


@dataclass
class Asking:
    """Findings with fixes, asked about one by one; files are changed in memory only.

    Attributes:
        paths: the files with such findings.
    """

    paths: Sequence[Path]
    settings: Settings
    registry: Registry
    choice: Choice
    store: Store | None = None
    _now: dict[Path, Outcome] = field(default_factory=dict, init=False)
    _answered: set[_Key] = field(default_factory=set, init=False)
    _wanted: set[str] = field(default_factory=set, init=False)
    _told: set[str] = field(default_factory=set, init=False)
    _trail: Trail = field(default_factory=Trail, init=False)

    def ask(self) -> list[Outcome]:
        """Asks until all is answered, or the user quits. Returns what was agreed to. Raises click.Abort."""
        cache = Cache(self.store)
        while (found := next(self._open(cache), None)) is not None:
            key, finding = found
            self._answered.add(key)
            staged = stages.fix(
                (finding.path,),
                self.settings,
                self.registry,
                choice=_One(key=key),
                store=self.store,
                read=self._read,
                original=reading.read,
                trail=self._trail,
            )
            report_problems(staged.problems)
            if not staged.outcomes:
                continue
            answer = "y" if finding.code in self._wanted else self._answer(finding, staged)
            if answer == "q":
                break
            if answer == "r":
                self._wanted.add(finding.code)
            if answer != "n":
                self._accept(staged)
        return [each for each in self._now.values() if each.before != each.after]

    def _open(self, cache: Cache) -> Iterator[tuple[_Key, Diagnostic]]:
        """The findings that were not asked about, in the files as they are now."""
        engine = Engine(self.settings, self.registry, Disk(self._read), cache=cache, asked=self.paths)
        for path in self.paths:
            for each in self.choice.of(engine.check(path).diagnostics, self._line(path)):
                key = _key(each, self._line(path))
                if key not in self._answered and stages.fixable(each, self.settings.risk):
                    yield key, each

    def _answer(self, finding: Diagnostic, staged: Staged) -> str:
        self._show(finding, staged)
        answer: str = click.prompt(_QUESTION, type=click.Choice(_ANSWERS), show_choices=False)
        return answer

    def _show(self, finding: Diagnostic, staged: Staged) -> None:
        for line in diff.render(staged.stages):
            click.echo(line, color=coloured(sys.stdout))
        if finding.code not in self._told:
            self._told.add(finding.code)
            click.echo(f"why:  {visible(docs.why(self.registry.by_code[finding.code].docs, finding.case))}")
        if finding.worth.because:
            click.echo(f"cost: {finding.worth.worth.value}: {visible(finding.worth.because)}")

    def _accept(self, staged: Staged) -> None:
        for outcome in staged.outcomes:
            key = outcome.path.resolve()
            held = self._now.get(key, Outcome(outcome.path, outcome.before, b"", ()))
            applied: tuple[Applied, ...] = (*held.applied, *outcome.applied)
            self._now[key] = Outcome(held.path, held.before, outcome.after, applied)

    def _read(self, path: Path) -> bytes:
        held = self._now.get(path.resolve())
        return reading.read(path) if held is None else held.after

    def _line(self, path: Path) -> Callable[[int], int]:
        return stages.lines_before(self._read, reading.read, path, self._trail)


def _key(found: Diagnostic, line: Callable[[int], int]) -> _Key:
    return found.path.resolve(), found.cell, line(found.line), found.code, found.message
