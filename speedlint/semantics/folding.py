"""Small computations on numbers, strings and lists, folded without running any of the user's code.

What is read here are lengths: of ``range(self.n_classes)`` where the class is made with a constant, of a list a model
returns, of what a first-party generator over a short list yields. Only a handful of builtins and statements are known, all
free of effects; everything else is UNKNOWN. A budget bounds the work, so that hostile input costs little.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import libcst as cst

from speedlint.semantics.model import Definition, Made, Role
from speedlint.semantics.names import Binding, Kind
from speedlint.semantics.script import Script
from speedlint.semantics.values import is_static

_BUDGET = 20_000
_LONGEST = 4096
_DEEPEST = 14
_GROWS = frozenset("append extend insert pop remove clear update setdefault sort reverse add".split())
_NESTED = (cst.FunctionDef, cst.ClassDef, cst.Lambda)


class _Unknown:
    """A value that is not known."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Any = _Unknown()
_NOTHING: Any = _Unknown()
"""What a value that depends on itself adds: nothing."""

_ARITHMETIC: dict[type[cst.CSTNode], Callable[[Any, Any], Any]] = {
    cst.Add: operator.add,
    cst.Subtract: operator.sub,
    cst.Multiply: operator.mul,
    cst.FloorDivide: operator.floordiv,
    cst.Modulo: operator.mod,
}
_COMPARISONS: dict[type[cst.CSTNode], Callable[[Any, Any], Any]] = {
    cst.Equal: operator.eq,
    cst.NotEqual: operator.ne,
    cst.LessThan: operator.lt,
    cst.LessThanEqual: operator.le,
    cst.GreaterThan: operator.gt,
    cst.GreaterThanEqual: operator.ge,
    cst.In: lambda a, b: a in b,
    cst.NotIn: lambda a, b: a not in b,
}


_REDUCTIONS: dict[str, Callable[..., Any]] = {"int": int, "abs": abs, "min": min, "max": max, "sum": sum}


class _UnfoldableError(Exception):
    """A statement that is not known here, or too much work."""


@dataclass(frozen=True)
class Frame:
    """Where an expression is read: the script, the names bound there, and the call that made ``self``."""

    script: Script
    names: dict[str, Any] = field(default_factory=dict)
    made: Made | None = None
    is_run: bool = False
    """Whether a function's statements are followed one by one, so that only ``names`` holds its variables."""

    def bound(self, names: dict[str, Any]) -> Frame:
        """The same place with more names."""
        return Frame(self.script, {**self.names, **names}, self.made, self.is_run)


