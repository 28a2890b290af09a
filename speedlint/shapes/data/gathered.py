"""Batches that a training takes out of arrays or tensors of the host by itself, and copies to the GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes.data import batches
from speedlint.shapes.sync import creation, hidden, uploads
from speedlint.shapes.sync.streams import blocks
from speedlint.solve.flow import listed_once, once
from speedlint.solve.names import Binding, Kind
from speedlint.solve.unpacking import gone_over, written
from speedlint.torch.words import FREQUENT, Place, Role

_COPIES = (
    *(f"numpy.{name}" for name in "array asarray ascontiguousarray copy stack vstack".split()),
    *(f"torch.{name}" for name in "from_numpy as_tensor tensor Tensor FloatTensor LongTensor DoubleTensor".split()),
    *("list", "tuple"),
)
_SAME = creation.SAME | {"astype", "copy", "clone"}
_DEPTH = 3


_DRAWS = ("random.sample", "random.choices", "numpy.random.choice")


class Gathered(NamedTuple):
    """Rows of what the host holds.

    Attributes:
        holder: what they are taken out of, ``self.states`` in ``self.states[drawn]``.
        are_transitions: whether they are one part each of what was drawn from a replay memory, object by object:
            ``batch.state`` of ``batch = Transition(*zip(*random.sample(memory, 32)))``.
        are_given: whether they are the batches that a generator of the project's own gives as arrays, one in each step:
            ``images`` of ``for images, labels in made.next_epoch()``.
    """

    holder: syntax.BaseExpression
    are_transitions: bool = False
    are_given: bool = False


@once(None)
def gathered(script: Script, call: syntax.Call) -> Gathered | None:
    """What a call copies to the GPU, if it is rows of an array, or of a tensor on the host, which outlives the step."""
    made = uploads.of_data(script, call)
    if made is not None and made.args and not made.args[0].star:
        return _taken(script, made.args[0].value, _DEPTH) if made is call or blocks(call) else None
    match call.func:
        case syntax.Attribute(value=given, attr=syntax.Name(value=method)) if method in creation.MOVES and blocks(call):
            value = script.value(given)
            is_on_host = value.role is Role.TENSOR and value.place is Place.HOST and not value.assumed
            if is_on_host and script.name(call.func) is None and creation.target(script, call) is not None:
                return _taken(script, given, _DEPTH)
    return None


def _taken(script: Script, node: syntax.BaseExpression, depth: int) -> Gathered | None:
    if (drawn := _transitions(script, node)) is not None:
        return Gathered(drawn, are_transitions=True)
    match node:
        case syntax.Subscript(value=holder):
            is_held = _is_of_host(script, holder) and _outlives_step(script, holder)
            return Gathered(holder) if is_held and _takes_several(script, node) else None
        case syntax.Call(args=[syntax.Arg(value=inner, star=""), *rest]) if script.name(node.func) in _COPIES:
            return _taken(script, inner, depth) if all(each.keyword is not None for each in rest) else None
        case syntax.ListComp(for_in=syntax.CompFor(iter=part, inner_for_in=None)) if _is_of_each(script, node):
            return _of_part(script, part)
        case syntax.Call(args=[_, syntax.Arg(value=part, star="")]) if script.is_call_to(node, "map"):
            return _of_part(script, part)
        case syntax.Call(func=syntax.Attribute(value=inner, attr=syntax.Name(value=method))) if method in _SAME:
            return _taken(script, inner, depth) if script.name(node.func) is None else None
        case syntax.Name() if depth and len(bindings := script.names.reaching(node)) == 1:
            if bindings[0].kind is Kind.FOR:
                made = _generated(script, node, bindings[0])
                return Gathered(made, are_given=True) if made is not None else None
            given = written(bindings[0])
            return _taken(script, given, depth - 1) if given is not None else _handed_back(script, bindings[0], depth - 1)
    return None


def _handed_back(script: Script, binding: Binding, depth: int) -> Gathered | None:
    """What a method of a memory of the project's own takes out of it, of which a variable is one part:
    ``states, actions = memory.sample(64)``."""
    match binding.value:
        case syntax.Call(func=syntax.Attribute(value=holder)) as call if binding.path:
            parts = list(script.roles.parts_of(call, binding.path))
            taken = [_taken(place, part, depth) for place, part in parts]
            known = [each for each in taken if each is not None]
            if known and len(known) == len(taken):
                return Gathered(holder, are_transitions=any(each.are_transitions for each in known))
    return None


def _of_part(script: Script, part: syntax.BaseExpression) -> Gathered | None:
    """What is made of each entry of a part of what a replay memory has drawn."""
    drawn = _transitions(script, part)
    return Gathered(drawn, are_transitions=True) if drawn is not None else None


def _is_of_each(script: Script, listed: syntax.ListComp) -> bool:
    """Whether what a list is made of hangs on what it is made for."""
    targets = {name.value for name in script.source.inside(listed.for_in.target, syntax.Name)}
    return any(name.value in targets for name in script.source.inside(listed.elt, syntax.Name))


def _generated(script: Script, batch: syntax.Name, binding: Binding) -> syntax.Call | None:
    """The call of a generator of the project's own that the loop of steps goes over, where a variable is a batch of it."""
    loop = script.loops.driving_loop(batch)
    if not isinstance(loop, syntax.For) or not script.source.contains(loop.target, binding.node):
        return None
    made = next((over for target, over in gone_over(script, loop) if script.source.contains(target, binding.node)), None)
    callee = script.callee(made) if isinstance(made, syntax.Call) else None
    if not isinstance(made, syntax.Call) or callee is None or script.loops.iterates_loader(loop):
        return None
    return made if any(True for _ in callee.script.source.inside(callee.node, syntax.Yield)) else None


