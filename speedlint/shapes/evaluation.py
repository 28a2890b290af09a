"""Passes that only evaluate: where they are, and whether gradients are off in them; and which scripts train at all."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.shapes.entry import is_entry, is_never_called
from speedlint.shapes.model.networks import is_loss, root_definition
from speedlint.shapes.training import parameters_within, roots
from speedlint.solve import passes
from speedlint.solve.flow import once
from speedlint.solve.gradients import told
from speedlint.solve.loops import Does
from speedlint.solve.terms import Definition
from speedlint.source import is_target
from speedlint.torch import library
from speedlint.torch.methods import CASTS, DETACHES, GRAPHLESS, MAKES_ANEW, MOVES, VIEWS
from speedlint.torch.words import Frequency, Role

if TYPE_CHECKING:
    from collections.abc import Iterator

    from speedlint.ask.script import Script

_TRAINERS = library.TRAINERS | library.ACCELERATORS
_GRADIENT_WORDS = frozenset(
    {
        "grad",
        "requires_grad",
        "requires_grad_",
        "retain_grad",
        "register_hook",
        "needs_input_grad",
        "register_full_backward_hook",
        "register_backward_hook",
        "enable_grad",
        "backward",
        "autograd",
    }
)
_GRADIENT_CALLS = ("torch.autograd.grad", "torch.enable_grad", "torch.func.grad", "torch.autograd.functional.jacobian")
_EVALUATES = re.compile(
    r"(?:^|_)(?:(?:eval|valid|predict|infer|accuracy|score|metric)|(?:val|test)(?=_|[A-Z]|$))"
    r"|(?:Eval|Valid|Predict|Infer|Accuracy|Score|Metric)|(?:Val|Test)(?=_|[A-Z]|$)"
)
"""What the name of a function that evaluates has as a word, or begins one with: ``retrieval_loss`` is none."""
_NEEDS = "requires_grad"
_ENDS = DETACHES | GRAPHLESS
_GIVES_TENSORS = VIEWS | MOVES | CASTS | MAKES_ANEW
_DEPTH = 5


def trains(script: Script) -> bool:
    """Whether this file takes part in training: it trains when it is run, or a file that imports it, through others too."""
    if trains_itself(script):
        return True
    if is_entry(script) and not script.program.is_imported(script):
        return False
    return any(trains_itself(other) for other in script.program.upward(script))


@once(False)
def trains_itself(script: Script) -> bool:
    """Whether the file's own code, or a function that it calls, takes training steps."""
    uses_trainer = any(True for _ in script.roles.calls.made_of(_TRAINERS))
    return uses_trainer or script.loops.takes_steps()


def runs_once(script: Script, node: syntax.Node) -> bool:
    """Whether a program that trains runs a line of an evaluation in one pass before or after its training: neither a loop
    around it nor one around a call of its function trains."""
    return trains(script) and _is_outside_training(script, node, _DEPTH)


def _is_outside_training(script: Script, node: syntax.Node, depth: int) -> bool:
    function = script.function(node)
    for up in script.source.ancestors(node):
        if isinstance(up, syntax.For | syntax.While) and script.loops.does(up.body, Does.STEPS):
            return False
        if up is function:
            break
    if function is None or depth == 0:
        return function is None
    sites = [(other, call) for other, call in script.call_sites(function) if not is_never_called(other, call)]
    return bool(sites) and all(_is_outside_training(other, call, depth - 1) for other, call in sites)


def is_in_forward(script: Script, node: syntax.Node) -> bool:
    """Whether a node stands in a module's ``forward``, in a program that trains: it runs in each step, though the calls on
    the way to it may be out of sight, as those of blocks in a list are."""
    function = script.function(node)
    owner = script.names.owner(function) if function is not None else None
    if function is None or owner is None or function.name.value != "forward":
        return False
    return script.roles.instance(Definition(script, owner)).role is Role.MODULE and trains(script)


# Gradients needed


