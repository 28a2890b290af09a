"""How often a line runs: each training step, each evaluation step, throttled, each epoch, once.

The innermost driving loop decides: one with a backward pass in it (STEP), one over a loader without (EVAL_STEP), one
around such a loop (EPOCH). Guards between the line and the loop throttle it: ``if step % n == 0``, an early ``continue``,
the first batch, a branch that ends the training. A function runs as often as its busiest call.
"""

from __future__ import annotations

import enum
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from speedlint.semantics import library, passes
from speedlint.semantics.model import Definition, Role
from speedlint.semantics.names import Kind

if TYPE_CHECKING:
    from speedlint.semantics.script import Script

Loop = cst.For | cst.While


class Frequency(enum.IntEnum):
    """How often a line runs; a higher value runs more often."""

    ONCE = 0
    EPOCH = 1
    THROTTLED = 2
    EVAL_STEP = 3
    STEP = 4


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


_STEP_METHODS = frozenset({"training_step", "train_step"})
_ENDS = (cst.Raise, cst.Return, cst.Break)


class Loops:
    """Answers for one script."""

    def __init__(self, script: Script) -> None:
        self.script = script

    # Frequency

    def frequency(self, node: cst.CSTNode) -> Frequency:
        """How often the node runs, at most."""
        throttled = counted = False
        child = node
        for up in self.script.source.ancestors(node):
            if isinstance(up, (cst.FunctionDef, cst.Lambda)):
                if isinstance(up, cst.Lambda) or child is not up.body:
                    child = up
                    continue
                called = self.of_function(up)
                return min(called, Frequency.THROTTLED) if throttled else called
            throttled = throttled or self._guards(up, child)
            counted = counted or (isinstance(up, cst.If) and child is up.body and self._counts_steps(up.test))
            if isinstance(up, (cst.For, cst.While)) and child is up.body:
                kind = self.kind(up)
                if kind is not None:
                    is_rare = throttled or (counted and self.accumulates(up))
                    return min(kind, Frequency.THROTTLED) if is_rare else kind
            child = up
        return Frequency.ONCE

    def of_function(self, function: cst.FunctionDef) -> Frequency:
        """How often a function runs: as often as its busiest known call."""
        answer = self.script.program.flow.ask
        return answer(("frequency", function), lambda: self._busiest_call(function), Frequency.ONCE)

    def _busiest_call(self, function: cst.FunctionDef) -> Frequency:
        return max(
            (script.loops.frequency(call) for script, call in self.script.call_sites(function)),
            default=Frequency.STEP if self._is_step_method(function) else Frequency.ONCE,
        )

    def _is_step_method(self, function: cst.FunctionDef) -> bool:
        owner = self.script.names.owner(function)
        if owner is None or function.name.value not in _STEP_METHODS:
            return False
        return self.script.roles.instance(Definition(self.script, owner)).role is Role.MODULE

    def is_throttled(self, node: cst.CSTNode) -> bool:
        """Whether a guard stands between the node and the loop that drives it."""
        return self.frequency(node) is Frequency.THROTTLED

    def driving_loop(self, node: cst.CSTNode) -> Loop | None:
        """The innermost loop around the node, in its own function, that drives steps or evaluation steps."""
        child = node
        for up in self.script.source.ancestors(node):
            if isinstance(up, cst.FunctionDef) and child is up.body:
                return None
            if (
                isinstance(up, (cst.For, cst.While))
                and child is up.body
                and self.kind(up) in (Frequency.STEP, Frequency.EVAL_STEP)
            ):
                return up
            child = up
        return None

    # Guards

    def _guards(self, up: cst.CSTNode, child: cst.CSTNode) -> bool:
        """Whether ``child``, a part of ``up``, runs only now and then when ``up`` runs."""
        if isinstance(up, cst.If) and child is up.body:
            return self._is_rare(up.test) or self._is_capped(up) or self._ends(up.body)
        if isinstance(up, cst.Else) and isinstance(parent := self.script.source.parents[up], cst.If):
            return self._is_usual(parent.test)
        if isinstance(up, cst.ExceptHandler):
            return True
        if isinstance(up, cst.IfExp):
            return child is up.body and self._is_rare(up.test)
        if isinstance(up, cst.BooleanOperation) and isinstance(up.operator, cst.And) and child is up.right:
            return self._is_rare(up.left)
        if isinstance(up, cst.IndentedBlock):
            return self._skipped(up, child)
        return False

    def _skipped(self, block: cst.IndentedBlock, child: cst.CSTNode) -> bool:
        """Whether an earlier ``if step % n: continue`` in the block lets the child run only now and then."""
        for statement in block.body:
            if statement is child:
                return False
            if isinstance(statement, cst.If) and self._only_continues(statement.body) and self._is_usual(statement.test):
                return True
        return False

    @staticmethod
    def _only_continues(body: cst.BaseSuite) -> bool:
        last = body.body[-1] if body.body else None
        small = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last
        return isinstance(small, (cst.Continue, cst.Return))

    def _ends(self, body: cst.BaseSuite) -> bool:
        """Whether a branch ends the training: it raises, returns, breaks or exits."""
        last = body.body[-1] if body.body else None
        small = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last
        if isinstance(small, cst.Raise | cst.Break):
            return True
        if isinstance(small, cst.Return):
            return isinstance(self.script.source.enclosing(body, cst.For, cst.While, cst.FunctionDef), (cst.For, cst.While))
        if isinstance(small, cst.Expr) and isinstance(small.value, cst.Call):
            return self.script.name(small.value.func) in ("sys.exit", "exit", "quit", "os._exit")
        return False

    def _is_rare(self, test: cst.BaseExpression) -> bool:
        """Whether a condition holds only now and then: ``step % n == 0``, ``step == 0``, ``not isfinite(loss)``."""
        match test:
            case cst.BooleanOperation(left=left, operator=cst.And(), right=right):
                return self._is_rare(left) or self._is_rare(right)
            case cst.BooleanOperation(left=left, right=right):
                return self._is_rare(left) and self._is_rare(right)
            case cst.UnaryOperation(operator=cst.Not(), expression=inner):
                return self._is_usual(inner)
            case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=cst.Equal(), comparator=right)]):
                return self._is_modulo(left) or self._is_modulo(right) or self._is_counter_at(left, right)
            case cst.Comparison(
                left=left, comparisons=[cst.ComparisonTarget(operator=cst.Is(), comparator=cst.Name("None"))]
            ):
                return self._is_lazily_made(left)
            case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=operator, comparator=right)]):
                early = isinstance(operator, (cst.LessThan, cst.LessThanEqual)) and self._is_among_first(left, right)
                return early or self._asks_the_clock(test)
            case cst.Call(func=func):
                return self.script.name(func) in ("torch.isnan", "math.isnan", "numpy.isnan", "torch.isinf", "math.isinf")
            case cst.Name():
                return self._is_set_to_rare(test)
        return False

    def _is_set_to_rare(self, name: cst.Name) -> bool:
        """Whether a name holds a condition that is rare: ``last_step = step == steps - 1``."""
        bindings = self.script.names.reaching(name)
        return bool(bindings) and all(
            binding.kind is Kind.ASSIGN
            and not binding.path
            and isinstance(binding.value, (cst.Comparison, cst.BooleanOperation, cst.UnaryOperation))
            and self._is_rare(binding.value)
            for binding in bindings
        )

    def _is_among_first(self, left: cst.BaseExpression, right: cst.BaseExpression) -> bool:
        """Whether a loop of steps is at one of its first turns: ``batch_idx < 8``."""
        if not isinstance(left, cst.Name) or self.script.constant(right) is None or not self._counts(left):
            return False
        loops = (self.script.source.enclosing(binding.node, cst.For) for binding in self.script.names.reaching(left))
        return any(isinstance(loop, cst.For) and self.kind(loop) in (Frequency.STEP, Frequency.EVAL_STEP) for loop in loops)

    def _is_capped(self, branch: cst.If) -> bool:
        """Whether a branch counts how often it ran, up to a limit: ``if shown < 5: shown += 1; ...``."""
        source = self.script.source
        counted = {
            added.target.value
            for added in source.inside(branch.body, cst.AugAssign)
            if isinstance(added.target, cst.Name) and isinstance(added.value, cst.Integer)
        }
        return any(
            isinstance(compared.left, cst.Name)
            and compared.left.value in counted
            and isinstance(compared.comparisons[0].operator, (cst.LessThan, cst.LessThanEqual))
            for compared in source.inside(branch.test, cst.Comparison)
        )

    def _asks_the_clock(self, test: cst.Comparison) -> bool:
        calls = self.script.source.inside(test, cst.Call)
        return any(self.script.name(call.func) in ("time.time", "time.monotonic", "time.perf_counter") for call in calls)

    def _is_usual(self, test: cst.BaseExpression) -> bool:
        """Whether a condition fails only now and then: ``step % n``, ``step % n != 0``, ``isfinite(loss)``."""
        match test:
            case cst.BinaryOperation(operator=cst.Modulo()):
                return self._is_modulo(test)
            case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=operator, comparator=right)]) if (
                isinstance(operator, (cst.NotEqual, cst.GreaterThan))
            ):
                return self._is_modulo(left) or (isinstance(operator, cst.NotEqual) and self._is_counter_at(left, right))
            case cst.UnaryOperation(operator=cst.Not(), expression=inner):
                return self._is_rare(inner)
            case cst.BooleanOperation(left=left, operator=cst.Or(), right=right):
                return self._is_usual(left) or self._is_usual(right)
            case cst.Call(func=func):
                return self.script.name(func) in ("torch.isfinite", "math.isfinite", "numpy.isfinite")
        return False

    def _is_modulo(self, expression: cst.BaseExpression) -> bool:
        if not isinstance(expression, cst.BinaryOperation) or not isinstance(expression.operator, cst.Modulo):
            return False
        period = self.script.constant(expression.right)
        return period is None or period.value != 1

    def _counts_steps(self, test: cst.BaseExpression) -> bool:
        """Whether a condition is ``step % n == 0``, even where ``n`` is 1."""
        match test:
            case cst.BooleanOperation(left=left, operator=cst.And(), right=right):
                return self._counts_steps(left) or self._counts_steps(right)
            case cst.Comparison(left=cst.BinaryOperation(operator=cst.Modulo()), comparisons=[target]):
                return isinstance(target.operator, cst.Equal)
        return False

    def accumulates(self, loop: Loop) -> bool:
        """Whether a training step of the loop is many micro-steps, so that what it does once it does rarely."""
        source = self.script.source
        inner: list[Loop] = [*source.inside(loop.body, cst.For), *source.inside(loop.body, cst.While)]
        return any(
            self._runs_here(each, loop.body)
            and self.kind(each) is Frequency.STEP
            and not self.does(each.body) & Does.OPTIMIZER_STEP
            for each in inner
        )

    def _is_counter_at(self, left: cst.BaseExpression, right: cst.BaseExpression) -> bool:
        """Whether a loop's counter is compared with one number: the first batch, the last step."""
        return any(
            self._counts(side) if isinstance(side, cst.Name) else self._is_counted_up(side) for side in (left, right)
        )

    def _is_counted_up(self, place: cst.BaseExpression) -> bool:
        """Whether the function adds to an entry or attribute: ``seen["samples"] += 8``."""
        function = self.script.function(place)
        if function is None or not isinstance(place, (cst.Subscript, cst.Attribute)):
            return False
        text = self.script.text(place)
        return any(
            isinstance(added.operator, cst.AddAssign) and self.script.text(added.target) == text
            for added in self.script.source.inside(function.body, cst.AugAssign)
        )

    def _counts(self, name: cst.Name) -> bool:
        for binding in self.script.names.reaching(name):
            if isinstance(binding.node, cst.Name) and binding.value is not None:
                loop = self.script.source.parents.get(binding.node)
                is_target = isinstance(loop, (cst.For, cst.Element, cst.Tuple))
                if is_target and self.script.role(name) is Role.NUMBER:
                    return True
            if (
                isinstance(self.script.source.parents.get(binding.node), cst.AugAssign)
                and self.script.role(name) is Role.NUMBER
            ):
                return True
        return False

    def _is_lazily_made(self, name: cst.BaseExpression) -> bool:
        return isinstance(name, (cst.Name, cst.Attribute)) and self.script.role(name) in (Role.NUMBER, Role.ARRAY)

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
            for call in self.script.source.inside(loop.body, cst.Call)
            if self._call_does(call) & (Does.FORWARD | Does.EVALUATES) == Does.FORWARD
            and self._runs_here(call, loop.body)
            and not self._loops_between(call, loop.body)
        ]
        if not passes.feeds_module(self.script, loop, calls):
            return False
        return bool(does & Does.NO_TRAINING) or passes.is_without_grad(self.script, loop) or self._is_after_eval(loop)

    def _is_after_eval(self, loop: Loop) -> bool:
        function = self.script.function(loop)
        block = function.body if function is not None else self.script.source.module
        before = self.script.source.order[loop]
        return any(
            self.script.source.order[call] < before and passes.sets_eval_mode(self.script, call)
            for call in self.script.method_calls("eval", "train")
            if self.script.source.contains(block, call)
        )

    def does(self, block: cst.CSTNode) -> Does:
        """What a block does when it runs once."""
        source, found = self.script.source, Does.NOTHING
        for call in source.inside(block, cst.Call):
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
        loops: list[Loop] = [*source.inside(block, cst.For), *source.inside(block, cst.While)]
        for loop in loops:
            if self._runs_here(loop, block) and self.kind(loop) is Frequency.EVAL_STEP:
                found |= Does.EVALUATES
        return found

    def _steps_within(self, inner: list[Loop], does: Does) -> Does:
        """Steps inside an inner loop make that loop the training loop, unless it only accumulates gradients."""
        if does & Does.OPTIMIZER_STEP:
            return Does.TRAINS
        inside = self.script.source.inside(inner[-1].body, cst.Call)
        accumulates = not any(self._call_does(call) & Does.OPTIMIZER_STEP for call in inside)
        return Does.BACKWARD if accumulates and self._optimizer_steps_beside(inner[-1]) else Does.TRAINS

    def _optimizer_steps_beside(self, loop: Loop) -> bool:
        """Whether the optimizer steps in the block that holds the loop, as in gradient accumulation over micro-batches."""
        block = self.script.source.parents[loop]
        return any(
            self._call_does(call) & Does.OPTIMIZER_STEP
            for call in self.script.source.inside(block, cst.Call)
            if not self.script.source.contains(loop, call)
        )

    def _runs_here(self, node: cst.CSTNode, block: cst.CSTNode) -> bool:
        """Whether the node runs as part of the block, not in a function defined within it."""
        for up in self.script.source.ancestors(node):
            if up is block:
                return True
            if isinstance(up, (cst.FunctionDef, cst.ClassDef)):
                return False
        return node is block

    def _loops_between(self, node: cst.CSTNode, block: cst.CSTNode) -> list[Loop]:
        """The loops around the node within the block, innermost first."""
        found: list[Loop] = []
        for up in self.script.source.ancestors(node):
            if up is block:
                break
            if isinstance(up, (cst.For, cst.While)):
                found.append(up)
        return found

    def _call_does(self, call: cst.Call) -> Does:
        if call in self._own:
            return self._own[call]
        found = Does.FORWARD if self.script.role(call.func) is Role.MODULE else Does.NOTHING
        callee = self.script.callee(call)
        if callee is None or not isinstance(callee.node, cst.FunctionDef):
            return found
        return found | callee.script.loops.function_does(callee.node)

    @cached_property
    def _own(self) -> dict[cst.Call, Does]:
        """The calls that are themselves a backward pass or an optimizer's step."""
        found: dict[cst.Call, Does] = {}
        for call in self.script.method_calls("backward", "manual_backward"):
            found[call] = Does.BACKWARD
        for call in self.script.method_calls("step"):
            assert isinstance(call.func, cst.Attribute)
            role = self.script.role(call.func.value)
            if role is Role.OPTIMIZER or (role is Role.SCALER and call.args):
                found[call] = Does.OPTIMIZER_STEP
        for call in self.script.calls("torch.autograd.backward"):
            found[call] = Does.BACKWARD
        for call in (*self.script.calls(*library.NO_GRADS), *self.script.method_calls("eval", "train")):
            if passes.turns_grad_off(self.script, call) or passes.sets_eval_mode(self.script, call):
                found[call] = Does.NO_TRAINING
        return found

    def function_does(self, function: cst.FunctionDef) -> Does:
        """What a function of this script does when it is called once."""
        return self.script.program.flow.ask(("does", function), lambda: self.does(function.body), Does.NOTHING)

    def iterates_loader(self, loop: Loop) -> bool:
        """Whether a ``for`` goes over a loader, through ``enumerate``, ``tqdm`` and the like."""
        if not isinstance(loop, cst.For):
            return False
        element = self.script.roles.element(self.script.value(loop.iter))
        parts = (element, *element.items)
        return any(part.role is Role.BATCH for part in parts) or any(
            inner.role is Role.BATCH for part in parts for inner in part.items
        )
