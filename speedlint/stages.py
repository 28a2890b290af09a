"""Fixes in stages, the safest first, so that each change can be shown with what it risks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from speedlint import notebook, reading
from speedlint.apply import Overlay
from speedlint.ask.program import Cache
from speedlint.ask.script import Options
from speedlint.choice import Choice
from speedlint.config import Settings
from speedlint.diagnostic import Diagnostic, Report, Unused
from speedlint.disk import Disk
from speedlint.engine import Engine
from speedlint.facts.store import Store
from speedlint.files import Problem
from speedlint.fixer import Applied, Candidate, Outcome, Read, fix_files
from speedlint.notebook import Cells
from speedlint.registry import Registry
from speedlint.rule import Edit, Risk
from speedlint.trail import Trail

COMMENT = "comment"
"""What stands for a rule's code where a comment that silences nothing is taken away; after all codes, in order."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What the fixes of one risk change, after those of a lower risk."""

    risk: Risk
    outcomes: tuple[Outcome, ...]
    applied: tuple[Applied, ...]


@dataclass(frozen=True, slots=True)
class Staged:
    """All stages, what they change together, the fixes that were given up, and those of a higher risk than was asked for."""

    stages: tuple[Stage, ...]
    outcomes: tuple[Outcome, ...]
    problems: tuple[Problem, ...]
    beyond: tuple[Applied, ...] = ()


@dataclass
class Proposer:
    """The fixer's callback: the fixes up to ``risk`` for what the rules find in the bytes that ``read`` gives."""

    settings: Settings
    options: Options | None
    registry: Registry
    risk: Risk
    cache: Cache
    paths: Sequence[Path]
    watch: Callable[[Path], None] = lambda _path: None
    original: Read = reading.read
    alone: bool = False
    choice: Choice = field(default_factory=Choice)
    with_comments: bool = False
    trail: Trail = field(default_factory=Trail)
    beyond: dict[Path, tuple[Applied, ...]] = field(default_factory=dict, init=False)
    _seen: tuple[Read, Engine, dict[tuple[Path, str | None], Report]] | None = field(default=None, init=False)

    def __call__(self, read: Read, path: Path, code: str | None) -> Sequence[Candidate]:
        """The fixes that may be applied to ``path``, of one rule or of all."""
        self.watch(path)
        report = self._report(read, path, None if code == COMMENT else code)
        line = lines_before(read, self.original, path, self.trail)
        found = self.choice.of(report.diagnostics, line)
        if code is None and path not in self.beyond:
            higher = [each for each in found if not fixable(each, self.settings.risk)]
            self.beyond[path] = tuple(_applied(each, b"", b"", self.trail) for each in higher if fixable(each, max(Risk)))
        chosen = [each for each in found if fixable(each, self.risk) and not (self.alone and _reaches_further(each))]
        unused = self.choice.unused(report.unused, line) if self.with_comments else ()
        before = _read_or_none(self.original, path)
        fixes = [
            Candidate(_applied(each, read(path), before, self.trail), _edits(each)) for each in chosen if code != COMMENT
        ]
        return [*fixes, *(_removal(each, line(each.line)) for each in unused)]

    def around(self, read: Read, path: Path) -> Iterable[Path]:
        """The files of the programs that a file is part of: what is found in them may rest on it."""
        return self._looked_at(read)[0].around(path)

    def _looked_at(self, read: Read) -> tuple[Engine, dict[tuple[Path, str | None], Report]]:
        """The engine for the bytes that ``read`` gives, and what it has found in them."""
        if self._seen is None or self._seen[0] is not read:
            self._seen = (read, Engine(self.settings, self.registry, Disk(read), self.options, self.cache, self.paths), {})
        return self._seen[1:]

    def _report(self, read: Read, path: Path, code: str | None) -> Report:
        """What is found in a file, of one rule or of all; what was found is kept as long as no file changes."""
        engine, told = self._looked_at(read)
        if (path, code) not in told:
            whole = told.get((path, None))
            told[path, code] = (
                engine.check(path, code)
                if whole is None
                else whole._replace(diagnostics=tuple(each for each in whole.diagnostics if each.code == code))
            )
        return told[path, code]


