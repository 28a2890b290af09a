"""Whether what workers send to the training arrives as it was: what pickle does not take, and what it makes anew."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.shapes.sync.reads import shown
from speedlint.solve.names import Kind
from speedlint.solve.terms import Definition
from speedlint.solve.values import returned
from speedlint.torch.words import Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_VIEWS = frozenset({"keys", "values", "items"})
_RECORDS = ("collections.namedtuple", "typing.NamedTuple")
_OF_TENSORS = frozenset({"grad", "data", "requires_grad", "names"})
"""Attributes of a tensor that torch knows of."""
_DEEPEST = 8


def lost(definition: Definition) -> str | None:
    """What a function gives back that no worker can send, or that arrives as something else, in a clause."""
    script, function = definition.script, definition.node
    if not isinstance(function, syntax.FunctionDef):
        return None
    if (clause := attribute_of_tensor(script, function.body)) is not None:
        return f"{clause}, which stays in the worker"
    return _of_function(definition, 0)


def attribute_of_tensor(script: Script, node: syntax.Node) -> str | None:
    """The attribute that code sets of a tensor, which no copy of that has, in a clause."""
    for target in script.source.inside(node, syntax.AssignTarget):
        attribute = target.target
        if not isinstance(attribute, syntax.Attribute) or attribute.attr.value in _OF_TENSORS:
            continue
        if _is_tensor(script, attribute.value):
            return f"`{shown(script, attribute)}` is an attribute of a tensor"
    return None


def is_unstacked(script: Script, collate: syntax.Node) -> bool:
    """Whether a collate function gives something of each item as it is: the list of items, or ``zip(*items)``."""
    if isinstance(collate, syntax.Lambda):
        return _is_of_each(script, collate.body, 0)
    if isinstance(collate, syntax.ClassDef):
        method = script.roles.calls.method(Definition(script, collate), "__call__")
        return method is not None and is_unstacked(method.script, method.node)
    if not isinstance(collate, syntax.FunctionDef):
        return False
    return any(_is_of_each(script, result, 0) for result in returned(Definition(script, collate)))


def _is_of_each(script: Script, result: syntax.BaseExpression, depth: int) -> bool:
    if depth > _DEEPEST:
        return True
    match result:
        case syntax.Name():
            bindings = script.names.reaching(result)
            return any(
                each.kind is Kind.PARAMETER or (each.value is not None and _is_of_each(script, each.value, depth + 1))
                for each in bindings
                if isinstance(each.value, syntax.BaseExpression) or each.kind is Kind.PARAMETER
            )
        case syntax.Call(func=syntax.Name("list" | "tuple"), args=[syntax.Arg(value=inner)]):
            return _is_of_each(script, inner, depth + 1)
        case syntax.Call(func=syntax.Name("zip")) | syntax.ListComp():
            return True
        case syntax.Tuple(elements=elements) | syntax.List(elements=elements) | syntax.Dict(elements=elements):
            return any(_is_of_each(script, each.value, depth + 1) for each in elements)
    return False


def _is_tensor(script: Script, node: syntax.BaseExpression) -> bool:
    if script.role(node) is Role.TENSOR:
        return True
    made = list(script.roles.origins(node))
    return bool(made) and all(
        isinstance(each, syntax.Call) and (other.name(each.func) or "").startswith("torch.") for other, each in made
    )


def _of_function(definition: Definition, depth: int) -> str | None:
    script, function = definition.script, definition.node
    if depth > _DEEPEST or not isinstance(function, syntax.FunctionDef):
        return None
    for yields in script.source.inside(function.body, syntax.Yield):
        if script.function(yields) is function:
            return f"`{definition.name}` gives a generator, which no worker can send"
    found = (_of_value(script, result, depth + 1) for result in returned(definition))
    return next((clause for clause in found if clause is not None), None)


def _of_value(script: Script, node: syntax.BaseExpression, depth: int) -> str | None:
    if depth > _DEEPEST:
        return None
    match node:
        case syntax.GeneratorExp() | syntax.Lambda():
            return f"no worker can send `{shown(script, node)}`"
        case syntax.Call():
            return _of_call(script, node, depth)
        case syntax.Name():
            values = (
                each.value
                for each in script.names.reaching(node)
                if each.kind is Kind.ASSIGN and not each.path and each.value
            )
            return _first(script, values, depth)
        case syntax.Tuple(elements=elements) | syntax.List(elements=elements):
            return _first(script, (each.value for each in elements), depth)
        case syntax.Dict(elements=entries):
            return _first(script, (each.value for each in entries), depth)
        case syntax.ListComp(elt=element) | syntax.DictComp(value=element):
            return _of_value(script, element, depth + 1)
        case syntax.IfExp(body=one, orelse=two) | syntax.BooleanOperation(left=one, right=two):
            return _first(script, (one, two), depth)
        case syntax.NamedExpr(value=value):
            return _of_value(script, value, depth + 1)
    return None


def _first(script: Script, nodes: Iterable[syntax.BaseExpression], depth: int) -> str | None:
    found = (_of_value(script, node, depth + 1) for node in nodes)
    return next((clause for clause in found if clause is not None), None)


def _of_call(script: Script, call: syntax.Call, depth: int) -> str | None:
    callee, definition, name = script.callee(call), script.definition(call.func), script.name(call.func)
    if definition is not None and isinstance(definition.node, syntax.ClassDef):
        around = definition.script.source.enclosing(definition.node, syntax.FunctionDef)
        return f"no worker can send a `{definition.name}`, a class of a function's own" if around is not None else None
    if callee is not None:
        return _of_function(callee, depth + 1)
    if name is None and isinstance(call.func, syntax.Attribute) and call.func.attr.value in _VIEWS and not call.args:
        return f"no worker can send `{shown(script, call)}`, a view of a dict"
    if name in ("open", "iter", "torch.Generator"):
        return f"no worker can send `{shown(script, call)}`"
    if isinstance(call.func, syntax.Name) and (other := _other_name(script, call.func)) is not None:
        return f"pickle looks for `{call.func.value}` under the name `{other}`"
    return _first(script, (arg.value for arg in call.args if isinstance(arg.value, syntax.Lambda)), depth)


def _other_name(script: Script, record: syntax.Name) -> str | None:
    """The name that a named tuple says it has, where it is not that of its variable."""
    for binding in script.names.reaching(record):
        made = binding.value
        if isinstance(made, syntax.Call) and script.name(made.func) in _RECORDS and made.args:
            said = script.constant(made.args[0].value)
            if said is None or said.value != record.value or script.function(made) is not None:
                return str(said.value) if said is not None else script.text(made.args[0].value)
    return None
