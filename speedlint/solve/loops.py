"""How often a line runs: each training step, each evaluation step, throttled, each epoch, once.

The innermost driving loop decides: one with a backward pass in it (STEP), one over a loader without (EVAL_STEP), one around
such a loop (EPOCH). Guards between the line and the loop limit it (``guards``). A function runs as often as its busiest
call.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from speedlint.facts import syntax
from speedlint.solve import counts, driven, leads, modes, operations, passes, turns
from speedlint.solve.flow import listed_once, once
from speedlint.solve.gradients import switches, told
from speedlint.solve.guards import Guards
from speedlint.solve.terms import Definition
from speedlint.solve.unpacking import gone_over
from speedlint.torch import library
from speedlint.torch.words import Frequency, Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script
    from speedlint.solve.names import Binding

Loop = syntax.For | syntax.While
Node = TypeVar("Node", bound=syntax.Node)


class Does(enum.Flag):
    """What a piece of code does, itself or through the first-party functions it calls."""

    NOTHING = 0
    BACKWARD = enum.auto()
    OPTIMIZER_STEP = enum.auto()
    TRAINS = enum.auto()
    """Holds a whole loop of training steps."""
    EVALUATES = enum.auto()
    """Holds a whole loop over a loader, without training."""
    FORWARD = enum.auto()
    """Runs a module."""
    NO_TRAINING = enum.auto()
    """Puts a module in evaluation mode, or turns gradients off."""
    MAKES_OPTIMIZER = enum.auto()
    """Makes an optimizer, and so begins a training."""
    DIFFERENTIATES = enum.auto()
    """Takes gradients by a call that returns them, or hands a function to an optimizer of scipy."""
    STEPS = BACKWARD | OPTIMIZER_STEP | TRAINS
    __hash__ = object.__hash__
    """Each value is one object; Enum's own hash, in Python, would be a fiftieth of a check."""
    ALL = STEPS | EVALUATES | FORWARD | NO_TRAINING | MAKES_OPTIMIZER | DIFFERENTIATES


_STEP = Does.BACKWARD | Does.OPTIMIZER_STEP
_APART = (Does.STEPS, Does.EVALUATES, Does.FORWARD, Does.NO_TRAINING, Does.MAKES_OPTIMIZER, Does.DIFFERENTIATES)
"""What is found out apart from each other: most questions are about steps alone, and few calls may lead to one."""
_OWN = (Does.STEPS, Does.NO_TRAINING, Does.MAKES_OPTIMIZER, Does.DIFFERENTIATES)
_DIFFERENTIATES = re.compile(rb"autograd|scipy")
_MINIMIZERS = "scipy.optimize."
_NO_CALLS: dict[syntax.Call, Does] = {}
_UPDATES = re.compile(
    rb"(?i)optim|step|sgd|adam\b|adam\w*\(|minimi[sz]e|trainer|updat|learning_rate|\blr\b|(?<!utils)\.data\b|_foreach_|-=|no_grad"
    rb"|\b(?:sub|add|addcdiv|addcmul|mul|lerp|copy)_\("
)
"""What a program says somewhere that may update parameters: by an optimizer, by a framework, or by hand."""
_SWITCHES_ON = re.compile(rb"enable_grad|set_grad_enabled|inference_mode\(\s*(?:mode\s*=\s*)?False")
"""What a program says that may record gradients within ``no_grad``."""
_HOOKS_UPDATE = re.compile(rb"post_accumulate_grad_hook|_apply_optimizer_in_backward")
"""What updates parameters within a backward pass; a hook of a tensor may, where the loop's own file sets it."""
_STEP_METHODS = frozenset({"training_step", "train_step"})
"""Methods that a trainer of whatever framework calls in each step, where they are a module's."""
_HANDFUL = 8
"""Batches that say nothing of a whole pass."""
_DEFINITIONS = bytes((syntax.FunctionDef.kind, syntax.ClassDef.kind))
_RUN_BODIES = (syntax.FunctionDef, syntax.For, syntax.While)
_DECIDING = bytes(
    kind.kind
    for kind in syntax.KINDS
    if issubclass(kind, (syntax.BaseCompoundStatement, syntax.BaseSuite))
    or kind in (syntax.Else, syntax.ExceptHandler, syntax.IfExp, syntax.BooleanOperation, syntax.Lambda)
)
"""What decides how often a part of it runs: all parts of anything else run as often as it does."""
_STEPS_BY_NAME = _STEP_METHODS | {"validation_step", "val_step", "valid_step", "eval_step"}
_DEPTH = 4
"""Calls between a step and what is seen to begin them."""
_CALLED_IN_STEPS = _STEP_METHODS | library.HOOK_NAMES | {"forward"}


@cache
def _parts(wanted: Does, of: tuple[Does, ...], beside: Does = Does.NOTHING) -> tuple[Does, ...]:
    """Those of some parts that hold something of what is wanted, or of what is asked beside it; kept, since a flag's
    operations are slow."""
    return tuple(part for part in of if part & (wanted | beside))


