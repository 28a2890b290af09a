"""Findings with one cause are one finding with several places; what is worth most comes first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from speedlint.diagnostic import Diagnostic
from speedlint.rule import Level, Worth

_FIRST = (Worth.HIGH, Worth.MEDIUM, Worth.UNKNOWN, Worth.LOW)


@dataclass(frozen=True, slots=True)
class Cause:
    """A finding, and what else in its file has the same cause, in order of position."""

    first: Diagnostic
    others: tuple[Diagnostic, ...]

    @property
    def name(self) -> str:
        """What tells it from any other: its rule and its first place."""
        return f"{self.first.code}:{self.first.line}:{self.first.column}"


def together(diagnostics: Iterable[Diagnostic]) -> list[Cause]:
    """The causes of findings that are ordered by position, in the order of their first places."""
    found: dict[tuple[object, ...], list[Diagnostic]] = {}
    for each in diagnostics:
        found.setdefault((each.path, each.level, each.cause or each.key), []).append(each)
    return [Cause(first, tuple(others)) for first, *others in found.values()]


def by_worth(causes: Iterable[Cause]) -> Sequence[Cause]:
    """The causes, warnings before notes, and what is worth most first; else in the order that they come in."""
    return sorted(causes, key=lambda each: (each.first.level is not Level.WARNING, _FIRST.index(each.first.worth.worth)))
