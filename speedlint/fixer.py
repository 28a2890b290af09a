"""Findings -> edits -> files that still parse, or the originals.

The engine connects to it through one callback::

    def propose(read: Read, path: Path, code: str | None) -> Sequence[Candidate]: ...

which gives the fixes that may be applied for ``path``, of one rule or (``code`` is None) of all, computed from the bytes
that ``read`` returns. The same ``read`` always returns the same bytes and a new one is passed whenever a file has changed,
so that the callback may keep its program for as long as ``read`` is the same object. Then::

    result = fix_files(paths, propose)
    problems = write_all(result.outcomes)      # for ``fix --apply``

One rule is applied at a time, everywhere, and again until it proposes nothing more; then the next one. What it leaves must
be sound and must settle; else the files concerned are as they were before the rule, and the rule is named as a problem.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from speedlint import reading, sound
from speedlint.apply import Overlay, Read, apply_edits, collides, place, written
from speedlint.edits import CannotEdit
from speedlint.files import Problem
from speedlint.rule import Edit, Risk
from speedlint.trail import Change, Trail
from speedlint.writing import write_all

ROUNDS = 10
"""How often one rule, or all together, may propose again before they are undone; a turn that leaves less to do is free."""

__all__ = ["Applied", "Candidate", "Outcome", "Propose", "Read", "Result", "apply_edits", "fix_files", "write_all"]


@dataclass(frozen=True, slots=True)
class Applied:
    """A fix in words: the finding's place as it was when the fix was proposed, and its rule; in a notebook the line is that
    of a cell."""

    path: Path
    line: int
    code: str
    rule: str
    risk: Risk
    message: str
    cell: int | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A fix that a rule proposes: what it is, and its edits, which may reach other files than the finding's."""

    what: Applied
    edits: tuple[Edit, ...]


