"""Operations on numbers, strings and lists that are free of effects, within a budget of work and memory."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

from speedlint.facts import syntax

_LONGEST = 4096
_HIGHEST = 1 << 40


class _Unknown:
    """A value that is not known."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Any = _Unknown()
NOTHING: Any = _Unknown()
"""What a value that depends on itself is."""

ARITHMETIC: dict[type[object], Callable[[Any, Any], Any]] = {
    syntax.Add: operator.add,
    syntax.Subtract: operator.sub,
    syntax.Multiply: operator.mul,
    syntax.FloorDivide: operator.floordiv,
    syntax.Modulo: operator.mod,
}
COMPARISONS: dict[type[object], Callable[[Any, Any], Any]] = {
    syntax.Equal: operator.eq,
    syntax.NotEqual: operator.ne,
    syntax.LessThan: operator.lt,
    syntax.LessThanEqual: operator.le,
    syntax.GreaterThan: operator.gt,
    syntax.GreaterThanEqual: operator.ge,
    syntax.In: lambda a, b: a in b,
    syntax.NotIn: lambda a, b: a not in b,
}
LEAVE_ALONE = frozenset(
    "len print range enumerate zip list tuple set sorted reversed iter isinstance int float str repr min max sum abs any "
    "all bool dict type id hash".split()
)
"""Builtins that do not change what they are given."""
_REDUCTIONS: dict[str, Callable[..., Any]] = {"int": int, "abs": abs, "min": min, "max": max, "sum": sum}


class UnfoldableError(Exception):
    """A statement that is not known, or too much work."""


class Budget:
    """So much work; what is computed is charged by its size before anything else is done with it."""

    def __init__(self, left: int) -> None:
        self._left = left

    def charge(self, work: int) -> None:
        """Raises UnfoldableError where the budget is spent."""
        self._left -= work
        if self._left < 0:
            raise UnfoldableError

    def kept(self, value: Any) -> Any:
        """A value that has been computed, its parts charged. Raises UnfoldableError."""
        todo = [value]
        while todo:
            self.charge(1)
            each = todo.pop()
            if isinstance(each, str):
                self.charge(len(each) // 16)
            elif isinstance(each, (list, tuple)):
                self.charge(len(each))
                todo += [part for part in each if isinstance(part, (list, tuple, dict, str))]
            elif isinstance(each, dict):
                todo += each.values()
            elif isinstance(each, int) and abs(each) > _HIGHEST:
                raise UnfoldableError
        return value

    def apply(self, function: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
        """The result of an operator: on numbers, on two of one kind that are joined or compared."""
        for side in (left, right):
            if side is UNKNOWN or side is NOTHING:
                return side
            self.kept(side)
        numbers = all(isinstance(side, (int, float)) for side in (left, right))
        joins = function is operator.add and type(left) is type(right) and isinstance(left, (list, tuple, str))
        if not numbers and not joins and function not in COMPARISONS.values():
            return UNKNOWN
        return self.kept(function(left, right))

    def builtin(self, name: str, given: list[Any]) -> Any:
        """What a library's function, by its full name, returns; UNKNOWN for one that is not known."""
        first = given[0] if given else None
        match name:
            case "len" if isinstance(first, (list, tuple, str, dict)):
                return len(first)
            case "range" | "numpy.arange" | "torch.arange" if all(isinstance(each, int) for each in given):
                return list(range(*given)) if len(range(*given)) <= _LONGEST else UNKNOWN
            case "list" | "tuple" | "sorted" | "reversed" | "set" | "iter" if isinstance(first, (list, tuple, dict, str)):
                made = list(dict.fromkeys(first)) if name == "set" else list(first)
                made = sorted(made) if name == "sorted" else made[::-1] if name == "reversed" else made
                return tuple(made) if name == "tuple" else made
            case "enumerate" if isinstance(first, (list, tuple, str)):
                return list(enumerate(first))
            case "itertools.combinations" | "itertools.permutations" | "itertools.product" if isinstance(
                first, (list, tuple)
            ):
                return self._listed(getattr(itertools, name.partition(".")[2])(*given))
            case "zip" if all(isinstance(each, (list, tuple)) for each in given):
                return list(zip(*given))  # noqa: B905
            case "int" | "abs" | "min" | "max" | "sum" if given:
                return _REDUCTIONS[name](*given)
            case "torch.nn.ModuleList" if isinstance(first, (list, tuple)):
                return first
            case "torch.nn.Sequential":
                return given
        return UNKNOWN

    def _listed(self, several: Any) -> list[Any]:
        found = []
        for each in several:
            self.charge(len(each) + 1)
            found.append(each)
        return found