@once(False)
def needs_grad(script: Script, node: syntax.Node) -> bool:
    """Whether code, or the project's functions and modules it calls, works with gradients: attacks, penalties, forces."""
    if any(attribute.attr.value in _GRADIENT_WORDS for attribute in script.source.inside(node, syntax.Attribute)):
        return True
    for call in script.source.inside(node, syntax.Call):
        if script.name(call.func) in _GRADIENT_CALLS or _may_train_another(script, call):
            return True
        run = script.roles.calls.may_run(call)
        if any(each.node is not node and needs_grad(each.script, each.node) for each in run):
            return True
    return False


def _may_train_another(script: Script, call: syntax.Call) -> bool:
    """Whether a module out of sight is handed a network, which it may adapt before it predicts, as in few-shot learning."""
    if script.callee(call) is not None or script.name(call.func) is not None or script.role(call.func) is not Role.MODULE:
        return False
    return any(script.role(arg.value) is Role.MODULE for arg in call.args)


# Evaluation passes


def forward_of_pass(script: Script, loop: syntax.For) -> syntax.Call | None:
    """The first call of a network in the body of an evaluation loop, not of a loss or a frozen network, nor of one that
    switches gradients off itself, or of a function that runs one; None where there is none."""
    function = script.function(loop)
    for call in script.source.inside(loop.body, syntax.Call):
        runs = script.function(call) is function and (is_network(script, call) or runs_network(script, call))
        if runs and not is_frozen(script, call) and not switches_off(script, call):
            return call
    return None


def switches_off(script: Script, call: syntax.Call) -> bool:
    """Whether what a call runs is decorated to run without gradients, or switches them off."""
    callee = script.callee(call)
    if callee is None or not isinstance(callee.node, syntax.FunctionDef):
        return False
    names = {"no_grad", "inference_mode", "set_grad_enabled"}
    is_switched = any(each.value in names for each in callee.script.source.inside(callee.node, syntax.Name))
    return is_switched or told(callee.script, callee.node.body) is True


def is_frozen(script: Script, call: syntax.Call) -> bool:
    """Whether a call runs a network whose parameters are told to need no gradients, by its class or from outside."""
    made = roots(script, call.func) if script.role(call.func) is Role.MODULE else []
    if not made:
        return False
    told = {known for node, known in _told_of_gradients(script) if any(node is each for _, each in made)}
    return told == {False} or (not told and all(freezes(*each) for each in made))


def _told_of_gradients(script: Script) -> Iterator[tuple[syntax.Node, bool]]:
    """What networks' parameters are told of gradients, in the program: the node that makes a network, and whether they need
    them; that they do where it is not known."""
    for place in script.everywhere(b"requires_grad"):
        for loop in place.source.of(syntax.For):
            told = [
                _is_true(place, assign.value)
                or place.source.contains(loop.body, place.source.enclosing(assign, syntax.If, syntax.For) or loop)
                for target in place.source.inside(loop.body, syntax.AssignTarget)
                if isinstance(target.target, syntax.Attribute)
                and target.target.attr.value == _NEEDS
                and isinstance(assign := place.source.parents[target], syntax.Assign)
            ]
            for module in parameters_within(place, loop.iter) if told else ():
                yield from ((node, any(told)) for _, node in roots(place, module))
        for call in place.method_calls(f"{_NEEDS}_"):
            if isinstance(call.func, syntax.Attribute) and place.role(call.func.value) is Role.MODULE:
                needs = not call.args or _is_true(place, call.args[0].value)
                yield from ((node, needs) for _, node in roots(place, call.func.value))


def _is_true(script: Script, expression: syntax.BaseExpression) -> bool:
    known = script.constant(expression)
    return known is None or bool(known.value)


