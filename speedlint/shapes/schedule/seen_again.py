"""Evaluations of what a training has gone over in the same epoch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from speedlint.facts import syntax
from speedlint.shapes.evaluation import is_evaluation
from speedlint.shapes.model.networks import is_loss
from speedlint.shapes.schedule.helpers import does_more
from speedlint.shapes.schedule.periods import Scheduled, full_passes
from speedlint.shapes.training import roots
from speedlint.solve import changing
from speedlint.solve.names import last_name
from speedlint.solve.reach import parameter_of
from speedlint.solve.terms import Definition
from speedlint.solve.unpacking import gone_over
from speedlint.solve.values import returned
from speedlint.source import is_target
from speedlint.torch.words import Frequency, Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_TELLS = frozenset(
    "print append extend eval train write info debug warning log set_postfix set_description add_scalar update".split()
)
"""Methods that gather results, tell of them, or set the mode of a network."""
_NUMBERS = (Role.NUMBER, Role.NONE, Role.STRING)


class _Read(NamedTuple):
    """A loader as it is written where it is read, or handed to what reads it."""

    script: Script
    loader: syntax.BaseExpression


def by_call(script: Script, one: Scheduled) -> syntax.BaseExpression | None:
    """The loader that a call evaluates over in each epoch for numbers alone, and that the training in the same epoch has
    gone over before; None where it is not known to be the same, or to have the same data."""
    callee = script.callee(one.call)
    if callee is None or not isinstance(callee.node, syntax.FunctionDef) or not _is_for_numbers(callee):
        return None
    if not all(is_evaluation(callee.script, each) for each in full_passes(callee)):
        return None
    if not _only_computes(callee.script, callee.node.body, callee.node):
        return None
    read = _by(script, one.call, Frequency.EVAL_STEP)
    return next((each.loader for each in read if _is_trained_on(each, script, one.loop, one.call)), None)


def by_loop(script: Script, loop: syntax.For) -> syntax.BaseExpression | None:
    """The same for a loop over a loader that stands in the loop over epochs itself."""
    outer = script.source.enclosing(loop, syntax.For, syntax.While, syntax.FunctionDef)
    if not isinstance(outer, syntax.For | syntax.While) or script.loops.kind(outer) is not Frequency.EPOCH:
        return None
    if any(True for _ in script.source.inside(loop.body, syntax.Break)) or not is_evaluation(script, loop):
        return None
    if not _is_measured(script, loop) or not _only_computes(script, loop.body, loop):
        return None
    read = (_Read(script, over) for _, over in gone_over(script, loop))
    return next((each.loader for each in read if _is_trained_on(each, script, outer, loop)), None)


def _networks(script: Script, code: syntax.Node) -> set[str]:
    """The networks that some code runs or hands on, losses left out, as they are written."""
    found = set[str]()
    for call in script.source.inside(code, syntax.Call):
        is_run = script.role(call.func) is Role.MODULE and not is_loss(script, call)
        named = [call.func] if is_run else []
        named += [arg.value for arg in call.args if script.role(arg.value) is Role.MODULE]
        found |= {script.text(each) for each in named if not _is_a_loss(script, each)}
    return found


def _is_a_loss(script: Script, module: syntax.BaseExpression) -> bool:
    """Whether a module is a loss of torch's, which is handed on as a network is."""
    made = [(place.name(node.func) or "") for place, node in roots(script, module) if isinstance(node, syntax.Call)]
    return bool(made) and all(each.startswith("torch.nn.") and each.endswith("Loss") for each in made)


def _only_computes(script: Script, code: syntax.Node, within: syntax.Node) -> bool:
    """Whether code changes nothing but variables of its own, and hands nothing to objects that may keep it."""
    for base, node in changing.written(script, code):
        if not isinstance(base, syntax.Name) or isinstance(node, syntax.AssignTarget):
            return False
        is_local = all(script.source.contains(within, each.node) for each in script.names.reaching(base))
        if not (is_local or isinstance(within, syntax.For)):
            return False
    for expression in script.source.inside(code, syntax.Expr):
        call = expression.value
        if isinstance(call, syntax.Call) and script.name(call.func) is None and last_name(call.func) not in _TELLS:
            return False
    return True


