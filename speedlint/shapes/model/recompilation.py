"""Loops whose turns each compile another module: which ones, and what differs from turn to turn."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from speedlint.facts import syntax
from speedlint.shapes.model.networks import RECURRENT_LAYERS
from speedlint.shapes.training import passed_through
from speedlint.solve.names import Kind
from speedlint.torch.words import Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script
    from speedlint.solve.names import Binding

_DEPTH = 4
_SIZE = re.compile(
    r"(?:^|_)(?:len(?:gth)?s?|seq\w*|(?:time_?)?steps|windows?|look_?backs?|horizons?|sizes?|widths?|heights?|resolutions?|dims?"
    r"|crops?|scales?|batch(?:es)?|bs|context|tokens|history)(?:_|$)|size$|length$|lens?$",
    re.IGNORECASE,
)
_NO_SIZE = re.compile(
    r"seed|fold|trial|split|rep|(?:^|_)(?:run|runs|idx|index|i|j|k|_|step|epoch|name|names|arch|cls)(?:_|$)", re.IGNORECASE
)


class Repeat(NamedTuple):
    """A loop in whose turns a module is made and compiled.

    Attributes:
        script, loop: the loop.
        sizes: what the turns differ in: the module's own arguments (True), or what it is fed (False).
    """

    script: Script
    loop: syntax.For
    sizes: bool


def repeated(script: Script, call: syntax.Call, module: syntax.BaseExpression) -> Repeat | None:
    """The loop in each turn of which ``call`` compiles a module that is made in that turn, and of another size."""
    made = [(place, node) for place, node in passed_through(script, module) if _constructs(place, node)]
    for place, loop, inside in _loops_around(script, call, 0):
        within = [(other, node) for other, node in made if _is_within(other, node, place, loop, inside)]
        if not made or len(within) < len(made) or not isinstance(loop, syntax.For):
            continue
        if any(_is_sized(other, node, place, loop) for other, node in within):
            return Repeat(place, loop, sizes=True)
        if _is_of_size(place, loop):
            return Repeat(place, loop, sizes=False)
    return None


def _constructs(script: Script, node: syntax.Node) -> bool:
    """Whether a call makes an object of a first-party class, or one of torch's layers."""
    if not isinstance(node, syntax.Call):
        return False
    definition = script.definition(node.func) or script.value(node.func).definition
    if definition is not None:
        return isinstance(definition.node, syntax.ClassDef) and script.role(node.func) is not Role.MODULE
    return (script.name(node.func) or "").startswith("torch.nn.") and not script.is_call_to(
        node, "torch.nn.DataParallel", "torch.nn.parallel.DistributedDataParallel"
    )


def begins_with_recurrence(script: Script, module: syntax.BaseExpression) -> bool:
    """Whether the first thing that a compiled module's ``forward`` does is to run an LSTM, GRU or RNN: the compiler refuses
    these and, with nothing before them in its graph, leaves the whole ``forward`` uncompiled."""
    made = [(place, node) for place, node in passed_through(script, module) if isinstance(node, syntax.Call)]
    return any(_runs_recurrence_first(place, node) for place, node in made)


def _runs_recurrence_first(script: Script, made: syntax.Call) -> bool:
    definition = script.definition(made.func) or script.value(made.func).definition
    forward = definition.script.roles.calls.method(definition, "forward") if definition is not None else None
    if forward is None:
        return False
    place = forward.script
    calls = [call for call in place.source.inside(forward.node, syntax.Call) if _computes(place, call)]
    first = next(
        (call for call in calls if not any(call is not other and place.source.contains(call, other) for other in calls)),
        None,
    )
    return first is not None and any(
        other.is_call_to(node, *RECURRENT_LAYERS) for other, node in place.roles.origins(first.func)
    )


def _computes(script: Script, call: syntax.Call) -> bool:
    """Whether a call computes with tensors, and does not only ask for a size."""
    name = script.name(call.func) or ""
    return name.startswith("torch.") or script.role(call.func) is Role.MODULE