def freezes(script: Script, module: syntax.Node) -> bool:
    """Whether the class of a module holds a library's network, and runs a part without gradients or says that its
    parameters need none."""
    definition = root_definition(script, module)
    place = definition.script if definition is not None else script
    if definition is None or not any(
        (place.name(call.func) or "").startswith(library.MODULE_FACTORIES)
        for call in place.source.inside(definition.node, syntax.Call)
    ):
        return False
    if any(place.source.contains(definition.node, call) for call in place.calls(*library.NO_GRADS)):
        return True
    return any(
        isinstance(target.target, syntax.Attribute)
        and target.target.attr.value == _NEEDS
        and isinstance(assign := place.source.parents[target], syntax.Assign)
        and not _is_true(place, assign.value)
        for target in place.source.inside(definition.node, syntax.AssignTarget)
    )


def is_network(script: Script, call: syntax.Call) -> bool:
    """Whether a call runs a module that is no loss."""
    match call.func:
        case syntax.Attribute(value=module, attr=syntax.Name("forward")) if script.role(module) is Role.MODULE:
            return True
    return script.role(call.func) is Role.MODULE and not is_loss(script, call)


def runs_network(script: Script, call: syntax.Call, depth: int = _DEPTH) -> bool:
    """Whether a call is of a function that runs a network and does not switch gradients off around it."""
    callee = script.callee(call)
    if callee is None or not depth or not isinstance(callee.node, syntax.FunctionDef) or callee.name == "__init__":
        return False
    other, node = callee.script, callee.node
    inner = (each for each in other.source.inside(node.body, syntax.Call) if other.function(each) is node)
    return any(
        (is_network(other, each) or runs_network(other, each, depth - 1)) and told(other, each) is False for each in inner
    )


def is_in_pass(script: Script, node: syntax.Node) -> bool:
    """Whether the node stands in an evaluation loop of its own function."""
    loop = script.loops.driving_loop(node)
    return loop is not None and script.loops.kind(loop) is Frequency.EVAL_STEP


def is_evaluation(script: Script, node: syntax.Node) -> bool:
    """Whether code is meant to evaluate: its function is named so, or a module is in evaluation mode there."""
    function = script.function(node)
    if function is not None and _EVALUATES.search(function.name.value):
        return True
    order, latest = script.source.order, None
    for call in script.method_calls("eval", "train"):
        before = script.function(call) is function and script.order.may_run_before(call, node)
        assert isinstance(call.func, syntax.Attribute)
        is_later = latest is not None and order[latest] < order[node] < order[call]
        if before and not is_later and script.role(call.func.value) in (Role.MODULE, Role.UNKNOWN):
            latest = call
    return latest is not None and (passes.sets_eval_mode(script, latest) or passes.is_eval_call(latest))


def only_evaluates(script: Script, function: syntax.FunctionDef) -> bool:
    """Whether a function can run without gradients as a whole: named for evaluation, undecorated, no step and no gradient
    in it, nothing it starts out of sight that may train."""
    if function.decorators or function.asynchronous or not _EVALUATES.search(function.name.value):
        return False
    if script.loops.function_does(function, Does.STEPS) or needs_grad(script, function):
        return False
    if any(True for kind in (syntax.Yield, syntax.FunctionDef) for one in script.source.inside(function.body, kind)):
        return False
    return not any(
        isinstance(call.func, syntax.Attribute) and call.func.attr.value in ("fit", "zero_grad", "step")
        for call in script.source.inside(function.body, syntax.Call)
    )


def both_modes(script: Script, loop: syntax.For) -> syntax.BaseExpression | None:
    """The condition on a parameter of the function under which a loop's backward pass stands, where the loop also runs
    without it: one function for training and evaluation."""
    source, function = script.source, script.function(loop)
    backwards = [call for call in script.method_calls("backward") if source.contains(loop.body, call)]
    if function is None or len(backwards) != 1:
        return None
    parameters = {param.name.value for param in (*function.params.params, *function.params.kwonly_params)}
    for up in source.ancestors(backwards[0]):
        if up is loop:
            return None
        if (
            isinstance(up, syntax.If)
            and up.orelse is None
            and {name.value for name in source.inside(up.test, syntax.Name)} & parameters
        ):
            return None if _switches_mode(script, function) or _is_always_met(script, function, up.test) else up.test
    return None


