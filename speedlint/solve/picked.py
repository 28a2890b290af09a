"""What an object is made from in the runs that are made, where options choose among classes: ``LOSSES[args.loss]()``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.solve import off
from speedlint.solve.flow import listed_once
from speedlint.solve.terms import Definition
from speedlint.solve.values import returned

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_DEEPEST = 6
"""Functions and variables that are followed to where an object is made."""


@listed_once
def classes(script: Script, expression: syntax.BaseExpression) -> Iterator[Definition]:
    """The classes of the objects that an expression may be in the runs that are made; none where one is not known."""
    found = list(_made(script, expression, _DEEPEST))
    if None not in found:
        yield from dict.fromkeys(each for each in found if each is not None)


def _made(script: Script, expression: syntax.Node, depth: int) -> Iterator[Definition | None]:
    if not depth or off.is_off(script, expression):
        yield from () if depth else (None,)
        return
    match expression:
        case syntax.Call(func=func) if named := looked_up(script, func):
            for each in named:
                results = list(returned(each)) if each is not None and not isinstance(each.node, syntax.ClassDef) else []
                yield from () if results else (each,)
                for result in results:
                    yield from _made(each.script, result, depth - 1) if each is not None else ()
        case syntax.Call(func=syntax.Subscript() as table):
            for place, entry in _entries(script, table):
                yield place.definition(entry) if entry is not None else None
        case syntax.Call(func=func):
            kind = script.definition(func)
            if kind is None or isinstance(kind.node, syntax.ClassDef):
                yield kind
                return
            for result in returned(kind):
                yield from _made(kind.script, result, depth - 1)
        case syntax.IfExp(body=one, orelse=two):
            yield from (*_made(script, one, depth - 1), *_made(script, two, depth - 1))
        case syntax.Name() | syntax.Attribute():
            made = [(place, node) for place, node in script.roles.origins(expression) if node is not expression]
            for place, node in made:
                yield from _made(place, node, depth - 1)
            if not made:
                yield None
        case _:
            yield None


@listed_once
def looked_up(script: Script, function: syntax.BaseExpression) -> Iterator[Definition | None]:
    """The project's classes and functions that a call's function is, looked up in one of its modules by the names of the
    runs that are made: ``models.__dict__[args.model]``, ``getattr(models, args.model)``; None for a name of none of them."""
    match function:
        case syntax.Call(func=syntax.Name("getattr"), args=[syntax.Arg(value=module), syntax.Arg(value=key), *_]):
            pass
        case syntax.Subscript(
            value=syntax.Attribute(value=module, attr=syntax.Name("__dict__"))
            | syntax.Call(func=syntax.Name("vars"), args=[syntax.Arg(value=module)]),
            slice=[syntax.SubscriptElement(slice=syntax.Index(value=key))],
        ):
            pass
        case _:
            return
    dotted, keys = script.name(module), off.values(script, key)
    if dotted is None or keys is None or script.program.module(script, dotted) is None:
        return
    for name in keys:
        yield script.imported(f"{dotted}.{name}") if isinstance(name, str) and name.isidentifier() else None


def _entries(script: Script, chosen: syntax.Subscript) -> Iterator[tuple[Script, syntax.BaseExpression | None]]:
    """What ``TABLE[key]`` is by the keys of the runs that are made; None for what is not known."""
    index = chosen.slice[0].slice
    keys = off.values(script, index.value) if isinstance(index, syntax.Index) else None
    for place, table in script.roles.origins(chosen.value) if keys is not None else ():
        for entry in table.elements if isinstance(table, syntax.Dict) else ():
            known = place.constant(entry.key) if isinstance(entry, syntax.DictElement) else None
            if known is None:
                yield place, None
            elif keys is not None and known.value in keys:
                yield place, entry.value
    if keys is None:
        yield script, None
