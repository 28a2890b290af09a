"""Networks that each step of their own training runs on the same data again, without gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.shapes.steps import training_steps
from speedlint.solve import changing
from speedlint.solve.gradients import gradients_off
from speedlint.solve.loops import Loop
from speedlint.torch.words import Frequency, Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script


def is_run_again(script: Script, call: syntax.Call) -> bool:
    """Whether a call runs the network that a step over the batches of a loader trains, without gradients and on tensors
    that stay the same for all steps, and the loss is made of nothing that it gives."""
    loop = script.loops.driving_loop(call)
    if loop is None or not call.args or script.role(call.func) is not Role.MODULE:
        return False
    if script.frequency(call) is not Frequency.STEP or not script.loops.iterates_loader(loop):
        return False
    if gradients_off(script, call) is not True:
        return False
    if not all(_stays(script, arg.value, loop) for arg in call.args) or not _is_only_bound(script, call, loop):
        return False
    name = script.text(call.func)
    steps = [each for each in training_steps(script) if script.source.contains(loop, each.backward)]
    trains = any(script.text(each.forward.func) == name for each in steps)
    return trains and not any(_is_made_of(script, each.backward, call, loop) for each in steps)


def _stays(script: Script, given: syntax.BaseExpression, loop: Loop) -> bool:
    """Whether an argument is a tensor that is bound before a loop, and not in it."""
    if not isinstance(given, syntax.Name) or script.role(given) is not Role.TENSOR:
        return False
    bound = script.names.reaching(given)
    if not bound or any(script.source.contains(loop, each.node) for each in bound):
        return False
    changed = (base for base, _ in changing.written(script, loop.body))
    return not any(name.value == given.value for base in changed for name in script.source.inside(base, syntax.Name))


def _is_only_bound(script: Script, call: syntax.Call, loop: Loop) -> bool:
    """Whether each turn makes a call, and what it gives is bound to names: nothing keeps it for the turns to come."""
    for up in script.source.ancestors(call):
        if up is loop.body:
            return True
        if isinstance(up, (syntax.If, syntax.For, syntax.While, syntax.Try, syntax.Expr, syntax.AugAssign)):
            return False
        if isinstance(up, syntax.Assign) and not all(isinstance(each.target, syntax.Name) for each in up.targets):
            return False
    return False


def _is_made_of(script: Script, backward: syntax.Call, call: syntax.Call, loop: Loop) -> bool:
    """Whether what runs backward in a turn of a loop is computed with what a call gives."""
    source, todo, seen = script.source, list(script.source.inside(backward, syntax.Name)), set[syntax.Node]()
    while todo:
        for binding in script.names.reaching(todo.pop()):
            statement = source.statement(binding.node)
            is_simple = isinstance(statement, syntax.SimpleStatementLine)
            if statement in seen or not is_simple or not source.contains(loop, statement):
                continue
            seen.add(statement)
            if source.contains(statement, call):
                return True
            todo += source.inside(statement, syntax.Name)
    return False
