"""Other reads of a tensor in the same step: where one of them stays, taking the first away gains nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes import worth
from speedlint.shapes.sync import clocks, conditions, hidden, reads, returned, shapes, streams
from speedlint.shapes.sync.accumulators import may_be_overwritten
from speedlint.shapes.sync.batchwise import row_loop
from speedlint.shapes.sync.waits import Wait
from speedlint.solve.flow import listed_once
from speedlint.solve.loops import Does
from speedlint.solve.terms import Definition
from speedlint.torch.words import FREQUENT, Frequency, Role

Read = Callable[[Script, "syntax.Call | syntax.Assign"], Iterable[syntax.BaseExpression]]
_MOST_CALLERS = 8
_PER_IMAGE = ("scipy.", "medpy.", "skimage.")
"""Libraries whose work on one image or volume takes the host longer than the wait for it."""
_ON_HOST = (*_PER_IMAGE, "sklearn.", "pandas.")


def awaited_anyway(script: Script, read: syntax.Node) -> str | None:
    """Why taking a read away gains nothing, whoever does it: something else in the same stretch of the step, which has to
    stay, waits for the GPU as long. None where nothing does."""
    if script.frequency(read) is Frequency.EVAL_STEP and (library := _library(script, read, _PER_IMAGE)) is not None:
        return f"nothing to gain: `{library}` computes with it on the host in each step"
    if (evaluation := _evaluation_beside(script, read)) is not None:
        return f"nothing to gain: `{evaluation}` runs the network again in each turn of the loop, and its results are read"
    found = _awaited_here(script, read)
    if found is not None or script.loops.driving_loop(read) is not None or _is_of_rows(script, read):
        return found
    callers = script.loops.callers(read)
    beside = [_awaited_here(other, call) for other, call in callers] if len(callers) <= _MOST_CALLERS else [None]
    return None if None in beside else next((f"{each}, where it is called" for each in beside), None)


def _evaluation_beside(script: Script, read: syntax.Node) -> str | None:
    """The function that each turn of the loop around a training step calls to evaluate the network, as where a step goes
    over all the data; None where no turn does, or only some do."""
    loop = script.loops.driving_loop(read)
    callers = script.loops.callers(read) if loop is None else []
    if len(callers) > _MOST_CALLERS:
        return None
    found = [_evaluates(other, each) for other, each in ([(script, read)] if loop is not None else callers)]
    return found[0] if found and None not in found else None


def _evaluates(script: Script, node: syntax.Node) -> str | None:
    """The function that evaluates the network whenever a node of a loop's turn runs."""
    loop = script.loops.driving_loop(node)
    if loop is None:
        return None
    lines = loop.body.body if isinstance(loop.body, syntax.IndentedBlock) else ()
    for line in lines:
        for call in script.source.inside(line, syntax.Call) if isinstance(line, syntax.SimpleStatementLine) else ():
            callee = script.callee(call)
            if callee is None or not isinstance(callee.node, syntax.FunctionDef):
                continue
            place, function = callee.script, callee.node
            sets_mode = any(place.source.contains(function, mode) for mode in place.method_calls("eval"))
            if not sets_mode or not runs_with(script, call, node):
                continue
            if place.loops.function_does(function, Does.STEPS | Does.FORWARD) == Does.FORWARD:
                return f"{reads.shown(script, call.func)}(...)"
    return None


def _awaited_here(script: Script, read: syntax.Node) -> str | None:
    """Why taking a read away gains nothing, as far as its own function shows."""
    around = script.loops.driving_loop(read) or script.function(read)
    if around is None:
        return None
    inner = _innermost_loop(script, read, around)
    stays = [
        each
        for each in _staying(script, around.body)
        if _is_beside(script, each.node, read) and script.source.contains(inner, each.node)
    ]
    stretch = worth.stretch(script, read) if stays else ""
    for each in stays:
        if worth.stretch(script, each.node) != stretch or not runs_with(script, each.node, read):
            continue
        if each.by_library and _library(script, read) is not None:
            continue
        line = script.source.line(each.node)
        return f"nothing to gain alone: `{reads.shown(script, each.node)}` on line {line} waits in any case"
    return None


def _is_of_rows(script: Script, read: syntax.Node) -> bool:
    """Whether a function reads once for each row of a tensor: a wait at its call is one beside many."""
    function = script.function(read)
    inner = _innermost_loop(script, read, function) if function is not None else None
    return isinstance(inner, syntax.For) and row_loop(script, inner) is not None


def _innermost_loop(script: Script, read: syntax.Node, around: syntax.Node) -> syntax.Node:
    """The loop within a step whose every turn reads; the step itself where none is around the read."""
    for up in script.source.ancestors(read):
        is_gone_over = isinstance(up, syntax.For) and script.source.contains(up.iter, read)
        if up is around or (isinstance(up, syntax.For | syntax.While) and not is_gone_over):
            return up
    return around


@listed_once
def _staying(script: Script, block: syntax.BaseSuite) -> Iterator[Wait]:
    yield from _staying_itself(script, block)
    for call in script.source.inside(block, syntax.Call):
        behind = hidden.behind(script, call, _staying_within) if not _gives_work(script, call) else []
        if any(_is_reached(each) for each in behind):
            yield Wait(script, call, call)
    for node, test in conditions.within(script, block):
        if conditions.decides_end(script, node):
            yield Wait(script, test, test)