def _transitions(script: Script, node: syntax.BaseExpression) -> syntax.BaseExpression | None:
    """What was drawn from a replay memory, where an expression is one part of each of it; None for any other."""
    drawn: syntax.BaseExpression | None = None
    match node:
        case syntax.Attribute(value=syntax.Name() as batch) if len(bindings := script.names.reaching(batch)) == 1:
            match written(bindings[0]):
                case syntax.Call(args=[syntax.Arg(value=zipped, star="*")]):
                    drawn = _turned(script, zipped)
        case syntax.Name() if len(bindings := script.names.reaching(node)) == 1 and bindings[0].path:
            given = bindings[0].value
            if isinstance(given, syntax.Call) and script.is_call_to(given, "map") and len(given.args) == 2:
                given = given.args[1].value
            drawn = _turned(script, given)
        case syntax.ListComp(
            elt=syntax.Attribute(value=syntax.Name(value=each)) | syntax.Subscript(value=syntax.Name(value=each)),
            for_in=syntax.CompFor(target=syntax.Name(value=target), iter=whole, inner_for_in=None),
        ) if each == target:
            drawn = whole
        case syntax.ListComp(
            elt=syntax.Name(value=each),
            for_in=syntax.CompFor(target=syntax.Tuple() as target, iter=whole, inner_for_in=None),
        ) if any(name.value == each for name in script.source.inside(target, syntax.Name)):
            drawn = whole
    return drawn if drawn is not None and _is_drawn(script, drawn, _DEPTH) else None


def _turned(script: Script, node: syntax.BaseExpression | None) -> syntax.BaseExpression | None:
    match node:
        case syntax.Call(args=[syntax.Arg(value=rows, star="*")]) if script.is_call_to(node, "zip"):
            return rows
    return None


def _is_drawn(script: Script, node: syntax.BaseExpression, depth: int) -> bool:
    """Whether a list is drawn at random, there or by a function of the project that returns it."""
    calls = [(place, given) for place, given in script.roles.origins(node) if isinstance(given, syntax.Call)]
    if any(place.is_call_to(call, *_DRAWS) for place, call in calls):
        return True
    called = [callee for place, call in calls if depth and (callee := place.callee(call)) is not None]
    return any(
        _is_drawn(callee.script, back.value, depth - 1)
        for callee in called
        if isinstance(callee.node, syntax.FunctionDef)
        for back in callee.script.source.inside(callee.node.body, syntax.Return)
        if back.value is not None and callee.script.function(back) is callee.node
    )


def _is_of_host(script: Script, holder: syntax.BaseExpression) -> bool:
    value = script.value(holder)
    return value.role is Role.ARRAY or (value.role is Role.TENSOR and value.place is Place.HOST and not value.assumed)


def _outlives_step(script: Script, holder: syntax.BaseExpression) -> bool:
    """Whether an array was there before the step: an attribute, or a variable that no step binds."""
    if isinstance(holder, syntax.Attribute):
        return True
    bindings = script.names.reaching(holder) if isinstance(holder, syntax.Name) else []
    return bool(bindings) and all(script.frequency(each.node) not in FREQUENT for each in bindings)


def _takes_several(script: Script, rows: syntax.Subscript) -> bool:
    """Whether an index takes several rows that change from step to step: a slice with a bound that is no constant, or an
    array or list of places."""
    match rows.slice[0].slice:
        case syntax.Slice(lower=lower, upper=upper):
            return any(each is not None and script.constant(each) is None for each in (lower, upper))
        case syntax.Index(value=index):
            return script.role(index) in (Role.ARRAY, Role.SEQUENCE, Role.TENSOR)
    return False


def is_filled(script: Script, rows: Gathered) -> bool:
    """Whether rows of an array are set where its class, or the file, is written: it is filled while the training goes on."""
    if rows.are_transitions:
        return True
    holder = rows.holder
    around, text = script.source.enclosing(holder, syntax.ClassDef), script.text(holder)
    return any(
        isinstance(assign.target, syntax.Subscript) and script.text(assign.target.value) == text
        for assign in script.source.of(syntax.AssignTarget)
        if around is None or script.source.contains(around, assign)
    )


@listed_once
def copied(script: Script, function: syntax.FunctionDef) -> Iterator[hidden.SlowCall]:
    """The copies of batches, of a loader's or of such rows, in a function itself for which the host waits in every step, in
    source order."""
    for call in hidden.in_steps(script, function, syntax.Call):
        if (batches.moved(script, call) is not None and blocks(call)) or gathered(script, call) is not None:
            yield hidden.SlowCall(script, call)
