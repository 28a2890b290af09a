"""How often validation, metrics and figures are made: each few steps, several times an epoch, each epoch."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes.evaluation import is_network
from speedlint.solve import options
from speedlint.solve.flow import once
from speedlint.solve.loops import Does
from speedlint.solve.names import Binding
from speedlint.solve.names import Kind as NameKind
from speedlint.solve.terms import Constant, Definition
from speedlint.torch.words import Frequency, Role

_INTERVAL = re.compile(
    r"(?:val|eval|test)\w*_(?:interval|freq|frequency|every|period|step|steps|epoch|epochs)$|^(?:interval|freq)_(?:val|eval)"
)
_OFTEN = 200
_DEPTH = 3
STEPS = 1000
"""How many steps a checkpoint may wait."""
EPOCHS = 10
"""How many epochs a metric or figure that few read each time may wait."""


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A call, and the loop over steps or epochs of its own function in which it is made."""

    call: syntax.Call
    loop: syntax.For | syntax.While


@dataclass(frozen=True, slots=True)
class Validation(Scheduled):
    """A call that runs a full pass over a loader."""

    callee: Definition


def scheduled(script: Script, call: syntax.Call) -> Scheduled | None:
    """The call with its loop; None where no loop of its own function steps or goes over the epochs of one training."""
    loop = _loop(script, call)
    if loop is None or not _is_of_one_training(script, loop):
        return None
    return Scheduled(call, loop)


@once(False)
def _is_of_one_training(script: Script, loop: syntax.For | syntax.While) -> bool:
    if script.loops.kind(loop) is Frequency.STEP:
        return True
    return script.loops.does(loop.body, Does.TRAINS | Does.MAKES_OPTIMIZER) == Does.TRAINS


def validation(script: Script, call: syntax.Call) -> Validation | None:
    """The validation that a call runs from within a training or epoch loop of its own function; None if it is none."""
    loop = _loop(script, call)
    callee = script.callee(call) if loop is not None else None
    if loop is None or callee is None or not isinstance(callee.node, syntax.FunctionDef):
        return None
    if callee.node.name.value == "forward":
        return None
    does = callee.script.loops.function_does(callee.node, Does.STEPS | Does.EVALUATES)
    if does != Does.EVALUATES or not any(
        callee.script.loops.function_does(callee.node, Does.NO_TRAINING) or callee.script.loops.iterates_loader(one)
        for one in full_passes(callee)
    ):
        return None
    return Validation(call, loop, callee)


def _loop(script: Script, node: syntax.Node) -> syntax.For | syntax.While | None:
    """The innermost loop around a node in its function that steps or goes over epochs."""
    up = script.source.enclosing(node, syntax.FunctionDef, syntax.For, syntax.While)
    return _stepping(script, up) if isinstance(up, (syntax.For, syntax.While)) else None


@once(None)
def _stepping(script: Script, loop: syntax.For | syntax.While) -> syntax.For | syntax.While | None:
    """The loop itself, where it steps or goes over epochs; else the innermost one around it in its function that does."""
    kind = script.loops.kind(loop)
    if kind is Frequency.EPOCH:
        return loop
    if kind is Frequency.STEP:
        return None if _trains_whole(script, loop) else loop
    return _loop(script, loop)


@once(False)
def _trains_whole(script: Script, loop: syntax.For | syntax.While) -> bool:
    """Whether each turn of a loop trains as a whole, or does not update anything."""
    return script.loops.does(loop.body, Does.TRAINS | Does.OPTIMIZER_STEP) != Does.OPTIMIZER_STEP


def full_passes(callee: Definition) -> Iterator[syntax.For]:
    """The loops of a function that go over a whole loader and run a network: nothing ends them early."""
    script = callee.script
    for loop in script.source.inside(callee.node, syntax.For):
        if script.loops.kind(loop) is not Frequency.EVAL_STEP:
            continue
        if any(True for _ in script.source.inside(loop.body, syntax.Break)):
            continue
        if any(
            script.name(call.func) in ("itertools.islice", "range") for call in script.source.inside(loop.iter, syntax.Call)
        ):
            continue
        if any(is_network(script, call) for call in script.source.inside(loop.body, syntax.Call)):
            yield loop


# Within the steps


def period(script: Script, one: Scheduled) -> Constant | None:
    """The known number of steps between two such calls; 1 where nothing throttles them; None where it is not known, as where
    only what beats the best so far leads to them."""
    guards = list(_guards(script, one))
    if is_for_best(script, one):
        return None
    if not guards and script.frequency(one.call) is Frequency.STEP:
        return Constant(1, script, one.call)
    divided = _divided(script, one)
    if divided is None or _counted_outside(script, divided, one.loop):
        return None
    return _divisor(script, divided)


