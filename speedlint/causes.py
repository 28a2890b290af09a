"""Findings with one cause are one finding with several places; what is worth most comes first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from speedlint.diagnostic import Diagnostic
from speedlint.rule import Level, Worth

_FIRST = (Worth.HIGH, Worth.MEDIUM, Worth.UNKNOWN, Worth.LOW)


@dataclass(frozen=True, slots=True)
class Cause:
    """The finding of one cause that is worth most, the first of these, and the others in its file, in order of position."""

    first: Diagnostic
    others: tuple[Diagnostic, ...]

    @property
    def name(self) -> str:
        """What tells it from any other: its rule and its first place."""
        return f"{self.first.code}:{self.first.line}:{self.first.column}"


def together(diagnostics: Iterable[Diagnostic]) -> list[Cause]:
    """The causes of findings that are ordered by position, in the order of their places.

    What an evaluation does in its steps is told with what the training does in its own, where both are of one kind.
    """
    found: dict[tuple[object, ...], list[Diagnostic]] = {}
    for each in diagnostics:
        found.setdefault((each.path, each.level, each.cause or each.key), []).append(each)
    homes: dict[tuple[object, ...], list[Diagnostic]] = {}
    for group in found.values():
        if not _is_of_evaluation(group):
            homes.setdefault(_kind(group), group)
    for key, group in list(found.items()):
        if _is_of_evaluation(group) and (home := homes.get(_kind(group))) is not None:
            home += found.pop(key)
            home.sort(key=lambda each: (each.line, each.column))
    return [_cause(of_one) for of_one in found.values()]


def _is_of_evaluation(group: Sequence[Diagnostic]) -> bool:
    return all(each.frequency == "eval_step" for each in group)


def _kind(group: Sequence[Diagnostic]) -> tuple[object, ...]:
    """The file, the level, and the first word of the cause of some findings that have one; else what no others have."""
    first = group[0]
    return first.path, first.level, first.cause.partition(" ")[0] or first.key


def _cause(diagnostics: Sequence[Diagnostic]) -> Cause:
    first = min(diagnostics, key=_rank)
    return Cause(first, tuple(each for each in diagnostics if each is not first))


def _rank(diagnostic: Diagnostic) -> int:
    return _FIRST.index(diagnostic.worth.worth)


def by_worth(causes: Iterable[Cause]) -> Sequence[Cause]:
    """The causes, warnings before notes, and what is worth most first; else in the order that they come in."""
    return sorted(causes, key=lambda each: (each.first.level is not Level.WARNING, _rank(each.first)))
