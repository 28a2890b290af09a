"""Throw-away trainings on made-up data: those that try which batch size fits into memory, or time a layer."""

from __future__ import annotations

import math

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes.backend import debugging
from speedlint.shapes.entry import main_guard
from speedlint.shapes.steps import Step, training_steps
from speedlint.solve import counts
from speedlint.solve.flow import once
from speedlint.solve.guards import CLOCKS
from speedlint.solve.loops import Loop
from speedlint.solve.names import Kind
from speedlint.solve.unpacking import all_written
from speedlint.solve.values import returned
from speedlint.torch import library
from speedlint.torch.methods import CASTS, EXPANDS, MOVES, RESHAPES, TRANSPOSES
from speedlint.torch.words import Frequency, Role

_NEW = (
    "empty full normal ones rand randint randn randperm zeros empty_like full_like ones_like rand_like randn_like zeros_like"
)
_FACTORIES = tuple(f"torch.{name}" for name in _NEW.split())
_SAME = RESHAPES | TRANSPOSES | EXPANDS | CASTS | MOVES | {"detach", "clone", "contiguous", "repeat", "requires_grad_"}
_REDUCES = frozenset({"mean", "sum"})
_MODEL_METHODS = frozenset("to cuda train half float double bfloat16 zero_grad parameters".split())
_OPTIMIZER_METHODS = frozenset(("step", "zero_grad"))
_KEEPS = (b"torch.save", b"save_pretrained", b"save_checkpoint", b"save_model", b"state_dict()")
_DEPTH = 12
_FEW_TURNS = 50
"""Turns after which a loop that ends there has only tried something out."""


def is_probe(step: Step) -> bool:
    """Whether a step computes its loss from made-up data alone, for a model that its own function makes and drops."""
    match step.forward:
        case syntax.Call(func=syntax.Name() as model) if isinstance(step.region, syntax.FunctionDef):
            return _is_dropped(step, model, _MODEL_METHODS) and _is_made_up(step, step.loss, 0)
    return False


def serves_probe(script: Script, optimizer: syntax.Call) -> bool:
    """Whether the construction of an optimizer is for nothing but a probe."""
    function = script.function(optimizer)
    statement = script.source.parents[optimizer]
    steps = [step for step in training_steps(script) if step.region is function]
    match statement:
        case syntax.Assign(targets=[syntax.AssignTarget(target=syntax.Name() as name)]) if function is not None and steps:
            is_timed = any(script.function(call) is function for call in script.calls(*CLOCKS))
            may_time = is_timed and not _keeps(script)
            tries_out = all(is_probe(step) or (may_time and _feeds_new_alone(script, step)) for step in steps)
            return tries_out and all(_is_dropped(step, name, _OPTIMIZER_METHODS) for step in steps)
    return False


def is_in_benchmark(script: Script, node: syntax.Node) -> bool:
    """Whether a node stands in a loop that is left after a few turns, or in one over no loader whose steps feed a module
    nothing but new tensors."""
    loop = script.loops.driving_loop(node)
    if loop is not None and _is_left_early(script, loop):
        return True
    if loop is None or script.loops.iterates_loader(loop):
        return False
    steps = [step for step in training_steps(script) if script.source.contains(loop, step.backward)]
    return any(_feeds_new(script, step) for step in steps)


def _feeds_new_alone(script: Script, step: Step) -> bool:
    """Whether a step feeds a module nothing but new tensors, in no loop over a loader."""
    loops = (up for up in script.source.ancestors(step.backward) if isinstance(up, syntax.For))
    return _feeds_new(script, step) and not any(map(script.loops.iterates_loader, loops))


def _keeps(script: Script) -> bool:
    """Whether a script may keep what it trains."""
    return any(mark in script.source.data for mark in _KEEPS)


def _feeds_new(script: Script, step: Step) -> bool:
    """Whether a step feeds a module nothing but new tensors."""
    return bool(step.forward.args) and all(_is_new(script, arg.value) for arg in step.forward.args)