def epochs(script: Script, one: Scheduled) -> Constant | None:
    """The known number of epochs between those in which each step makes such a call, ``if epoch % 10 == 0`` within the loop
    over batches and no other condition; None where it is made in every so many steps."""
    guards, divided = list(_guards(script, one)), _divided(script, one)
    if divided is None or len(guards) != 1 or any(True for _ in _skips(script, one)):
        return None
    match guards[0].test:
        case syntax.Comparison(left=left, comparisons=[syntax.ComparisonTarget(operator=syntax.Equal())]) if left is divided:
            pass
        case _:
            return None
    found = _divisor(script, divided) if _counts_epochs(script, divided, one.loop) else None
    return found if found is not None and isinstance(found.value, int) and found.value > 1 else None


def _divided(script: Script, one: Scheduled) -> syntax.BinaryOperation | None:
    """The remainder that a condition around a call asks for."""
    tests = (guard.test for guard in _guards(script, one))
    operations = (each for test in tests for each in script.source.inside(test, syntax.BinaryOperation))
    return next((each for each in operations if isinstance(each.operator, syntax.Modulo)), None)


def _divisor(script: Script, divided: syntax.BinaryOperation) -> Constant | None:
    constant = script.constant(divided.right)
    return constant if constant is not None and isinstance(constant.value, int) else None


def _counted_outside(
    script: Script, divided: syntax.BinaryOperation, loop: syntax.For | syntax.While
) -> list[tuple[Binding, syntax.For]]:
    """What binds the names of what is divided, each with the loop around the one over steps in which it does; none where
    anything binds one elsewhere."""
    names = script.source.inside(divided.left, syntax.Name)
    bound = [
        (binding, script.source.enclosing(binding.node, syntax.For))
        for name in names
        for binding in script.names.reaching(name)
    ]
    outside = [
        (binding, around)
        for binding, around in bound
        if isinstance(around, syntax.For) and around is not loop and script.source.contains(around.body, loop)
    ]
    return outside if len(outside) == len(bound) else []


def _counts_epochs(script: Script, divided: syntax.BinaryOperation, loop: syntax.For | syntax.While) -> bool:
    """Whether what is divided counts the epochs around the loop over steps, and nothing else."""
    outside = _counted_outside(script, divided, loop)
    return bool(outside) and all(
        binding.kind is NameKind.FOR and script.loops.kind(around) is Frequency.EPOCH for binding, around in outside
    )


@once(False)
def is_for_best(script: Script, one: Scheduled) -> bool:
    """Whether a call is made only where a result beats the best so far: that is as rare as such results, however often one
    looks."""
    tests = [*(guard.test for guard in _guards(script, one)), *_skips(script, one)]
    return any(_asks_for_best(script, test, one.loop.body) for test in tests)


def _skips(script: Script, one: Scheduled) -> Iterator[syntax.BaseExpression]:
    """The conditions of the loop's turn that jump over a call further down in their block."""
    for jump in (*script.source.inside(one.loop.body, syntax.Continue), *script.source.inside(one.loop.body, syntax.Break)):
        branch = script.source.enclosing(jump, syntax.If, syntax.For, syntax.While)
        if isinstance(branch, syntax.If) and script.order.may_run_before(branch.test, one.call):
            block = script.source.parents[branch]
            if script.source.contains(block, one.call) and not script.source.contains(branch, one.call):
                yield branch.test


def _asks_for_best(script: Script, test: syntax.Node, where: syntax.Node, depth: int = _DEPTH) -> bool:
    """Whether a condition compares a result with the best so far, which code ``where`` sets: itself, by a name that holds
    what the comparison gave, or in a function of the project's."""
    for comparison in script.source.inside(test, syntax.Comparison):
        if len(comparison.comparisons) != 1:
            continue
        if not isinstance(
            comparison.comparisons[0].operator,
            syntax.GreaterThan | syntax.LessThan | syntax.GreaterThanEqual | syntax.LessThanEqual,
        ):
            continue
        sides = comparison.left, comparison.comparisons[0].comparator
        if any(_is_record(script, best, other, where) for best, other in (sides, sides[::-1])):
            return True
    if not depth:
        return False
    for name in script.source.inside(test, syntax.Name):
        for binding in script.names.reaching(name):
            value = binding.value if binding.kind is NameKind.ASSIGN and not binding.path else None
            if value is None or not script.source.contains(where, value):
                continue
            if _asks_for_best(script, value, where, depth - 1):
                return True
    for call in script.source.inside(test, syntax.Call):
        callee = script.callee(call)
        body = callee.node.body if callee is not None and isinstance(callee.node, syntax.FunctionDef) else None
        if callee is not None and body is not None and _asks_for_best(callee.script, body, body, 0):
            return True
    return False


