"""What a condition comes to, by what is known of the values in it: in every run, in the runs that are made, in one call."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from speedlint.facts import syntax

Values = tuple[object, ...]
"""What an expression may be, each once."""
Known = Callable[[syntax.BaseExpression], "Values | None"]
"""What is known of an expression that no operator makes; None where one of its values may be unknown."""
Value = TypeVar("Value")
SOME_OBJECT = object()
"""An object of which nothing is known but that it is no constant, such as None. Whether it counts as true is not known."""
_COMPARE: dict[type[syntax.BaseCompOp], Callable[[Any, Any], bool]] = {
    syntax.Equal: operator.eq,
    syntax.NotEqual: operator.ne,
    syntax.Is: operator.eq,
    syntax.IsNot: operator.ne,
    syntax.LessThan: operator.lt,
    syntax.LessThanEqual: operator.le,
    syntax.GreaterThan: operator.gt,
    syntax.GreaterThanEqual: operator.ge,
}
_OF_TEXT = {"lower": 0, "upper": 0, "casefold": 0, "strip": 0, "startswith": 1, "endswith": 1}
"""Methods of texts, and how many texts each is given."""


def values(expression: syntax.BaseExpression, known: Known) -> Values | None:
    """The values, of a condition truth values, that an expression may have; None where one may be unknown."""
    match expression:
        case syntax.UnaryOperation(operator=syntax.Not(), expression=inner):
            found = truths(inner, known)
            return None if found is None else each(not one for one in found)
        case syntax.BooleanOperation(left=left, operator=joined, right=right):
            return _joined(isinstance(joined, syntax.Or), truths(left, known), truths(right, known))
        case syntax.Comparison(left=left, comparisons=[syntax.ComparisonTarget(operator=asked, comparator=right)]):
            return _compared(values(left, known), asked, right, known)
        case syntax.IfExp(test=test, body=body, orelse=orelse):
            found = truths(test, known) or (True, False)
            return union(values(body if one else orelse, known) for one in found)
        case syntax.Call(func=syntax.Attribute(value=text, attr=syntax.Name(value=name)), args=args) if name in _OF_TEXT:
            given = [values(arg.value, known) if arg.keyword is None else None for arg in args]
            if (told := _asked_of_text(values(text, known), name, given)) is not None:
                return told
    return known(expression)


def truths(test: syntax.BaseExpression, known: Known) -> tuple[bool, ...] | None:
    """The truth values that a condition may have; None where one may be unknown."""
    found = values(test, known)
    return None if found is None or SOME_OBJECT in found else each(map(bool, found))


def truth(test: syntax.BaseExpression, known: Known) -> bool | None:
    """Whether a condition always holds (True), never does (False), or neither is known."""
    found = truths(test, known)
    return found[0] if found is not None and len(found) == 1 else None


def each(found: Iterable[Value]) -> tuple[Value, ...]:
    """Some values, each once."""
    return tuple(dict.fromkeys(found))


def union(found: Iterable[Values | None]) -> Values | None:
    """All that something may be by one of several ways; None where one is unknown, or there is none."""
    ways = list(found)
    known = [way for way in ways if way is not None]
    return each(itertools.chain.from_iterable(known)) if known and len(known) == len(ways) else None


def _asked_of_text(texts: Values | None, name: str, given: list[Values | None]) -> Values | None:
    """What a method of texts gives, such as ``lower``; None where one of its parts may be unknown, or is no text."""
    parts = [texts, *given]
    known = [part for part in parts if part is not None and all(isinstance(one, str) for one in part)]
    if len(known) < len(parts) or len(given) != _OF_TEXT[name]:
        return None
    return each(getattr(text, name)(*rest) for text, *rest in itertools.product(*known))


def _joined(deciding: bool, left: tuple[bool, ...] | None, right: tuple[bool, ...] | None) -> Values | None:
    """What ``and`` or ``or`` come to; ``deciding`` is the truth value of one side that decides."""
    if (deciding,) in (left, right):
        return (deciding,)
    if left is None or right is None:
        return None
    return each(deciding if deciding in pair else not deciding for pair in itertools.product(left, right))


def _compared(sides: Values | None, asked: syntax.BaseCompOp, right: syntax.BaseExpression, known: Known) -> Values | None:
    if isinstance(asked, (syntax.In, syntax.NotIn)):
        if sides is None or SOME_OBJECT in sides or not isinstance(right, (syntax.Tuple, syntax.List, syntax.Set)):
            return None
        among = [values(element.value, known) for element in right.elements]
        held = [value for some in among if some is not None for value in some]
        return None if None in among else each((side in held) is isinstance(asked, syntax.In) for side in sides)
    others, compare = values(right, known), _COMPARE.get(type(asked))
    if sides is None or others is None or compare is None:
        return None
    if SOME_OBJECT in (*sides, *others) and not (isinstance(asked, syntax.Is | syntax.IsNot) and SOME_OBJECT not in others):
        return None
    try:
        return each(bool(compare(one, other)) for one in sides for other in others)
    except TypeError:
        return None
