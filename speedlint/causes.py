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
    """The causes of findings that are ordered by position, in the order of their places."""
    found: dict[tuple[object, ...], list[Diagnostic]] = {}
    for each in diagnostics:
        found.setdefault((each.path, each.level, each.cause or each.key), []).append(each)
    return [_cause(of_one) for of_one in found.values()]


def _cause(diagnostics: Sequence[Diagnostic]) -> Cause:
    first = min(diagnostics, key=_rank)
    return Cause(first, tuple(each for each in diagnostics if each is not first))


def _rank(diagnostic: Diagnostic) -> int:
    return _FIRST.index(diagnostic.worth.worth)


def by_worth(causes: Iterable[Cause]) -> Sequence[Cause]:
    """The causes, warnings before notes, and what is worth most first; else in the order that they come in."""
    return sorted(causes, key=lambda each: (each.first.level is not Level.WARNING, _rank(each.first)))