def is_tried_out(script: Script, node: syntax.Node) -> bool:
    """Whether a node serves a handful of training steps alone: those of a test, of a module's self-test on the host, or of a
    measurement."""
    if debugging.is_profiled(script, node) or _is_timed(script, node) or _only_times(script):
        return True
    if script.is_test or script.path.stem.startswith("test_"):
        return _trains_little(script)
    guard = main_guard(script)
    if guard is None or not script.source.contains(guard, node) or not script.program.is_imported(script):
        return False
    loops = [loop for loop in _training_loops(script) if script.source.contains(guard, loop)]
    return (_are_few(script, loops) and not script.roles.shows_gpu_in(guard)) or _moves_tensors_alone(script, guard)


def _moves_tensors_alone(script: Script, guard: syntax.If) -> bool:
    """Whether the self-test of a module trains no network: its optimizers are handed tensors that are written out."""
    made = [
        call
        for call in script.source.inside(guard, syntax.Call)
        if library.makes_optimizer(script.name(call.func) or "") and call.args
    ]
    return bool(made) and all(
        isinstance(call.args[0].value, syntax.List) and _holds_tensors(script, call.args[0].value) for call in made
    )


def _holds_tensors(script: Script, written: syntax.List) -> bool:
    return bool(written.elements) and all(script.role(each.value) is Role.TENSOR for each in written.elements)


@once(False)
def _only_times(script: Script) -> bool:
    """Whether a script waits for the GPU to read the clock, takes a handful of steps in all, and keeps nothing of what
    these train."""
    is_timed = any(True for _ in script.calls("torch.cuda.synchronize")) and any(True for _ in script.calls(*CLOCKS))
    return not _keeps(script) and is_timed and _trains_little(script)


def _is_timed(script: Script, node: syntax.Node) -> bool:
    """Whether a node stands in a few steps after which the script waits for the GPU and reads a clock."""
    loop = script.loops.driving_loop(node)
    if loop is None or b"synchronize" not in script.source.data:
        return False
    waits = [call for call in script.calls("torch.cuda.synchronize") if _follows(script, loop, call)]
    is_read = any(_follows(script, call, clock) for call in waits for clock in script.calls(*CLOCKS))
    return is_read and _are_few(script, [loop])


def _follows(script: Script, first: syntax.Node, then: syntax.Node) -> bool:
    """Whether a statement stands further down in the block of another one."""
    source = script.source
    block = source.parents[source.statement(first)]
    return source.parents[source.statement(then)] is block and source.order[first] < source.order[then] and first is not then


def _training_loops(script: Script) -> list[Loop]:
    return [loop for loop in script.loops.all if script.loops.kind(loop) in (Frequency.STEP, Frequency.EPOCH)]


@once(False)
def _trains_little(script: Script) -> bool:
    return _are_few(script, _training_loops(script))


def _are_few(script: Script, loops: list[Loop]) -> bool:
    """Whether loops take a few turns in all, those within each other multiplied, and take their steps themselves."""
    steps = [loop for loop in loops if script.loops.kind(loop) is Frequency.STEP]
    return bool(steps) and all(_turns(script, loop, loops) <= _FEW_TURNS for loop in loops)


def _turns(script: Script, loop: Loop, loops: list[Loop]) -> float:
    """How many turns a loop takes, those of the loops around it counted; infinitely many where that is not known."""
    known = [_most_turns(script, each) for each in loops if script.source.contains(each, loop)]
    return math.prod(math.inf if each is None else each for each in known)


def _most_turns(script: Script, loop: Loop) -> int | None:
    """How many turns a loop takes at most; of ``range(n)`` where a loop around takes ``n`` from written numbers."""
    known = counts.turns(script, loop)
    bounds = counts.range_bounds(script, loop.iter) if known is None and isinstance(loop, syntax.For) else None
    if bounds is None or len(bounds) > 1 or not isinstance(bounds[0], syntax.Name):
        return known
    (binding, *others) = script.names.reaching(bounds[0]) or (None,)
    if binding is None or others or binding.kind is not Kind.FOR or binding.value is None:
        return None
    taken = counts.taken(script, binding.value, binding.path)
    return max(taken) if taken else None