def fixable(diagnostic: Diagnostic, risk: Risk) -> bool:
    """Whether the finding has a fix that may be applied at this risk."""
    return diagnostic.fix is not None and diagnostic.fix.applicable and diagnostic.fix.risk <= risk


def fix(
    paths: Sequence[Path],
    settings: Settings,
    registry: Registry,
    options: Options | None = None,
    store: Store | None = None,
    watch: Callable[[Path], None] = lambda _path: None,
    read: Read = reading.read,
    alone: bool = False,
    choice: Choice | None = None,
    with_comments: bool = False,
    original: Read | None = None,
    trail: Trail | None = None,
    beside: Sequence[Path] = (),
) -> Staged:
    """Applies the fixes up to the settings' risk of the findings that are chosen, all by default, in memory: in ``paths``,
    and in files ``beside`` them where a fix leaves something to fix.

    ``options`` and ``store`` are the engine's; ``watch`` is told of each file that is looked at; ``read`` gives files as
    they are before, and ``original`` those whose lines were told, by default the same, from which ``trail`` leads. ``alone``
    leaves out fixes that reach further than the file they are found in; ``with_comments`` takes comments away that silence
    nothing.
    """
    chosen, told, trail = choice or Choice(), original or read, trail or Trail()
    stages: list[Stage] = []
    problems: list[Problem] = []
    beyond: tuple[Applied, ...] = ()
    files, asked = Overlay(read), tuple(dict.fromkeys((*paths, *beside)))
    proposer = Proposer(
        settings, options, registry, min(Risk), Cache(store), asked, watch, told, alone, chosen, with_comments, trail
    )
    for risk in (each for each in Risk if each <= settings.risk):
        proposer.risk, proposer.beyond = risk, {}
        result = fix_files(paths, proposer, files, trail, proposer.around, beside)
        beyond = beyond or tuple(each for found in proposer.beyond.values() for each in found)
        stages.append(Stage(risk, result.outcomes, result.applied))
        problems += result.problems
    return Staged(tuple(stages), tuple(_together(stages)), tuple(dict.fromkeys(problems)), beyond)


def _together(stages: Iterable[Stage]) -> list[Outcome]:
    """One outcome for each file: from its bytes before the first stage to those after the last."""
    whole: dict[Path, Outcome] = {}
    for outcome in (each for stage in stages for each in stage.outcomes):
        first = whole.get(_key(outcome.path), Outcome(outcome.path, outcome.before, b"", ()))
        applied = (*first.applied, *outcome.applied)
        whole[_key(outcome.path)] = Outcome(first.path, first.before, outcome.after, applied)
    return [each for each in whole.values() if each.before != each.after]


def _reaches_further(found: Diagnostic) -> bool:
    return found.fix is not None and any(_key(edit.path) != _key(found.path) for edit in found.fix.edits)


def _key(path: Path) -> Path:
    return path.resolve()


def lines_before(read: Read, original: Read, path: Path, trail: Trail) -> Callable[[int], int]:
    """Gives the line of a file's original text for one of the text that ``read`` gives; in a notebook, whose findings have
    the lines of their cells, the same line."""
    if notebook.is_notebook(path):
        return int

    def line(number: int) -> int:
        now, before = read(path), _read_or_none(original, path)
        return trail.line(number, now, before)

    return line


def _read_or_none(read: Read, path: Path) -> bytes:
    try:
        return read(path)
    except OSError:
        return b""


def _removal(unused: Unused, line: int) -> Candidate:
    return Candidate(Applied(unused.path, line, COMMENT, "unused-ignore", Risk.EXACT, unused.why), unused.edits)


def _edits(found: Diagnostic) -> tuple[Edit, ...]:
    return found.fix.edits if found.fix is not None else ()


def _applied(found: Diagnostic, now: bytes, original: bytes, trail: Trail) -> Applied:
    """The fix in words, with its line as it was in the file's first text."""
    assert found.fix is not None
    line, cell = found.line, found.cell
    if now == original or not original:
        pass
    elif cell is None:
        line = trail.line(line, now, original)
    else:
        cell, line = Cells(original).place(trail.line(Cells(now).line(cell, line), now, original))
    return Applied(found.path, line, found.code, found.rule, found.fix.risk, found.message, cell)