def _gives_work(script: Script, call: syntax.Call) -> bool:
    """Whether a call may run a network or a loss: what waits behind it waits for what was queued before, and gives more."""
    callee = script.callee(call)
    if callee is None or not isinstance(callee.node, syntax.FunctionDef):
        return True
    owner = callee.script.names.owner(callee.node)
    if owner is not None and callee.script.roles.instance(Definition(callee.script, owner)).role is Role.MODULE:
        return True
    return worth.works(script, script.source.statement(call))


def _staying_itself(script: Script, block: syntax.BaseSuite) -> Iterator[Wait]:
    for call in script.source.inside(block, syntax.Call):
        if script.is_call_to(call, *streams.SYNCHRONIZE):
            if streams.needs_to_wait(script) or clocks.reads_clock(script, block):
                yield Wait(script, call, call)
        elif (tensor := reads.scalar(script, call) or reads.copied(script, call)) is not None:
            if _must_stay(script, call) and returned.needed(script, call) is None:
                yield Wait(script, call, tensor)
            elif _library(script, call) is not None:
                yield Wait(script, call, tensor, by_library=True)
        elif (tensor := _sized_anyway(script, call)) is not None:
            yield Wait(script, call, tensor)
    for subscript in script.source.inside(block, syntax.Subscript):
        if (tensor := _sized_anyway(script, subscript)) is not None:
            yield Wait(script, subscript, tensor)


def _sized_anyway(script: Script, node: syntax.Call | syntax.Subscript) -> syntax.BaseExpression | None:
    """What decides the size of a result that is needed as it is; None where a weight, or ``torch.where``, would do."""
    tensor = shapes.sized_by_values(script, node)
    return tensor if tensor is not None and not shapes.keeps_shape(script, node) else None


@listed_once
def _staying_within(script: Script, function: syntax.FunctionDef) -> Iterator[Wait]:
    """The waits of a function itself that stay, whatever it is given."""
    for each in _staying_itself(script, function.body):
        if not each.by_library and script.function(each.node) is function and _runs_always(script, each.node, function):
            yield each


def _is_reached(behind: hidden.Hidden[Wait]) -> bool:
    """Whether a wait behind a call is reached on each way, and waits for the GPU there."""
    script, call = behind.chain[-1]
    always = all(
        (function := where.function(inner)) is not None and _runs_always(where, inner, function)
        for where, inner in behind.chain[1:]
    )
    return always and behind.count != 0 and not behind.what.is_of_host(script, call)


def _runs_always(script: Script, node: syntax.Node, function: syntax.FunctionDef) -> bool:
    """Whether no branch of a function is around a node."""
    child = node
    for up in script.source.ancestors(node):
        if up is function:
            return True
        if isinstance(up, syntax.Lambda | syntax.ExceptHandler) or _is_branch(script, up, child):
            return False
        child = up
    return False


def _is_beside(script: Script, other: syntax.Node, read: syntax.Node) -> bool:
    return not script.source.contains(read, other) and not script.source.contains(other, read)


def _library(script: Script, read: syntax.Node, libraries: tuple[str, ...] = _ON_HOST) -> str | None:
    """The function, of one of some libraries that compute on the host, that a copy is handed to in the same step."""
    if not isinstance(read, syntax.Call):
        return None
    return next(
        (
            f"{reads.shown(where, taker.func)}(...)"
            for where, _, taker in reads.uses(script, reads.chain(script, read))
            if isinstance(taker, syntax.Call)
            and (where.name(taker.func) or "").startswith(libraries)
            and where.frequency(taker) in FREQUENT
        ),
        None,
    )


def _must_stay(script: Script, other: syntax.Call) -> bool:
    """Whether a read's value is needed at once, or is overwritten by the next step."""
    copied = reads.copied(script, other)
    if copied is not None and may_be_overwritten(script, copied):
        return True
    whole = reads.chain(script, other) if copied is not None else other
    return next(reads.needs(script, whole), None) is not None


def runs_with(script: Script, other: syntax.BaseExpression, read: syntax.Node) -> bool:
    """Whether ``other`` runs whenever ``read`` does: no branch stands around it alone."""
    if script.frequency(other) is not script.frequency(read):
        return False
    child: syntax.Node = other
    for up in script.source.ancestors(other):
        if script.source.contains(up, read):
            return not _is_branch(script, up, child)
        if isinstance(up, syntax.FunctionDef | syntax.Lambda | syntax.ClassDef | syntax.ExceptHandler) or _is_branch(
            script, up, child
        ):
            return False
        child = up
    return False


def _is_branch(script: Script, up: syntax.Node, child: syntax.Node) -> bool:
    """Whether a part of a node runs only under its condition; one that asks for a GPU holds where there is one."""
    match up:
        case syntax.If() | syntax.IfExp():
            return child is not up.test and not (child is up.body and script.loops.guards.asks_for_gpu(up.test) is True)
        case syntax.BooleanOperation():
            return child is up.right
    return False
