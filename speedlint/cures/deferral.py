"""Keeps a value that is read in every step on the device, and reads it where it is used now and then.

``total += loss.item()`` becomes ``total += loss.detach()``, and ``total / n`` after the loop ``float(total) / n``. Only
where every place that reads the value is seen and none of them runs in each step; CannotEdit says why not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.cures import callers, entries, precision, spelling, tallies, tried, unnamed
from speedlint.cures.filling import check_alias, filled_list, last_converted, loop_outside
from speedlint.cures.tallies import Tally
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Edit
from speedlint.shapes.optimizer.retention import is_differentiated
from speedlint.shapes.sync import placed, reads, whole_parts
from speedlint.shapes.sync.accumulators import (
    accepts_tensors,
    fed,
    is_empty_list,
    is_fed_tensors,
    is_written_zero,
    is_zero,
)
from speedlint.shapes.sync.gradients import is_graphless
from speedlint.shapes.sync.owned import is_own
from speedlint.solve.dtypes import is_floating, is_integral, is_scalar, is_wide, may_be_complex, may_be_half, may_be_small
from speedlint.solve.inplace import is_handed_in
from speedlint.solve.loops import Loop
from speedlint.solve.names import Binding, Kind
from speedlint.solve.terms import Definition
from speedlint.solve.unpacking import all_written, written
from speedlint.source import is_target
from speedlint.torch.words import FREQUENT, Role

_ARITHMETIC = (syntax.Add, syntax.Subtract, syntax.Multiply, syntax.Divide)
_SEE_ALL = {("locals", False), ("vars", False), ("globals", False), ("eval", True), ("exec", True)}
_DEEPEST = 3
_OWN_ITEM = re.compile(rb"def item\(\s*self")
_SCOPES = (syntax.FunctionDef, syntax.Lambda, syntax.ClassDef)


def keep_on_device(script: Script, read: syntax.Call, tensor: syntax.BaseExpression) -> tuple[Edit, ...]:
    """The edits that defer ``read``, an ``x.item()`` or ``float(x)``. Raises CannotEdit."""
    return _Deferral(script, read, tensor).edits()


class _Deferral:
    """A read, or with a ``helper`` the call of the function that returns what it has read."""

    def __init__(
        self, script: Script, read: syntax.Call, tensor: syntax.BaseExpression, helper: _Deferral | None = None
    ) -> None:
        self.script, self.source, self.read = script, script.source, read
        self.tensor = tensor if helper is not None else self._without_copies(tensor)
        self.is_float = isinstance(read.func, syntax.Name) and script.name(read.func) == "float"
        self.integral: bool = is_integral(script, self.tensor) and not self.is_float if helper is None else helper.integral
        self.floating: bool = self.is_float or is_floating(script, self.tensor) if helper is None else helper.floating
        self.divided: bool = helper is not None and helper.divided
        self.depth: int = helper.depth + 1 if helper is not None else 0
        self.power: float = helper.power if helper is not None else 0.0
        self.by_unknown: bool = helper is not None and helper.by_unknown
        self.reads: list[tuple[Script, syntax.BaseExpression]] = [(script, read)]
        self.squeezed = self.unclear = self.is_unread = self.is_shared = False
        self.variables: list[str] = []
        self._edits: list[Edit] = []

    def edits(self) -> tuple[Edit, ...]:
        """All edits of the change."""
        tally = tallies.adding(self.script, self.script.function(self.read))
        if tally is not None and tally.read is self.read:
            self._check_objects()
            return tallies.kept(tally)
        if self.script.value(self.tensor).assumed:
            raise CannotEdit("what gives it is out of sight, and may give a number of NumPy's")
        if self.script.program.mentions(self.script, _OWN_ITEM):
            raise CannotEdit("an object of the program's own has an `item` too, and no `detach`")
        if placed.changes_device(self.script, self.read):
            raise CannotEdit("its turns may compute on several GPUs, whose numbers are not added up there")
        if (
            why := placed.why_apart(self.script, self.tensor, is_called=isinstance(self.read.func, syntax.Attribute))
        ) is not None:
            raise CannotEdit(why)
        self._flow(self.read)
        if may_be_complex(self.script) and not self._is_differentiated():
            raise CannotEdit("it may be complex, which is no float")
        tried.check(self.reads, self.tensor, divides=self.by_unknown)
        return tuple(dict.fromkeys([self._detached(), *self._edits]))

    def _is_differentiated(self) -> bool:
        """Whether a backward pass starts at the tensor, which only real numbers allow."""
        return isinstance(self.tensor, syntax.Name) and is_differentiated(self.script, self.tensor)

    # The read itself

    def _without_copies(self, tensor: syntax.BaseExpression) -> syntax.BaseExpression:
        """``loss`` for ``loss.cpu().numpy()``: what was copied to be read stays where it is."""
        kept = reads.before_copies(self.script, tensor)
        if any(self.source.contains(index.value, kept) for index in self.source.inside(tensor, syntax.Subscript)):
            raise CannotEdit("an entry is taken of the copy")
        return kept

    def _detached(self) -> Edit:
        func = self.read.func
        if isinstance(func, syntax.Name) and func.value != "float" and not (func.value == "int" and self.integral):
            raise CannotEdit(f"`{func.value}()` changes the value")
        methods = [] if is_graphless(self.script, self.tensor) else ["detach"]
        methods += ["float"] if self._must_be_made_float() else []
        methods += ["squeeze"] if self._must_lose_dimensions() else []
        methods += ["clone"] if self.is_shared else []
        kept = "".join(f".{method}()" for method in methods)
        if isinstance(func, syntax.Attribute):
            if func.value is self.tensor and methods:
                return edits.replace(self.source, func.attr, kept[1:-2])
            return self._cut(kept)
        text = self.script.text(self.tensor)
        is_simple = isinstance(
            self.tensor, syntax.Name | syntax.Attribute | syntax.Call | syntax.Subscript
        ) or text.startswith("(")
        return edits.replace(self.source, self.read, f"{text}{kept}" if is_simple else f"({text}){kept}")

    def _must_be_made_float(self) -> bool:
        """Whether what is added up must be made ``float``: it may be half, or whole where ``float(x)`` was a fraction."""
        if self.is_unread:
            return False
        if self.is_float and not is_floating(self.script, self.tensor):
            return True
        if self.unclear and may_be_small(self.script):
            return True
        return may_be_half(self.script) and not self.integral and not is_wide(self.script, self.tensor)

    def _must_lose_dimensions(self) -> bool:
        """Whether what is added up or joined may have a dimension of length 1 at one time and none at another."""
        if self.is_unread or is_scalar(self.script, self.tensor):
            return False
        return self.squeezed or not placed.has_one_shape(self.script, self.tensor)

    def _cut(self, kept: str) -> Edit:
        """Writes ``kept`` for all that follows the tensor."""
        start, end = self.source.span(self.tensor).end, self.source.code_span(self.read).end
        if b"#" in self.source.data[start:end]:
            raise CannotEdit("a comment stands within it")
        return Edit(self.source.path, start, end, kept)

    # Where the value goes

    def _flow(self, node: syntax.BaseExpression) -> None:
        """Follows a value that is now a tensor to where it is kept. Raises CannotEdit where it must be a number."""
        start, power = node, self.power
        while isinstance(parent := self.source.parents[node], syntax.BinaryOperation):
            self._operation(parent, node)
            node = parent
        match parent:
            case syntax.AugAssign(target=syntax.Name() as target, operator=syntax.AddAssign()):
                self._accumulated(target, parent)
            case syntax.AugAssign(target=syntax.Subscript() as target, operator=syntax.AddAssign()):
                self._entered(target, parent)
            case syntax.Assign(targets=[syntax.AssignTarget(target=syntax.Name() as target)]):
                if any(use.value == target.value for use in self.source.inside(parent.value, syntax.Name)):
                    self._accumulated(target, parent)
                else:
                    self._held(target, parent, fresh=node is not start)
            case syntax.Arg(keyword=None, star=""):
                self._passed(parent, fresh=node is not start)
            case syntax.Return():
                self._check_alias(fresh=node is not start)
                if node is start and self.depth == 0 and is_handed_in(self.script, self.tensor):
                    raise CannotEdit(f"who calls the function may change `{self.script.text(self.tensor)}` in place")
                self._returned(parent)
            case _:
                raise CannotEdit("its value is used at once, as a number")
        self.power = power

    def _operation(self, operation: syntax.BinaryOperation, node: syntax.BaseExpression) -> None:
        other = operation.right if operation.left is node else operation.left
        value = self.script.value(other)
        if not isinstance(operation.operator, _ARITHMETIC):
            raise CannotEdit(f"it is an operand of `{self.script.text(operation)}`")
        is_number = value.role in (Role.NUMBER, Role.TENSOR) or self.script.constant(other) is not None
        if not is_number and not self._is_whole(other):
            raise CannotEdit(f"`{self.script.text(other)}` may be no number")
        self._check_precision(operation, node, other)
        if isinstance(operation.operator, syntax.Divide):
            self.integral, self.divided = False, True
        elif self.integral and not self._is_whole(other):
            known = self.script.constant(other)
            if known is None or not isinstance(known.value, float):
                raise CannotEdit(f"whether `{self.script.text(other)}` is a whole number is not known")
            self.integral, self.divided = False, True

    def _check_precision(
        self, operation: syntax.BinaryOperation, node: syntax.BaseExpression, other: syntax.BaseExpression
    ) -> None:
        """Raises CannotEdit where single precision does not hold what double does; notes a divisor that may be zero."""
        divides = isinstance(operation.operator, syntax.Divide)
        known = self.script.constant(other)
        self.by_unknown |= divides and (operation.right is node or known is None or not known.value)
        if divides or isinstance(operation.operator, syntax.Multiply):
            self.power += precision.scaled(self.script, other, divides=divides)
            precision.check_power(self.power, self.script.text(operation))
        elif not (self.integral and self._is_whole(other)):
            precision.check_offset(self.script, other)

    def _is_whole(self, node: syntax.BaseExpression) -> bool:
        """Whether an operand is certainly a whole number: written so, a length, a size."""
        known = self.script.constant(node)
        if known is not None:
            return isinstance(known.value, int)
        match node:
            case (
                syntax.Call(func=syntax.Name("len" | "int"))
                | syntax.Call(func=syntax.Attribute(attr=syntax.Name("size" | "numel")))
            ):
                return True
            case syntax.Subscript(value=syntax.Attribute(attr=syntax.Name("shape"))):
                return True
        return is_integral(self.script, node)

    def _passed(self, arg: syntax.Arg, *, fresh: bool) -> None:
        call = self.source.parents[arg]
        match call:
            case syntax.Call() if (tally := self._tally(call)) is not None:
                if isinstance(call.func, syntax.Attribute) and isinstance(call.func.value, syntax.Name):
                    self._check_seen(call.func.value)
                    self._check_parts(self.script, call.func.value)
                self._edits += tallies.kept(tally)
            case syntax.Call(func=syntax.Attribute(value=syntax.Name() as base, attr=syntax.Name(value="append")), args=[_]):
                self._check_alias(fresh=fresh)
                self._listed(base, call)
            case syntax.Call(func=syntax.Attribute(value=syntax.Name() as base, attr=syntax.Name(value="update"))) if (
                call.args[0] is arg
            ):
                self._check_alias(fresh=fresh)
                self._metered(base, call)
            case syntax.Call():
                raise CannotEdit(f"`{self.script.first_line(call.func)}` takes it as a number in every step")

    def _tally(self, call: syntax.Call) -> Tally | None:
        """The class of objects that add up what the call hands one of them."""
        callee = self.script.callee(call)
        return tallies.adding(callee.script, callee.node) if callee is not None else None

    # Callers

    def _returned(self, result: syntax.Return) -> None:
        """``return x.item()``: all who call the function go on with a tensor, or convert it where they call it seldom."""
        if self.depth > _DEEPEST:
            raise CannotEdit("what it is returned to is not seen")
        for other, call in callers.of_helper(self.script, result):
            at_caller = _Deferral(other, call, call, self)
            at_caller.go_on()
            self._edits += at_caller._edits
            self.reads += at_caller.reads
            self.by_unknown |= at_caller.by_unknown
            self.squeezed |= at_caller.squeezed
            self.unclear |= at_caller.unclear

    def go_on(self) -> None:
        """Follows what a helper returns where it is called."""
        if isinstance(self.source.parents[self.read], syntax.Expr):
            return
        if self.script.frequency(self.read) in FREQUENT:
            self._flow(self.read)
        elif not (self.integral or self.floating or self.divided):
            raise CannotEdit(f"whether `{self.script.first_line(self.read.func)}` returns a whole number is not known")
        else:
            self._wrap(self.read, self.script.text(self.read), "int" if self.integral else "float")

    # Sums

    def _accumulated(self, target: syntax.Name, statement: syntax.AugAssign | syntax.Assign) -> None:
        name = target.value
        if name in self.variables:
            return
        self.variables.append(name)
        unnamed.check_variable(self.script, target)
        bindings = self._bindings(target)
        added = [binding for binding in bindings if self.source.contains(statement, binding.node)]
        for binding in bindings:
            if binding not in added:
                if binding.kind is Kind.AUGMENT:
                    self._check_inference(binding.node, name)
                    self._check_beside(self.source.enclosing(binding.node, syntax.AugAssign))
                self._other_binding(binding, name, is_sum=True)
        zeros = [written(binding) for binding in bindings if is_zero(self.script, binding)]
        if not zeros:
            raise CannotEdit(f"where `{name}` starts from zero is not seen")
        converted = self._conversion(zeros)
        others = [use for use in self._uses(target) if not self.source.contains(statement, use)]
        found = [use for use in others if self._is_read_of(use, added, converted)]
        loop = self._loop_before(found, statement, bindings, added)
        for use in found:
            if loop is None or not self.script.order.runs_before(loop, use):
                self._wrap(use, name, converted)
        if loop is not None:
            line = f"{name} = {spelling.builtin(self.script, converted, statement)}({name})"
            self._edits.append(edits.insert_after(self.source, last_converted(self.script, loop), [line]))

    def _loop_before(
        self, found: Sequence[syntax.Name], statement: syntax.Node, bindings: Sequence[Binding], added: Sequence[Binding]
    ) -> Loop | None:
        """The loop that a sum is added up in, where several reads follow it that would each be converted; else None. One
        line below the loop makes it a number for all of them."""
        if found and len(starts := [each for each in bindings if is_zero(self.script, each)]) == 1:
            try:
                loop = loop_outside(self.script, statement, starts[0].node)
            except CannotEdit:
                return None
            is_set_within = any(
                each.kind is not Kind.AUGMENT and each not in added and self.source.contains(loop, each.node)
                for each in bindings
            )
            late = [use for use in found if self.script.order.runs_before(loop, use) and not self._is_converted_already(use)]
            if len(late) > 1 and not is_set_within:
                return loop
        return None

    def _conversion(self, zeros: Sequence[syntax.BaseExpression | None]) -> str:
        """``int`` or ``float``: what the sum was as a number."""
        starts_whole = all(isinstance(zero, syntax.Integer) for zero in zeros)
        if self.integral and starts_whole:
            return "int"
        self.unclear = not (self.integral or not starts_whole or self.divided or self.floating)
        return "float"

    def _other_binding(self, binding: Binding, name: str, *, is_sum: bool) -> None:
        """Checks a binding of the variable that is not the deferred one."""
        if is_zero(self.script, binding):
            return
        frequency = self.script.frequency(binding.node)
        if binding.kind is Kind.AUGMENT and is_sum:
            statement = self.source.enclosing(binding.node, syntax.AugAssign)
            if isinstance(statement, syntax.AugAssign):
                if self._adds_number(statement):
                    return
                if isinstance(statement.operator, syntax.DivideAssign) and frequency not in FREQUENT:
                    self._divide(statement, name)
                    return
        if (
            binding.kind is Kind.ASSIGN
            and frequency not in FREQUENT
            and not binding.path
            and not self._is_in_loop(binding.node)
        ):
            return
        raise CannotEdit(f"`{name}` is also set on line {self.source.line(binding.node)}")

    def _adds_number(self, statement: syntax.AugAssign) -> bool:
        """Whether a statement adds a number, which a sum of fractions takes as a tensor too."""
        return (
            isinstance(statement.operator, syntax.AddAssign)
            and not self.integral
            and self.script.role(statement.value) is Role.NUMBER
            and not precision.is_large(self.script, statement.value)
        )

    def _check_inference(self, other: syntax.Node, name: str) -> None:
        """Raises CannotEdit where a sum of inference tensors is added to outside of ``inference_mode``."""
        for up in self.source.ancestors(self.read):
            if isinstance(up, _SCOPES):
                return
            if (
                isinstance(up, syntax.With)
                and any(self._is_inference(item.item) for item in up.items)
                and not self.source.contains(up, other)
            ):
                raise CannotEdit(f"`{name}` is added to outside of inference mode, which would not take its tensors")

    def _check_beside(self, other: syntax.Node | None) -> None:
        """Where a sum takes a second tensor, both need one shape. Raises CannotEdit where they may lie apart."""
        if other is None or not any(reads.scalar(self.script, call) for call in self.source.inside(other, syntax.Call)):
            return
        self.squeezed = True
        if (why := placed.why_apart(self.script, self.tensor, is_called=True, beside=True)) is not None:
            raise CannotEdit(why)

    def _is_inference(self, manager: syntax.BaseExpression) -> bool:
        called = manager.func if isinstance(manager, syntax.Call) else manager
        return self.script.name(called) in ("torch.inference_mode", "torch.autograd.inference_mode")

    def _divide(self, statement: syntax.AugAssign, name: str) -> None:
        """``total /= n`` outside the steps becomes ``total = float(total) / n``."""
        value = self.script.text(statement.value)
        if not isinstance(
            statement.value, syntax.Name | syntax.Attribute | syntax.Call | syntax.Subscript | syntax.Integer | syntax.Float
        ) and (not value.startswith("(")):
            value = f"({value})"
        number = spelling.builtin(self.script, "float", statement)
        self._edits.append(edits.replace(self.source, statement, f"{name} = {number}({name}) / {value}"))

    def _entered(self, target: syntax.Subscript, statement: syntax.AugAssign) -> None:
        """``stats["hits"] += ...``: converted when the loop is over, so that all who get the dict see numbers."""
        entry, text = entries.summed(self.script, target, statement), self.script.text(target)
        self._check_seen(entry.base)
        zeros, read = [entry.zero], []
        for use in entries.uses_meanwhile(self.script, entry):
            match self.source.parents[use]:
                case syntax.AugAssign() as other if other.target is use:
                    if other is not statement:
                        self._check_inference(other, text)
                        self._check_beside(other)
                        if not self._adds_number(other):
                            raise CannotEdit(f"`{text}` is also set on line {self.source.line(use)}")
                case syntax.AssignTarget() as bound:
                    given = self.source.parents[bound]
                    if not isinstance(given, syntax.Assign) or not is_written_zero(self.script, given.value):
                        raise CannotEdit(f"`{text}` is also set on line {self.source.line(use)}")
                    zeros.append(given.value)
                case syntax.Element() | syntax.Del() | syntax.For() | syntax.WithItem() | syntax.AnnAssign():
                    raise CannotEdit(f"`{text}` is used on line {self.source.line(use)} in a way that is not followed")
                case _:
                    read.append(use)
        converted = self._conversion(zeros)
        if self.unclear:
            raise CannotEdit(f"whether `{text}` is a whole number is not known")
        for each in self.source.of(syntax.Subscript) if converted == "float" else ():
            if self._function(each) is self._function(target) and self.script.text(each) == text:
                self._check_rounding(self.script, each)
        for use in read:
            self._check_read(use)
            self._wrap(use, self.script.text(use), converted)
        line = f"{text} = {spelling.builtin(self.script, converted, statement)}({text})"
        self._edits.append(edits.insert_after(self.source, last_converted(self.script, entry.loop), [line]))

    def _is_read_of(self, use: syntax.Name, added: list[Binding], converted: str) -> bool:
        """Whether a use reads the sum, which is a tensor then. Raises CannotEdit where it cannot be made a number there."""
        parent = self.source.parents[use]
        if isinstance(parent, syntax.AssignTarget | syntax.AugAssign | syntax.Element) and is_target(self.source, use):
            return False
        reaching = self.script.names.reaching(use)
        if not any(binding in added for binding in reaching):
            return False
        if converted == "int" and not all(binding in added or is_zero(self.script, binding) for binding in reaching):
            raise CannotEdit(f"`{use.value}` is a fraction on line {self.source.line(use)}")
        self._check_read(use)
        if converted == "float":
            self._check_rounding(self.script, use)
        is_divided = (
            isinstance(parent, syntax.BinaryOperation) and isinstance(parent.operator, syntax.Divide) and parent.left is use
        )
        if self.unclear and not is_divided:
            raise CannotEdit(f"whether `{use.value}` is a whole number is not known")
        return True

    def _is_converted_already(self, use: syntax.BaseExpression) -> bool:
        """Whether a read is an argument of ``float`` or ``int`` as it stands."""
        parent = self.source.parents[use]
        call = self.source.parents[parent] if isinstance(parent, syntax.Arg) else None
        return isinstance(call, syntax.Call) and self.script.name(call.func) in ("float", "int")

    def _wrap(self, use: syntax.BaseExpression, text: str, converted: str) -> None:
        """Turns a read of what is kept into a number."""
        if self._is_converted_already(use):
            return
        parent = self.source.parents[use]
        if isinstance(parent, syntax.FormattedStringExpression) and parent.equal:
            raise CannotEdit(f"`{text}=` in a string on line {self.source.line(use)} shows how it is written")
        if isinstance(parent, syntax.Del | syntax.NamedExpr):
            raise CannotEdit(f"`{text}` is used on line {self.source.line(use)} in a way that cannot be converted")
        self._edits.append(edits.replace(self.source, use, f"{spelling.builtin(self.script, converted, use)}({text})"))

    def _check_rounding(self, script: Script, use: syntax.Node) -> None:
        """Raises CannotEdit where the whole part is taken of a sum of fractions, which is the next number where the sum is
        rounded otherwise: ``int(2.9999999)`` is 2."""
        if (found := whole_parts.taken(script, use)) is not None:
            place, node = found
            where = f"line {place.source.line(node)}" + (f" of {place.path.name}" if place is not self.script else "")
            text = script.text(use)
            raise CannotEdit(
                f"the whole part of `{text}` is taken on {where}, and may be another where it is rounded otherwise"
            )
        precision.check_subtracted(script, use)

    def _check_objects(self) -> None:
        """The same of the objects whose method the read is in."""
        function = self._function(self.read)
        for caller, call in self.script.call_sites(function) if isinstance(function, syntax.FunctionDef) else ():
            if isinstance(call.func, syntax.Attribute) and isinstance(call.func.value, syntax.Name):
                self._check_parts(caller, call.func.value)

    def _check_parts(self, script: Script, holder: syntax.Name) -> None:
        """The same of what is read of an object that adds up, ``meter.avg``, ``metric[0]``: of whole numbers too,
        which it may divide."""
        for use in script.names.uses(holder):
            part = script.source.parents[use]
            if isinstance(part, syntax.Attribute | syntax.Subscript) and part.value is use:
                self._check_rounding(script, part)

    def _check_read(self, use: syntax.BaseExpression) -> None:
        line, text = self.source.line(use), self.script.text(use)
        if self._function(use) is not self._function(self.read):
            raise CannotEdit(f"`{text}` is read in another function on line {line}")
        if self.script.frequency(use) in FREQUENT:
            raise CannotEdit(f"`{text}` is read in every step, on line {line}")

    # One value

    def _held(self, target: syntax.Name, statement: syntax.Assign, *, fresh: bool) -> None:
        """``value = loss.item()``: what sums it up goes on with a tensor, what reads it now and then converts it."""
        self._check_alias(fresh=fresh)
        name = target.value
        if name in self.variables:
            raise CannotEdit(f"`{name}` holds it in a way that is not followed")
        self.variables.append(name)
        unnamed.check_variable(self.script, target)
        bindings = self._bindings(target)
        mine = [binding for binding in bindings if self.source.contains(statement, binding.node)]
        whole = "int" if self.integral else "float"
        for use in self._uses(target):
            if not any(binding in mine for binding in self.script.names.reaching(use)):
                continue
            if isinstance(changed := self.source.parents[use], syntax.AugAssign) and changed.target is use:
                raise CannotEdit(f"`{name}` is also set on line {self.source.line(use)}")
            if is_target(self.source, use):
                continue
            if any(binding not in mine for binding in self.script.names.reaching(use)):
                raise CannotEdit(f"`{name}` may be another value on line {self.source.line(use)}")
            if self._function(use) is not self._function(self.read) or self.script.frequency(use) not in FREQUENT:
                self._check_read(use)
                self._wrap(use, name, whole)
            else:
                self._flow(use)

    # Lists

    def _listed(self, base: syntax.Name, append: syntax.Call) -> None:
        """``losses.append(...)``: after the loop the list is copied at once, so that all who read it see numbers."""
        name = base.value
        if self._is_only_filled(base):
            self.is_unread = True
            return
        start, loop = filled_list(self.script, append, base)
        kinds = {is_integral(self.script, value) for value in self._choices(self.tensor, _DEEPEST)}
        if len(kinds) > 1 and not self.is_float:
            raise CannotEdit(f"`{self.script.first_line(self.tensor)}` may be a whole number in some turns alone")
        for use in self._uses(base):
            if is_target(self.source, use) or use is base or start not in self.script.names.reaching(use):
                continue
            same = self._function(use) is self._function(self.read)
            if not same or not self.script.order.runs_before(loop, use):
                raise CannotEdit(f"`{name}` is used within the loop, on line {self.source.line(use)}")
        torch, imports = spelling.spell(self.script, "torch")
        flat = "" if is_scalar(self.script, self.tensor) else ".flatten()"
        line = f"{name} = {torch}.stack({name}){flat}.tolist() if {name} else []"
        self._edits += (*imports, edits.insert_after(self.source, last_converted(self.script, loop), [line]))

    def _choices(self, tensor: syntax.BaseExpression, depth: int) -> Iterator[syntax.BaseExpression]:
        """What a tensor is in one turn or another."""
        match tensor:
            case syntax.IfExp(body=body, orelse=orelse):
                chosen = [body, orelse]
            case syntax.Name():
                chosen = all_written(self.script.names.reaching(tensor)) if depth else []
            case _:
                chosen = []
        if not chosen:
            yield tensor
        for each in chosen:
            yield from self._choices(each, depth - 1)

    def _is_only_filled(self, base: syntax.Name) -> bool:
        """Whether a list starts empty in its function and is appended to, and nothing reads it."""
        if self._function(base) is None or any(not is_empty_list(self.script, each) for each in self._bindings(base)):
            return False
        for use in self._uses(base):
            attribute = self.source.parents[use]
            is_append = isinstance(attribute, syntax.Attribute) and attribute.attr.value == "append"
            if not is_target(self.source, use) and not is_append:
                return False
        return True

    # Meters

    def _metered(self, base: syntax.Name, update: syntax.Call) -> None:
        """``meter.update(loss.item(), n)``: a meter that only adds and divides takes a tensor as well."""
        value = self.script.value(base)
        if value.definition is None or not accepts_tensors(value.definition, len(update.args)):
            raise CannotEdit(f"whether `{self.script.text(update.func)}` takes a tensor is not seen")
        self.squeezed = self.by_unknown = True
        self.unclear |= not (self.integral or self.floating or self.divided)
        unnamed.check_variable(self.script, base)
        self._check_parts(self.script, base)
        if not self.script.names.reaching(base) or not all(self._makes_one(each) for each in self._bindings(base)):
            raise CannotEdit(f"where `{base.value}` is read is not seen")
        for use in self._uses(base):
            if use is not base and not is_target(self.source, use):
                self._check_other_update(use)
                self._meter_use(use, value.definition)

    def _makes_one(self, binding: Binding) -> bool:
        """Whether a binding makes an object that no other name stands for."""
        assign = self.source.enclosing(binding.node, syntax.Assign)
        is_alone = isinstance(assign, syntax.Assign) and len(assign.targets) == 1
        return binding.kind is Kind.ASSIGN and is_alone and isinstance(written(binding), syntax.Call)

    def _check_other_update(self, use: syntax.Name) -> None:
        """Raises CannotEdit where a meter may be given whole numbers in one place and fractions in another."""
        attribute = self.source.parents[use]
        call = self.source.parents[attribute]
        if (
            not isinstance(attribute, syntax.Attribute)
            or attribute.attr.value != "update"
            or not isinstance(call, syntax.Call)
        ):
            return
        given = call.args[0].value if call.args else None
        tensor = reads.scalar(self.script, given) if isinstance(given, syntax.Call) else None
        known = self.script.constant(given) if given is not None else None
        is_fraction = is_floating(self.script, tensor) if tensor is not None else isinstance(known and known.value, float)
        if not self.floating or not is_fraction:
            raise CannotEdit(f"`{use.value}` is also given something on line {self.source.line(use)}")

    def _meter_use(self, use: syntax.Name, meter: Definition) -> None:
        parent = self.source.parents[use]
        if isinstance(parent, syntax.Attribute):
            above = self.source.parents[parent]
            is_method = isinstance(above, syntax.Call) and above.func is parent
            if is_method and parent.attr.value in ("update", "reset"):
                return
            computed = fed(meter)
            if not is_method and parent.attr.value in computed:
                self._check_read(use)
                if not self.floating and not computed[parent.attr.value]:
                    raise CannotEdit(f"whether `{self.script.text(parent)}` is a whole number is not known")
                self._wrap(parent, self.script.text(parent), "float")
                return
            if not is_method and any(True for _ in self.script.roles.self_assignments(meter, parent.attr.value)):
                return
        if isinstance(parent, syntax.Element):
            beside = self.source.parents[parent]
            if isinstance(beside, syntax.List | syntax.Tuple) and any(
                isinstance(each.value, syntax.Name) and each.value is not use and is_fed_tensors(self.script, each.value)
                for each in beside.elements
            ):
                return
        match self.source.parents[parent]:
            case syntax.Call(func=syntax.Attribute(attr=syntax.Name(value="format"))) if isinstance(parent, syntax.Arg):
                self._check_read(use)
                return
        raise CannotEdit(f"what reads `{use.value}` on line {self.source.line(use)} is not followed")

    # Shared

    def _bindings(self, target: syntax.Name) -> list[Binding]:
        scope = self.script.names.scope(target)
        found = scope.bindings.get(target.value, []) if target.value not in scope.outer else []
        if not found or any(binding.kind is Kind.PARAMETER for binding in found):
            raise CannotEdit(f"`{target.value}` is not a variable of this function alone")
        return found

    def _uses(self, target: syntax.Name) -> list[syntax.Name]:
        self._check_seen(target)
        return self.script.names.uses(target)

    def _check_seen(self, target: syntax.Name) -> None:
        """Raises CannotEdit where a variable may be read without its name."""
        function = self._function(target)
        block = function.body if isinstance(function, syntax.FunctionDef) else self.source.module
        for call in self.source.inside(block, syntax.Call):
            if (self.script.name(call.func), bool(call.args)) in _SEE_ALL and not self._asks_for_name(call):
                raise CannotEdit(f"`{self.script.text(call)}` may read it")

    def _asks_for_name(self, call: syntax.Call) -> bool:
        """Whether ``"name" in locals()`` only asks which names there are."""
        parent = self.source.parents[call]
        return isinstance(parent, syntax.ComparisonTarget) and isinstance(parent.operator, syntax.In | syntax.NotIn)

    def _check_alias(self, *, fresh: bool) -> None:
        """Raises CannotEdit where what is kept is changed in place, and has it copied where something else may hold it; of
        what a helper returns, the helper knows."""
        if not fresh and self.depth == 0:
            check_alias(self.script, self.read, self.tensor)
            self.is_shared |= not is_own(self.script, self.tensor)

    def _function(self, node: syntax.Node) -> syntax.Node | None:
        return self.source.enclosing(node, *_SCOPES)

    def _is_in_loop(self, node: syntax.Node) -> bool:
        loop = self.script.loops.driving_loop(node)
        return loop is not None and loop is self.script.loops.driving_loop(self.read)
