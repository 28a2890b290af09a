"""Fixes in stages, the safest first, so that each change can be shown with what it risks."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from speedlint.config import Settings
from speedlint.diagnostic import Diagnostic
from speedlint.engine import Engine
from speedlint.facts.store import Store
from speedlint.files import Problem
from speedlint.fixer import Applied, Candidate, Outcome, Read, fix_files
from speedlint.registry import Registry
from speedlint.rule import Risk
from speedlint.semantics.program import Cache
from speedlint.semantics.script import Options


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
    beyond: dict[Path, tuple[Applied, ...]] = field(default_factory=dict, init=False)
    _seen: tuple[Read, Engine] | None = field(default=None, init=False)

    def __call__(self, read: Read, path: Path, code: str | None) -> Sequence[Candidate]:
        """The fixes that may be applied to ``path``, of one rule or of all."""
        self.watch(path)
        if self._seen is None or self._seen[0] is not read:
            self._seen = (read, Engine(self.settings, self.registry, read, self.options, self.cache, self.paths))
        found = self._seen[1].check(path, code).diagnostics
        if code is None and path not in self.beyond:
            higher = [each for each in found if not fixable(each, self.settings.risk)]
            self.beyond[path] = tuple(_applied(each, each.line) for each in higher if fixable(each, max(Risk)))
        chosen = [each for each in found if fixable(each, self.risk)]
        return [_candidate(each, _line_before(each.line, read(path), _on_disk(path))) for each in chosen]


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
) -> Staged:
    """Applies all fixes up to the settings' risk, in memory. ``options`` and ``store`` are the engine's; ``watch`` is told
    of each file that is looked at."""
    now: dict[Path, bytes] = {}
    stages: list[Stage] = []
    problems: list[Problem] = []
    beyond: tuple[Applied, ...] = ()
    cache = Cache(store)
    for risk in (each for each in Risk if each <= settings.risk):
        contents = dict(now)
        proposer = Proposer(settings, options, registry, risk, cache, paths, watch)
        result = fix_files(paths, proposer, _reader(contents))
        beyond = beyond or tuple(each for found in proposer.beyond.values() for each in found)
        stages.append(Stage(risk, result.outcomes, result.applied))
        problems += result.problems
        now.update((_key(outcome.path), outcome.after) for outcome in result.outcomes)
    return Staged(tuple(stages), tuple(_together(stages)), tuple(dict.fromkeys(problems)), beyond)


def _together(stages: Iterable[Stage]) -> list[Outcome]:
    """One outcome for each file: from its bytes before the first stage to those after the last."""
    whole: dict[Path, Outcome] = {}
    for outcome in (each for stage in stages for each in stage.outcomes):
        first = whole.get(_key(outcome.path), Outcome(outcome.path, outcome.before, b"", ()))
        applied = (*first.applied, *outcome.applied)
        whole[_key(outcome.path)] = Outcome(first.path, first.before, outcome.after, applied)
    return [each for each in whole.values() if each.before != each.after]


def _reader(contents: dict[Path, bytes]) -> Read:
    def read(path: Path) -> bytes:
        held = contents.get(_key(path))
        return path.read_bytes() if held is None else held

    return read


def _key(path: Path) -> Path:
    return path.resolve()


def _on_disk(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _line_before(line: int, now: bytes, original: bytes) -> int:
    """Where a line of the half-fixed text was in the file, so that the fix can be found in what ``check`` printed."""
    if now == original or not original:
        return line
    lines = difflib.SequenceMatcher(None, original.splitlines(), now.splitlines(), autojunk=False)
    for _, first, last, start, end in lines.get_opcodes():
        if start < line <= end:
            return min(first + line - start, max(last, first + 1))
    return line


def _candidate(found: Diagnostic, line: int) -> Candidate:
    assert found.fix is not None
    return Candidate(_applied(found, line), found.fix.edits)


def _applied(found: Diagnostic, line: int) -> Applied:
    assert found.fix is not None
    return Applied(found.path, line, found.code, found.rule, found.fix.risk, found.message)
