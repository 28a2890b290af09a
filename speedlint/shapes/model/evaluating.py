"""Whether a certain network is in evaluation mode where it runs: the one answer that advice and fixes rest on."""

from __future__ import annotations

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes.model.networks import with_named
from speedlint.shapes.training import passed_through, roots
from speedlint.solve.flow import once
from speedlint.solve.passes import is_eval_call, sets_eval_mode
from speedlint.solve.terms import Definition
from speedlint.torch.words import Role


def is_evaluating(script: Script, module: syntax.BaseExpression, at: syntax.Node) -> bool:
    """Whether a network is surely in evaluation mode when ``at`` runs: it was switched to it on every way there, and since
    then nothing was switched to training nor a function called that may do so; or it was made so, ``Net().eval()``, and
    nothing in the program switches it again."""
    if _is_mixed(script):
        return False
    switches = list(script.method_calls("eval", "train"))
    evals = [each for each in switches if sets_eval_mode(script, each) and _is_of(script, each, script, module)]
    if evals and script.order.surely(evals, at, [*_other_switches(script, switches), *_calls_that_switch(script, at)]):
        return True
    return _is_made_so(script, module)


def _other_switches(script: Script, switches: list[syntax.Call]) -> list[syntax.Call]:
    """Those that may switch a network to training, whichever it is."""
    return [each for each in switches if not sets_eval_mode(script, each)]


def _calls_that_switch(script: Script, at: syntax.Node) -> list[syntax.Call]:
    """The calls beside a node of the project's functions that may switch a network to training."""
    function = script.function(at)
    calls = script.source.inside(function.body if function is not None else script.source.module, syntax.Call)
    return [call for call in calls if script.role(call.func) is not Role.MODULE and _may_switch(script, call)]


def _may_switch(script: Script, call: syntax.Call) -> bool:
    callee = script.callee(call)
    return callee is not None and any(
        place.source.contains(node, switch)
        for place, node in with_named(callee.script, callee.node, called=True)
        for switch in place.method_calls("train")
    )


def _is_made_so(script: Script, module: syntax.BaseExpression) -> bool:
    """Whether a network is made in evaluation mode, is no part of another one, and nothing switches it to training."""
    made = [each for _, each in passed_through(script, module) if isinstance(each, syntax.Call) and is_eval_call(each)]
    if not made or _is_part(script, module):
        return False
    trains = ((place, each) for place in script.everywhere(b".train(") for each in place.method_calls("train"))
    return not any(_is_of(place, each, script, module) for place, each in trains)


def _is_part(script: Script, module: syntax.BaseExpression) -> bool:
    """Whether a network may be an attribute of another one, whose mode it follows."""
    if not isinstance(module, syntax.Attribute):
        return False
    function = script.function(module)
    owner = script.names.owner(function) if function is not None else None
    is_own = isinstance(module.value, syntax.Name) and module.value.value == "self" and owner is not None
    if is_own and owner is not None:
        return script.roles.instance(Definition(script, owner)).role is Role.MODULE
    return script.role(module.value) is not Role.INSTANCE


def _is_of(place: Script, mode: syntax.Call, script: Script, module: syntax.Node) -> bool:
    """Whether ``x.eval()`` or ``x.train()``, in some file, is of a module."""
    assert isinstance(mode.func, syntax.Attribute)
    receiver = mode.func.value
    if place is script and script.text(receiver) == script.text(module):
        return True
    ours = {id(node) for _, node in roots(script, module)}
    return any(id(node) in ours for _, node in roots(place, receiver))


@once(False)
def _is_mixed(script: Script) -> bool:
    """Whether the program sets parts of networks to training mode one by one, as those who want dropout when they
    evaluate do."""
    return any(
        isinstance(call.func, syntax.Attribute)
        and isinstance(call.func.value, syntax.Name)
        and place.role(call.func.value) is not Role.INSTANCE
        and any(
            isinstance(place.source.enclosing(binding.node, syntax.For, syntax.FunctionDef), syntax.For)
            for binding in place.names.reaching(call.func.value)
        )
        for place in script.everywhere(b".train(")
        for call in place.method_calls("train")
    )