class Folding:
    """One question's worth of folding."""

    def __init__(self) -> None:
        self._left = _BUDGET
        self._active: set[object] = set()
        self._objects: dict[cst.Call, dict[str, Any]] = {}

    def value(self, frame: Frame, node: cst.CSTNode) -> Any:
        """The value of an expression: a number, a string, a list or tuple of such, or UNKNOWN."""
        try:
            found = self._value(frame, node)
        except (_UnfoldableError, ArithmeticError, TypeError, ValueError, LookupError, RecursionError):
            return UNKNOWN
        return UNKNOWN if found is _NOTHING else found

    def elements(self, frame: Frame, iterated: cst.BaseExpression) -> list[Any] | None:
        """What iterating over an expression yields, or None."""
        found = self.value(frame, iterated)
        return list(found) if isinstance(found, (list, tuple, dict, str)) else None

    def bind(self, target: cst.CSTNode, value: Any) -> dict[str, Any]:
        """The names that a target gets, ``self.x`` under that name."""
        if isinstance(target, cst.Name):
            return {target.value: value}
        if isinstance(target, cst.Attribute) and isinstance(target.value, cst.Name) and target.value.value == "self":
            return {f"self.{target.attr.value}": value}
        found: dict[str, Any] = {}
        if isinstance(target, (cst.Tuple, cst.List)):
            known = isinstance(value, (list, tuple)) and len(value) == len(target.elements)
            for index, element in enumerate(target.elements):
                found |= self.bind(element.value, value[index] if known else UNKNOWN)
        return found

    def called(self, frame: Frame, call: cst.Call, function: Definition) -> Frame:
        """The frame of a first-party function that ``call`` runs."""
        node = function.node
        assert isinstance(node, cst.FunctionDef)
        owner = function.script.names.owner(node)
        parameters = [*node.params.posonly_params, *node.params.params]
        if owner is not None and not is_static(node):
            parameters = parameters[1:]
        names = {}
        for position, parameter in enumerate((*parameters, *node.params.kwonly_params)):
            name = parameter.name.value
            given = frame.script.argument(call, name, position if position < len(parameters) else None)
            if given is not None:
                names[name] = self.value(frame, given)
            elif parameter.default is not None and not frame.script.hides_arguments(call):
                names[name] = self.value(Frame(function.script), parameter.default)
            else:
                names[name] = UNKNOWN
        made = frame.script.value(call.func).made if owner is not None else None
        return Frame(function.script, names, made or (frame.made if owner is not None else None))

    # Expressions

    def _value(self, frame: Frame, node: cst.CSTNode) -> Any:
        self._left -= 1
        if self._left < 0 or len(self._active) > 40:
            raise _UnfoldableError
        match node:
            case cst.Name():
                return self._name(frame, node)
            case cst.Attribute():
                return self._attribute(frame, node)
            case cst.Subscript(value=base, slice=[cst.SubscriptElement(slice=index)]):
                return self._item(frame, self._value(frame, base), index)
            case cst.List(elements=elements) | cst.Tuple(elements=elements):
                return self._sequence(frame, node, elements)
            case cst.Dict():
                return self._dict(frame, node)
            case cst.ListComp(elt=element, for_in=loop) | cst.GeneratorExp(elt=element, for_in=loop):
                return self._bounded(self._comprehension(frame, element, loop))
            case cst.BinaryOperation(left=left, operator=kind, right=right) if type(kind) in _ARITHMETIC:
                return self._apply(_ARITHMETIC[type(kind)], self._value(frame, left), self._value(frame, right))
            case cst.UnaryOperation(operator=cst.Minus(), expression=inner):
                return self._apply(operator.sub, 0, self._value(frame, inner))
            case cst.UnaryOperation(operator=cst.Not(), expression=inner):
                known = self._value(frame, inner)
                return known if known in (UNKNOWN, _NOTHING) else not known
            case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=kind, comparator=right)]):
                if type(kind) in _COMPARISONS:
                    return self._apply(_COMPARISONS[type(kind)], self._value(frame, left), self._value(frame, right))
            case cst.BooleanOperation(left=left, operator=kind, right=right):
                return self._boolean(self._value(frame, left), isinstance(kind, cst.And), self._value(frame, right))
            case cst.IfExp(test=test, body=body, orelse=orelse):
                known = self._value(frame, test)
                return UNKNOWN if known in (UNKNOWN, _NOTHING) else self._value(frame, body if known else orelse)
            case cst.Call():
                return self._call(frame, node)
        return self._constant(frame, node)

    @staticmethod
    def _apply(function: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
        for side in (left, right):
            if side is UNKNOWN or side is _NOTHING:
                return side
        if function is operator.mul and not all(
            isinstance(side, (int, float)) and abs(side) < 1e9 for side in (left, right)
        ):
            return UNKNOWN
        return Folding._bounded(function(left, right))

    @staticmethod
    def _bounded(value: Any) -> Any:
        if isinstance(value, (list, tuple, str)) and len(value) > _LONGEST:
            raise _UnfoldableError
        return value

    @staticmethod
    def _boolean(left: Any, is_and: bool, right: Any) -> Any:
        sides = [side for side in (left, right) if side is not UNKNOWN and side is not _NOTHING]
        decided = [side for side in sides if bool(side) is not is_and]
        if decided:
            return decided[0]
        return right if len(sides) == 2 else UNKNOWN

    def _sequence(self, frame: Frame, node: cst.List | cst.Tuple, elements: Any) -> Any:
        found: list[Any] = []
        for element in elements:
            value = self._value(frame, element.value)
            if isinstance(element, cst.StarredElement):
                if not isinstance(value, (list, tuple)):
                    return UNKNOWN
                found += value
            else:
                found.append(value)
        return tuple(found) if isinstance(node, cst.Tuple) else found

    def _dict(self, frame: Frame, node: cst.Dict) -> Any:
        found = {}
        for element in node.elements:
            if not isinstance(element, cst.DictElement):
                return UNKNOWN
            key = self._value(frame, element.key)
            if not isinstance(key, (str, int)):
                return UNKNOWN
            found[key] = self._value(frame, element.value)
        return found

    def _item(self, frame: Frame, base: Any, index: cst.BaseSlice) -> Any:
        if isinstance(index, cst.Index):
            key = self._value(frame, index.value)
            if key is UNKNOWN or key is _NOTHING or not isinstance(base, (list, tuple, dict)):
                return UNKNOWN
            return base[key]
        assert isinstance(index, cst.Slice)
        ends = [self._value(frame, end) if end is not None else None for end in (index.lower, index.upper, index.step)]
        if any(end is UNKNOWN or end is _NOTHING for end in ends) or not isinstance(base, (list, tuple, str)):
            return UNKNOWN
        return base[slice(*ends)]

    def _comprehension(self, frame: Frame, element: cst.BaseExpression, loop: cst.CompFor) -> list[Any]:
        iterated = self._value(frame, loop.iter)
        if not isinstance(iterated, (list, tuple, dict, str)):
            raise _UnfoldableError
        found: list[Any] = []
        for each in iterated:
            inner = frame.bound(self.bind(loop.target, each))
            tests = [self._value(inner, test.test) for test in loop.ifs]
            if any(test is UNKNOWN for test in tests):
                raise _UnfoldableError
            if all(tests):
                if loop.inner_for_in is not None:
                    found += self._comprehension(inner, element, loop.inner_for_in)
                else:
                    found.append(self._value(inner, element))
        return found

    def _constant(self, frame: Frame, node: cst.CSTNode) -> Any:
        """What the other semantics know of an expression: its constant, or as how many things it comes."""
        if frame.is_run and not isinstance(node, cst.Integer | cst.Float | cst.SimpleString | cst.Name):
            return UNKNOWN
        assert isinstance(node, cst.BaseExpression)
        constant = frame.script.constant(node)
        if constant is not None:
            return constant.value
        value = frame.script.value(node)
        return [UNKNOWN] * len(value.items) if value.role is Role.SEQUENCE and value.items else UNKNOWN

    # Names and attributes

    def _name(self, frame: Frame, name: cst.Name) -> Any:
        if name.value in frame.names:
            return frame.names[name.value]
        script = frame.script
        if frame.is_run and script.names.scope(name).lookup(name.value) not in (None, script.names.module):
            return UNKNOWN
        bindings = script.names.reaching(name)
        if self._is_grown(script, name):
            return UNKNOWN
        if not bindings:
            return self._constant(frame, name)
        with_values = [self._of_binding(frame, binding) for binding in bindings if self._may_hold(frame, binding)]
        known = [value for value in with_values if value is not _NOTHING]
        first = known[0] if known else UNKNOWN
        return first if all(value == first for value in known) else self._constant(frame, name)

    def _of_binding(self, frame: Frame, binding: Binding) -> Any:
        if isinstance(binding.node, cst.Param):
            return self._parameter(frame, binding.node)
        if binding.kind is not Kind.ASSIGN or binding.value is None:
            return UNKNOWN
        value = self._guarded(binding.node, lambda: self._value(frame, binding.value or binding.node))
        for step in binding.path:
            if not isinstance(value, (list, tuple)) or step is None:
                return UNKNOWN
            value = value[step]
        return value

    def _parameter(self, frame: Frame, parameter: cst.Param) -> Any:
        """What all known calls pass for a parameter; its default where no call is known."""
        script = frame.script
        function = script.source.enclosing(parameter, cst.FunctionDef, cst.Lambda)
        if not isinstance(function, cst.FunctionDef):
            return UNKNOWN
        passed = list(script.values.passed(function, parameter)) or [(script, None)]
        given = []
        for where, value in passed:
            answer = functools.partial(self._given, where, value, parameter)
            given.append(self._guarded((parameter, where.path, value), answer))
        known = [value for value in given if value is not _NOTHING]
        return _agreed(known)

    def _given(self, script: Script, value: cst.BaseExpression | None, parameter: cst.Param) -> Any:
        if value is not None:
            return self._value(Frame(script), value)
        return self._value(Frame(script), parameter.default) if parameter.default is not None else UNKNOWN

    def _guarded(self, key: object, answer: Callable[[], Any]) -> Any:
        if key in self._active:
            return _NOTHING
        self._active.add(key)
        try:
            return answer()
        finally:
            self._active.discard(key)

    def _may_hold(self, frame: Frame, binding: Binding) -> bool:
        """Whether no branch around the binding is known not to be taken."""
        child: cst.CSTNode = binding.node
        for up in frame.script.source.ancestors(binding.node):
            if isinstance(up, _NESTED):
                break
            if isinstance(up, cst.If) and child in (up.body, up.orelse):
                test = self._guarded(up, functools.partial(self._value, frame, up.test))
                if test is not UNKNOWN and test is not _NOTHING and bool(test) is not (child is up.body):
                    return False
            child = up
        return True

    @staticmethod
    def _is_grown(script: Script, name: cst.Name) -> bool:
        """Whether a list or dict is changed in place."""
        for use in script.names.uses(name):
            parent = script.source.parents[use]
            if isinstance(parent, cst.Attribute) and parent.value is use and parent.attr.value in _GROWS:
                return True
            if isinstance(parent, cst.Subscript) and isinstance(script.source.parents[parent], cst.AssignTarget | cst.Del):
                return True
        return False

    def _attribute(self, frame: Frame, node: cst.Attribute) -> Any:
        script = frame.script
        base = script.value(node.value)
        is_own = isinstance(node.value, cst.Name) and node.value.value == "self"
        if is_own and f"self.{node.attr.value}" in frame.names:
            return frame.names[f"self.{node.attr.value}"]
        made = frame.made if is_own else base.made
        if made is not None and base.definition is not None and isinstance(base.definition.node, cst.ClassDef):
            found = self._of_object(made, node.attr.value)
            if found is not UNKNOWN:
                return found
        constant = self._constant(frame, node)
        return constant if constant is not UNKNOWN else self._option(frame, node)

    def _of_object(self, made: Made, name: str) -> Any:
        """What ``__init__`` sets an attribute to, of the object that a call made; no other method may set it."""
        init = made.script.callee(made.call)
        if init is None or not isinstance(init.node, cst.FunctionDef):
            return UNKNOWN
        owner = init.script.names.owner(init.node)
        if owner is None:
            return UNKNOWN
        set_in = [
            script.function(value)
            for script, value, _ in init.script.roles.assigned_on_self(Definition(init.script, owner), name)
        ]
        if any(function is not init.node for function in set_in) or init.script.values.is_counted(name):
            return UNKNOWN
        if made.call not in self._objects:
            self._objects[made.call] = {}
            frame = self.called(Frame(made.script), made.call, init)
            local = Frame(init.script, dict(frame.names), made, is_run=True)
            with contextlib.suppress(_UnfoldableError):
                self._block(local, init.node.body, [])
            self._objects[made.call] = local.names
        return self._objects[made.call].get(f"self.{name}", UNKNOWN)

    def _option(self, frame: Frame, node: cst.Attribute) -> Any:
        """A command-line option that the script sets again: what it is set to, if that is what it was."""
        name = node.attr.value
        found = [
            value
            for script, setting in frame.script.values.settings(node.value)
            if isinstance(setting, cst.Call)
            for value in self._settings_of(script, name)
        ]
        return _agreed([value for value in found if value is not _NOTHING])

    def _settings_of(self, script: Script, name: str) -> Iterator[Any]:
        for option in script.values.options(name):
            default = script.argument(option, "default")
            yield self._value(Frame(script), default) if default is not None else UNKNOWN
        for assign in script.source.of(cst.Assign):
            for target in assign.targets:
                if isinstance(target.target, cst.Attribute) and target.target.attr.value == name:
                    yield self._guarded((script.path, name), functools.partial(self._value, Frame(script), assign.value))

    # Calls

    def _call(self, frame: Frame, call: cst.Call) -> Any:
        name = frame.script.name(call.func)
        if name is not None and all(arg.keyword is None and not arg.star for arg in call.args):
            given = [self._value(frame, arg.value) for arg in call.args if name != "isinstance"]
            known = not any(value is UNKNOWN or value is _NOTHING for value in given)
            if name == "isinstance":
                return self._is_instance(frame, call)
            if known and (found := self._of_builtin(name, given)) is not UNKNOWN:
                return self._bounded(found)
        callee = frame.script.callee(call)
        if callee is not None and isinstance(callee.node, cst.FunctionDef) and callee.node.name.value != "__init__":
            with contextlib.suppress(_UnfoldableError):
                found = self._run(frame, call, callee)
                if found is not UNKNOWN:
                    return found
        return self._constant(frame, call)

    def _is_instance(self, frame: Frame, call: cst.Call) -> Any:
        value = self._value(frame, call.args[0].value)
        names = {frame.script.name(each) for each in _alternatives(call.args[1].value)}
        if names - {"list", "tuple", "dict", "int", "float", "str"}:
            return UNKNOWN
        if value is UNKNOWN or value is _NOTHING:
            role = frame.script.role(call.args[0].value)
            return (
                False if role in (Role.TENSOR, Role.MODULE) and not frame.script.value(call.args[0].value).made else UNKNOWN
            )
        return type(value).__name__ in names

    @staticmethod
    def _of_builtin(name: str, given: list[Any]) -> Any:
        first = given[0] if given else None
        match name:
            case "len" if isinstance(first, (list, tuple, str, dict)):
                return len(first)
            case "range" | "numpy.arange" | "torch.arange" if all(isinstance(each, int) for each in given):
                return list(range(*given)) if len(range(*given)) <= _LONGEST else UNKNOWN
            case "list" | "tuple" | "sorted" | "reversed" | "set" | "iter" if isinstance(first, (list, tuple, dict, str)):
                made = list(dict.fromkeys(first)) if name == "set" else list(first)
                made = sorted(made) if name == "sorted" else made[::-1] if name == "reversed" else made
                return tuple(made) if name == "tuple" else made
            case "enumerate" if isinstance(first, (list, tuple, str)):
                return list(enumerate(first))
            case "itertools.combinations" | "itertools.permutations" | "itertools.product" if isinstance(
                first, (list, tuple)
            ):
                made_by = getattr(itertools, name.partition(".")[2])
                return list(itertools.islice(made_by(*given), _LONGEST + 1))
            case "zip" if all(isinstance(each, (list, tuple)) for each in given):
                return list(zip(*given))  # noqa: B905
            case "int" | "abs" | "min" | "max" | "sum" if given:
                return _REDUCTIONS[name](*given)
            case "torch.nn.ModuleList" if isinstance(first, (list, tuple)):
                return first
            case "torch.nn.Sequential":
                return given
        return UNKNOWN

    def _run(self, frame: Frame, call: cst.Call, function: Definition) -> Any:
        """What a function of numbers and lists returns, or yields, followed statement by statement."""
        depth = sum(1 for each in self._active if isinstance(each, tuple) and each[0] == "run")
        if depth > _DEEPEST:
            raise _UnfoldableError
        key = ("run", depth)
        self._active.add(key)
        try:
            inner = self.called(frame, call, function)
            local = Frame(inner.script, dict(inner.names), inner.made, is_run=True)
            assert isinstance(function.node, cst.FunctionDef)
            yielded: list[Any] = []
            result = self._block(local, function.node.body, yielded)
            is_generator = any(True for _ in inner.script.source.inside(function.node, cst.Yield))
            return yielded if is_generator else (result[0] if result else None)
        finally:
            self._active.discard(key)

    def _block(self, frame: Frame, block: cst.BaseSuite, yielded: list[Any]) -> tuple[Any] | None:
        """Follows the statements; the value returned, in a tuple, where they return."""
        for line in block.body:
            parts = line.body if isinstance(line, cst.SimpleStatementLine) else (line,)
            for statement in parts:
                result = self._statement(frame, statement, yielded)
                if result is not None:
                    return result
        return None

    def _statement(self, frame: Frame, statement: cst.CSTNode, yielded: list[Any]) -> tuple[Any] | None:
        self._left -= 1
        match statement:
            case cst.Return(value=value):
                return (self._value(frame, value) if value is not None else None,)
            case cst.Expr(value=cst.Yield(value=value)):
                self._yield(frame, value, yielded)
            case cst.Expr(value=cst.Call() as call):
                self._change(frame, call)
            case cst.Expr() | cst.Pass() | cst.Assert():
                pass
            case cst.Assign(targets=targets, value=value):
                known = self._value(frame, value)
                for target in targets:
                    frame.names.update(self.bind(target.target, known))
            case cst.AugAssign(target=target):
                frame.names.update(self.bind(target, UNKNOWN))
            case cst.If():
                return self._branch(frame, statement, yielded)
            case cst.With(body=body):
                return self._block(frame, body, yielded)
            case cst.For(target=target, iter=iterated, body=body, orelse=None):
                return self._turns(frame, target, self._value(frame, iterated), body, yielded)
            case _:
                raise _UnfoldableError
        return None

    def _turns(
        self, frame: Frame, target: cst.CSTNode, elements: Any, body: cst.BaseSuite, yielded: list[Any]
    ) -> tuple[Any] | None:
        if not isinstance(elements, (list, tuple)):
            raise _UnfoldableError
        for each in elements:
            frame.names.update(self.bind(target, each))
            result = self._block(frame, body, yielded)
            if result is not None:
                return result
        return None

    def _branch(self, frame: Frame, branch: cst.If, yielded: list[Any]) -> tuple[Any] | None:
        holds = self._value(frame, branch.test)
        if holds is UNKNOWN or holds is _NOTHING:
            raise _UnfoldableError
        if holds:
            return self._block(frame, branch.body, yielded)
        if isinstance(branch.orelse, cst.Else):
            return self._block(frame, branch.orelse.body, yielded)
        return self._branch(frame, branch.orelse, yielded) if branch.orelse is not None else None

    def _change(self, frame: Frame, call: cst.Call) -> None:
        """What a statement ``found.append(x)`` does to a list of the function."""
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in _GROWS:
            return
        for name in self.bind(call.func.value, UNKNOWN):
            held = frame.names.get(name, UNKNOWN)
            is_added = call.func.attr.value == "append" and isinstance(held, list) and len(call.args) == 1
            frame.names[name] = self._bounded([*held, self._value(frame, call.args[0].value)]) if is_added else UNKNOWN

    def _yield(self, frame: Frame, value: cst.BaseExpression | cst.From | None, yielded: list[Any]) -> None:
        if isinstance(value, cst.From):
            several = self._value(frame, value.item)
            if not isinstance(several, (list, tuple)):
                raise _UnfoldableError
            yielded += several
        else:
            yielded.append(self._value(frame, value) if value is not None else None)
        self._bounded(yielded)


def _agreed(values: list[Any]) -> Any:
    """The one value that all are, or UNKNOWN."""
    return values[0] if values and all(value == values[0] for value in values) else UNKNOWN


def _alternatives(node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    if isinstance(node, cst.Tuple):
        for element in node.elements:
            yield element.value
    else:
        yield node