def _is_record(script: Script, best: syntax.BaseExpression, other: syntax.BaseExpression, where: syntax.Node) -> bool:
    """Whether ``best`` is the largest or smallest of a list, or is set to what it is compared with."""
    if isinstance(best, syntax.Call):
        return script.is_call_to(best, "max", "min") and len(best.args) == 1
    if not isinstance(best, syntax.Name | syntax.Attribute | syntax.Subscript):
        return False
    kept, result = script.text(best), script.text(other)
    for assign in script.source.inside(where, syntax.Assign):
        if any(script.text(target.target) == kept for target in assign.targets):
            written = [script.text(each) for each in _expressions(script, assign.value)]
            if result in written:
                return True
    return False


def _expressions(script: Script, value: syntax.BaseExpression) -> Iterator[syntax.BaseExpression]:
    yield value
    for kind in (syntax.Name, syntax.Attribute, syntax.Subscript, syntax.Call):
        yield from script.source.inside(value, kind)


def is_part_of_epoch(script: Script, one: Scheduled) -> bool:
    """Whether the steps between two such calls are the epoch's length divided by a number above 1."""
    for guard in _guards(script, one):
        for operation in script.source.inside(guard.test, syntax.BinaryOperation):
            if isinstance(operation.operator, syntax.Modulo):
                return any(_is_fraction(other, value) for other, value in script.roles.origins(operation.right))
    return False


def _is_fraction(script: Script, value: syntax.BaseExpression) -> bool:
    if not isinstance(value, syntax.BinaryOperation) or not isinstance(value.operator, (syntax.FloorDivide, syntax.Divide)):
        return False
    factors = [number for number in script.source.inside(value.right, syntax.Integer) if int(number.value, 0) > 1]
    return bool(factors) and script.role(value.left) is Role.NUMBER


def _guards(script: Script, one: Scheduled) -> Iterator[syntax.If]:
    for up in script.source.ancestors(one.call):
        if up is one.loop:
            return
        if isinstance(up, syntax.If):
            yield up


def is_often(steps: Constant) -> bool:
    """Whether so few steps between full validations make them a good part of the training."""
    return isinstance(steps.value, int) and steps.value <= _OFTEN


# Each epoch


def is_thinned(script: Script, one: Scheduled) -> bool:
    """Whether a condition on a number stands between the call and the epoch loop: some epochs go without."""
    return any(
        True
        for guard in _guards(script, one)
        for kind in (syntax.Comparison, syntax.BinaryOperation)
        for _ in script.source.inside(guard.test, kind)
    )


def is_conditional(script: Script, one: Scheduled) -> bool:
    """Whether a condition stands between the call and its loop, whatever it asks for."""
    child: syntax.Node = one.call
    for up in script.source.ancestors(one.call):
        if up is one.loop:
            return False
        if isinstance(up, syntax.If | syntax.IfExp) and child is not up.test:
            return True
        if isinstance(up, syntax.BooleanOperation) and child is up.right:
            return True
        child = up
    return False


def during_training(script: Script, function: syntax.FunctionDef, depth: int = _DEPTH) -> tuple[Script, syntax.Call] | None:
    """The call in the loop over steps or epochs of a training by which a function runs, itself or through others."""
    for other, call in script.call_sites(function):
        if other.frequency(call) >= Frequency.EPOCH and scheduled(other, call) is not None:
            return other, call
        caller = other.source.enclosing(
            call, syntax.FunctionDef, syntax.If, syntax.IfExp, syntax.BooleanOperation, syntax.Try
        )
        if (
            isinstance(caller, syntax.FunctionDef)
            and depth
            and (found := during_training(other, caller, depth - 1)) is not None
        ):
            return found
    return None


def scales(callee: Definition) -> syntax.For | None:
    """The loop within a full pass that runs the network again on each batch: at several scales, or flipped."""
    script = callee.script
    for outer in full_passes(callee):
        for inner in script.source.inside(outer.body, syntax.For):
            role = script.role(inner.iter)
            forward = any(is_network(script, call) for call in script.source.inside(inner.body, syntax.Call))
            named = "scale" in script.text(inner.iter).lower() or "scale" in script.text(inner.target).lower()
            if forward and named and role is not Role.BATCH:
                return inner
    return None


def unused_interval(script: Script) -> tuple[Script, syntax.Call, str] | None:
    """A command-line option for the interval of validation that the program parses, prints at most, and never uses."""
    return next(options.unused(script, _INTERVAL), None)