def _is_always_met(script: Script, function: syntax.FunctionDef, test: syntax.BaseExpression) -> bool:
    """Whether each call of a function that is seen hands it the optimizer that a condition asks for: ``optimizer is not
    None``."""
    match test:
        case syntax.Comparison(left=syntax.Name() as asked, comparisons=[syntax.ComparisonTarget(operator=syntax.IsNot())]):
            pass
        case syntax.Name() as asked:
            pass
        case _:
            return False
    given = next((param for param in function.params.params if param.name.value == asked.value), None)
    passed = list(script.values.passed(given)) if given is not None else []
    return bool(passed) and all(each is not None and other.role(each) is Role.OPTIMIZER for other, each in passed)


def _switches_mode(script: Script, function: syntax.FunctionDef) -> bool:
    """Whether the function mentions one of torch's switches of gradients at all."""
    return any(
        script.name(node) in library.NO_GRADS
        for kind in (syntax.Attribute, syntax.Name)
        for node in script.source.inside(function, kind)
    )


def is_only_decided(script: Script, call: syntax.Call) -> bool:
    """Whether nothing differentiable is made of a network's output: it, or the name it is bound to, is only argmaxed."""
    source, decided = script.source, _decided(script)
    if not decided or call in decided:
        return call in decided
    assign = source.parents[call]
    match assign:
        case syntax.Assign(targets=[syntax.AssignTarget(target=syntax.Name() as target)]):
            pass
        case _:
            return False
    uses = script.names.uses(target)
    if decided.isdisjoint(uses):
        return False
    uses = [use for use in uses if use is not target and any(b.node is target for b in script.names.reaching(use))]
    return bool(uses) and decided.issuperset(uses)


def is_only_detached(script: Script, call: syntax.Call) -> bool:
    """Whether gradients are cut off wherever a network's output goes: it, or what it is bound to, is only detached."""
    ways = _ways(script, call, _DEPTH)
    return next(ways, False) and all(ways)


def _ways(script: Script, node: syntax.BaseExpression, depth: int) -> Iterator[bool]:
    """Of each way that a value takes, through its parts and the names they are bound to: whether no gradient passes on."""
    parent = script.source.parents[node]
    match parent:
        case syntax.Comparison():
            yield True
        case syntax.Attribute(value=value, attr=syntax.Name(value=name)) if value is node:
            call = script.source.parents[parent]
            is_called = isinstance(call, syntax.Call) and call.func is parent
            if name in _ENDS:
                yield True
            elif is_called and name not in _GIVES_TENSORS:
                yield False
            else:
                yield from _ways(script, call if isinstance(call, syntax.Call) and is_called else parent, depth)
        case syntax.Subscript(value=value) if value is node:
            yield from _ways(script, parent, depth)
        case syntax.BinaryOperation() | syntax.UnaryOperation():
            yield from _ways(script, parent, depth)
        case syntax.Assign(targets=[syntax.AssignTarget(target=target)], value=value) if value is node and depth:
            parts = [each.value for each in target.elements] if isinstance(target, syntax.Tuple) else [target]
            for part in parts:
                yield from _ways_of_name(script, part, depth - 1) if isinstance(part, syntax.Name) else (False,)
        case _:
            yield False


def _ways_of_name(script: Script, target: syntax.Name, depth: int) -> Iterator[bool]:
    for use in script.names.uses(target):
        is_set = is_target(script.source, use) and not isinstance(script.source.parents[use], syntax.AugAssign)
        if not is_set and any(binding.node is target for binding in script.names.reaching(use)):
            yield from _ways(script, use, depth)


@once(frozenset())
def _decided(script: Script) -> frozenset[syntax.Node]:
    """What is only decided by: ``x`` of each ``torch.argmax(x)`` and ``x.argmax()``."""
    functions = (call.args[0].value for call in script.calls("torch.argmax") if call.args)
    methods = (call.func.value for call in script.method_calls("argmax") if isinstance(call.func, syntax.Attribute))
    return frozenset((*functions, *methods))