def _is_left_early(script: Script, loop: Loop) -> bool:
    """Whether a loop that runs once counts its turns and ends after a few: ``if i >= 10: break``."""
    if isinstance(script.source.enclosing(loop, syntax.For, syntax.While, syntax.FunctionDef), (syntax.For, syntax.While)):
        return False
    function = script.function(loop)
    if function is not None and script.call_sites(function) and not script.loops.runs_once_a_training(loop):
        return False
    most = counts.left_after(script, loop)
    return most is not None and most <= _FEW_TURNS


@once(False)
def _is_new(script: Script, expression: syntax.BaseExpression) -> bool:
    """Whether an expression is a tensor that a factory has just made, moved or reshaped at most, or several of them, here or
    in a function of the program."""
    match expression:
        case syntax.Name():
            bindings = script.names.reaching(expression)
            return bool(bindings) and all(
                each.kind is Kind.ASSIGN and not each.path and each.value is not None and _is_new(script, each.value)
                for each in bindings
            )
        case syntax.Call(func=func) if script.name(func) in _FACTORIES:
            return True
        case syntax.Call(func=syntax.Attribute(value=inner, attr=syntax.Name(value=method))) if method in _SAME | _REDUCES:
            return _is_new(script, inner)
        case syntax.Call() if (callee := script.callee(expression)) is not None:
            given = list(returned(callee))
            return bool(given) and all(_is_new(callee.script, each) for each in given)
        case syntax.Dict(elements=[_, *_] as elements) | syntax.Tuple(elements=[_, *_] as elements):
            return all(_is_new(script, each.value) for each in elements)
    return False


def _is_dropped(step: Step, variable: syntax.Name, methods: frozenset[str]) -> bool:
    """Whether a local variable is made in the function of the step and used for nothing that outlasts it."""
    script = step.script
    owner = script.names.scope(variable).lookup(variable.value)
    if owner is None or owner.node is not step.region:
        return False
    made_here = all(each.kind is Kind.ASSIGN and not each.path for each in owner.bindings[variable.value])
    return made_here and all(_stays(step, use, methods) for use in script.names.uses(variable))


def _stays(step: Step, use: syntax.Name, methods: frozenset[str]) -> bool:
    """Whether a use is a target, ``del``, one of the methods, or belongs to the step."""
    source = step.script.source
    parent = source.parents[use]
    if isinstance(parent, syntax.Attribute):
        call = source.parents[parent]
        return parent.attr.value in methods and isinstance(call, syntax.Call) and call.func is parent
    if isinstance(parent, syntax.AssignTarget) or source.enclosing(use, syntax.Del) is not None:
        return True
    if isinstance(parent, syntax.Arg):
        return source.parents[parent] in step.optimizer_steps()
    if not isinstance(parent, syntax.Call) or parent.func is not use:
        return False
    return source.contains(step.turn, use) or all(_is_made_up(step, arg.value, 0) for arg in parent.args)


def _is_made_up(step: Step, expression: syntax.BaseExpression, depth: int) -> bool:
    """Whether an expression is computed, in the function of the step, from new tensors and constants alone."""
    if depth > _DEPTH:
        return False
    script, deeper = step.script, depth + 1
    match expression:
        case syntax.Name():
            bindings = script.names.reaching(expression)
            values = all_written(each for each in bindings if script.function(each.node) is step.region)
            return 0 < len(values) == len(bindings) and all(_is_made_up(step, value, deeper) for value in values)
        case syntax.Call(func=func, args=args):
            name = script.name(func) or ""
            if name in _FACTORIES:
                return True
            if name.startswith("torch.nn.functional.") or script.role(func) is Role.MODULE:
                return bool(args) and all(_is_made_up(step, arg.value, deeper) for arg in args)
            if isinstance(func, syntax.Attribute) and not name and func.attr.value in _SAME | _REDUCES:
                return _is_made_up(step, func.value, deeper)
        case syntax.BinaryOperation(left=left, right=right):
            return _is_made_up(step, left, deeper) and _is_made_up(step, right, deeper)
        case syntax.Subscript(value=value):
            return _is_made_up(step, value, deeper)
        case syntax.Integer() | syntax.Float():
            return True
    return False
