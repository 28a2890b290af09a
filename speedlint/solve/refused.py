"""Trainings that can only run on the CPU: torch refuses on a GPU what they do in each epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.solve.flow import once
from speedlint.solve.loops import Does
from speedlint.solve.names import last_name
from speedlint.solve.unpacking import written
from speedlint.torch.words import FREQUENT, Place, Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_SAME_PLACE = frozenset("detach data squeeze flatten view reshape float".split())
"""What gives a tensor that lies where the one lies that it is asked of."""
_MAY_NOT_RUN = (syntax.If, syntax.IfExp, syntax.BooleanOperation, syntax.Try, syntax.While, syntax.Lambda)


@once(False)
def on_gpu(script: Script) -> bool:
    """Whether a training of this script takes, in each epoch, the NumPy array of a tensor that it has just moved to the
    device of its choice, which raises a TypeError where that is a GPU: ``x = x.to(device)`` and ``x.detach().numpy()``."""
    return any(_is_refused(script, call) for call in script.method_calls("numpy") if not call.args)


def _is_refused(script: Script, call: syntax.Call) -> bool:
    moved = _base(call)
    bindings = script.names.reaching(moved) if moved is not None and script.frequency(call) in FREQUENT else []
    return (
        len(bindings) == 1
        and _is_moved(script, written(bindings[0]))
        and _surely_runs(script, call)
        and _is_part_of_training(script, call)
    )


def _base(call: syntax.Call) -> syntax.Name | None:
    """The variable whose tensor is asked for its array."""
    node: syntax.Node = call.func
    while not isinstance(node, syntax.Name):
        match node:
            case syntax.Attribute(value=value, attr=syntax.Name(value=name)) if name in _SAME_PLACE or node is call.func:
                node = value
            case syntax.Call(func=syntax.Attribute() as func):
                node = func
            case _:
                return None
    return node


def _is_moved(script: Script, value: syntax.BaseExpression | None) -> bool:
    match value:
        case syntax.Call(func=syntax.Attribute(value=batch, attr=syntax.Name("cuda"))):
            return script.role(batch) in (Role.BATCH, Role.TENSOR)
        case syntax.Call(
            func=syntax.Attribute(value=batch, attr=syntax.Name("to")), args=[syntax.Arg(value=device, keyword=None)]
        ):
            to, named = script.value(device), (last_name(device) or "").lower()
            is_chosen = to.role is Role.DEVICE or (to.role is Role.UNKNOWN and ("device" in named or "cuda" in named))
            return is_chosen and to.place is not Place.HOST and script.role(batch) in (Role.BATCH, Role.TENSOR)
    return False


def _surely_runs(script: Script, node: syntax.Node) -> bool:
    """Whether nothing around a node in its function decides whether it runs, but for loops."""
    for up in script.source.ancestors(node):
        if isinstance(up, syntax.FunctionDef):
            return True
        if isinstance(up, _MAY_NOT_RUN):
            return False
    return True


def _is_part_of_training(script: Script, node: syntax.Node) -> bool:
    """Whether a training of this script runs a node in each epoch: its own function trains, or one that calls it does."""
    function = script.function(node)
    if function is None or script.loops.function_does(function, Does.STEPS):
        return True
    for place, call in script.call_sites(function):
        caller = place.function(call)
        trains = caller is None or bool(place.loops.function_does(caller, Does.STEPS))
        if place is script and trains and _surely_runs(place, call):
            return True
    return False
