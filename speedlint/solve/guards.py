"""How rarely a branch runs: ``if step % n == 0``, an early ``continue``, the first batch, a branch that ends the loop."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.solve import truths
from speedlint.solve.flow import once
from speedlint.solve.names import Binding, Kind, last_name
from speedlint.solve.terms import Constant, Definition
from speedlint.solve.truths import Values
from speedlint.solve.unpacking import all_written, written
from speedlint.solve.values import option_of
from speedlint.source import is_name, is_none, is_target, last_statement, leaves
from speedlint.torch import library
from speedlint.torch.words import FREQUENT, Frequency, Place, Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_NOT_FINITE = frozenset({"torch.isnan", "math.isnan", "numpy.isnan", "torch.isinf", "math.isinf"})
_FINITE = frozenset({"torch.isfinite", "math.isfinite", "numpy.isfinite"})
_EXITS = frozenset({"sys.exit", "exit", "quit", "os._exit"})
_ASK_FOR_GPU = ("torch.cuda.is_available", "torch.accelerator.is_available")
CLOCKS = frozenset({"time.time", "time.monotonic", "time.perf_counter"})
_COUNTED_TO: dict[type[syntax.BaseCompOp], type[syntax.BaseAugOp]] = {
    syntax.LessThan: syntax.SubtractAssign,
    syntax.LessThanEqual: syntax.SubtractAssign,
    syntax.GreaterThan: syntax.AddAssign,
    syntax.GreaterThanEqual: syntax.AddAssign,
}
"""How a number is counted that is compared with where it is to end."""


def _asks(script: Script, value: syntax.Node) -> bool | None:
    """Whether a value is ``torch.cuda.is_available()``, or compares a device's type to ``"cuda"``; False for ``"cpu"``."""
    match value:
        case syntax.Call():
            return True if script.is_call_to(value, *_ASK_FOR_GPU) else None
        case syntax.Comparison(
            left=syntax.Attribute(value=device, attr=syntax.Name("type")),
            comparisons=[syntax.ComparisonTarget(operator=operator, comparator=syntax.SimpleString() as kind)],
        ) if script.role(device) in (Role.DEVICE, Role.UNKNOWN) and kind.evaluated_value in ("cuda", "cpu"):
            if isinstance(operator, syntax.Equal | syntax.NotEqual):
                return (kind.evaluated_value == "cuda") is isinstance(operator, syntax.Equal)
    return None


