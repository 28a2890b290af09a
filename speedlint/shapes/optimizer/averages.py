"""Moving averages of a module's parameters."""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes.optimizer import optimizers

_MIXES = frozenset({"mul_", "add_", "lerp_", "copy_"})


def is_average(script: Script, loop: syntax.For) -> bool:
    """Whether all that a loop does is to mix the parameters of one module into those of another, one after the other."""
    match loop:
        case syntax.For(
            target=syntax.Tuple(elements=[syntax.Element(value=first), syntax.Element(value=second)]),
            iter=syntax.Call(args=[syntax.Arg(value=left), syntax.Arg(value=right)]) as call,
            body=syntax.IndentedBlock(body=[syntax.SimpleStatementLine(body=[statement])]),
        ) if script.is_call_to(call, "zip"):
            names = [{name.value for name in _names(script, target)} for target in (first, second)]
            is_of_modules = all(optimizers.held_by(script, side) for side in (left, right))
            return is_of_modules and any(
                _mixes(script, statement, mixed, other) for mixed, other in (names, reversed(names))
            )
    return False


def _mixes(script: Script, statement: syntax.Node, mixed: set[str], other: set[str]) -> bool:
    """Whether a statement writes a mean of two variables into the first: one of the names it is known by."""
    match statement:
        case syntax.Expr(value=syntax.Call() as call):
            changes = list(_chain(call))
            told = [name.value for each in changes for arg in each.args for name in _names(script, arg)]
            methods = {each.func.attr.value for each in changes if isinstance(each.func, syntax.Attribute)}
            is_mean = methods != {"copy_"} or not mixed.isdisjoint(told)
            return methods <= _MIXES and is_mean and _root(changes[-1]) in mixed and not other.isdisjoint(told)
        case syntax.Assign(
            targets=[syntax.AssignTarget(target=syntax.Attribute(value=syntax.Name(kept), attr=syntax.Name("data")))],
            value=value,
        ):
            told = [name.value for name in _names(script, value)]
            return kept in mixed and kept in told and not other.isdisjoint(told)
    return False


def _chain(call: syntax.BaseExpression) -> Iterator[syntax.Call]:
    """The calls of methods on one another that change a tensor in place, the last one first, without ``detach``."""
    match call:
        case syntax.Call(func=syntax.Attribute(value=inner, attr=syntax.Name("detach"))):
            yield from _chain(inner)
        case syntax.Call(func=syntax.Attribute(value=inner)):
            yield call
            yield from _chain(inner)


def _root(call: syntax.Call) -> str | None:
    """The variable whose method, or whose data's, is called."""
    match call.func:
        case syntax.Attribute(value=syntax.Attribute(value=tensor, attr=syntax.Name("data"))):
            pass
        case syntax.Attribute(value=syntax.Call(func=syntax.Attribute(value=tensor, attr=syntax.Name("detach")))):
            pass
        case syntax.Attribute(value=tensor):
            pass
    return tensor.value if isinstance(tensor, syntax.Name) else None


def _names(script: Script, node: syntax.Node) -> list[syntax.Name]:
    return [node] if isinstance(node, syntax.Name) else list(script.source.inside(node, syntax.Name))