class Loops:
    """Answers for one script."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.guards = Guards(script)

    # Frequency

    def frequency(self, node: syntax.Node) -> Frequency:
        """How often the node runs, at most."""
        return self._frequency(self.script.source.outermost(node, _DECIDING))

    @once(Frequency.ONCE)
    def _frequency(self, node: syntax.Node) -> Frequency:
        passed: list[tuple[syntax.Node, syntax.Node]] = []
        child = node
        for up in self.script.source.ancestors(node):
            if isinstance(up, (syntax.FunctionDef, syntax.Lambda)):
                if isinstance(up, syntax.Lambda) or child is not up.body:
                    child = up
                    continue
                of_function = self.of_function(up, modes.conditions(self.script, node))
                return of_function if of_function is Frequency.ONCE else min(of_function, self._limit(passed))
            passed.append((up, child))
            if isinstance(up, (syntax.For, syntax.While)) and child is up.body:
                kind = self.kind(up)
                if kind is Frequency.EPOCH and self.frequency(up) is Frequency.STEP:
                    kind = Frequency.STEP
                if kind is not None:
                    limit = self._limit(passed)
                    if kind is Frequency.EVAL_STEP and (self._passes_once(up) or self._is_short(up)):
                        limit = min(limit, Frequency.THROTTLED)
                    if kind is Frequency.STEP and self.is_apart_from_training(up, node):
                        kind = Frequency.EVAL_STEP
                    is_counted = any(
                        isinstance(each, syntax.If) and inner is each.body and self.guards.counts_steps(each.test)
                        for each, inner in passed
                    )
                    return min(kind, limit, Frequency.THROTTLED if is_counted and self.accumulates(up) else kind)
            child = up
        return Frequency.ONCE

    def _limit(self, passed: list[tuple[syntax.Node, syntax.Node]]) -> Frequency:
        """How often a node runs at most by the branches on the way up from it, each with the part that it was reached by."""
        return min(
            (Frequency.STEP if self._is_whole_step(up, child) else self.guards.limit(up, child) for up, child in passed),
            default=Frequency.STEP,
        )

    def is_apart_from_training(self, loop: Loop, node: syntax.Node) -> bool:
        """Whether a loop goes over several loaders in turn and the node runs in the passes that do not train."""
        if not self.iterates_loader(loop):
            return False
        mine = turns.guards(self.script, node, loop)
        if not mine or self._hands_optimizer(loop, node):
            return False
        return all(turns.exclude(self.script, mine, theirs) for theirs in self._trained_under(loop))

    def _hands_optimizer(self, loop: Loop, node: syntax.Node) -> bool:
        """Whether a branch around a node hands an optimizer to a function, which may step it."""
        branches = (up for up in self.script.source.ancestors(node) if isinstance(up, syntax.IndentedBlock))
        within = (up for up in branches if up is not loop.body and self.script.source.contains(loop.body, up))
        calls = (call for up in within for call in self.script.source.inside(up, syntax.Call))
        return any(self.script.role(arg.value) is Role.OPTIMIZER for call in calls for arg in call.args)

    @once(())
    def _trained_under(self, loop: Loop) -> tuple[list[turns.Guard], ...]:
        """The steady tests around each call of a loop that takes part in a training step."""
        return tuple(
            turns.guards(self.script, call, loop) for call in self._calls_of(loop.body) if self._call_does(call, Does.STEPS)
        )

    def _is_whole_step(self, branch: syntax.Node, child: syntax.Node) -> bool:
        """Whether all backward passes of the loop around a branch stand in it, as in ``if turn % 4 == 0: update()`` of
        reinforcement learning: what runs each time that it is taken runs in each training step."""
        if isinstance(branch, syntax.IndentedBlock):
            return self._begins_step(branch, child)
        if not isinstance(branch, syntax.If) or child is not branch.body:
            return False
        if not self.guards.counts_steps(branch.test) and not self.guards.counts_anew(branch):
            return False
        trains = Does.BACKWARD | Does.TRAINS
        loop = self.script.source.enclosing(branch, syntax.For, syntax.While, syntax.FunctionDef)
        if not isinstance(loop, (syntax.For, syntax.While)) or not self.does(branch.body, trains):
            return False
        calls = (call for call in self.script.source.inside(loop.body, syntax.Call) if self._runs_here(call, loop.body))
        return all(self.script.source.contains(branch, call) for call in calls if self._call_does(call, trains))

    def _begins_step(self, block: syntax.IndentedBlock, child: syntax.Node) -> bool:
        """Whether a function is left in most turns before it has trained at all, ``if turn % 4 != 0: return``: what follows
        runs in each training step."""
        last = self.guards.last_of_turns_left(block, child)
        around = self.script.source.parents[block]
        if last is None or not isinstance(around, syntax.FunctionDef) or around.body is not block:
            return False
        trains = Does.BACKWARD | Does.TRAINS
        calls = (call for call in self.script.source.inside(block, syntax.Call) if self._runs_here(call, block))
        training = [call for call in calls if self._call_does(call, trains)]
        callers = [(other, call, other.loops.driving_loop(call)) for other, call in self.script.call_sites(around)]
        if not callers or any(loop is not None and other.loops.trains_beside(loop, call) for other, call, loop in callers):
            return False
        return bool(training) and all(
            call.row > last.row and not self.script.source.contains(last, call) for call in training
        )

    def trains_beside(self, around: Loop | syntax.FunctionDef, branch: syntax.Node) -> bool:
        """Whether a turn of a loop, or a function, takes training steps, or holds a loop of them, outside of a branch within
        it."""
        body = around.body
        calls = (call for call in self.script.source.inside(body, syntax.Call) if self._runs_here(call, body))
        apart = (call for call in calls if not self.script.source.contains(branch, call))
        return any(self._call_does(call, Does.STEPS) for call in apart)

    def _passes_once(self, loop: Loop) -> bool:
        """Whether a script makes this evaluation pass only once for each training, when it has trained."""
        if not self.runs_once_a_training(loop):
            return False
        function = self.script.function(loop)
        callers = self.script.call_sites(function) if function is not None else []
        return any(script.loops.trains for script in dict.fromkeys((self.script, *(script for script, _ in callers))))

    def runs_once_a_training(self, node: syntax.Node) -> bool:
        """Whether no loop but those over whole trainings, as over folds or experiments, is around any run of the node."""
        function = self.script.function(node)
        return (function is None or bool(self.script.call_sites(function))) and self._is_outside(node)

    @once(False)
    def _is_outside(self, node: syntax.Node) -> bool:
        child = node
        for up in self.script.source.ancestors(node):
            if isinstance(up, (syntax.For, syntax.While)) and child is up.body:
                is_driven = self.kind(up) is not None and not self._is_over_splits(up)
                if is_driven and not self._repeats_trainings(up):
                    return False
            if isinstance(up, (syntax.FunctionDef, syntax.Lambda)) and child is up.body:
                callers = self.script.call_sites(up) if isinstance(up, syntax.FunctionDef) else []
                return isinstance(up, syntax.FunctionDef) and all(script.loops._is_outside(call) for script, call in callers)
            child = up
        return True

    def _is_short(self, loop: Loop) -> bool:
        """Whether an evaluation is left after a handful of batches, by its own count, as one that draws samples is."""
        most = counts.left_after(self.script, loop)
        return most is not None and most <= _HANDFUL

    def _is_over_splits(self, loop: Loop) -> bool:
        """Whether a loop evaluates on each of a few things written out, as on the splits of the data."""
        if not isinstance(loop, syntax.For) or self.does(loop.body, Does.TRAINS):
            return False
        iterated = loop.iter
        if isinstance(iterated, syntax.Call) and isinstance(iterated.func, syntax.Attribute) and not iterated.args:
            iterated = iterated.func.value
        written = [iterated, *(node for _, node in self.script.roles.origins(iterated))]
        return any(isinstance(each, (syntax.Tuple, syntax.List, syntax.Dict)) for each in written)

    def _repeats_trainings(self, loop: Loop) -> bool:
        """Whether each turn makes its optimizer and trains with it, and does not only change it when it has trained."""
        begins, order = Does.TRAINS | Does.MAKES_OPTIMIZER, self.script.source.order
        if self.does(loop.body, begins) != begins:
            return False
        calls = [call for call in self.script.source.inside(loop.body, syntax.Call) if self._runs_here(call, loop.body)]
        made = (order[call] for call in calls if self._call_does(call, Does.MAKES_OPTIMIZER))
        trained = (order[call] for call in calls if self._call_does(call, Does.STEPS))
        return min(made, default=0) <= max(trained, default=0)

    @property
    @once(False)
    def trains(self) -> bool:
        """Whether the script holds a loop of training steps."""
        return any(self.kind(loop) is Frequency.STEP for loop in self.all)

    @property
    def all(self) -> list[Loop]:
        """The script's loops."""
        return [*self.script.source.of(syntax.For), *self.script.source.of(syntax.While)]

    @property
    @once([])
    def driving(self) -> list[syntax.Node]:
        """The bodies of the script's loops that drive training, and of its methods that a framework calls in steps."""
        named = (each for each in self.script.source.of(syntax.FunctionDef) if each.name.value in _CALLED_IN_STEPS)
        methods = [each.body for each in named if self._of_step_method(each) is not Frequency.ONCE]
        return [*(loop.body for loop in self.all if self.kind(loop) is not None), *methods]

    def of_function(self, function: syntax.FunctionDef, where: tuple[modes.Condition, ...] = ()) -> Frequency:
        """How often a function runs: as often as its busiest known call, of those that meet some conditions."""
        answer = self.script.program.flow.ask
        return answer(("frequency", function, where), lambda: self._busiest_call(function, where), Frequency.ONCE)

    def _busiest_call(self, function: syntax.FunctionDef, where: tuple[modes.Condition, ...]) -> Frequency:
        for among in driven.Among:
            sites = driven.sites(self.script, function, among)
            otherwise = Frequency.ONCE if sites else self._of_step_method(function)
            sites = modes.reaching(self.script, function, where, sites) if where else sites
            found = max((self._runs_by(function, script, call) for script, call in sites), default=otherwise)
            if found is Frequency.STEP:
                break
        if found is Frequency.EVAL_STEP and operations.is_backward(self.script, function):
            return Frequency.ONCE
        if found is Frequency.ONCE and function.name.value in _STEPS_BY_NAME and self._is_unseen(function, _DEPTH):
            return self._by_name(function)
        return found

    def _by_name(self, function: syntax.FunctionDef) -> Frequency:
        """How often a method runs that is called as a step is, where what drives it is out of sight: one that takes a step
        itself, and what evaluates beside it."""
        owner, method = self.script.names.owner(function), self.script.roles.calls.method
        if owner is None:
            return Frequency.ONCE
        if function.name.value in _STEP_METHODS:
            return Frequency.STEP if _takes_step(Definition(self.script, function)) else Frequency.ONCE
        steps = (method(Definition(self.script, owner), name) for name in sorted(_STEP_METHODS))
        takes = any(each is not None and _takes_step(each) for each in steps)
        return Frequency.EVAL_STEP if takes else Frequency.ONCE

    def _is_unseen(self, function: syntax.FunctionDef, depth: int) -> bool:
        """Whether all that is seen to call a function stands in functions that nothing is seen to call."""
        for place, call in self.script.call_sites(function):
            around = place.function(call)
            if around is None or not depth or not place.loops._is_unseen(around, depth - 1):
                return False
        return True

    def _runs_by(self, function: syntax.FunctionDef, script: Script, call: syntax.Call) -> Frequency:
        """How often a call runs a function. Where it runs one of several, and this one takes many steps of the training, the
        others make a step of what is an epoch for it."""
        often = script.loops.frequency(call)
        if often is Frequency.STEP and len(script.roles.calls.called(call)) > 1:
            does = self.function_does(function, Does.STEPS)
            return Frequency.EPOCH if does & Does.TRAINS and not does & Does.OPTIMIZER_STEP else often
        return often

    def is_driven(self, node: syntax.Node) -> bool:
        """Whether the node may run in steps: its function holds a loop that drives them, or is called from one."""
        return self._is_driven(self.script.function(node))

    @once([])
    def driven_nodes(self, kind: type[Node]) -> list[Node]:
        """The script's nodes of a type that are driven, in source order."""
        nodes = self.script.source.of(kind)
        functions = [self.script.function(node) for node in nodes]
        is_driven = {function: self._is_driven(function) for function in dict.fromkeys(functions)}
        return [node for node, function in zip(nodes, functions, strict=True) if is_driven[function]]

    @once(False)
    def _is_driven(self, function: syntax.FunctionDef | None) -> bool:
        if function is not None and self.of_function(function) is not Frequency.ONCE:
            return True
        return any(self.script.function(loop) is function and self.kind(loop) is not None for loop in self.all)

    def callers(self, node: syntax.Node) -> list[tuple[Script, syntax.Call]]:
        """The calls that make a node run as often as it does, where the loop that drives it stands in another function."""
        function = self.script.function(node)
        if function is None or self.driving_loop(node) is not None:
            return []
        where = modes.conditions(self.script, node)
        often = self.of_function(function, where)
        sites = modes.reaching(self.script, function, where, driven.sites(self.script, function))
        return [(other, call) for other, call in sites if other.loops.frequency(call) is often]

    def _of_step_method(self, function: syntax.FunctionDef) -> Frequency:
        """How often a method runs that a framework calls by its name: ``training_step``, a callback's hook."""
        owner, name = self.script.names.owner(function), function.name.value
        if owner is None or name not in _CALLED_IN_STEPS:
            return Frequency.ONCE
        definition = Definition(self.script, owner)
        hook = self.script.roles.calls.hook(definition, name)
        if (hook is None and name not in _STEP_METHODS) or self.script.call_sites(function):
            return Frequency.ONCE
        if hook is not None:
            return hook.frequency
        is_step = name in _STEP_METHODS and self.script.roles.instance(definition).role is Role.MODULE
        return Frequency.STEP if is_step else Frequency.ONCE

    def driving_loop(self, node: syntax.Node) -> Loop | None:
        """The innermost loop around the node, in its own function, that drives steps or evaluation steps."""
        source = self.script.source
        up = source.enclosing(node, *_RUN_BODIES)
        while isinstance(up, _RUN_BODIES):
            if source.contains(up.body, node):
                if isinstance(up, syntax.FunctionDef):
                    return None
                if self.kind(up) in (Frequency.STEP, Frequency.EVAL_STEP):
                    return up
            up = source.enclosing(up, *_RUN_BODIES)
        return None

    @once(False)
    def accumulates(self, loop: Loop) -> bool:
        """Whether a training step of the loop is many micro-steps, so that what it does once it does rarely."""
        source = self.script.source
        inner: list[Loop] = [*source.inside(loop.body, syntax.For), *source.inside(loop.body, syntax.While)]
        return any(
            self._runs_here(each, loop.body)
            and self.kind(each) is Frequency.STEP
            and not self.does(each.body, Does.OPTIMIZER_STEP)
            and not self._is_alternative(each, loop)
            for each in inner
        )

    def _is_alternative(self, inner: Loop, loop: Loop) -> bool:
        """Whether a loop is one way to run a step backward, by parts, beside another: ``if chunks > 1: ... else: ...``."""
        child: syntax.Node = inner
        for up in self.script.source.ancestors(inner):
            if up is loop:
                break
            if isinstance(up, syntax.If) and up.orelse is not None:
                other = up.orelse if child is up.body else up.body
                if child is not up.test and self.does(other, Does.BACKWARD):
                    return True
            child = up
        return False

    # What code does

    @once(None)
    def kind(self, loop: Loop) -> Frequency | None:
        """STEP, EVAL_STEP or EPOCH for a loop that drives training; None for any other."""
        if self._is_over_optimizers(loop) or self.is_left_for_good(loop) or not self.script.order.is_run(loop):
            return None
        if self._steps_itself(loop):
            return Frequency.EPOCH if self._steps_within_pass(loop) else Frequency.STEP
        does = self.does(loop.body, Does.STEPS)
        if does & Does.OPTIMIZER_STEP:
            return Frequency.STEP
        if does & Does.BACKWARD and not does & Does.TRAINS and self._may_update(loop):
            return None if self._drops_gradients(loop) else Frequency.STEP
        if does & Does.TRAINS:
            return Frequency.EPOCH
        if self.iterates_loader(loop) or self._is_evaluation(loop):
            return Frequency.EVAL_STEP
        if self.does(loop.body, Does.EVALUATES):
            return Frequency.EPOCH
        return None

    def _may_update(self, loop: Loop) -> bool:
        """Whether parameters may be updated around backward passes: not by what nothing calls and that speaks of no update,
        such as a helper that measures how long they take."""
        function = self.script.function(loop)
        if function is None or self.script.call_sites(function):
            return True
        return _UPDATES.search(self.script.text(function).encode()) is not None

    def _drops_gradients(self, loop: Loop) -> bool:
        """Whether a loop clears what each of its backward passes gives right behind it: it tries out what a step needs, as
        for the largest batches, and takes none."""
        own = [call for call in self._own(Does.STEPS) if self.script.source.contains(loop.body, call)]
        if not own or not all(map(self._is_dropped, own)) or b"register_hook(" in self.script.source.data:
            return False
        if self.script.program.mentions(self.script, _HOOKS_UPDATE):
            return False
        return all(self._only_tells(loop, each) for each in own)

    def _only_tells(self, loop: Loop, backward: syntax.Call) -> bool:
        """Whether all that follows in a turn, behind a backward pass and the line behind it, writes to a log."""
        node: syntax.Node = self.script.source.statement(backward)
        passed_by = 2
        while node is not loop:
            block = self.script.source.parents[node]
            if not isinstance(block, syntax.IndentedBlock):
                return False
            if not all(map(self._tells, block.body[block.body.index(node) + passed_by :])):
                return False
            node, passed_by = self.script.source.parents[block], 1
            if node is not loop and not isinstance(node, syntax.Try | syntax.With):
                return False
        return True

    def _tells(self, line: syntax.Node) -> bool:
        match line:
            case syntax.SimpleStatementLine(body=[syntax.Expr(value=syntax.Call(func=func))]):
                name = self.script.name(func) or ""
                return name == "print" or name.startswith("logging.")
        return False

    def _is_dropped(self, backward: syntax.Call) -> bool:
        """Whether the statement behind a backward pass clears the gradients."""
        line = self.script.source.statement(backward)
        block = self.script.source.parents[line]
        behind = block.body[block.body.index(line) + 1 :] if isinstance(block, syntax.IndentedBlock) else ()
        match behind:
            case [syntax.SimpleStatementLine(body=[syntax.Expr(value=syntax.Call(func=syntax.Attribute() as func))]), *_]:
                return func.attr.value == "zero_grad" and self.script.role(func.value) is Role.OPTIMIZER
        return False

    def ends_in_first_turn(self, loop: Loop) -> bool:
        """Whether no second turn ever begins: the body ends in a ``break``, and nothing in it goes on with the next turn."""
        return self._ends_in_break(loop) and not any(True for _ in self._continues(loop))

    def is_left_for_good(self, loop: Loop) -> bool:
        """Whether a loop has one turn, or none after one that trains, where the loop around it has one turn:
        ``if not enough: continue``, a step, and a ``break`` in each of both."""
        if self.ends_in_first_turn(loop):
            return True
        around = self.script.source.enclosing(loop, syntax.For, syntax.While, syntax.FunctionDef)
        if not isinstance(around, (syntax.For, syntax.While)) or not self.ends_in_first_turn(around):
            return False
        if not self._ends_in_break(loop):
            return False
        last = max(each.row for each in self._continues(loop))
        steps = [call for call in self._calls_of(loop.body) if self._call_does(call, Does.STEPS)]
        return bool(steps) and all(call.row > last for call in steps)

    def _ends_in_break(self, loop: Loop) -> bool:
        match loop.body:
            case syntax.IndentedBlock(body=[*_, syntax.SimpleStatementLine(body=[*_, syntax.Break()])]):
                return True
        return False

    def _continues(self, loop: Loop) -> Iterator[syntax.Continue]:
        """What goes on with the next turn of a loop, and not of one within it."""
        return (each for each in self.script.source.inside(loop.body, syntax.Continue) if self._gone_on_with(each) is loop)

    def _gone_on_with(self, jump: syntax.Continue) -> syntax.Node | None:
        """The loop that a ``continue`` goes on with: in the ``else`` of a loop, the one around that."""
        source = self.script.source
        around = source.enclosing(jump, syntax.For, syntax.While)
        while isinstance(around, (syntax.For, syntax.While)) and not source.contains(around.body, jump):
            around = source.enclosing(around, syntax.For, syntax.While)
        return around

    def _steps_itself(self, loop: Loop) -> bool:
        """Whether an optimizer's step is written in the loop, and in no loop within it: the rest cannot change its kind."""
        return any(
            self._own(Does.STEPS).get(call) is Does.OPTIMIZER_STEP
            and self._runs_here(call, loop.body)
            and not self._loops_between(call, loop.body)
            for call in self.script.method_calls("step")
            if self.script.source.contains(loop.body, call)
        )

    def _steps_within_pass(self, loop: Loop) -> bool:
        """Whether a loop within goes over a loader and takes steps, and the loop's own step is for what that leaves."""
        return any(
            self._own(Does.STEPS)[call] is Does.OPTIMIZER_STEP
            and any(self.iterates_loader(inner) for inner in self._loops_between(call, loop.body))
            for call in self.script.method_calls("step")
            if call in self._own(Does.STEPS) and self.script.source.contains(loop.body, call)
        )

    def _is_evaluation(self, loop: Loop) -> bool:
        """Whether a loop that goes over no loader still runs a module for evaluation, once a turn on something new."""
        calls = [
            call
            for call in self.script.source.inside(loop.body, syntax.Call)
            if (self.script.name(call.func) is None or self.script.callee(call) is not None)
            and self._runs_here(call, loop.body)
            and not self._loops_between(call, loop.body)
        ]
        fed = passes.feeding(self.script, loop, calls)
        if not any(self._call_does(call, Does.FORWARD) and not self._call_does(call, Does.EVALUATES) for call in fed):
            return False
        if self._adds_to_loss(loop):
            return False
        if told(self.script, loop) is True or self._is_after_eval(loop):
            return True
        return bool(self.does(loop.body, Does.NO_TRAINING)) and not self._differentiates(loop)

    def _differentiates(self, loop: Loop) -> bool:
        """Whether a loop takes gradients too, as an update does that takes no step of an optimizer of torch's."""
        return self.script.program.mentions(self.script, _DIFFERENTIATES) and bool(self.does(loop.body, Does.DIFFERENTIATES))

    def _adds_to_loss(self, loop: Loop) -> bool:
        """Whether a loop adds to what its function runs backward behind it: its turns are parts of one training step."""
        source = self.script.source
        run = (call.func.value for call in self.script.method_calls("backward") if isinstance(call.func, syntax.Attribute))
        losses = (name for each in run for name in source.inside(each, syntax.Name))
        behind = [loss for loss in losses if self.script.order.may_run_before(loop, loss)]
        bound = {binding.node: binding for loss in behind for binding in self.script.names.reaching(loss)}
        return any(source.contains(loop.body, node) and self._adds(binding) for node, binding in bound.items())

    def _adds(self, binding: Binding) -> bool:
        """Whether an assignment gives a name what it had and more: ``loss += part``, ``loss = loss + part``."""
        up = self.script.source.parents[binding.node]
        if isinstance(up, syntax.AugAssign):
            return True
        name, value = binding.node, binding.value
        if not isinstance(name, syntax.Name) or not isinstance(value, syntax.BinaryOperation):
            return False
        return any(part.value == name.value for part in self.script.source.inside(value, syntax.Name))

    def _is_after_eval(self, loop: Loop) -> bool:
        function = self.script.function(loop)
        if passes.is_in_eval_mode(self.script, loop):
            return True
        return any(
            self.script.order.may_run_before(call, loop)
            and passes.sets_eval_mode(self.script, call)
            and modes.is_common(self.script, call)
            for call in self.script.method_calls("eval", "train")
            if self.script.function(call) is function
        )

    def does(self, block: syntax.Node, wanted: Does = Does.ALL) -> Does:
        """What of ``wanted`` a block does when it runs once."""
        found = Does.NOTHING
        for part in _parts(wanted, _APART):
            found |= self._does_of(block, part)
        return found & wanted

    @once(Does.NOTHING)
    def _does_of(self, block: syntax.Node, part: Does) -> Does:
        source, found = self.script.source, Does.NOTHING
        for call in self._calls_of(block):
            if found == part:
                break
            does = self._call_does(call, part)
            if not does or not self.script.order.is_run(call):
                continue
            inner = self._loops_between(call, block)
            steps = self._call_does(call, _STEP) if inner else Does.NOTHING
            if not steps:
                found |= does
            elif part is Does.STEPS:
                found |= self._steps_within(inner, steps)
        if part is Does.EVALUATES and not found:
            loops: list[Loop] = [*source.inside(block, syntax.For), *source.inside(block, syntax.While)]
            if any(self._runs_here(loop, block) and self.kind(loop) is Frequency.EVAL_STEP for loop in loops):
                found = Does.EVALUATES
        return found

    @listed_once
    def _calls_of(self, block: syntax.Node) -> Iterator[syntax.Call]:
        """The calls that run as part of a block."""
        return (call for call in self.script.source.inside(block, syntax.Call) if self._runs_here(call, block))

    def _steps_within(self, inner: list[Loop], does: Does) -> Does:
        """Steps inside an inner loop make that loop the training loop, unless it only accumulates gradients."""
        if does & Does.OPTIMIZER_STEP:
            return Does.TRAINS
        inside = self.script.source.inside(inner[-1].body, syntax.Call)
        accumulates = not any(self._call_does(call, Does.OPTIMIZER_STEP) for call in inside)
        return Does.BACKWARD if accumulates and self._optimizer_steps_beside(inner[-1]) else Does.TRAINS

    def _optimizer_steps_beside(self, loop: Loop) -> bool:
        """Whether the optimizer steps in the block that holds the loop, as in gradient accumulation over micro-batches."""
        block = self.script.source.parents[loop]
        return any(
            self._call_does(call, Does.OPTIMIZER_STEP)
            for call in self.script.source.inside(block, syntax.Call)
            if not self.script.source.contains(loop, call)
        )

    def _runs_here(self, node: syntax.Node, block: syntax.Node) -> bool:
        """Whether the node runs as part of the block, not in a function defined within it."""
        rows = self.script.source.tree.rows
        above, kinds, row, outer = rows.parent, rows.kind, node.row, block.row
        if not self.script.source.contains(block, node):
            return False
        while row != outer:
            row = above[row]
            if kinds[row] in _DEFINITIONS and row != outer:
                return False
        return True

    def _loops_between(self, node: syntax.Node, block: syntax.Node) -> list[Loop]:
        """The loops around the node within the block, innermost first."""
        found: list[Loop] = []
        for up in self.script.source.ancestors(node):
            if up is block:
                break
            if isinstance(up, (syntax.For, syntax.While)) and not self._is_over_optimizers(up):
                found.append(up)
        return found

    @once(False)
    def _is_over_optimizers(self, loop: Loop) -> bool:
        """Whether a loop only steps each of several optimizers, as in ``for each in (first, second): each.step()``."""
        steps = [call for call in self.script.method_calls("step") if self.script.source.contains(loop.body, call)]
        if not steps or not isinstance(loop, syntax.For):
            return False
        targets = {name.value for name in self.script.source.inside(loop.target, syntax.Name)}
        source = self.script.source
        if any(source.contains(loop.body, call) for call in self.script.method_calls("backward", "manual_backward")):
            return False
        if any(True for kind in (syntax.For, syntax.While) for _ in source.inside(loop.body, kind)):
            return False
        stepped = [call.func.value for call in steps if isinstance(call.func, syntax.Attribute)]
        return all(
            isinstance(each, syntax.Name) and each.value in targets and self.script.role(each) is Role.OPTIMIZER
            for each in stepped
        )

    def _call_does(self, call: syntax.Call, wanted: Does) -> Does:
        for part in _parts(wanted, _OWN, Does.STEPS):
            own = self._own(part).get(call)
            if own is not None:
                return own & wanted
        found = Does.NOTHING
        if Does.FORWARD in _parts(wanted, _APART) and self.script.role(call.func) is Role.MODULE:
            found = Does.FORWARD
        if found == wanted or not self._may_lead(call, wanted):
            return found
        does = Does.NOTHING
        for callee in self.script.roles.calls.called(call):
            if isinstance(callee.node, syntax.FunctionDef):
                does |= callee.script.loops.function_does(callee.node, wanted)
        return found | (does & ~Does.STEPS if does & Does.STEPS and self._cannot_step(call) else does)

    def _cannot_step(self, call: syntax.Call) -> bool:
        """Whether a call runs without gradients, so that a backward pass in the function it calls is not reached: one that
        training and evaluation share."""
        return told(self.script, call) is True and not self.script.program.mentions(self.script, _SWITCHES_ON)

    def _may_lead(self, call: syntax.Call, wanted: Does) -> bool:
        """Whether a call may lead to what is wanted, by its name."""
        return wanted not in Does.STEPS or leads.around(self.script).may(call)

    @property
    def steps(self) -> list[syntax.Call]:
        """The calls that are themselves a backward pass or an optimizer's step."""
        return list(self._own(Does.STEPS))

    @once(_NO_CALLS)
    def _own(self, part: Does) -> dict[syntax.Call, Does]:
        return dict(self._find_own(part))

    def _find_own(self, part: Does) -> Iterator[tuple[syntax.Call, Does]]:
        script = self.script
        if part is Does.STEPS:
            backward = [*script.method_calls("backward", "manual_backward"), *script.calls("torch.autograd.backward")]
            if backward and script.program.mentions(script, _UPDATES):
                yield from ((call, Does.BACKWARD) for call in backward)
            for call in script.method_calls("step"):
                assert isinstance(call.func, syntax.Attribute)
                role = script.role(call.func.value)
                if role is Role.OPTIMIZER or (role is Role.SCALER and call.args):
                    yield call, Does.OPTIMIZER_STEP
            if script.program.mentions(script, leads.UPDATERS):
                held = leads.of_updaters(script)
                for call in script.source.of(syntax.Call):
                    if (held.may(call) or isinstance(call.func, syntax.Call)) and self._is_of_updater(call):
                        yield call, _STEP
        elif part is Does.DIFFERENTIATES:
            yield from ((call, part) for call in script.calls("torch.autograd.grad"))
            if b"scipy" in script.source.data:
                calls = (call for call in script.source.of(syntax.Call) if call.args)
                yield from ((call, part) for call in calls if (script.name(call.func) or "").startswith(_MINIMIZERS))
        elif part is Does.MAKES_OPTIMIZER:
            for call in script.source.of(syntax.Call):
                if library.makes_optimizer(script.name(call.func) or ""):
                    yield call, Does.MAKES_OPTIMIZER
        else:
            for call in (*script.calls(*library.NO_GRADS), *script.method_calls("eval", "train")):
                if switches(script, call) is True or passes.sets_eval_mode(script, call):
                    yield call, Does.NO_TRAINING

    def _is_of_updater(self, call: syntax.Call) -> bool:
        """Whether a call hands a loss and an optimizer to a library's object that takes the step."""
        return len(call.args) > 1 and any(
            isinstance(made, syntax.Call) and script.name(made.func) in library.UPDATERS
            for script, made in self.script.roles.origins(call.func)
        )

    def takes_steps(self) -> bool:
        """Whether the script's own code, or a function that it calls, takes training steps."""
        if self._own(Does.STEPS):
            return True
        functions = self.script.source.of(syntax.FunctionDef)
        module = self.does(self.script.source.module, Does.STEPS)
        return bool(module) or any(self.function_does(function, Does.STEPS) for function in functions)

    def function_does(self, function: syntax.FunctionDef, wanted: Does = Does.ALL) -> Does:
        """What of ``wanted`` a function of this script does when it is called once."""
        return self.does(function.body, wanted)

    def _is_over_parts(self, iterated: syntax.BaseExpression) -> bool:
        """Whether a ``for`` goes over the parts of one batch, as in ``for key in batch.keys()``, or over a few that are
        written out or handed to a function as its ``*tensors``."""
        match iterated:
            case syntax.Call(func=syntax.Attribute(value=value, attr=syntax.Name(value="keys" | "values" | "items"))):
                return self.script.role(value) in (Role.BATCH, Role.MAPPING)
            case syntax.Tuple() | syntax.List():
                return True
            case syntax.Name():
                function = self.script.function(iterated)
                beyond = function.params.star_arg if function is not None else None
                bound = [each.node for each in self.script.names.reaching(iterated)]
                if isinstance(beyond, syntax.Param) and bound == [beyond]:
                    return True
        return self.script.role(iterated) is Role.BATCH

    def _is_over_items(self, loop: syntax.For) -> bool:
        """Whether a ``for`` takes the items of a dataset of the project by their number, which may be parts of one step."""
        given = (self.script.value(iterated) for _, iterated in gone_over(self.script, loop))
        return any(each.role is Role.DATASET and each.definition is not None for each in given)

    def iterates_loader(self, loop: Loop) -> bool:
        """Whether a ``for`` goes over a loader, through ``enumerate``, ``tqdm`` and the like."""
        if not isinstance(loop, syntax.For) or self._is_over_parts(loop.iter) or self._is_over_items(loop):
            return False
        element = self.script.roles.element(self.script.value(loop.iter))
        parts = [element, *filter(None, element.items)]
        parts += [inner for part in parts for inner in part.items if inner is not None]
        return any(part.role is Role.BATCH for part in parts)


def _takes_step(method: Definition) -> bool:
    """Whether a method steps an optimizer, in no loop of its own."""
    node = method.node
    return isinstance(node, syntax.FunctionDef) and bool(method.script.loops.function_does(node, Does.OPTIMIZER_STEP))
