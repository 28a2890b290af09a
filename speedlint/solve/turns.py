"""Passes of one loop that are told apart by what does not change in it: ``if phase == "train"`` beside ``"valid"``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from speedlint.facts import syntax
from speedlint.solve import truths
from speedlint.solve.guards import deciding_tests

if TYPE_CHECKING:
    from speedlint.ask.script import Script


class Guard(NamedTuple):
    """A test that decides whether a line runs, and how it must come out."""

    test: syntax.BaseExpression
    is_met: bool


def guards(script: Script, node: syntax.Node, loop: syntax.For | syntax.While) -> list[Guard]:
    """The tests in a loop's body that decide whether a node of it runs, and come out alike in all turns of a pass."""
    found, child = list[Guard](), node
    for up in script.source.ancestors(node):
        found += (part for test, is_met in deciding_tests(up, child) for part in _parts(Guard(test, is_met)))
        if up is loop.body:
            break
        child = up
    return [each for each in found if _is_steady(script, each.test, loop)]


def _parts(guard: Guard) -> Iterator[Guard]:
    """The tests that all come out as they must where a test does: those that ``and`` joins, and what ``not`` turns."""
    match guard.test:
        case syntax.UnaryOperation(operator=syntax.Not(), expression=inner):
            yield from _parts(Guard(inner, not guard.is_met))
        case syntax.BooleanOperation(left=left, operator=joined, right=right) if (
            isinstance(joined, syntax.And) is guard.is_met
        ):
            yield from _parts(Guard(left, guard.is_met))
            yield from _parts(Guard(right, guard.is_met))
        case _:
            yield guard


def _is_steady(script: Script, test: syntax.BaseExpression, loop: syntax.For | syntax.While) -> bool:
    """Whether a test asks for names alone, none of which the loop binds."""
    if any(True for kind in (syntax.Call, syntax.Attribute, syntax.Subscript) for _ in script.source.inside(test, kind)):
        return False
    bound = [each.node for name in script.source.inside(test, syntax.Name) for each in script.names.reaching(name)]
    return bool(bound) and not any(script.source.contains(loop, each) for each in bound)


def exclude(script: Script, some: Sequence[Guard], others: Sequence[Guard]) -> bool:
    """Whether what some tests let run never runs in the same pass as what others do."""
    facts = dict(fact for guard in some for fact in _told(script, guard))

    def known(expression: syntax.BaseExpression) -> truths.Values | None:
        fixed = script.loops.guards.fixed(expression)
        return (fixed.value,) if fixed is not None else facts.get(script.text(expression))

    def fails(guard: Guard) -> bool:
        asked, is_met = _straight(script, guard)
        told = facts.get(asked)
        return told == (not is_met,) or truths.truth(guard.test, known) is (not guard.is_met)

    return any(map(fails, others))


def _told(script: Script, guard: Guard) -> Iterator[tuple[str, truths.Values]]:
    """What is known of expressions, by their text, where a test comes out as it must."""
    asked, is_met = _straight(script, guard)
    yield asked, (is_met,)
    match guard.test:
        case syntax.Comparison(left=left, comparisons=[syntax.ComparisonTarget(operator=compared, comparator=right)]):
            known = script.loops.guards.fixed(right)
            if known is not None and isinstance(compared, syntax.Equal if guard.is_met else syntax.NotEqual):
                yield script.text(left), (known.value,)


def _straight(script: Script, guard: Guard) -> tuple[str, bool]:
    """The text of a test, and how it must come out: that of ``x == y`` for ``x != y``."""
    match guard.test:
        case syntax.Comparison(
            left=left, comparisons=[syntax.ComparisonTarget(operator=syntax.Equal() | syntax.NotEqual() as asked) as target]
        ):
            text = f"{script.text(left)} == {script.text(target.comparator)}"
            return text, guard.is_met is isinstance(asked, syntax.Equal)
    return script.text(guard.test), guard.is_met
