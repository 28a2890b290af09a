"""What cannot be sent to a worker process where processes are spawned: lambdas, and functions within functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.semantics.names import Kind
from speedlint.semantics.values import returned

if TYPE_CHECKING:
    from speedlint.semantics.script import Script

_TAKEN_AT_ONCE = frozenset({"sorted", "min", "max"})
_DEEPEST = 4


def is_stuck(script: Script, expression: syntax.BaseExpression, depth: int = 0) -> bool:
    """Whether the value of an expression is, or holds, what pickle cannot find again by its name."""
    if depth > _DEEPEST:
        return False
    match expression:
        case syntax.Lambda():
            return True
        case syntax.Name():
            return _is_stuck_variable(script, expression, depth)
        case syntax.List(elements=elements) | syntax.Tuple(elements=elements):
            return any(is_stuck(script, element.value, depth) for element in elements)
        case syntax.Dict(elements=entries):
            return any(is_stuck(script, entry.value, depth) for entry in entries)
        case syntax.IfExp(body=body, orelse=orelse):
            return is_stuck(script, body, depth) or is_stuck(script, orelse, depth)
        case syntax.Call():
            return _is_stuck_result(script, expression, depth)
    return False


def _is_stuck_variable(script: Script, name: syntax.Name, depth: int) -> bool:
    for binding in script.names.reaching(name):
        if binding.kind is Kind.FUNCTION and script.source.enclosing(binding.node, syntax.FunctionDef) is not None:
            return True
        if binding.kind is Kind.ASSIGN and binding.value is not None and is_stuck(script, binding.value, depth + 1):
            return True
    return False


def _is_stuck_result(script: Script, call: syntax.Call, depth: int) -> bool:
    """Whether what a call makes of its arguments holds one of them, or a first-party function returns such a thing."""
    if script.name(call.func) in _TAKEN_AT_ONCE:
        return False
    callee = script.definition(call.func)
    if callee is not None and isinstance(callee.node, syntax.FunctionDef):
        return any(is_stuck(callee.script, value, depth + 1) for value in returned(callee))
    return any(is_stuck(script, arg.value, depth) for arg in call.args)
