"""Throw-away trainings on made-up data: those that try which batch size fits into memory, or time a layer."""

from __future__ import annotations

import libcst as cst

from speedlint.semantics.loops import Loop
from speedlint.semantics.names import Kind
from speedlint.semantics.script import Script
from speedlint.semantics.steps import Step, training_steps
from speedlint.semantics.terms import Role
from speedlint.source import last_statement

_FACTORIES = tuple(f"torch.{name}" for name in "empty full normal ones rand randint randn randperm zeros".split())
_SAME = frozenset(
    "bfloat16 clone contiguous cuda detach double expand flatten float half long mean permute repeat requires_grad_ reshape "
    "squeeze sum to transpose unsqueeze view".split()
)
_MODEL_METHODS = frozenset("to cuda train half float double bfloat16 zero_grad parameters".split())
_OPTIMIZER_METHODS = frozenset(("step", "zero_grad"))
_DEPTH = 12
_FEW_TURNS = 50
"""Turns after which a loop that ends there has only tried something out."""


def is_probe(step: Step) -> bool:
    """Whether a step computes its loss from made-up data alone, for a model that its own function makes and drops."""
    match step.forward:
        case cst.Call(func=cst.Name() as model) if isinstance(step.region, cst.FunctionDef):
            return _is_dropped(step, model, _MODEL_METHODS) and _is_made_up(step, step.loss, 0)
    return False


def serves_probe(script: Script, optimizer: cst.Call) -> bool:
    """Whether the construction of an optimizer is for nothing but a probe."""
    function = script.function(optimizer)
    statement = script.source.parents[optimizer]
    steps = [step for step in training_steps(script) if step.region is function]
    match statement:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)]) if function is not None and steps:
            return all(is_probe(step) and _is_dropped(step, name, _OPTIMIZER_METHODS) for step in steps)
    return False


def is_in_benchmark(script: Script, node: cst.CSTNode) -> bool:
    """Whether a node stands in a loop that is left after a few turns, or in one over no loader whose steps feed a module
    nothing but new tensors."""
    loop = script.loops.driving_loop(node)
    if loop is not None and _is_left_early(script, loop):
        return True
    if loop is None or script.loops.iterates_loader(loop):
        return False
    steps = [step for step in training_steps(script) if script.source.contains(loop, step.backward)]
    return any(step.forward.args and all(_is_new(script, arg.value) for arg in step.forward.args) for step in steps)


def _is_left_early(script: Script, loop: Loop) -> bool:
    """Whether a loop that runs once counts its turns and ends after a few: ``if i >= 10: break``."""
    if isinstance(script.source.enclosing(loop, cst.For, cst.While, cst.FunctionDef), (cst.For, cst.While)):
        return False
    function = script.function(loop)
    if function is not None and script.call_sites(function) and not script.loops.runs_once_a_training(loop):
        return False
    for statement in loop.body.body:
        match statement:
            case cst.If(
                test=cst.Comparison(
                    left=cst.Name(value=counter),
                    comparisons=[
                        cst.ComparisonTarget(
                            operator=cst.GreaterThan() | cst.GreaterThanEqual() | cst.Equal(),
                            comparator=cst.Integer() as most,
                        )
                    ],
                ),
                body=body,
            ) if isinstance(last_statement(body), cst.Break) and isinstance(loop, cst.For):
                targets = loop.target.elements if isinstance(loop.target, cst.Tuple) else ()
                is_counter = bool(targets) and isinstance(targets[0].value, cst.Name) and targets[0].value.value == counter
                if int(most.value, 0) <= _FEW_TURNS and is_counter and script.is_call_to(loop.iter, "enumerate"):
                    return True
    return False


def _is_new(script: Script, expression: cst.BaseExpression) -> bool:
    """Whether an expression is a tensor that a factory has just made, moved or reshaped at most."""
    match expression:
        case cst.Name():
            values = [binding.value for binding in script.names.reaching(expression)]
            return bool(values) and all(isinstance(value, cst.Call) and _is_new(script, value) for value in values)
        case cst.Call(func=func) if script.name(func) in _FACTORIES:
            return True
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value=method))) if method in _SAME:
            return _is_new(script, inner)
    return False


def _is_dropped(step: Step, variable: cst.Name, methods: frozenset[str]) -> bool:
    """Whether a local variable is made in the function of the step and used for nothing that outlasts it."""
    script = step.script
    owner = script.names.scope(variable).lookup(variable.value)
    if owner is None or owner.node is not step.region:
        return False
    made_here = all(each.kind is Kind.ASSIGN and not each.path for each in owner.bindings[variable.value])
    return made_here and all(_stays(step, use, methods) for use in script.names.uses(variable))


def _stays(step: Step, use: cst.Name, methods: frozenset[str]) -> bool:
    """Whether a use is a target, ``del``, one of the methods, or belongs to the step."""
    source = step.script.source
    parent = source.parents[use]
    if isinstance(parent, cst.Attribute):
        call = source.parents[parent]
        return parent.attr.value in methods and isinstance(call, cst.Call) and call.func is parent
    if isinstance(parent, cst.AssignTarget) or source.enclosing(use, cst.Del) is not None:
        return True
    if isinstance(parent, cst.Arg):
        return source.parents[parent] in step.optimizer_steps()
    if not isinstance(parent, cst.Call) or parent.func is not use:
        return False
    return source.contains(step.turn, use) or all(_is_made_up(step, arg.value, 0) for arg in parent.args)


def _is_made_up(step: Step, expression: cst.BaseExpression, depth: int) -> bool:
    """Whether an expression is computed, in the function of the step, from new tensors and constants alone."""
    if depth > _DEPTH:
        return False
    script, deeper = step.script, depth + 1
    match expression:
        case cst.Name():
            bindings = script.names.reaching(expression)
            return bool(bindings) and all(
                each.kind is Kind.ASSIGN
                and not each.path
                and each.value is not None
                and script.function(each.node) is step.region
                and _is_made_up(step, each.value, deeper)
                for each in bindings
            )
        case cst.Call(func=func, args=args):
            name = script.name(func) or ""
            if name in _FACTORIES:
                return True
            if name.startswith("torch.nn.functional.") or script.role(func) is Role.MODULE:
                return bool(args) and all(_is_made_up(step, arg.value, deeper) for arg in args)
            if isinstance(func, cst.Attribute) and not name and func.attr.value in _SAME:
                return _is_made_up(step, func.value, deeper)
        case cst.BinaryOperation(left=left, right=right):
            return _is_made_up(step, left, deeper) and _is_made_up(step, right, deeper)
        case cst.Subscript(value=value):
            return _is_made_up(step, value, deeper)
        case cst.Integer() | cst.Float():
            return True
    return False