Propose = Callable[[Read, Path, "str | None"], Sequence[Candidate]]
Around = Callable[[Read, Path], Iterable[Path]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A file that fixes change: its bytes before and after, and the fixes that edited it, in order.

    A fix over several files is listed with each of them; ``Result.applied`` lists it once.
    """

    path: Path
    before: bytes
    after: bytes
    applied: tuple[Applied, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """What ``fix_files`` did: changed files by path, each applied fix once, and fixes that were given up."""

    outcomes: tuple[Outcome, ...]
    applied: tuple[Applied, ...]
    problems: tuple[Problem, ...]


def fix_files(
    paths: Iterable[Path],
    propose: Propose,
    files: Overlay | None = None,
    trail: Trail | None = None,
    around: Around = lambda _read, path: (path,),
    beside: Iterable[Path] = (),
) -> Result:
    """Applies what ``propose`` proposes for ``paths`` until it proposes nothing more, and notes it in ``trail``. Nothing is
    written: ``files``, by default those on disk, are edited in memory.

    ``around`` gives the files in which a change of one may be seen: those of ``paths`` and ``beside`` are looked at again.
    """
    active = list(paths)
    fixing = _Fixing(
        files or Overlay(reading.read), propose, trail or Trail(), around, list(dict.fromkeys((*active, *beside)))
    )
    for path in fixing.paths:
        fixing.files.key(path)  # a file is named as it was asked for, not as another file's fix spells it
    for _ in range(ROUNDS):
        active = fixing.round(active)
        if not active:
            break
    else:
        fixing.undo_endless()
    return fixing.result()


@dataclass(frozen=True, slots=True)
class _Step:
    """An applied fix and the keys of the files it edited."""

    what: Applied
    keys: frozenset[str]


_Written = dict[str, list[tuple[int, int, str]]]
"""For each file the places, in its new bytes, of what has just been written."""


class _Fixing:
    def __init__(self, files: Overlay, propose: Propose, trail: Trail, around: Around, paths: list[Path]) -> None:
        self.files, self.propose, self.trail, self.around, self.paths = files, propose, trail, around, paths
        self.began = files.edited
        self.steps: list[_Step] = []
        self.problems: dict[Problem, None] = {}
        self.given_up: set[tuple[str, str]] = set()
        self.rounds: list[int] = []

    def round(self, paths: Sequence[Path]) -> list[Path]:
        """Applies each rule to its end. Returns the paths to look at again: none if nothing has changed."""
        before = self.files.edited
        self.rounds.append(len(self.steps))
        waiting: dict[str, list[Path]] = {}
        for path in paths:
            for code in dict.fromkeys(candidate.what.code for candidate in self._candidates([path], None)):
                waiting.setdefault(code, []).append(path)
        for code in sorted(waiting):
            self._settle(code, waiting[code])
        changed = {key for key, data in self.files.edited.items() if before.get(key) != data}
        again = {self.files.key(path) for found in waiting.values() for path in found if changed}
        for key in changed:
            again.update(map(self.files.key, self.around(self.files.read, self.files.paths[key])))
        return [path for path in self.paths if self.files.key(path) in changed | again]

    def undo_endless(self) -> None:
        """Gives up the files that the later rounds have changed: their rules undo each other's work."""
        late = self.steps[self.rounds[ROUNDS // 2] :]
        for step in late:
            self._report(step.what, step.keys, "does not settle: other fixes undo it")
        self._undo({key for step in late for key in step.keys}, self.began, 0)

    def result(self) -> Result:
        """What has been done so far."""
        outcomes = []
        for key, after in self.files.edited.items():
            path = self.files.paths[key]
            before = self.began[key] if key in self.began else self.files.originals[key]
            if after != before:
                outcomes.append(Outcome(path, before, after, _whats(step for step in self.steps if key in step.keys)))
        return Result(tuple(sorted(outcomes, key=lambda outcome: outcome.path)), _whats(self.steps), tuple(self.problems))

    def _candidates(self, paths: Iterable[Path], code: str | None) -> list[Candidate]:
        proposed = (candidate for path in paths for candidate in self.propose(self.files.read, path, code))
        return [candidate for candidate in proposed if candidate.edits and not self._is_given_up(candidate)]

    def _is_given_up(self, candidate: Candidate) -> bool:
        return any((candidate.what.code, key) in self.given_up for key in self._by_file([candidate]))

    def _by_file(self, candidates: Iterable[Candidate]) -> dict[str, list[Edit]]:
        """The edits of each file under its key, identical ones once, in order; insertions keep the order given."""
        files: dict[str, list[Edit]] = {}
        for edit in (edit for candidate in candidates for edit in candidate.edits):
            key = self.files.key(edit.path)
            files.setdefault(key, []).append(edit._replace(path=self.files.paths[key]))
        return {key: sorted(dict.fromkeys(edits), key=place) for key, edits in files.items()}

    def _settle(self, code: str, paths: Sequence[Path]) -> None:
        """Applies one rule until it proposes nothing more that can be applied."""
        before, began = self.files.edited, len(self.steps)
        places: _Written = {}
        turns, fewest = 0, sys.maxsize
        while True:
            candidates = self._candidates(paths, code)
            turns, fewest = turns + (len(candidates) >= fewest), min(len(candidates), fewest)
            stuck = [each for each in candidates if turns > ROUNDS or self._repeats(each, places)]
            if stuck:
                keys = set(self._by_file(stuck))
                self._give_up(stuck, dict.fromkeys(keys, "does not settle: it is proposed again where it was applied"))
                self._undo(keys, before, began)
                places = {}
            elif not (places := self._apply(candidates)):
                return

    def _repeats(self, candidate: Candidate, places: _Written) -> bool:
        """Whether all text that the candidate writes has just been written at the same places."""
        texts = [(key, edit) for key, edits in self._by_file([candidate]).items() for edit in edits if edit.text]
        return bool(texts) and all(
            any(text == edit.text and start <= edit.end and edit.start <= end for start, end, text in places.get(key, ()))
            for key, edit in texts
        )

    def _apply(self, candidates: Iterable[Candidate]) -> _Written:
        """Applies the candidates that do not collide and leave every file sound."""
        chosen = self._compatible(candidates)
        while chosen:
            files = self._by_file(chosen)
            after = {key: apply_edits(self.files.source(key), edits) for key, edits in files.items()}
            faults = {key: self._fault(key, data) for key, data in after.items()}
            if not any(faults.values()):
                places = {key: written(self.files.source(key), edits) for key, edits in files.items()}
                for key, edits in files.items():
                    changes = [Change(*place(edit), *at[:2]) for edit, at in zip(edits, places[key], strict=True)]
                    self.trail.add(self.files.source(key).data, after[key], changes)
                self.steps += [_Step(each.what, frozenset(self._by_file([each]))) for each in chosen]
                self.files.become({**self.files.edited, **after})
                return places
            self._give_up(chosen, {key: f"was not applied: {fault}" for key, fault in faults.items() if fault})
            chosen = [each for each in chosen if not self._is_given_up(each)]
        return {}

    def _compatible(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """The candidates, in order, that can be applied and neither overlap nor touch one taken before."""
        taken: dict[str, list[Edit]] = {}
        chosen = []
        for candidate in candidates:
            files = self._by_file([candidate])
            if any(collides(edit, taken.get(key, [])) for key, edits in files.items() for edit in edits):
                continue
            try:
                for key, edits in files.items():
                    apply_edits(self.files.source(key), edits)
            except CannotEdit as error:
                self._report(candidate.what, files, f"was not applied: {error}")
                continue
            for key, edits in files.items():
                taken[key] = sorted({*taken.get(key, ()), *edits}, key=place)
            chosen.append(candidate)
        return chosen

    def _fault(self, key: str, after: bytes) -> str:
        return sound.fault(self.files.source(key), after)

    def _give_up(self, candidates: Iterable[Candidate], faults: Mapping[str, str]) -> None:
        for candidate in candidates:
            for key in faults.keys() & self._by_file([candidate]).keys():
                self.given_up.add((candidate.what.code, key))
                self._report(candidate.what, [key], faults[key])

    def _report(self, what: Applied, keys: Iterable[str], why: str) -> None:
        for key in sorted(keys):
            self.problems[Problem(self.files.paths[key], None, f"the fix of {what.code} ({what.rule}) {why}")] = None

    def _undo(self, keys: Set[str], before: Mapping[str, bytes], began: int) -> None:
        """Takes back the steps since ``began`` in these files, and in all that shared a fix with them."""
        linked = set(keys)
        while more := {key for step in self.steps[began:] if step.keys & linked for key in step.keys} - linked:
            linked |= more
        self.steps[began:] = [step for step in self.steps[began:] if not step.keys & linked]
        kept = {key: data for key, data in self.files.edited.items() if key not in linked}
        self.files.become({**kept, **{key: data for key, data in before.items() if key in linked}})


def _whats(steps: Iterable[_Step]) -> tuple[Applied, ...]:
    return tuple(sorted((step.what for step in steps), key=lambda what: (what.path, what.cell or 0, what.line, what.code)))
