"""Scripts that end before they train, as they stand: something on the way to a line surely raises an error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.shapes.data import miscounted
from speedlint.solve import counts, off, stops
from speedlint.solve.flow import listed_once, once
from speedlint.solve.stops import Stop
from speedlint.torch.words import Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_DEEPEST = 4
_LEAVES = (syntax.Break, syntax.Continue, syntax.Return)


def why_not(script: Script, node: syntax.Node) -> str | None:
    """Why a program surely ends before it reaches a node, or in the first step that does, or in that of each training of it;
    None where it may not."""
    stop, when = _before(script, node, 0), "before it"
    if stop is None:
        stop, when = _in_first_step(script, node, 0) or _in_each_training(script), "in its first step"
    if stop is None:
        return None
    line = f"line {stop.place.source.line(stop.cause)}"
    where = line if stop.place is script else f"{line} of {stop.place.path.name}"
    return f"the script ends {when}, at {where}: {stop.why}"


@listed_once
def _stops(script: Script) -> Iterator[Stop]:
    """What surely raises in a script where it is run; a loop that does so in its first turn, and has one, by itself."""
    for stop in (*stops.within(script), *miscounted.within(script)):
        yield stop
        node: syntax.Node = stop.node
        while (loop := _entered(script, node)) is not None:
            yield stop._replace(node=loop)
            node = loop


def _entered(script: Script, node: syntax.Node) -> syntax.For | None:
    """The loop around a node that surely has a turn, each of whose turns comes to the node."""
    source = script.source
    loop = source.enclosing(node, syntax.For, syntax.While, syntax.FunctionDef, syntax.Lambda, syntax.Try)
    if not isinstance(loop, syntax.For) or next(script.order.under(node), None) is not loop.body:
        return None
    leaves = (each for kind in _LEAVES for each in source.inside(loop.body, kind) if source.order[each] < source.order[node])
    return loop if next(leaves, None) is None and _has_turns(script, loop) else None


def _has_turns(script: Script, loop: syntax.For) -> bool:
    """Whether a loop surely has a turn: over what is known to have elements, or counting the rows of a tensor."""
    if counts.turns(script, loop):
        return True
    match loop.iter:
        case syntax.Call(
            func=syntax.Name("range"),
            args=[
                syntax.Arg(
                    value=syntax.Call(func=syntax.Attribute(value=rows, attr=syntax.Name("size")))
                    | syntax.Call(func=syntax.Name("len"), args=[syntax.Arg(value=rows)])
                )
            ],
        ):
            return script.role(rows) in (Role.TENSOR, Role.BATCH)
    return False


def _before(script: Script, node: syntax.Node, depth: int) -> Stop | None:
    """What surely ends a program before a node runs: in its file, where an object of its class is made, or before each call
    of its function."""
    found = list(_stops(script))
    if script.order.surely((stop.node for stop in found), node):
        ahead = [stop for stop in found if script.order.may_run_before(stop.node, node)] or found
        by_default = (stop for stop in ahead if not off.is_off(script, stop.node))
        return next((stop for stop in ahead if script.order.runs_before(stop.node, node)), next(by_default, ahead[0]))
    function = script.function(node)
    if function is None or depth == _DEEPEST:
        return None
    return _before_function(script, function, depth)


def _in_first_step(script: Script, node: syntax.Node, depth: int) -> Stop | None:
    """What surely ends a program in the first turn of the loop of steps that a node is in, its own or that of each call."""
    if script.loops.driving_loop(node) is not None:
        for stop in _stops(script):
            is_in_it = script.source.contains(stop.node, node)
            is_followed = script.order.is_followed(node, [stop.node])
            if is_in_it or (is_followed and not script.order.runs_again(node, node, [stop.node])):
                return stop
    function = script.function(node)
    if function is None or depth == _DEEPEST:
        return None
    return _in_first_step_of(script, function, depth)


@once(None)
def _in_each_training(script: Script) -> Stop | None:
    """What surely ends each training of the program, at the latest in its first step: what it does before is for nothing."""
    return _each(
        _before(place, call, 0) or _in_first_step(place, call, 0)
        for place in script.everywhere(b".backward(")
        for call in place.method_calls("backward")
    )


@once(None)
def _in_first_step_of(script: Script, function: syntax.FunctionDef, depth: int) -> Stop | None:
    return _each(_in_first_step(other, call, depth + 1) for other, call in script.call_sites(function))


@once(None)
def _before_function(script: Script, function: syntax.FunctionDef, depth: int) -> Stop | None:
    owner = script.names.owner(function)
    if owner is not None and not function.decorators and (stop := stops.never_made(script, owner)) is not None:
        return stop
    return _each(_before(other, call, depth + 1) for other, call in script.call_sites(function))


def _each(found: Iterable[Stop | None]) -> Stop | None:
    """The first of what ends the calls of a function, where each of them ends."""
    first: Stop | None = None
    for stop in found:
        if stop is None:
            return None
        first = first if first is not None else stop
    return first