class Guards:
    """Answers for one script. STEP means: not guarded; THROTTLED: every so many turns; EPOCH: once or so in a whole loop."""

    def __init__(self, script: Script) -> None:
        self.script = script

    def limit(self, up: syntax.Node, child: syntax.Node) -> Frequency:
        """How often ``child``, a part of ``up``, runs at most when ``up`` runs in each step."""
        match up:
            case syntax.If() if child is up.body:
                if self._is_capped(up) or self._ends(up.body) or self._shuts_itself(up, up.test):
                    return Frequency.EPOCH
                return Frequency.THROTTLED if self.counts_anew(up) else self.holds(up.test)
            case syntax.Else() if isinstance(parent := self.script.source.parents[up], syntax.If):
                return self.fails(parent.test)
            case syntax.ExceptHandler():
                return Frequency.EPOCH
            case syntax.IfExp() if child is up.body:
                return self.holds(up.test)
            case syntax.IfExp() if child is up.orelse:
                return self.fails(up.test)
            case syntax.BooleanOperation(operator=syntax.And()) if child is up.right:
                return self.holds(up.left)
            case syntax.BooleanOperation() if child is up.right:
                return Frequency.EPOCH if self._is_latch(up) else self.fails(up.left)
            case syntax.IndentedBlock():
                return self._left_by_continue(up, child)
        return Frequency.STEP

    def holds(self, test: syntax.BaseExpression) -> Frequency:
        """How often a condition holds at most, asked in each step."""
        if self._is_never(test):
            return Frequency.ONCE
        if self._asks_for_training(test) is False:
            return Frequency.EVAL_STEP
        match test:
            case syntax.BooleanOperation(left=left, operator=syntax.And(), right=right):
                return min(self.holds(left), self.holds(right))
            case syntax.BooleanOperation():
                return self._any_holds(list(_alternatives(test)))
            case syntax.UnaryOperation(operator=syntax.Not(), expression=inner):
                return self.fails(inner)
            case syntax.Comparison(left=left, comparisons=[syntax.ComparisonTarget(operator=operator, comparator=right)]):
                return self._comparison_holds(test, left, operator, right)
            case syntax.Call(func=func) if self.script.name(func) in _NOT_FINITE:
                return Frequency.EPOCH
            case syntax.Name():
                return self._name_holds(test)
            case syntax.Call():
                return self._answer_holds(test)
        return Frequency.STEP

    @once(Frequency.STEP)
    def _answer_holds(self, call: syntax.Call) -> Frequency:
        """How often a plain function of the project's gives what holds, ``if is_due(step):``, asked in each step. One that a
        decorator may turn round, that heirs may replace, or that is asked of a part of a step may always hold."""
        callee = self.script.callee(call)
        if callee is None or not isinstance(callee.node, syntax.FunctionDef) or callee.node.decorators:
            return Frequency.STEP
        script, guards = callee.script, callee.script.loops.guards
        names = (name for arg in call.args for name in self.script.source.inside(arg.value, syntax.Name))
        is_of_part = any(self._turns_within_step(each) for name in names for each in self._bound(name))
        if is_of_part or script.names.owner(callee.node) is not None:
            return Frequency.STEP
        given = (
            each for each in script.source.inside(callee.node.body, syntax.Return) if script.function(each) is callee.node
        )
        often = (guards._given_often(each, each.value, callee.node) for each in given if each.value is not None)
        return max(often, default=Frequency.STEP)

    def _given_often(self, line: syntax.Return, value: syntax.BaseExpression, function: syntax.FunctionDef) -> Frequency:
        """How often a line of a function that is asked in each step returns what holds, by the conditions around it."""
        often = self.holds(value)
        child: syntax.Node = line
        for up in self.script.source.ancestors(line):
            if up is function:
                break
            if isinstance(up, syntax.For | syntax.While | syntax.Try):
                return Frequency.STEP
            if isinstance(up, syntax.If):
                often = min(often, self.holds(up.test) if child is up.body else self.fails(up.test))
            child = up
        return often

    def _is_latch(self, either: syntax.BooleanOperation) -> bool:
        """Whether the right side of ``or`` is asked until it first holds: ``if begun or full(): begun = True``."""
        branch = self.script.source.parents[either]
        return isinstance(branch, syntax.If) and self._is_set_for_good(branch, either.left, "True")

    def _is_set_for_good(self, branch: syntax.If, flag: syntax.BaseExpression, last: str) -> bool:
        """Whether a branch always sets the flag that it asks for, and the loop sets it to nothing else than ``last``."""
        source, loop = self.script.source, self.script.loops.driving_loop(branch)
        around = loop.body if loop is not None else source.module
        match flag:
            case syntax.Name(value=name):
                scope = self.script.names.scope(flag).lookup(name)
                if loop is None or scope is None:
                    return False
                bound = [each for each in scope.bindings.get(name, ()) if source.contains(around, each.node)]
                sets = [(each.node, each.value if each.kind is Kind.ASSIGN and not each.path else None) for each in bound]
            case syntax.Attribute(attr=syntax.Name(value=name)):
                sets = list(self._set_beside(name, loop))
            case _:
                return False
        is_always_set = any(source.parents[source.statement(node)] is branch.body for node, _ in sets)
        return is_always_set and all(value is not None and is_name(value, last) for _, value in sets)

    def _set_beside(self, name: str, loop: syntax.Node | None) -> Iterator[tuple[syntax.Node, syntax.BaseExpression | None]]:
        """Where an attribute of a name is set in a loop, or in other functions but constructors, and to what."""
        source, own = self.script.source, self.script.function(loop) if loop is not None else None
        for attribute in source.of(syntax.Attribute):
            if attribute.attr.value != name or not is_target(source, attribute):
                continue
            function = self.script.function(attribute)
            is_in_init = function is not None and function.name.value == "__init__"
            is_before = loop is not None and function is own and not source.contains(loop, attribute)
            if not is_in_init and not is_before:
                assign = source.parents[source.parents[attribute]]
                yield attribute, assign.value if isinstance(assign, syntax.Assign) else None

    def _any_holds(self, tests: list[syntax.BaseExpression]) -> Frequency:
        """How often one of several conditions holds. What one of them counts turns with equals a number once or so:
        ``step == 1 or step % 50 == 0``."""
        counters = {name for test in tests for name in self._counters(test)}
        return max(Frequency.EPOCH if _is_equal_to(test, counters) else self.holds(test) for test in tests)

    def _counters(self, test: syntax.BaseExpression) -> Iterator[str]:
        """The variables of which a condition that seldom holds takes a remainder."""
        divided = [each for each in self.script.source.inside(test, syntax.BinaryOperation) if self._is_modulo(each)]
        if divided and self.holds(test) is Frequency.THROTTLED:
            yield from (name.value for each in divided for name in self.script.source.inside(each.left, syntax.Name))

    def _comparison_holds(
        self, test: syntax.Comparison, left: syntax.BaseExpression, operator: syntax.BaseCompOp, right: syntax.BaseExpression
    ) -> Frequency:
        match operator:
            case syntax.GreaterThanEqual() if self._is_last(left, right) or self._is_of_all(left, right):
                return Frequency.EPOCH
            case syntax.Equal() | syntax.Is() if self._is_modulo(left) or self._is_modulo(right):
                return Frequency.STEP if _is_rank(left) or _is_rank(right) else Frequency.THROTTLED
            case syntax.Equal() if self._is_counter(left) or self._is_counter(right):
                return Frequency.EPOCH
            case syntax.Equal() if self._is_last(left, right) or self._is_last(right, left):
                return Frequency.EPOCH
            case syntax.Is() if is_none(right) and self._is_lazily_made(left):
                return Frequency.EPOCH
            case syntax.In() if self._is_counter(left) and isinstance(right, syntax.Name | syntax.Attribute | syntax.List):
                return Frequency.THROTTLED
            case syntax.LessThan() | syntax.LessThanEqual() if self._is_among_first(left, right):
                return Frequency.EPOCH
        return Frequency.THROTTLED if self._asks_the_clock(test) else Frequency.STEP

    def fails(self, test: syntax.BaseExpression) -> Frequency:
        """How often a condition fails at most, asked in each step."""
        if self._asks_for_training(test):
            return Frequency.EVAL_STEP
        match test:
            case syntax.BinaryOperation(operator=syntax.Modulo()) if self._is_modulo(test):
                return Frequency.THROTTLED
            case syntax.Comparison(left=left, comparisons=[syntax.ComparisonTarget(operator=operator, comparator=right)]):
                if isinstance(operator, (syntax.NotEqual, syntax.GreaterThan)) and self._is_modulo(left):
                    return Frequency.STEP if _is_rank(right) else Frequency.THROTTLED
                is_counter = self._is_counter(left) or self._is_counter(right)
                return Frequency.EPOCH if isinstance(operator, syntax.NotEqual) and is_counter else Frequency.STEP
            case syntax.UnaryOperation(operator=syntax.Not(), expression=inner):
                return self.holds(inner)
            case syntax.BooleanOperation(left=left, operator=syntax.Or(), right=right):
                return min(self.fails(left), self.fails(right))
            case syntax.Call(func=func) if self.script.name(func) in _FINITE:
                return Frequency.EPOCH
        return Frequency.STEP

    def _is_never(self, test: syntax.BaseExpression) -> bool:
        """Whether a condition is a constant that is false, or compares two texts that differ, and hangs on no option."""
        match test:
            case syntax.Comparison(
                left=syntax.Name() as left, comparisons=[syntax.ComparisonTarget(operator=syntax.Equal(), comparator=right)]
            ) if self._is_of_function(left):
                texts = [each for side in (left, right) if (each := self.fixed(side)) is not None]
                return (
                    len(texts) == 2 and all(isinstance(each.value, str) for each in texts) and not texts[0].equals(texts[1])
                )
            case syntax.Name() | syntax.Attribute():
                known = self.fixed(test)
                return known is not None and not known.value
        return False

    def never_runs(self, node: syntax.Node) -> bool:
        """Whether a node stands behind a jump that is always taken, or in a branch that a constant rules out."""
        if not self.script.order.is_run(node):
            return True
        child = node
        for up in self.script.source.ancestors(node):
            asked = decided_by(up, child)
            if asked is not None and truths.truth(asked[0], self._set_here) is (not asked[1]):
                return True
            if isinstance(up, (syntax.IndentedBlock, syntax.Module)) and self._is_left_before(up, child):
                return True
            if isinstance(up, syntax.FunctionDef) and self._is_replaced(up):
                return True
            child = up
        return False

    def _is_replaced(self, function: syntax.FunctionDef) -> bool:
        """Whether a class has another method under the name in the end, and nothing took this one before: no decorator, no
        line of the class."""
        names = self.script.names
        owner = names.owner(function)
        if owner is None or function.decorators:
            return False
        scope, name = names.scope(function), function.name.value
        bound = scope.bindings.get(name, ())
        if len(bound) < 2 or any(not isinstance(each.node, syntax.FunctionDef) for each in bound):
            return False
        if not any(each.region is None and each.node.row > function.row for each in bound):
            return False
        source = self.script.source
        said = (each for each in source.inside(owner.body, syntax.Name) if each.value == name)
        return not any(
            names.scope(each) is scope and not isinstance(source.parents[each], syntax.FunctionDef) for each in said
        )

    def _is_left_before(self, block: syntax.IndentedBlock | syntax.Module, child: syntax.Node) -> bool:
        """Whether a statement above another one in its block always leaves: it exits, or jumps where a constant says so."""
        above = itertools.takewhile(lambda each: each is not child, block.body)
        return any(self._exits(each) or self._always_jumps(each) for each in above)

    def _exits(self, statement: syntax.Node) -> bool:
        match statement:
            case syntax.SimpleStatementLine(body=[*_, syntax.Expr(value=syntax.Call(func=func))]):
                return self.script.name(func) in _EXITS
        return False

    def _always_jumps(self, statement: syntax.Node) -> bool:
        if not isinstance(statement, syntax.If):
            return False
        other = statement.orelse.body if isinstance(statement.orelse, syntax.Else) else None
        jumps, others = leaves(statement.body), other is not None and leaves(other)
        held = truths.truth(statement.test, self._set_here) if jumps or others else None
        return held is not None and (jumps if held else others)

    def _set_here(self, side: syntax.BaseExpression) -> Values | None:
        """The value, in every run, of a number, or of a variable that only assignments of fixed values set, and no code out
        of sight; None where it hangs on an option, an argument or anything not known."""
        if isinstance(side, syntax.Name):
            bindings = self.script.names.reaching(side)
            if not all(binding.kind is Kind.ASSIGN and not binding.path for binding in bindings):
                return None
            if next(self.script.calls("exec", "globals"), None) is not None:
                return None
        elif not isinstance(side, (syntax.Integer, syntax.Float)):
            return None
        known = self.fixed(side)
        return (known.value,) if known is not None else None

    def _is_of_function(self, name: syntax.Name) -> bool:
        """Whether a function binds a name, so that nothing elsewhere can."""
        scope = self.script.names.scope(name).lookup(name.value)
        return scope is not None and isinstance(scope.node, syntax.FunctionDef)

    def fixed(self, expression: syntax.BaseExpression) -> Constant | None:
        """The value of an expression where it is known, and no option that the user may set."""
        known = self.script.constant(expression)
        if known is None or known.entry is not None:
            return None
        return None if option_of(known.script, known.node) is not None else known

    def _asks_for_training(self, test: syntax.BaseExpression) -> bool | None:
        """Whether a condition is ``self.training`` of a module, True, or its negation, False; None for any other."""
        match test:
            case syntax.UnaryOperation(operator=syntax.Not(), expression=inner):
                asked = self._asks_for_training(inner)
                return None if asked is None else not asked
            case syntax.Attribute(value=module, attr=syntax.Name("training")):
                return True if self.script.role(module) is Role.MODULE else None
        return None

    def is_trained_only(self, node: syntax.Node) -> bool | None:
        """Whether a node of a module's method runs in training mode only (True), in evaluation only (False), or in both."""
        child = node
        for up in self.script.source.ancestors(node):
            asked: bool | None = None
            if isinstance(up, syntax.If | syntax.IfExp) and child is up.body:
                asked = self._is_mode_needed(up.test)
            elif isinstance(up, syntax.Else) and isinstance(branch := self.script.source.parents[up], syntax.If):
                asked = self._asks_for_training(branch.test)
                asked = None if asked is None else not asked
            elif isinstance(up, syntax.IndentedBlock):
                asked = self._left_by_mode(up, child)
            if asked is not None:
                return asked
            if isinstance(up, syntax.FunctionDef):
                return None
            child = up
        return None

    @once(None)
    def _is_mode_needed(self, test: syntax.BaseExpression) -> bool | None:
        """Whether a condition holds in training mode only (True), in evaluation only (False), or may in both: it, or one
        side of an ``and`` or ``&``, asks for the mode, also by a variable."""
        match test:
            case (
                syntax.BooleanOperation(left=left, operator=syntax.And(), right=right)
                | syntax.BinaryOperation(left=left, operator=syntax.BitAnd(), right=right)
            ):
                asked = self._is_mode_needed(left)
                return asked if asked is not None else self._is_mode_needed(right)
            case syntax.Name() if len(given := all_written(self.script.names.reaching(test))) == 1:
                return self._is_mode_needed(given[0])
        return self._asks_for_training(test)

    def _left_by_mode(self, block: syntax.IndentedBlock, child: syntax.Node) -> bool | None:
        """What ``if self.training: return ...`` above a statement leaves of its runs."""
        for statement in block.body:
            if statement is child:
                break
            if isinstance(statement, syntax.If) and isinstance(last_statement(statement.body), syntax.Return):
                asked = self._asks_for_training(statement.test)
                if asked is not None:
                    return not asked
        return None

    def is_without_gpu(self, node: syntax.Node) -> bool:
        """Whether a line runs only where there is no GPU, where ``torch.cuda.is_available()`` does not hold, or is about
        what lies on none: in the ``else`` of ``if x.is_cuda``, or behind ``if x.is_cuda: return``."""
        child = node
        for up in self.script.source.ancestors(node):
            for test, is_met in deciding_tests(up, child):
                if self.asks_for_gpu(test) is (not is_met) or self._is_of_what_is_left(test, is_met, node):
                    return True
            child = up
        return False

    def _is_of_what_is_left(self, test: syntax.BaseExpression, is_met: bool, node: syntax.Node) -> bool:
        """Whether what lies on a GPU is treated apart, ``if x[0].is_cuda``, from a line in the ``else``, or the function is
        left for it before a line that names it."""
        branch, source = self.script.source.parents[test], self.script.source
        match test:
            case syntax.Attribute(value=tensor, attr=syntax.Name("is_cuda")) if not is_met and isinstance(branch, syntax.If):
                if branch.orelse is not None:
                    return source.contains(branch.orelse, node) and self.script.value(tensor).place is not Place.HOST
                if not isinstance(last_statement(branch.body), syntax.Return):
                    return False
                while isinstance(tensor, syntax.Subscript):
                    tensor = tensor.value
                held, line = self.script.text(tensor), source.statement(node)
                named = any(self.script.text(each) == held for each in source.inside(line, type(tensor)))
                return isinstance(tensor, syntax.Name | syntax.Attribute) and named and not source.contains(branch, line)
        return False

    @once(None)
    def asks_for_gpu(self, test: syntax.BaseExpression) -> bool | None:
        """Whether a condition holds just where there is a GPU, True, or just where there is none, False; None for others."""
        if isinstance(test, syntax.UnaryOperation) and isinstance(test.operator, syntax.Not):
            asked = self.asks_for_gpu(test.expression)
            return None if asked is None else not asked
        asked_of = list(self.script.roles.origins(test))
        said = {_asks(script, value) for script, value in asked_of}
        return said.pop() if len(said) == 1 else None

    def runs_on_gpu(self, node: syntax.Node) -> bool:
        """Whether a line surely runs once its function does, where there is a GPU: no other condition and no loop is around
        it."""
        child: syntax.Node = node
        for up in self.script.source.ancestors(node):
            if isinstance(up, syntax.FunctionDef):
                return True
            if isinstance(up, (syntax.For, syntax.While, syntax.Try, syntax.Else)):
                return False
            if isinstance(up, syntax.If) and (child is not up.body or not self.is_true_on_gpu(up.test)):
                return False
            child = up
        return True

    def is_true_on_gpu(self, test: syntax.BaseExpression) -> bool:
        """Whether a test asks for a GPU, and for nothing else but that no option forbids it."""
        return any(self._finds_gpu(script, value) for script, value in self.script.roles.origins(test))

    def _finds_gpu(self, script: Script, test: syntax.BaseExpression) -> bool:
        match test:
            case syntax.BooleanOperation(left=left, operator=syntax.And(), right=right):
                return self._finds_gpu(script, left) or self._finds_gpu(script, right)
        return script.is_call_to(test, *_ASK_FOR_GPU)

    def _is_last(self, turn: syntax.BaseExpression, length: syntax.BaseExpression) -> bool:
        """Whether a loop's variable is compared with ``len(loader)`` or ``len(loader) - 1``."""
        turn, length = _without_offset(turn), _without_offset(length)
        if not isinstance(turn, syntax.Name) or not self.script.is_call_to(length, "len"):
            return False
        return any(binding.kind is Kind.FOR for binding in self.script.names.reaching(turn))

    def _is_of_all(self, turn: syntax.BaseExpression, total: syntax.BaseExpression) -> bool:
        """Whether a count of turns is compared with that of all epochs, ``epochs * len(loader)``: the loops around it go
        over this loader, and over so many epochs, and each turn counts one."""
        match total:
            case syntax.BinaryOperation(left=whole, operator=syntax.Subtract(), right=syntax.Integer("1")):
                return self._is_of_all(turn, whole)
            case syntax.BinaryOperation(left=left, operator=syntax.Multiply(), right=right):
                return any(
                    self.script.is_call_to(length, "len") and self._counts_over(_without_offset(turn), epochs, length)
                    for epochs, length in ((left, right), (right, left))
                )
        return False

    def _counts_over(
        self, turn: syntax.BaseExpression, epochs: syntax.BaseExpression, length: syntax.BaseExpression
    ) -> bool:
        """Whether a variable counts the turns of a loop over what ``length`` is of, one by one from a number that is written
        out, in one over a range of so many epochs."""
        source, text = self.script.source, self.script.text
        scope = self.script.names.scope(turn).lookup(turn.value) if isinstance(turn, syntax.Name) else None
        if scope is None or not isinstance(turn, syntax.Name) or not isinstance(length, syntax.Call) or not length.args:
            return False
        bindings, over = scope.bindings.get(turn.value, []), text(length.args[0].value)
        added = [source.parents[each.node] for each in bindings if each.kind is Kind.AUGMENT]
        begun = [written(each) for each in bindings if each.kind is not Kind.AUGMENT]
        if (
            len(added) != 1
            or not isinstance(added[0], syntax.AugAssign)
            or not all(isinstance(each, syntax.Integer) for each in begun)
        ):
            return False
        loop = source.enclosing(added[0], syntax.For, syntax.While)
        outer = source.enclosing(loop, syntax.For, syntax.While) if isinstance(loop, syntax.For) else None
        if not isinstance(loop, syntax.For) or not isinstance(outer, syntax.For) or self.script.text(added[0].value) != "1":
            return False
        is_range = isinstance(outer.iter, syntax.Call) and self.script.is_call_to(outer.iter, "range")
        ends = [text(_without_offset(arg.value)) for arg in outer.iter.args] if is_range else []
        parts = (each for kind in (syntax.Name, syntax.Attribute) for each in source.inside(loop.iter, kind))
        return 0 < len(ends) < 3 and ends[-1] == text(epochs) and any(text(each) == over for each in parts)

    def counts_steps(self, test: syntax.BaseExpression) -> bool:
        """Whether a condition is ``step % n == 0``, even where ``n`` is 1."""
        match test:
            case syntax.BooleanOperation(left=left, operator=syntax.And(), right=right):
                return self.counts_steps(left) or self.counts_steps(right)
            case syntax.Comparison(left=syntax.BinaryOperation(operator=syntax.Modulo()), comparisons=[target]):
                return isinstance(target.operator, syntax.Equal)
        return False

    def _left_by_continue(self, block: syntax.IndentedBlock, child: syntax.Node) -> Frequency:
        """What earlier statements such as ``if step % n: continue`` leave of the block's turns."""
        return min((self.fails(each.test) for each in _leaving(block, child)), default=Frequency.STEP)

    def last_of_turns_left(self, block: syntax.IndentedBlock, child: syntax.Node) -> syntax.If | None:
        """The last of the statements such as ``if step % n: continue`` that leave a part of a block in every so many turns;
        None without one, and where another one leaves it less than that."""
        limits = [(each, self.fails(each.test)) for each in _leaving(block, child)]
        seldom = [each for each, limit in limits if limit is Frequency.THROTTLED]
        return seldom[-1] if seldom and all(limit >= Frequency.THROTTLED for _, limit in limits) else None

    def _ends(self, body: syntax.BaseSuite) -> bool:
        """Whether a branch ends the loop or the program: it raises, breaks, exits, or returns from a loop."""
        match last_statement(body):
            case syntax.Raise() | syntax.Break():
                return True
            case syntax.Return():
                around = self.script.source.enclosing(body, syntax.For, syntax.While, syntax.FunctionDef)
                return isinstance(around, (syntax.For, syntax.While))
            case syntax.Expr(value=syntax.Call(func=func)):
                return self.script.name(func) in _EXITS
        return False

    @once(Frequency.STEP)
    def _name_holds(self, name: syntax.Name) -> Frequency:
        """How often a variable is true: one that holds a condition, ``last_step = step == steps - 1``, a flag that each turn
        resets and few set, or a parameter that is handed such a one."""
        bindings = self.script.names.reaching(name)
        turn = self.script.loops.driving_loop(name) or self.script.function(name)
        is_reset = turn is not None and all(self.script.source.contains(turn.body, each.node) for each in bindings)
        return max((self._binding_holds(each, turn if is_reset else None) for each in bindings), default=Frequency.STEP)

    def _binding_holds(self, binding: Binding, turn: syntax.Node | None) -> Frequency:
        """How often a variable is true by one of its bindings; ``turn`` is the loop or function that binds it anew."""
        if binding.kind is Kind.PARAMETER and isinstance(binding.node, syntax.Param):
            return self._passed_holds(binding.node)
        if binding.kind is not Kind.ASSIGN or binding.path:
            return Frequency.STEP
        match binding.value:
            case syntax.Comparison() | syntax.BooleanOperation() | syntax.UnaryOperation() as condition:
                return self.holds(condition)
            case syntax.Name(value="False" | "None") if turn is not None:
                return Frequency.ONCE
            case syntax.Name(value="True") if turn is not None:
                return self._limit_within(binding.node, turn)
        return Frequency.STEP

    def _passed_holds(self, parameter: syntax.Param) -> Frequency:
        """How often a parameter is true: as often as the argument of the call that most often passes a true one."""
        passed = list(self.script.values.passed(parameter))
        flags = (other.loops.guards._handed_holds(each) if each is not None else Frequency.STEP for other, each in passed)
        return max(flags, default=Frequency.STEP)

    def _handed_holds(self, given: syntax.BaseExpression) -> Frequency:
        """How often what a call hands on is true: a variable, or a condition on the turns of a loop of steps around it."""
        if isinstance(given, syntax.Name):
            return self._name_holds(given)
        names = self.script.source.inside(given, syntax.Name)
        loops = {loop for name in names for each in self.script.names.reaching(name) if (loop := self._loop_of(each))}
        return self.holds(given) if loops and all(map(self._drives_steps, loops)) else Frequency.STEP

    def _drives_steps(self, loop: syntax.For) -> bool:
        return self.script.loops.kind(loop) in (Frequency.STEP, Frequency.EVAL_STEP)

    def _loop_of(self, binding: Binding) -> syntax.For | None:
        """The loop whose turns bind a variable."""
        loop = self.script.source.enclosing(binding.node, syntax.For) if binding.kind is Kind.FOR else None
        return loop if isinstance(loop, syntax.For) else None

    def _limit_within(self, node: syntax.Node, turn: syntax.Node) -> Frequency:
        """How often a node of a loop or function runs at most, by the conditions between the two."""
        limit, child = Frequency.STEP, node
        for up in self.script.source.ancestors(node):
            if up is turn:
                break
            limit, child = min(limit, self.limit(up, child)), up
        return limit

    def _is_counter(self, side: syntax.BaseExpression) -> bool:
        """Whether one side of a comparison counts the turns of a loop: the other is the first batch, or the last."""
        side = _without_offset(side)
        return self._counts(side) if isinstance(side, syntax.Name) else self._is_counted_up(side)

    def _is_counted_up(self, place: syntax.BaseExpression) -> bool:
        """Whether the function adds to an entry or attribute: ``seen["samples"] += 8``."""
        function = self.script.function(place)
        if function is None or not isinstance(place, (syntax.Subscript, syntax.Attribute)):
            return False
        if isinstance(place, syntax.Attribute) and self._is_global_step(place, function):
            return True
        text = self.script.text(place)
        return any(
            isinstance(added.operator, syntax.AddAssign) and self.script.text(added.target) == text
            for added in self.script.source.inside(function.body, syntax.AugAssign)
        )

    def _is_global_step(self, place: syntax.Attribute, function: syntax.FunctionDef) -> bool:
        """Whether a method that a framework calls asks an object that it was handed how many steps were taken."""
        if place.attr.value != "global_step" or not isinstance(place.value, syntax.Name) or self._hook(function) is None:
            return False
        return any(isinstance(each.node, syntax.Param) for each in self.script.names.reaching(place.value))

    def _hook(self, function: syntax.FunctionDef) -> library.Hook | None:
        """What a function is to a framework that calls it by its name."""
        owner = self.script.names.owner(function)
        return (
            self.script.roles.calls.hook(Definition(self.script, owner), function.name.value) if owner is not None else None
        )

    def _is_turn(self, parameter: syntax.Param) -> bool:
        """Whether a parameter takes the number of the batch from the framework that calls its function."""
        function = self.script.source.enclosing(parameter, syntax.FunctionDef)
        hook = self._hook(function) if isinstance(function, syntax.FunctionDef) else None
        if hook is None or hook.turn is None or not isinstance(function, syntax.FunctionDef):
            return False
        return parameter in function.params.params and function.params.params.index(parameter) == hook.turn

    @once(False)
    def _counts(self, name: syntax.Name) -> bool:
        """Whether a variable counts the turns of a loop, here or where each call passes it on."""
        for binding in self.script.names.reaching(name):
            if isinstance(binding.node, syntax.Param) and (
                self._is_turn(binding.node) or self._is_passed_turn(binding.node)
            ):
                return True
            if binding.kind is Kind.FOR and self.script.role(name) is Role.NUMBER and not self._turns_within_step(binding):
                return True
            if (
                isinstance(self.script.source.parents.get(binding.node), syntax.AugAssign)
                and self.script.role(name) is Role.NUMBER
            ):
                return True
            if binding.kind is Kind.ASSIGN and not binding.path and binding.value is not None:
                counted = _without_offset(binding.value)
                if isinstance(counted, syntax.Name) and counted is not binding.value and self._counts(counted):
                    return True
        return False

    def _is_passed_turn(self, parameter: syntax.Param) -> bool:
        """Whether each call of a function hands on a variable that counts the turns of a loop, but for those that try it out
        with a number."""
        passed = list(self.script.values.passed(parameter))
        handed = [
            (other, value)
            for other, value in passed
            if not isinstance(value, syntax.Integer) or other.frequency(value) is not Frequency.ONCE
        ]
        return bool(handed) and all(
            isinstance(value, syntax.Name) and other.loops.guards._counts(value) for other, value in handed
        )

    def _is_lazily_made(self, name: syntax.BaseExpression) -> bool:
        """Whether a variable that is None may hold a number or array from then on: not one that each call passes anew."""
        if isinstance(name, syntax.Name):
            bindings = self.script.names.reaching(name)
            if bindings and all(binding.kind is Kind.PARAMETER for binding in bindings):
                return False
        return isinstance(name, (syntax.Name, syntax.Attribute)) and self.script.role(name) in (Role.NUMBER, Role.ARRAY)

    def _is_among_first(self, left: syntax.BaseExpression, right: syntax.BaseExpression) -> bool:
        """Whether a loop of steps is at one of its first turns: ``batch_idx < 8``."""
        if not isinstance(left, syntax.Name) or self.script.constant(right) is None or not self._counts(left):
            return False
        frequent = (Frequency.STEP, Frequency.EVAL_STEP)
        bindings = self.script.names.reaching(left)
        if any(isinstance(binding.node, syntax.Param) and self._is_turn(binding.node) for binding in bindings):
            return True
        loops = [self.script.source.enclosing(binding.node, syntax.For) for binding in bindings]
        return any(isinstance(loop, syntax.For) and self.script.loops.kind(loop) in frequent for loop in loops)

    def _is_capped(self, branch: syntax.If) -> bool:
        """Whether a branch counts how often it ran, up to a limit: ``if shown < 5: shown += 1; ...``."""
        source = self.script.source
        counted = {
            added.target.value
            for added in source.inside(branch.body, syntax.AugAssign)
            if isinstance(added.target, syntax.Name) and isinstance(added.value, syntax.Integer)
        }
        return any(
            isinstance(compared.left, syntax.Name)
            and compared.left.value in counted
            and isinstance(compared.comparisons[0].operator, (syntax.LessThan, syntax.LessThanEqual))
            for compared in source.inside(branch.test, syntax.Comparison)
        )

    def _shuts_itself(self, branch: syntax.If, test: syntax.BaseExpression) -> bool:
        """Whether a branch clears the flag that it asks for, which nothing else in the loop sets: ``if not shown: shown =
        True``."""
        match test:
            case syntax.BooleanOperation(left=left, operator=syntax.And(), right=right):
                return self._shuts_itself(branch, left) or self._shuts_itself(branch, right)
            case syntax.UnaryOperation(operator=syntax.Not(), expression=flag):
                return self._is_set_for_good(branch, flag, "True")
        return self._is_set_for_good(branch, test, "False")

    @once(False)
    def counts_anew(self, branch: syntax.If) -> bool:
        """Whether a branch sets back a number that each turn counts down or up, once that is reached: ``left -= 8`` and
        ``if left <= 0: left = 8000``."""
        match branch:
            case syntax.If(
                test=syntax.Comparison(
                    left=syntax.Name() | syntax.Attribute() as number,
                    comparisons=[syntax.ComparisonTarget(operator=asked, comparator=bound)],
                ),
                body=syntax.IndentedBlock(body=lines),
            ) if (counts := _COUNTED_TO.get(type(asked))) is not None:
                pass
            case _:
                return False
        source, text = self.script.source, self.script.text
        turn = source.enclosing(branch, syntax.For, syntax.While, syntax.FunctionDef)
        if turn is None or (isinstance(turn, syntax.FunctionDef) and isinstance(number, syntax.Name)):
            return False
        changes = [each for each in source.inside(turn, syntax.AugAssign) if text(each.target) == text(number)]
        if not any(isinstance(each.operator, counts) and not source.contains(branch, each) for each in changes):
            return False
        set_back = [
            each.value
            for line in lines
            if isinstance(line, syntax.SimpleStatementLine)
            for each in line.body
            if isinstance(each, syntax.Assign) and any(text(target.target) == text(number) for target in each.targets)
        ]
        period = bound if counts is syntax.AddAssign else next(iter(set_back), None)
        known = self.script.constant(period) if period is not None else None
        return bool(set_back) and (known is None or known.value != 1)

    def _asks_the_clock(self, test: syntax.Comparison) -> bool:
        calls = self.script.source.inside(test, syntax.Call)
        return any(self.script.name(call.func) in CLOCKS for call in calls)

    def _is_modulo(self, expression: syntax.BaseExpression) -> bool:
        if not isinstance(expression, syntax.BinaryOperation) or not isinstance(expression.operator, syntax.Modulo):
            return False
        period = self.script.constant(expression.right)
        if period is not None and period.value == 1:
            return False
        counted = [self._bound(name) for name in self.script.source.inside(expression.left, syntax.Name)]
        return not (any(counted) and all(map(self._turns_within_step, itertools.chain.from_iterable(counted))))

    def _bound(self, name: syntax.Name) -> list[Binding]:
        return self.script.names.reaching(name) if not isinstance(self.script.source.parents[name], syntax.Attribute) else []

    def _turns_within_step(self, binding: Binding) -> bool:
        """Whether a variable counts the turns of a loop that lies within one step, as over the layers of a network."""
        loop = self._loop_of(binding)
        if loop is None or self.script.loops.frequency(loop) not in FREQUENT:
            return False
        names = self.script.source.inside(loop.iter, syntax.Name)
        return not any(self.script.role(name) is Role.NUMBER and self._counts(name) for name in names)


