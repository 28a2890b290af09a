"""How often a line runs: each training step, each evaluation step, throttled, each epoch, once.

The innermost driving loop decides: one with a backward pass in it (STEP), one over a loader without (EVAL_STEP), one around
such a loop (EPOCH). Guards between the line and the loop limit it (``guards``). A function runs as often as its busiest
call.
"""

from __future__ import annotations

import enum
import re
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.semantics import library, passes
from speedlint.semantics.gradients import switches, told
from speedlint.semantics.guards import Guards
from speedlint.semantics.terms import Definition, Frequency, Role

if TYPE_CHECKING:
    from speedlint.semantics.script import Script

Loop = syntax.For | syntax.While


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


_NO_CALLS: dict[syntax.Call, Does] = {}
_UPDATES = re.compile(
    rb"(?i)optim|step|sgd|adam\b|adam\w*\(|minimi[sz]e|trainer|updat|learning_rate|\blr\b|(?<!utils)\.data\b|_foreach_|-=|no_grad"
    rb"|\b(?:sub|add|addcdiv|addcmul|mul|lerp|copy)_\("
)
"""What a program says somewhere that may update parameters: by an optimizer, by a framework, or by hand."""
_STEP_METHODS = frozenset({"training_step", "train_step"})
_EVAL_STEP_METHODS = frozenset({"validation_step"})


