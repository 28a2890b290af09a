"""Evaluation passes over what is no loader: loops that feed a module, without gradients, what they have just made.

A step whose input hangs on the one before (text that grows token by token, an environment that is played) is no such pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.solve.flow import once
from speedlint.torch.words import Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script
    from speedlint.solve.loops import Loop

_DEPTH = 8


def feeding(script: Script, loop: Loop, calls: list[syntax.Call]) -> list[syntax.Call]:
    """Those of ``calls``, which run in the loop, that take an element of the loop or what its turn has made."""
    function = script.function(loop)
    if (function is not None and function.name.value in ("forward", "__call__")) or _plays(script, loop):
        return []
    return [call for call in calls if any(_is_fresh(script, loop, arg.value) for arg in call.args)]


def hangs_on_turn_before(script: Script, loop: Loop, call: syntax.Call) -> bool:
    """Whether a call in a loop takes what the turn before has made: a state that is handed on."""
    return not all(_gather(script, loop, arg.value, set(), _DEPTH) for arg in call.args)


def _plays(script: Script, loop: Loop) -> bool:
    """Whether an environment takes a step in the loop."""
    known = (Role.OPTIMIZER, Role.SCHEDULER, Role.SCALER)
    return any(
        isinstance(call.func, syntax.Attribute) and call.args and script.role(call.func.value) not in known
        for call in script.method_calls("step")
        if script.source.contains(loop.body, call)
    )


def is_eval_call(call: syntax.Call) -> bool:
    """Whether a call is written ``x.eval()``, whatever ``x`` is."""
    return isinstance(call.func, syntax.Attribute) and call.func.attr.value == "eval" and not call.args


def sets_eval_mode(script: Script, call: syntax.Call) -> bool:
    """Whether a call is ``model.eval()`` or ``model.train(False)``."""
    if not isinstance(call.func, syntax.Attribute) or script.role(call.func.value) is not Role.MODULE:
        return False
    is_off = len(call.args) == 1 and script.text(call.args[0].value) == "False"
    return is_eval_call(call) or (call.func.attr.value == "train" and is_off)


def is_in_eval_mode(script: Script, node: syntax.Node) -> bool:
    """Whether a node surely runs after a switch of a module to evaluation, with none to training behind it: in its own
    function or, where that switches nothing, before each known call of it."""
    function = script.function(node)
    switches = [each for each in script.method_calls("eval", "train") if script.function(each) is function]
    if not switches:
        return function is not None and _is_called_in_eval_mode(script, function)
    evals = [each for each in switches if sets_eval_mode(script, each)]
    return script.order.surely(evals, node, unless=[each for each in switches if each not in evals])


@once(False)
def _is_called_in_eval_mode(script: Script, function: syntax.FunctionDef) -> bool:
    sites = script.call_sites(function)
    return bool(sites) and all(is_in_eval_mode(caller, call) for caller, call in sites)


def _is_fresh(script: Script, loop: Loop, expression: syntax.BaseExpression) -> bool:
    made: set[bool] = set()
    return _gather(script, loop, expression, made, _DEPTH) and bool(made)


def _gather(script: Script, loop: Loop, expression: syntax.Node, made: set[bool], depth: int) -> bool:
    """Notes in ``made`` that a name in the expression is of this turn; False where one is of the turn before."""
    source = script.source
    for name in source.inside(expression, syntax.Name):
        for binding in script.names.reaching(name):
            if source.contains(expression, binding.node):
                continue  # the target of a comprehension
            if isinstance(loop, syntax.For) and source.contains(loop.target, binding.node):
                made.add(True)
            elif source.contains(loop.body, binding.node):
                is_of_before = source.statement(binding.node) is source.statement(name)
                if is_of_before or not script.order.may_run_before(binding.node, name):
                    return False
                made.add(True)
                if binding.value is not None and depth and not _gather(script, loop, binding.value, made, depth - 1):
                    return False
    return True