def _leaving(block: syntax.IndentedBlock, child: syntax.Node) -> Iterator[syntax.If]:
    """The statements before a part of a block that leave the turn, or the function, where a condition holds."""
    for statement in itertools.takewhile(lambda each: each is not child, block.body):
        if isinstance(statement, syntax.If) and isinstance(last_statement(statement.body), (syntax.Continue, syntax.Return)):
            yield statement


def decided_by(up: syntax.Node, child: syntax.Node) -> tuple[syntax.BaseExpression, bool] | None:
    """The condition that decides whether ``child``, a part of ``up``, runs, and whether it must hold."""
    match up:
        case syntax.If() | syntax.IfExp() if child is not up.test:
            return up.test, child is up.body
        case syntax.BooleanOperation() if child is up.right:
            return up.left, isinstance(up.operator, syntax.And)
    return None


def deciding_tests(up: syntax.Node, child: syntax.Node) -> Iterator[tuple[syntax.BaseExpression, bool]]:
    """The tests that decide whether ``child``, a part of ``up``, runs, and how they must come out."""
    asked = decided_by(up, child)
    if asked is not None:
        yield asked
    elif isinstance(up, syntax.IndentedBlock):
        for above in itertools.takewhile(lambda each: each is not child, up.body):
            if isinstance(above, syntax.If) and leaves(above.body):
                yield above.test, False


