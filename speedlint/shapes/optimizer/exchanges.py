"""Gradients that several processes exchange after every backward pass, although the optimizer waits for several of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes import training
from speedlint.solve.loops import Does, Loop
from speedlint.torch.words import Frequency, Role

_WRAPPERS = ("torch.nn.parallel.DistributedDataParallel",)
_CARES = (b"no_sync", b"require_backward_grad_sync", b"delay_allreduce", b"accelerate", b"deepspeed")


@dataclass(frozen=True, slots=True)
class Gathering:
    """A backward pass in each turn of a loop that steps its optimizer every few turns.

    Attributes:
        count: how many backward passes one step takes, as written; None where that is not seen.
    """

    count: syntax.BaseExpression | None


def is_distributed(script: Script) -> bool:
    """Whether the program wraps a model so that backward passes exchange gradients, and never holds that back."""
    if training.is_framework_driven(script):
        return False
    if any(mark in place.source.data for place in script.everywhere(*_CARES) for mark in _CARES):
        return False
    return any(True for _ in script.calls_everywhere(*_WRAPPERS))


def gathering(script: Script, call: syntax.Call) -> Gathering | None:
    """How a call gathers gradients over several batches, where it makes a backward pass in each of them; else None."""
    is_backward = isinstance(call.func, syntax.Attribute) and call.func.attr.value == "backward"
    if not is_backward and not any(isinstance(arg.value, syntax.Comparison) for arg in call.args):
        return None
    loop = script.loops.driving_loop(call)
    if loop is None or script.frequency(call) is not Frequency.STEP:
        return None
    if is_backward:
        return _between_guarded_steps(script, loop, call) or _in_micro_batches(script, loop)
    return _by_a_function(script, call)


def is_first(script: Script, call: syntax.Call) -> bool:
    """Whether no other such call stands above in the same loop, as in the other branch of ``if use_amp``."""
    loop = script.loops.driving_loop(call)
    above = script.source.inside(loop.body, syntax.Call) if loop is not None else iter(())
    order = script.source.order
    return not any(order[other] < order[call] and gathering(script, other) is not None for other in above)


def _between_guarded_steps(script: Script, loop: Loop, backward: syntax.Call) -> Gathering | None:
    """``if (step + 1) % n == 0: optimizer.step()`` beside a backward pass in every turn."""
    counts = [_count_around(script, step, loop, backward) for step in _optimizer_steps(script, loop)]
    return counts[0] if counts and all(count is not None for count in counts) else None


def _optimizer_steps(script: Script, block: syntax.Node) -> Iterator[syntax.Call]:
    for call in script.method_calls("step"):
        if isinstance(call.func, syntax.Attribute) and script.source.contains(block, call):
            role = script.role(call.func.value)
            if role is Role.OPTIMIZER or (role is Role.SCALER and call.args):
                yield call


def _count_around(script: Script, step: syntax.Call, loop: Loop, backward: syntax.Call) -> Gathering | None:
    """What the condition around a step counts to that is not around the backward pass too."""
    child: syntax.Node = step
    for up in script.source.ancestors(step):
        if up is loop or script.source.contains(up, backward):
            return None
        if isinstance(up, syntax.If) and child is up.body and (found := _counted(script, up.test)) is not None:
            return found
        child = up
    return None


def _counted(script: Script, test: syntax.BaseExpression) -> Gathering | None:
    """What a condition such as ``(step + 1) % n == 0`` counts to, seen through a variable and ``or step + 1 == last``."""
    for place, value in ((script, test), *script.roles.origins(test)):
        for operation in place.source.inside(value, syntax.BinaryOperation):
            if isinstance(operation.operator, syntax.Modulo) and place.role(operation.left) is not Role.STRING:
                return Gathering(operation.right if place is script else None)
    return None


def _in_micro_batches(script: Script, loop: Loop) -> Gathering | None:
    """``for _ in range(n): loss.backward()``, then one step."""
    outer = script.loops.driving_loop(loop)
    if outer is None or script.loops.does(loop.body, Does.OPTIMIZER_STEP) or not script.loops.accumulates(outer):
        return None
    match loop:
        case syntax.For(iter=syntax.Call(args=[syntax.Arg(value=count)]) as counted) if script.is_call_to(counted, "range"):
            return Gathering(count)
    return Gathering(None)


def _by_a_function(script: Script, call: syntax.Call) -> Gathering | None:
    """``scaler(loss, optimizer, update_grad=(step + 1) % n == 0)``, where the function steps only if it is told to."""
    counts = script.loops.guards.counts_steps
    told = [arg for arg in call.args if isinstance(arg.value, syntax.Comparison) and counts(arg.value)]
    callee = script.callee(call) if told else None
    if callee is None or not isinstance(callee.node, syntax.FunctionDef) or told[0].keyword is None:
        return None
    does = callee.script.loops.function_does(callee.node, Does.STEPS)
    if not does & Does.BACKWARD or not does & Does.OPTIMIZER_STEP:
        return None
    parameter = told[0].keyword.value
    for branch in callee.script.source.inside(callee.node, syntax.If):
        is_asked = isinstance(branch.test, syntax.Name) and branch.test.value == parameter
        if is_asked and any(True for _ in _optimizer_steps(callee.script, branch.body)):
            return _counted(script, told[0].value)
    return None


def known(script: Script, found: Gathering) -> int | None:
    """How many backward passes one step takes, where that is known."""
    constant = script.constant(found.count) if found.count is not None else None
    return constant.value if constant is not None and isinstance(constant.value, int) else None


def may_be_each(script: Script, found: Gathering) -> bool:
    """Whether the count is 1, or 1 where nothing else is said: the optimizer then steps after each backward pass."""
    if found.count is None:
        return False
    made = [(script, found.count), *script.roles.origins(found.count), *_defaults(script, found.count)]
    known = [constant.value for place, value in made if (constant := place.constant(value)) is not None]
    return any(isinstance(number, int) and number < 2 for number in known)


def _defaults(script: Script, count: syntax.BaseExpression) -> Iterator[tuple[Script, syntax.BaseExpression]]:
    """The defaults of the parameters that a count is, or that ``__init__`` keeps as the attribute it is."""
    held = [(script, count)]
    if isinstance(count, syntax.Attribute) and (kept_by := script.value(count.value).definition) is not None:
        held += script.roles.self_assignments(kept_by, count.attr.value)
    for place, value in held:
        for binding in place.names.reaching(value) if isinstance(value, syntax.Name) else ():
            if isinstance(binding.node, syntax.Param) and binding.node.default is not None:
                yield place, binding.node.default