class Loops:
    """Answers for one script."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.guards = Guards(script)

    # Frequency

    def frequency(self, node: syntax.Node) -> Frequency:
        """How often the node runs, at most."""
        return self.script.program.flow.ask(("runs", node), lambda: self._frequency(node), Frequency.ONCE)

    def _frequency(self, node: syntax.Node) -> Frequency:
        limit, counted = Frequency.STEP, False
        child = node
        for up in self.script.source.ancestors(node):
            if isinstance(up, (syntax.FunctionDef, syntax.Lambda)):
                if isinstance(up, syntax.Lambda) or child is not up.body:
                    child = up
                    continue
                return min(self.of_function(up), limit)
            limit = min(limit, Frequency.STEP if self._is_whole_step(up, child) else self.guards.limit(up, child))
            counted = counted or (isinstance(up, syntax.If) and child is up.body and self.guards.counts_steps(up.test))
            if isinstance(up, (syntax.For, syntax.While)) and child is up.body:
                kind = self.kind(up)
                if kind is not None:
                    if kind is Frequency.EVAL_STEP and self._passes_once(up):
                        limit = min(limit, Frequency.THROTTLED)
                    return min(kind, limit, Frequency.THROTTLED if counted and self.accumulates(up) else kind)
            child = up
        return Frequency.ONCE

    def _is_whole_step(self, branch: syntax.Node, child: syntax.Node) -> bool:
        """Whether all backward passes of the loop around a branch stand in it, as in ``if turn % 4 == 0: update()`` of
        reinforcement learning: what runs each time that it is taken runs in each training step."""
        if not isinstance(branch, syntax.If) or child is not branch.body or not self.guards.counts_steps(branch.test):
            return False
        trains = Does.BACKWARD | Does.TRAINS
        loop = self.script.source.enclosing(branch, syntax.For, syntax.While, syntax.FunctionDef)
        if not isinstance(loop, (syntax.For, syntax.While)) or not self.does(branch.body) & trains:
            return False
        calls = (call for call in self.script.source.inside(loop.body, syntax.Call) if self._runs_here(call, loop.body))
        return all(self.script.source.contains(branch, call) for call in calls if self._call_does(call) & trains)

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

    def _is_outside(self, node: syntax.Node) -> bool:
        return self.script.program.flow.ask(("once a training", node), lambda: self._is_outside_trainings(node), False)

    def _is_outside_trainings(self, node: syntax.Node) -> bool:
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

    def _is_over_splits(self, loop: Loop) -> bool:
        """Whether a loop evaluates on each of a few things written out, as on the splits of the data."""
        if not isinstance(loop, syntax.For) or self.does(loop.body) & Does.TRAINS:
            return False
        iterated = loop.iter
        if isinstance(iterated, syntax.Call) and isinstance(iterated.func, syntax.Attribute) and not iterated.args:
            iterated = iterated.func.value
        written = [iterated, *(node for _, node in self.script.roles.origins(iterated))]
        return any(isinstance(each, (syntax.Tuple, syntax.List, syntax.Dict)) for each in written)

    def _repeats_trainings(self, loop: Loop) -> bool:
        """Whether each turn makes its optimizer and trains with it."""
        begins = Does.TRAINS | Does.MAKES_OPTIMIZER
        return self.does(loop.body) & begins == begins

    @property
    def trains(self) -> bool:
        """Whether the script holds a loop of training steps."""
        return self.script.once("trains", self._holds_steps, False)

    def _holds_steps(self) -> bool:
        loops: list[Loop] = [*self.script.source.of(syntax.For), *self.script.source.of(syntax.While)]
        return any(self.kind(loop) is Frequency.STEP for loop in loops)

    def of_function(self, function: syntax.FunctionDef) -> Frequency:
        """How often a function runs: as often as its busiest known call."""
        answer = self.script.program.flow.ask
        return answer(("frequency", function), lambda: self._busiest_call(function), Frequency.ONCE)

    def _busiest_call(self, function: syntax.FunctionDef) -> Frequency:
        return max(
            (script.loops.frequency(call) for script, call in self.script.call_sites(function)),
            default=self._of_step_method(function),
        )

    def callers(self, node: syntax.Node) -> list[tuple[Script, syntax.Call]]:
        """The calls that make a node run as often as it does, where the loop that drives it stands in another function."""
        function = self.script.function(node)
        if function is None or self.driving_loop(node) is not None:
            return []
        often = self.of_function(function)
        return [(other, call) for other, call in self.script.call_sites(function) if other.loops.frequency(call) is often]

    def _of_step_method(self, function: syntax.FunctionDef) -> Frequency:
        """How often a method runs that a framework calls by its name: ``training_step``, Lightning's ``validation_step``."""
        owner, name = self.script.names.owner(function), function.name.value
        if owner is None or name not in _STEP_METHODS | _EVAL_STEP_METHODS:
            return Frequency.ONCE
        definition = Definition(self.script, owner)
        if name in _EVAL_STEP_METHODS:
            bases = self.script.roles.calls.foreign_bases(definition)
            return Frequency.EVAL_STEP if any(base in library.LIGHTNING_MODULES for base in bases) else Frequency.ONCE
        is_module = self.script.roles.instance(definition).role is Role.MODULE
        return Frequency.STEP if is_module else Frequency.ONCE

    def driving_loop(self, node: syntax.Node) -> Loop | None:
        """The innermost loop around the node, in its own function, that drives steps or evaluation steps."""
        child = node
        for up in self.script.source.ancestors(node):
            if isinstance(up, syntax.FunctionDef) and child is up.body:
                return None
            if (
                isinstance(up, (syntax.For, syntax.While))
                and child is up.body
                and self.kind(up) in (Frequency.STEP, Frequency.EVAL_STEP)
            ):
                return up
            child = up
        return None

    def accumulates(self, loop: Loop) -> bool:
        """Whether a training step of the loop is many micro-steps, so that what it does once it does rarely."""
        source = self.script.source
        inner: list[Loop] = [*source.inside(loop.body, syntax.For), *source.inside(loop.body, syntax.While)]
        return any(
            self._runs_here(each, loop.body)
            and self.kind(each) is Frequency.STEP
            and not self.does(each.body) & Does.OPTIMIZER_STEP
            for each in inner
        )

    # What code does

    def kind(self, loop: Loop) -> Frequency | None:
        """STEP, EVAL_STEP or EPOCH for a loop that drives training; None for any other."""
        return self.script.program.flow.ask(("kind", loop), lambda: self._kind(loop), None)

    def _kind(self, loop: Loop) -> Frequency | None:
        does = self.does(loop.body)
        if does & Does.OPTIMIZER_STEP or (does & Does.BACKWARD and not does & Does.TRAINS):
            return Frequency.STEP
        if does & Does.TRAINS:
            return Frequency.EPOCH
        if self.iterates_loader(loop) or self.is_evaluation(loop, does):
            return Frequency.EVAL_STEP
        if does & Does.EVALUATES:
            return Frequency.EPOCH
        return None

    def is_evaluation(self, loop: Loop, does: Does) -> bool:
        """Whether a loop that goes over no loader still runs a module for evaluation, once a turn on something new."""
        if not does & Does.FORWARD:
            return False
        calls = [
            call
            for call in self.script.source.inside(loop.body, syntax.Call)
            if self._call_does(call) & (Does.FORWARD | Does.EVALUATES) == Does.FORWARD
            and self._runs_here(call, loop.body)
            and not self._loops_between(call, loop.body)
        ]
        if not passes.feeds_module(self.script, loop, calls):
            return False
        return bool(does & Does.NO_TRAINING) or told(self.script, loop) is True or self._is_after_eval(loop)

    def _is_after_eval(self, loop: Loop) -> bool:
        function = self.script.function(loop)
        return any(
            self.script.order.may_run_before(call, loop) and passes.sets_eval_mode(self.script, call)
            for call in self.script.method_calls("eval", "train")
            if self.script.function(call) is function
        )

    def does(self, block: syntax.Node) -> Does:
        """What a block does when it runs once."""
        return self.script.program.flow.ask(("block", block), lambda: self._does(block), Does.NOTHING)

    def _does(self, block: syntax.Node) -> Does:
        source, found = self.script.source, Does.NOTHING
        for call in source.inside(block, syntax.Call):
            if not self._runs_here(call, block):
                continue
            does = self._call_does(call)
            if not does:
                continue
            inner = self._loops_between(call, block)
            if does & (Does.BACKWARD | Does.OPTIMIZER_STEP) and inner:
                found |= self._steps_within(inner, does)
            else:
                found |= does
        loops: list[Loop] = [*source.inside(block, syntax.For), *source.inside(block, syntax.While)]
        for loop in loops:
            if self._runs_here(loop, block) and self.kind(loop) is Frequency.EVAL_STEP:
                found |= Does.EVALUATES
        return found

    def _steps_within(self, inner: list[Loop], does: Does) -> Does:
        """Steps inside an inner loop make that loop the training loop, unless it only accumulates gradients."""
        if does & Does.OPTIMIZER_STEP:
            return Does.TRAINS
        inside = self.script.source.inside(inner[-1].body, syntax.Call)
        accumulates = not any(self._call_does(call) & Does.OPTIMIZER_STEP for call in inside)
        return Does.BACKWARD if accumulates and self._optimizer_steps_beside(inner[-1]) else Does.TRAINS

    def _optimizer_steps_beside(self, loop: Loop) -> bool:
        """Whether the optimizer steps in the block that holds the loop, as in gradient accumulation over micro-batches."""
        block = self.script.source.parents[loop]
        return any(
            self._call_does(call) & Does.OPTIMIZER_STEP
            for call in self.script.source.inside(block, syntax.Call)
            if not self.script.source.contains(loop, call)
        )

    def _runs_here(self, node: syntax.Node, block: syntax.Node) -> bool:
        """Whether the node runs as part of the block, not in a function defined within it."""
        for up in self.script.source.ancestors(node):
            if up is block:
                return True
            if isinstance(up, (syntax.FunctionDef, syntax.ClassDef)):
                return False
        return node is block

    def _loops_between(self, node: syntax.Node, block: syntax.Node) -> list[Loop]:
        """The loops around the node within the block, innermost first."""
        found: list[Loop] = []
        for up in self.script.source.ancestors(node):
            if up is block:
                break
            if isinstance(up, (syntax.For, syntax.While)):
                found.append(up)
        return found

    def _call_does(self, call: syntax.Call) -> Does:
        own = self.script.once("own steps", self._find_own, _NO_CALLS).get(call)
        if own is not None:
            return own
        found = Does.FORWARD if self.script.role(call.func) is Role.MODULE else Does.NOTHING
        callee = self.script.callee(call)
        if callee is None or not isinstance(callee.node, syntax.FunctionDef):
            return found
        return found | callee.script.loops.function_does(callee.node)

    def _find_own(self) -> dict[syntax.Call, Does]:
        """The calls that are themselves a backward pass or an optimizer's step."""
        found: dict[syntax.Call, Does] = {}
        backward = [*self.script.method_calls("backward", "manual_backward"), *self.script.calls("torch.autograd.backward")]
        if backward and self.script.program.mentions(self.script, _UPDATES):
            found.update(dict.fromkeys(backward, Does.BACKWARD))
        for call in self.script.method_calls("step"):
            assert isinstance(call.func, syntax.Attribute)
            role = self.script.role(call.func.value)
            if role is Role.OPTIMIZER or (role is Role.SCALER and call.args):
                found[call] = Does.OPTIMIZER_STEP
        for call in self.script.source.of(syntax.Call):
            if library.makes_optimizer(self.script.name(call.func) or ""):
                found[call] = Does.MAKES_OPTIMIZER
        for call in (*self.script.calls(*library.NO_GRADS), *self.script.method_calls("eval", "train")):
            if switches(self.script, call) is True or passes.sets_eval_mode(self.script, call):
                found[call] = Does.NO_TRAINING
        return found

    def function_does(self, function: syntax.FunctionDef) -> Does:
        """What a function of this script does when it is called once."""
        return self.script.program.flow.ask(("does", function), lambda: self.does(function.body), Does.NOTHING)

    def _is_over_parts(self, iterated: syntax.BaseExpression) -> bool:
        """Whether a ``for`` goes over the parts of one batch, as in ``for key in batch.keys()``."""
        match iterated:
            case syntax.Call(func=syntax.Attribute(value=value, attr=syntax.Name(value="keys" | "values" | "items"))):
                return self.script.role(value) is Role.BATCH
        return self.script.role(iterated) is Role.BATCH

    def iterates_loader(self, loop: Loop) -> bool:
        """Whether a ``for`` goes over a loader, through ``enumerate``, ``tqdm`` and the like."""
        if not isinstance(loop, syntax.For):
            return False
        if self._is_over_parts(loop.iter):
            return False
        element = self.script.roles.element(self.script.value(loop.iter))
        parts = [element, *filter(None, element.items)]
        parts += [inner for part in parts for inner in part.items if inner is not None]
        return any(part.role is Role.BATCH for part in parts)