def _alternatives(test: syntax.BaseExpression) -> Iterator[syntax.BaseExpression]:
    """The conditions that ``or`` joins."""
    match test:
        case syntax.BooleanOperation(left=left, operator=syntax.Or(), right=right):
            yield from _alternatives(left)
            yield from _alternatives(right)
        case _:
            yield test


def _is_equal_to(test: syntax.BaseExpression, names: set[str]) -> bool:
    """Whether a condition asks that one of some variables, or the next number, equals something."""
    match test:
        case syntax.Comparison(left=left, comparisons=[syntax.ComparisonTarget(operator=syntax.Equal(), comparator=right)]):
            sides = (_without_offset(left), _without_offset(right))
            return any(isinstance(side, syntax.Name) and side.value in names for side in sides)
    return False


def _is_rank(number: syntax.BaseExpression) -> bool:
    """Whether a number is the place of a process among others: ``step % world == rank`` shares the turns out, and a process
    goes through those that are left to it as through any."""
    name = last_name(number.func if isinstance(number, syntax.Call) else number)
    return name is not None and name.endswith("rank")


def _without_offset(number: syntax.BaseExpression) -> syntax.BaseExpression:
    """``step`` of ``step + 1``."""
    match number:
        case syntax.BinaryOperation(left=left, operator=syntax.Add() | syntax.Subtract(), right=syntax.Integer()):
            return left
    return number