def _is_trained_on(read: _Read, script: Script, epochs: syntax.For | syntax.While, at: syntax.Node) -> bool:
    """Whether the training in a turn of a loop over epochs goes over all of a loader before a node, with the networks that
    run there, and nothing is set on an object in the turn, which may change its data, or on a part of a network, as one
    that is calibrated by the result."""
    source = script.source
    if any(isinstance(each.target, syntax.Attribute) for each in source.inside(epochs.body, syntax.AssignTarget)):
        return False
    added = (each.target for each in source.inside(epochs.body, syntax.AugAssign))
    if any(isinstance(each, syntax.Attribute) and script.role(each.value) is Role.MODULE for each in added):
        return False
    before: list[tuple[syntax.Node, Iterator[_Read]]] = [
        (each, _over(script, each, Frequency.STEP)) for each in source.inside(epochs.body, syntax.For)
    ]
    before += [(call, _by(script, call, Frequency.STEP)) for call in source.inside(epochs.body, syntax.Call)]
    return any(
        _are_one(read, each)
        for node, found in before
        if source.order[node] < source.order[at] and _networks(script, at) <= _networks(script, node)
        for each in found
    )


def _by(script: Script, call: syntax.Call, kind: Frequency) -> Iterator[_Read]:
    """What the loops of a kind in a function that a call runs go over: what it is handed, or has on itself."""
    callee = script.callee(call)
    if callee is None or not isinstance(callee.node, syntax.FunctionDef):
        return
    read = [
        each
        for loop in callee.script.source.inside(callee.node.body, syntax.For)
        for each in _over(callee.script, loop, kind)
    ]
    for arg in call.args:
        parameter = parameter_of(script, callee, call, arg)
        if parameter is not None and any(_is_bound_to(each, parameter) for each in read):
            yield _Read(script, arg.value)
    yield from (each for each in read if isinstance(each.loader, syntax.Attribute))


def _over(script: Script, loop: syntax.For, kind: Frequency) -> Iterator[_Read]:
    leaves = any(True for _ in script.source.inside(loop.body, syntax.Break))
    if script.loops.kind(loop) is kind and script.loops.iterates_loader(loop) and not leaves:
        yield from (_Read(script, over) for _, over in gone_over(script, loop))


def _is_bound_to(read: _Read, parameter: syntax.Param) -> bool:
    bindings = read.script.names.reaching(read.loader) if isinstance(read.loader, syntax.Name) else []
    return len(bindings) == 1 and bindings[0].node is parameter


def _are_one(read: _Read, other: _Read) -> bool:
    """Whether two places of one script read the same variable, or the same attribute of the object that has both."""
    if read.script is not other.script or read.script.text(read.loader) != other.script.text(other.loader):
        return False
    if isinstance(read.loader, syntax.Name) and isinstance(other.loader, syntax.Name):
        mine, theirs = ({each.node for each in read.script.names.reaching(it)} for it in (read.loader, other.loader))
        return bool(mine) and mine == theirs
    match read.loader:
        case syntax.Attribute(value=syntax.Name("self")):
            owner = read.script.source.enclosing(read.loader, syntax.ClassDef)
            return owner is other.script.source.enclosing(other.loader, syntax.ClassDef)
    return False


def _is_for_numbers(callee: Definition) -> bool:
    """Whether a function returns nothing but numbers."""
    place = callee.script
    for value in returned(callee):
        parts = [each.value for each in value.elements] if isinstance(value, syntax.Tuple) else [value]
        if any(place.role(part) not in _NUMBERS for part in parts):
            return False
    return True


def _is_measured(script: Script, loop: syntax.For) -> bool:
    """Whether what a loop gathers in lists or sums is only printed, or handed to functions that compute something of it."""
    gathered = [name for name in script.source.inside(loop.body, syntax.Name) if _is_gathered(script, name)]
    begun = {binding.node for name in gathered for binding in script.names.reaching(name)} | set(gathered)
    words = {name.value for name in gathered}
    read = (
        name
        for name in script.source.of(syntax.Name)
        if name.value in words and not script.source.contains(loop, name) and not is_target(script.source, name)
    )
    later = (name for name in read if any(binding.node in begun for binding in script.names.reaching(name)))
    return bool(gathered) and all(_is_computed_with(script, name) for name in later)


def _is_gathered(script: Script, name: syntax.Name) -> bool:
    """Whether a variable is added to: ``total += ...``, ``found.append(...)``."""
    match script.source.parents[name]:
        case syntax.AugAssign(target=target):
            return target is name
        case syntax.Attribute(value=value, attr=syntax.Name("append" | "extend")):
            return value is name
    return False


def _is_computed_with(script: Script, name: syntax.Name) -> bool:
    """Whether a variable is read in arithmetic or text, or handed to a function that does nothing but compute."""
    up = script.source.parents[name]
    call = script.source.parents[up] if isinstance(up, syntax.Arg) else None
    if isinstance(call, syntax.Call):
        return script.name(call.func) is not None or does_more(script, call) is None
    return isinstance(up, syntax.BinaryOperation | syntax.Comparison | syntax.FormattedStringExpression)
