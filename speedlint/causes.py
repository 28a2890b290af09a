"""Findings with one cause are one finding with several places; what is worth most comes first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from speedlint.diagnostic import Diagnostic
from speedlint.rule import Level, Worth

WAIT, COPY = "wait", "copy"
"""The kinds of causes that make a step wait: what reads a number, and what copies to the GPU."""
_FIRST = (Worth.HIGH, Worth.MEDIUM, Worth.UNKNOWN, Worth.LOW)


class Cause(NamedTuple):
    """The finding of one cause that is worth most, the first of these, and the others in its file, in order of position."""

    first: Diagnostic
    others: tuple[Diagnostic, ...]

    @property
    def name(self) -> str:
        """What tells it from any other: its rule and its first place."""
        cell = f"{self.first.cell}:" if self.first.cell else ""
        return f"{self.first.code}:{cell}{self.first.line}:{self.first.column}"


def together(diagnostics: Iterable[Diagnostic]) -> list[Cause]:
    """The causes of findings that are ordered by position, in the order of their places.

    A copy is told with a read of the same step, if there is one; what an evaluation waits for with what the training does.
    """
    found: dict[tuple[object, ...], list[Diagnostic]] = {}
    for each in diagnostics:
        found.setdefault((each.path, each.level, each.cause or each.key), []).append(each)
    _join(found, _is_copy, lambda each: not _is_copy(each), _step)
    _join(found, _is_of_evaluation, lambda each: not _is_of_evaluation(each), _kind)
    return [_cause(of_one) for of_one in found.values()]


Group = list[Diagnostic]


def _join(
    found: dict[tuple[object, ...], Group],
    joins: Callable[[Group], bool],
    is_home: Callable[[Group], bool],
    key: Callable[[Group], tuple[object, ...]],
) -> None:
    """Adds each group of one kind to the first group of another kind that has the same key."""
    homes: dict[tuple[object, ...], Group] = {}
    joining = [name for name, group in found.items() if joins(group)]
    for group in found.values():
        if is_home(group):
            homes.setdefault(key(group), group)
    for name in joining:
        if (home := homes.get(key(found[name]))) is not None:
            home += found.pop(name)
    for group in homes.values():
        group.sort(key=lambda each: (each.cell or 0, each.line, each.column))


def _is_copy(group: Group) -> bool:
    return group[0].cause.startswith(f"{COPY} ")


def _is_of_evaluation(group: Group) -> bool:
    return all(each.frequency == "eval_step" for each in group)


def _step(group: Group) -> tuple[object, ...]:
    """The step that some findings make wait; what no others have where they do not."""
    kind, _, place = group[0].cause.partition(" ")
    where = (group[0].path, group[0].level)
    return (*where, place.partition(":")[0]) if kind in (WAIT, COPY) else (*where, group[0].key)


def _kind(group: Group) -> tuple[object, ...]:
    """What some findings that have a cause are about; what no others have where they have none."""
    kind = group[0].cause.partition(" ")[0]
    return group[0].path, group[0].level, WAIT if kind == COPY else kind or group[0].key


def _cause(diagnostics: Sequence[Diagnostic]) -> Cause:
    first = min(diagnostics, key=_rank)
    return Cause(first, tuple(each for each in diagnostics if each is not first))


def _rank(diagnostic: Diagnostic) -> int:
    return _FIRST.index(diagnostic.worth.worth)


def by_worth(causes: Iterable[Cause]) -> Sequence[Cause]:
    """The causes, warnings before notes, and what is worth most first; else in the order that they come in."""
    return sorted(causes, key=lambda each: (each.first.level is not Level.WARNING, _rank(each.first)))
