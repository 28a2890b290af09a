"""How many bytes an item of a dataset has, where the script shows what it is made of."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.shapes.data.datasets import Origin
from speedlint.shapes.data.rows import COPIES, KEEP_ROWS, SIZED, TENSOR_DATASETS
from speedlint.solve.values import returned
from speedlint.torch.words import Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_BYTES = 8
"""Bytes of the widest number that a tensor usually holds."""
_DEPTH = 8
_OF_COLUMN = ("values", "to_numpy", "tolist", "to_list")


def of_item(origin: Origin) -> int | None:
    """The bytes of an item at most; None where they are not known."""
    if origin.definition is not None:
        return _of_items(origin)
    if origin.name not in TENSOR_DATASETS or not isinstance(origin.node, syntax.Call) or not origin.node.args:
        return None
    if any(arg.star or arg.keyword for arg in origin.node.args):
        return None
    return _sum([_row(origin.script, arg.value, None, 0) for arg in origin.node.args])


def _of_items(origin: Origin) -> int | None:
    """The bytes of what ``__getitem__`` of a first-party dataset returns."""
    assert origin.definition is not None
    method = origin.definition.script.roles.calls.method(origin.definition, "__getitem__")
    values = list(returned(method)) if method is not None else []
    if method is None or not values:
        return None
    found = [_of_value(method.script, value, origin, 0) for value in values]
    return None if None in found else max(each for each in found if each is not None)


def _of_value(script: Script, node: syntax.BaseExpression, origin: Origin, depth: int) -> int | None:
    """The bytes of a part of an item."""
    if depth > _DEPTH:
        return None
    if script.role(node) is Role.NUMBER:
        return _BYTES
    match node:
        case syntax.Tuple(elements=elements) | syntax.List(elements=elements):
            if any(isinstance(each, syntax.StarredElement) for each in elements):
                return None
            return _sum([_of_value(script, each.value, origin, depth + 1) for each in elements])
        case syntax.Dict(elements=entries):
            if any(isinstance(each, syntax.StarredDictElement) for each in entries):
                return None
            return _sum([_of_value(script, each.value, origin, depth + 1) for each in entries])
        case syntax.Call(func=syntax.Attribute(value=inner, attr=syntax.Name(value=method))) if (
            script.name(node.func) is None and method in KEEP_ROWS
        ):
            return _of_value(script, inner, origin, depth + 1)
        case syntax.Call(args=[first, *_]) if script.name(node.func) in COPIES and not first.star:
            return _of_value(script, first.value, origin, depth + 1)
        case syntax.Subscript(value=held, slice=[syntax.SubscriptElement(slice=syntax.Index(value=syntax.Name()))]):
            return _row(script, held, origin, depth + 1)
        case syntax.Name():
            bindings = script.names.reaching(node)
            if len(bindings) == 1 and not bindings[0].path and bindings[0].value is not None:
                return _of_value(script, bindings[0].value, origin, depth + 1)
    return None


def _row(script: Script, node: syntax.BaseExpression, origin: Origin | None, depth: int) -> int | None:
    """The bytes of one row of a tensor, array or list."""
    if depth > _DEPTH:
        return None
    if _is_column(script, node):
        return _BYTES
    match node:
        case syntax.Attribute(value=syntax.Name("self"), attr=syntax.Name(value=name)) if (
            origin is not None and origin.definition is not None
        ):
            assigned = list(script.roles.self_assignments(origin.definition, name))
            return _row(*assigned[0], origin, depth + 1) if len(assigned) == 1 else None
        case syntax.Name():
            bindings = script.names.reaching(node)
            if len(bindings) != 1 or bindings[0].path:
                return None
            if isinstance(bindings[0].node, syntax.Param):
                given = _given(script, bindings[0].node, origin)
                return _row(origin.script, given, None, depth + 1) if origin is not None and given is not None else None
            value = bindings[0].value
            return _row(script, value, origin, depth + 1) if value is not None else None
        case syntax.List(elements=elements) if elements:
            return _BYTES if all(script.role(each.value) is Role.NUMBER for each in elements) else None
        case syntax.Call(func=syntax.Attribute(value=inner, attr=syntax.Name(value=method))) if (
            script.name(node.func) is None and method in KEEP_ROWS
        ):
            return _row(script, inner, origin, depth + 1)
        case syntax.Call(args=[first, *_]) if script.name(node.func) in COPIES and not first.star:
            return _row(script, first.value, origin, depth + 1)
        case syntax.Call():
            return _of_made(script, node)
    return None


def _of_made(script: Script, call: syntax.Call) -> int | None:
    """The bytes of a row of ``torch.zeros(n, 16)``: all dimensions but the first have to be known."""
    name = script.name(call.func)
    sizes = [arg.value for arg in call.args if arg.keyword is None]
    if any(arg.star for arg in call.args) or not sizes:
        return None
    given = [each for each in sizes if isinstance(each, (syntax.Tuple, syntax.List))]
    if name in ("torch.randint", "numpy.random.randint") or (name in SIZED and given):
        if len(given) != 1 or any(isinstance(each, syntax.StarredElement) for each in given[0].elements):
            return None
        sizes = [each.value for each in given[0].elements]
    elif name not in SIZED or name == "numpy.random.normal":
        return None
    known = [script.constant(each) for each in sizes[1:]]
    numbers = [each.value for each in known if each is not None and isinstance(each.value, int)]
    return _BYTES * prod(numbers) if len(numbers) == len(known) else None


def _is_column(script: Script, node: syntax.BaseExpression) -> bool:
    """Whether an expression is one column of a table of pandas: ``table["user"].values``."""
    match node:
        case syntax.Call(func=syntax.Attribute() as read, args=[]):
            pass
        case syntax.Attribute() as read:
            pass
        case _:
            return False
    match read:
        case syntax.Attribute(
            value=syntax.Subscript(
                value=table, slice=[syntax.SubscriptElement(slice=syntax.Index(value=syntax.SimpleString()))]
            ),
            attr=syntax.Name(value=name),
        ) if name in _OF_COLUMN:
            made = list(script.roles.origins(table))
            return bool(made) and all((place.name(_made_by(each)) or "").startswith("pandas.") for place, each in made)
    return False


def _made_by(node: syntax.BaseExpression) -> syntax.BaseExpression:
    return node.func if isinstance(node, syntax.Call) else node


def _given(script: Script, parameter: syntax.Param, origin: Origin | None) -> syntax.BaseExpression | None:
    """What the construction of a dataset passes for a parameter of its ``__init__``."""
    function = script.source.enclosing(parameter, syntax.FunctionDef)
    if origin is None or not isinstance(origin.node, syntax.Call) or not isinstance(function, syntax.FunctionDef):
        return None
    if function.name.value != "__init__":
        return None
    return script.values.given(function, parameter, origin.script, origin.node)


def _sum(parts: list[int | None]) -> int | None:
    return None if None in parts else sum(each for each in parts if each is not None)
