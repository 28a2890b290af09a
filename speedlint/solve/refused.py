"""Trainings that can only run on the CPU: torch refuses on a GPU what they do in each epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.solve.flow import once
from speedlint.solve.loops import Does
from speedlint.solve.unpacking import written
from speedlint.torch.words import FREQUENT, Frequency, Place, Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_SAME_PLACE = frozenset("detach data squeeze flatten view reshape float".split())
"""What gives a tensor that lies where the one lies that it is asked of."""
_JUMPS = (syntax.Return, syntax.Continue, syntax.Break, syntax.Raise)
_CUDA = "cuda"
_MAY_NOT_RUN = (syntax.If, syntax.IfExp, syntax.BooleanOperation, syntax.Try, syntax.While, syntax.Lambda)


@once(False)
def on_gpu(script: Script) -> bool:
    """Whether a training of this script takes, in each epoch, the NumPy array of a tensor that it has just moved to the
    device of its choice, which raises a TypeError where that is a GPU: ``x = x.to(device)`` and ``x.detach().numpy()``."""
    devices = _devices_of_steps(script) if b".numpy()" in script.source.data else frozenset()
    return bool(devices) and any(
        _is_refused(script, call, devices) for call in script.method_calls("numpy") if not call.args
    )


def _devices_of_steps(script: Script) -> frozenset[str]:
    """What the batches of all training steps of a script are moved to, as it is written; empty where one goes elsewhere."""
    moved = [call for call in script.method_calls("to", "cuda") if script.frequency(call) is Frequency.STEP]
    places = [script.text(each.args[0].value) if each.args else _CUDA for each in moved if _is_of_batch(script, each)]
    return frozenset(places) if len(set(places)) == 1 else frozenset()


def _is_of_batch(script: Script, call: syntax.Call) -> bool:
    return isinstance(call.func, syntax.Attribute) and script.role(call.func.value) is Role.BATCH


def _is_refused(script: Script, call: syntax.Call, devices: frozenset[str]) -> bool:
    moved = _base(call)
    bindings = script.names.reaching(moved) if moved is not None and script.frequency(call) in FREQUENT else []
    return (
        len(bindings) == 1
        and _is_moved(script, written(bindings[0]), devices)
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


def _is_moved(script: Script, value: syntax.BaseExpression | None, devices: frozenset[str]) -> bool:
    """Whether a tensor of the batch is moved to where the training's batches are."""
    match value:
        case syntax.Call(func=syntax.Attribute(value=batch, attr=syntax.Name("cuda"))):
            place = _CUDA
        case syntax.Call(
            func=syntax.Attribute(value=batch, attr=syntax.Name("to")), args=[syntax.Arg(value=device, keyword=None)]
        ) if script.value(device).place is not Place.HOST:
            place = script.text(device)
        case _:
            return False
    return place in devices and script.role(batch) is Role.BATCH


def _surely_runs(script: Script, node: syntax.Node) -> bool:
    """Whether nothing decides whether a node runs in its function, but loops around it: no condition, and no jump before."""
    for up in script.source.ancestors(node):
        if isinstance(up, syntax.FunctionDef):
            jumps = (jump for kind in _JUMPS for jump in script.source.inside(up.body, kind) if jump.row < node.row)
            return not any(_may_pass_by(script, jump, node) for jump in jumps if script.function(jump) is up)
        if isinstance(up, _MAY_NOT_RUN):
            return False
    return False


def _may_pass_by(script: Script, jump: syntax.Node, node: syntax.Node) -> bool:
    """Whether a jump before a node may leave it out: it leaves the function, or a loop that the node stands in too."""
    if isinstance(jump, syntax.Return | syntax.Raise):
        return True
    loop = script.source.enclosing(jump, syntax.For, syntax.While)
    return loop is None or script.source.contains(loop, node)


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
