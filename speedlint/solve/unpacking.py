"""Values that are taken apart: what ``a, (b, c) = value`` gives each name, where the value is written out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.solve.names import Binding, Kind
from speedlint.torch import library

if TYPE_CHECKING:
    from speedlint.ask.script import Script

Path = tuple[int | None, ...]
"""See ``Binding.path``."""


def part(value: syntax.BaseExpression, path: Path) -> tuple[syntax.BaseExpression, Path]:
    """The part that a path leads to, as far as tuples and lists are written out, and the rest of the path."""
    while path and path[0] is not None and isinstance(value, (syntax.Tuple, syntax.List)):
        before = value.elements[: path[0] + 1]
        if len(before) <= path[0] or any(isinstance(each, syntax.StarredElement) for each in before):
            break
        value, path = before[-1].value, path[1:]
    return value, path


def written(binding: Binding) -> syntax.BaseExpression | None:
    """What an assignment gives its name, seen through ``a, b = x, y``; None where that is not written out."""
    if binding.kind is not Kind.ASSIGN or binding.value is None:
        return None
    value, rest = part(binding.value, binding.path)
    return None if rest else value


def all_written(bindings: Iterable[Binding]) -> list[syntax.BaseExpression]:
    """What assignments give their name, one of which it has; nothing where one of them is none or is not written out."""
    values = [written(binding) for binding in bindings]
    found = [value for value in values if value is not None]
    return found if len(found) == len(values) else []


def gone_over(script: Script, loop: syntax.For) -> Iterator[tuple[syntax.BaseExpression, syntax.BaseExpression]]:
    """What a loop binds, and what it goes over for it, through ``enumerate``, ``zip`` and bars of progress; what a method
    gives counts, what a function gives does not."""
    todo = [(loop.target, loop.iter)]
    while todo:
        target, iterated = todo.pop(0)
        if not isinstance(iterated, syntax.Call):
            yield target, iterated
            continue
        given = [arg.value for arg in iterated.args]
        parts = [each.value for each in target.elements] if isinstance(target, syntax.Tuple) else []
        name = script.name(iterated.func)
        if name == "enumerate" and len(parts) == 2 and given:
            todo.append((parts[1], given[0]))
        elif name == "zip" and len(parts) == len(given):
            todo += zip(parts, given, strict=True)
        elif name in library.PROGRESS and given:
            todo.append((target, given[0]))
        elif name is None and isinstance(iterated.func, syntax.Attribute):
            yield target, iterated


NEXT = ("__next__", "next")
"""Methods of an iterator that give what comes next; the second one that Python 2's had, and loaders' of old releases."""


def advanced(script: Script, node: syntax.Node | None) -> syntax.BaseExpression | None:
    """The iterator of which a call takes what comes next: ``x`` of ``next(x)``, ``x.__next__()``; None for anything else."""
    match node:
        case syntax.Call(func=syntax.Name("next"), args=[syntax.Arg(value=given, keyword=None, star=""), *_]):
            return given if script.is_call_to(node, "next") else None
        case syntax.Call(func=syntax.Attribute(value=given, attr=syntax.Name(name)), args=[]) if name in NEXT:
            return given
    return None


def key_of(subscript: syntax.Subscript) -> object:
    """The string or whole number by which an entry is taken, where it is written out; None where it is not."""
    match subscript.slice:
        case [syntax.SubscriptElement(slice=syntax.Index(value=syntax.SimpleString() as key))]:
            return str(key.evaluated_value)
        case [syntax.SubscriptElement(slice=syntax.Index(value=syntax.Integer() as index))]:
            return int(index.value, 0)
    return None
