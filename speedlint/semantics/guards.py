"""How rarely a branch runs: ``if step % n == 0``, an early ``continue``, the first batch, a branch that ends the loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from speedlint.semantics.names import Kind
from speedlint.semantics.terms import Constant, Frequency, Role
from speedlint.source import is_none, last_statement

if TYPE_CHECKING:
    from speedlint.semantics.script import Script

_NOT_FINITE = frozenset({"torch.isnan", "math.isnan", "numpy.isnan", "torch.isinf", "math.isinf"})
_FINITE = frozenset({"torch.isfinite", "math.isfinite", "numpy.isfinite"})
_EXITS = frozenset({"sys.exit", "exit", "quit", "os._exit"})
_CLOCKS = frozenset({"time.time", "time.monotonic", "time.perf_counter"})


class Guards:
    """Answers for one script. STEP means: not guarded; THROTTLED: every so many turns; EPOCH: once or so in a whole loop."""

    def __init__(self, script: Script) -> None:
        self.script = script

    def limit(self, up: cst.CSTNode, child: cst.CSTNode) -> Frequency:
        """How often ``child``, a part of ``up``, runs at most when ``up`` runs in each step."""
        match up:
            case cst.If() if child is up.body:
                once = self._is_capped(up) or self._ends(up.body)
                return Frequency.EPOCH if once else self.holds(up.test)
            case cst.Else() if isinstance(parent := self.script.source.parents[up], cst.If):
                return self.fails(parent.test)
            case cst.ExceptHandler():
                return Frequency.EPOCH
            case cst.IfExp() if child is up.body:
                return self.holds(up.test)
            case cst.IfExp() if child is up.orelse:
                return self.fails(up.test)
            case cst.BooleanOperation(operator=cst.And()) if child is up.right:
                return self.holds(up.left)
            case cst.IndentedBlock():
                return self._left_by_continue(up, child)
        return Frequency.STEP

    def holds(self, test: cst.BaseExpression) -> Frequency:
        """How often a condition holds at most, asked in each step."""
        if self._is_never(test):
            return Frequency.ONCE
        if self._asks_for_training(test) is False:
            return Frequency.EVAL_STEP
        match test:
            case cst.BooleanOperation(left=left, operator=cst.And(), right=right):
                return min(self.holds(left), self.holds(right))
            case cst.BooleanOperation(left=left, right=right):
                return max(self.holds(left), self.holds(right))
            case cst.UnaryOperation(operator=cst.Not(), expression=inner):
                return self.fails(inner)
            case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=operator, comparator=right)]):
                return self._comparison_holds(test, left, operator, right)
            case cst.Call(func=func) if self.script.name(func) in _NOT_FINITE:
                return Frequency.EPOCH
            case cst.Name():
                return self._name_holds(test)
        return Frequency.STEP

    def _comparison_holds(
        self, test: cst.Comparison, left: cst.BaseExpression, operator: cst.BaseCompOp, right: cst.BaseExpression
    ) -> Frequency:
        match operator:
            case cst.Equal() | cst.Is() if self._is_modulo(left) or self._is_modulo(right):
                return Frequency.THROTTLED
            case cst.Equal() if self._is_counter(left) or self._is_counter(right):
                return Frequency.EPOCH
            case cst.Equal() if self._is_last(left, right) or self._is_last(right, left):
                return Frequency.EPOCH
            case cst.Is() if is_none(right) and self._is_lazily_made(left):
                return Frequency.EPOCH
            case cst.LessThan() | cst.LessThanEqual() if self._is_among_first(left, right):
                return Frequency.EPOCH
        return Frequency.THROTTLED if self._asks_the_clock(test) else Frequency.STEP

    def fails(self, test: cst.BaseExpression) -> Frequency:
        """How often a condition fails at most, asked in each step."""
        if self._asks_for_training(test):
            return Frequency.EVAL_STEP
        match test:
            case cst.BinaryOperation(operator=cst.Modulo()) if self._is_modulo(test):
                return Frequency.THROTTLED
            case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=operator, comparator=right)]):
                if isinstance(operator, (cst.NotEqual, cst.GreaterThan)) and self._is_modulo(left):
                    return Frequency.THROTTLED
                is_counter = self._is_counter(left) or self._is_counter(right)
                return Frequency.EPOCH if isinstance(operator, cst.NotEqual) and is_counter else Frequency.STEP
            case cst.UnaryOperation(operator=cst.Not(), expression=inner):
                return self.holds(inner)
            case cst.BooleanOperation(left=left, operator=cst.Or(), right=right):
                return min(self.fails(left), self.fails(right))
            case cst.Call(func=func) if self.script.name(func) in _FINITE:
                return Frequency.EPOCH
        return Frequency.STEP

    def _is_never(self, test: cst.BaseExpression) -> bool:
        """Whether a condition is a constant that is false, or compares two texts that differ, and hangs on no option."""
        match test:
            case cst.Comparison(
                left=cst.Name() as left, comparisons=[cst.ComparisonTarget(operator=cst.Equal(), comparator=right)]
            ) if self._is_of_function(left):
                texts = [each for side in (left, right) if (each := self._fixed(side)) is not None]
                return (
                    len(texts) == 2 and all(isinstance(each.value, str) for each in texts) and not texts[0].equals(texts[1])
                )
            case cst.Name() | cst.Attribute():
                known = self._fixed(test)
                return known is not None and not known.value
        return False

    def _is_of_function(self, name: cst.Name) -> bool:
        """Whether a function binds a name, so that nothing elsewhere can."""
        scope = self.script.names.scope(name).lookup(name.value)
        return scope is not None and isinstance(scope.node, cst.FunctionDef)

    def _fixed(self, expression: cst.BaseExpression) -> Constant | None:
        """The value of an expression where it is known, and no option that the user may set."""
        known = self.script.constant(expression)
        if known is None or known.entry is not None:
            return None
        option = known.node if isinstance(known.node, cst.Call) else known.script.source.enclosing(known.node, cst.Call)
        is_option = (
            isinstance(option, cst.Call)
            and isinstance(option.func, cst.Attribute)
            and option.func.attr.value in ("add_argument", "option", "set_defaults")
        )
        return None if is_option else known

    def _asks_for_training(self, test: cst.BaseExpression) -> bool | None:
        """Whether a condition is ``self.training`` of a module, True, or its negation, False; None for any other."""
        match test:
            case cst.UnaryOperation(operator=cst.Not(), expression=inner):
                asked = self._asks_for_training(inner)
                return None if asked is None else not asked
            case cst.Attribute(value=module, attr=cst.Name("training")):
                return True if self.script.role(module) is Role.MODULE else None
        return None

    def is_trained_only(self, node: cst.CSTNode) -> bool | None:
        """Whether a node of a module's method runs in training mode only (True), in evaluation only (False), or in both."""
        child = node
        for up in self.script.source.ancestors(node):
            asked: bool | None = None
            if isinstance(up, cst.If) and child is up.body:
                asked = self._asks_for_training(up.test)
            elif isinstance(up, cst.Else) and isinstance(branch := self.script.source.parents[up], cst.If):
                asked = self._asks_for_training(branch.test)
                asked = None if asked is None else not asked
            elif isinstance(up, cst.IndentedBlock):
                asked = self._left_by_mode(up, child)
            if asked is not None:
                return asked
            if isinstance(up, cst.FunctionDef):
                return None
            child = up
        return None

    def _left_by_mode(self, block: cst.IndentedBlock, child: cst.CSTNode) -> bool | None:
        """What ``if self.training: return ...`` above a statement leaves of its runs."""
        for statement in block.body:
            if statement is child:
                break
            if isinstance(statement, cst.If) and isinstance(last_statement(statement.body), cst.Return):
                asked = self._asks_for_training(statement.test)
                if asked is not None:
                    return not asked
        return None

    def is_without_gpu(self, node: cst.CSTNode) -> bool:
        """Whether a line runs only where there is no GPU: in the ``else`` of ``if torch.cuda.is_available()``."""
        for up in self.script.source.ancestors(node):
            branch = self.script.source.parents[up] if isinstance(up, cst.Else) else None
            if isinstance(branch, cst.If) and self._asks_for_gpu(branch.test):
                return True
        return False

    def runs_on_gpu(self, node: cst.CSTNode) -> bool:
        """Whether a line surely runs once its function does, where there is a GPU: no other condition and no loop is around
        it."""
        child: cst.CSTNode = node
        for up in self.script.source.ancestors(node):
            if isinstance(up, cst.FunctionDef):
                return True
            if isinstance(up, (cst.For, cst.While, cst.Try, cst.Else)):
                return False
            if isinstance(up, cst.If) and (child is not up.body or not self._is_true_on_gpu(up.test)):
                return False
            child = up
        return True

    def _is_true_on_gpu(self, test: cst.BaseExpression) -> bool:
        """Whether a test asks for a GPU, and for nothing else but that no option forbids it."""
        return any(self._finds_gpu(script, value) for script, value in self.script.roles.origins(test))

    def _finds_gpu(self, script: Script, test: cst.BaseExpression) -> bool:
        match test:
            case cst.BooleanOperation(left=left, operator=cst.And(), right=right):
                return self._finds_gpu(script, left) or self._finds_gpu(script, right)
        return script.is_call_to(test, "torch.cuda.is_available", "torch.accelerator.is_available")

    def _asks_for_gpu(self, test: cst.BaseExpression) -> bool:
        return any(script.is_call_to(value, "torch.cuda.is_available") for script, value in self.script.roles.origins(test))

    def _is_last(self, turn: cst.BaseExpression, length: cst.BaseExpression) -> bool:
        """Whether a loop's variable is compared with ``len(loader)`` or ``len(loader) - 1``."""
        if isinstance(length, cst.BinaryOperation) and isinstance(length.right, cst.Integer):
            length = length.left
        if not isinstance(turn, cst.Name) or not self.script.is_call_to(length, "len"):
            return False
        return any(binding.kind is Kind.FOR for binding in self.script.names.reaching(turn))

    def counts_steps(self, test: cst.BaseExpression) -> bool:
        """Whether a condition is ``step % n == 0``, even where ``n`` is 1."""
        match test:
            case cst.BooleanOperation(left=left, operator=cst.And(), right=right):
                return self.counts_steps(left) or self.counts_steps(right)
            case cst.Comparison(left=cst.BinaryOperation(operator=cst.Modulo()), comparisons=[target]):
                return isinstance(target.operator, cst.Equal)
        return False

    def _left_by_continue(self, block: cst.IndentedBlock, child: cst.CSTNode) -> Frequency:
        """What earlier statements such as ``if step % n: continue`` leave of the block's turns."""
        limit = Frequency.STEP
        for statement in block.body:
            if statement is child:
                break
            if isinstance(statement, cst.If) and isinstance(last_statement(statement.body), (cst.Continue, cst.Return)):
                limit = min(limit, self.fails(statement.test))
        return limit

    def _ends(self, body: cst.BaseSuite) -> bool:
        """Whether a branch ends the loop or the program: it raises, breaks, exits, or returns from a loop."""
        match last_statement(body):
            case cst.Raise() | cst.Break():
                return True
            case cst.Return():
                around = self.script.source.enclosing(body, cst.For, cst.While, cst.FunctionDef)
                return isinstance(around, (cst.For, cst.While))
            case cst.Expr(value=cst.Call(func=func)):
                return self.script.name(func) in _EXITS
        return False

    def _name_holds(self, name: cst.Name) -> Frequency:
        """A name that holds a condition: ``last_step = step == steps - 1``."""
        conditions = [
            binding.value
            for binding in self.script.names.reaching(name)
            if binding.kind is Kind.ASSIGN
            and not binding.path
            and isinstance(binding.value, (cst.Comparison, cst.BooleanOperation, cst.UnaryOperation))
        ]
        if not conditions or len(conditions) != len(self.script.names.reaching(name)):
            return Frequency.STEP
        return max(self.holds(condition) for condition in conditions)

    def _is_counter(self, side: cst.BaseExpression) -> bool:
        """Whether one side of a comparison counts the turns of a loop: the other is the first batch, or the last."""
        return self._counts(side) if isinstance(side, cst.Name) else self._is_counted_up(side)

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

    def _is_among_first(self, left: cst.BaseExpression, right: cst.BaseExpression) -> bool:
        """Whether a loop of steps is at one of its first turns: ``batch_idx < 8``."""
        if not isinstance(left, cst.Name) or self.script.constant(right) is None or not self._counts(left):
            return False
        frequent = (Frequency.STEP, Frequency.EVAL_STEP)
        loops = [self.script.source.enclosing(binding.node, cst.For) for binding in self.script.names.reaching(left)]
        return any(isinstance(loop, cst.For) and self.script.loops.kind(loop) in frequent for loop in loops)

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
        return any(self.script.name(call.func) in _CLOCKS for call in calls)

    def _is_modulo(self, expression: cst.BaseExpression) -> bool:
        if not isinstance(expression, cst.BinaryOperation) or not isinstance(expression.operator, cst.Modulo):
            return False
        period = self.script.constant(expression.right)
        return period is None or period.value != 1