def _loops_around(
    script: Script, node: syntax.Node, depth: int
) -> Iterator[tuple[Script, syntax.For | syntax.While, list[syntax.FunctionDef]]]:
    """The loops whose turns each run a node, innermost first, with the functions that it runs in within them."""
    child: syntax.Node = node
    for up in script.source.ancestors(node):
        if isinstance(up, syntax.FunctionDef) and child is up.body:
            for other, call in script.call_sites(up) if depth < _DEPTH else ():
                yield from ((place, loop, [up, *inside]) for place, loop, inside in _loops_around(other, call, depth + 1))
            return
        if isinstance(up, (syntax.ExceptHandler, syntax.Lambda)):
            return
        if isinstance(up, (syntax.For, syntax.While)) and child is up.body:
            yield script, up, []
        child = up


def _is_within(
    script: Script, node: syntax.Node, place: Script, loop: syntax.For | syntax.While, inside: list[syntax.FunctionDef]
) -> bool:
    """Whether a node runs in each turn of a loop: it stands in it, in a function within, or in one that is called there."""
    if script is place and script.source.contains(loop.body, node):
        return True
    function = script.function(node)
    if function is None or any(function is each for each in inside):
        return function is not None
    sites = script.call_sites(function)
    return bool(sites) and all(other is place and place.source.contains(loop.body, call) for other, call in sites)


def _is_sized(script: Script, made: syntax.Node, place: Script, loop: syntax.For) -> bool:
    """Whether an argument of a construction is made of what the loop goes over, and may be a size."""
    if not isinstance(made, syntax.Call) or any(_NO_SIZE.search(name) for name in _names(place, loop)):
        return False
    return any(_derives(script, arg.value, place, loop, 0) for arg in made.args)


def _derives(script: Script, expression: syntax.Node, place: Script, loop: syntax.For, depth: int) -> bool:
    """Whether an expression is made of the loop's variable, through variables and parameters."""
    if depth > _DEPTH:
        return False
    for name in script.source.inside(expression, syntax.Name):
        parent = script.source.parents[name]
        if (isinstance(parent, syntax.Attribute) and parent.attr is name) or (
            isinstance(parent, syntax.Arg) and parent.keyword is name
        ):
            continue
        if any(_binds(script, binding, place, loop, depth) for binding in script.names.reaching(name)):
            return True
    return False


def _binds(script: Script, binding: Binding, place: Script, loop: syntax.For, depth: int) -> bool:
    if script is place and place.source.contains(loop.target, binding.node):
        return (
            not isinstance(loop.iter, syntax.Call) or place.name(loop.iter.func) != "enumerate" or binding.path[:1] != (0,)
        )
    if binding.kind is Kind.PARAMETER and isinstance(binding.node, syntax.Param):
        passed = script.values.passed(binding.node)
        return any(value is not None and _derives(other, value, place, loop, depth + 1) for other, value in passed)
    if binding.kind is not Kind.ASSIGN or binding.value is None:
        return False
    if isinstance(binding.value, syntax.Call) and script is place and not place.source.contains(loop.body, binding.node):
        return False
    return _derives(script, binding.value, place, loop, depth + 1)


def _is_of_size(script: Script, loop: syntax.For) -> bool:
    """Whether a loop goes over sizes of the data, by its names, and uses them."""
    if not any(_SIZE.search(name) for name in _names(script, loop)):
        return False
    if any(_NO_SIZE.search(name.value) for name in script.source.inside(loop.target, syntax.Name)):
        return False
    targets = {name.value for name in script.source.inside(loop.target, syntax.Name)}
    return any(
        name.value in targets and script.source.enclosing(name, syntax.FormattedString) is None
        for name in script.source.inside(loop.body, syntax.Name)
    )


def _names(script: Script, loop: syntax.For) -> Iterator[str]:
    """The names of a loop's variables, and of the list that it goes over."""
    yield from (name.value for name in script.source.inside(loop.target, syntax.Name))
    iterated = loop.iter
    if isinstance(iterated, syntax.Attribute):
        yield iterated.attr.value
    elif isinstance(iterated, syntax.Name):
        yield iterated.value
