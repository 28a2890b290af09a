"""Small computations on numbers, strings and lists, folded without running any of the user's code.

What is read here are lengths: of ``range(self.n_classes)`` where the class is made with a constant, of a list a model
returns, of what a first-party generator over a short list yields. Only a handful of builtins and statements are known, all
free of effects; everything else is UNKNOWN. A budget bounds the work, so that hostile input costs little.
"""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from speedlint.facts import syntax
from speedlint.solve.names import Binding, Kind
from speedlint.solve.pure import ARITHMETIC, COMPARISONS, LEAVE_ALONE, NOTHING, UNKNOWN, Budget, UnfoldableError
from speedlint.solve.terms import Definition, Made
from speedlint.solve.values import returned
from speedlint.source import is_name
from speedlint.torch.words import Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_BUDGET = 20_000
_DEEPEST = 14
_MOST_ACTIVE = 40
_GROWS = frozenset("append extend insert pop remove clear update setdefault sort reverse add".split())
_NESTED = (syntax.FunctionDef, syntax.ClassDef, syntax.Lambda)


_HARMLESS = frozenset({"staticmethod", "torch.no_grad", "torch.inference_mode", "property"})
"""Decorators that leave what a function returns as it is."""


@dataclass(frozen=True)
class Frame:
    """Where an expression is read.

    Attributes:
        names: what is known of the parameters; of all variables, and of the attributes of ``self``, where ``is_run``.
        made: the call that made ``self``.
        is_run: whether the function's statements are followed one by one, so that only ``names`` holds its variables.
        turns: the targets of the loops and comprehensions around, in this turn.
    """

    script: Script
    names: dict[str, Any] = field(default_factory=dict)
    made: Made | None = None
    is_run: bool = False
    turns: dict[str, Any] = field(default_factory=dict)

    def turn(self, names: dict[str, Any]) -> Frame:
        """The same place in one turn of a loop."""
        return replace(self, turns={**self.turns, **names})


class Folding:
    """One question's worth of folding."""

    def __init__(self) -> None:
        self._budget = Budget(_BUDGET)
        self._active: set[object] = set()
        self._objects: dict[syntax.Call, dict[str, Any]] = {}

    def value(self, frame: Frame, node: syntax.Node) -> Any:
        """The value of an expression: a number, a string, a list or tuple of such, or UNKNOWN."""
        try:
            found = self._value(frame, node)
        except (UnfoldableError, ArithmeticError, TypeError, ValueError, LookupError, RecursionError, MemoryError):
            return UNKNOWN
        return UNKNOWN if found is NOTHING else found

    def elements(self, frame: Frame, iterated: syntax.BaseExpression) -> list[Any] | None:
        """What iterating over an expression yields, or None."""
        found = self.value(frame, iterated)
        return list(found) if isinstance(found, (list, tuple, dict, str)) else None

    def charge(self, work: int) -> None:
        """Counts work against the budget. Raises UnfoldableError where it is spent."""
        self._budget.charge(work)

    def bind(self, target: syntax.Node, value: Any) -> dict[str, Any]:
        """The names that a target gets, ``self.x`` under that name."""
        if isinstance(target, syntax.Name):
            return {target.value: value}
        if isinstance(target, syntax.Attribute) and is_name(target.value, "self"):
            return {f"self.{target.attr.value}": value}
        found: dict[str, Any] = {}
        if isinstance(target, (syntax.Tuple, syntax.List)):
            plain = all(isinstance(element, syntax.Element) for element in target.elements)
            known = plain and isinstance(value, (list, tuple)) and len(value) == len(target.elements)
            for index, element in enumerate(target.elements):
                found |= self.bind(element.value, value[index] if known else UNKNOWN)
        return found

    def called(self, frame: Frame, call: syntax.Call, function: Definition) -> Frame:
        """The frame of a first-party function that ``call`` runs."""
        node = function.node
        assert isinstance(node, syntax.FunctionDef)
        bound = function.script.values.bound_first(node, frame.script, call)
        parameters = [*node.params.posonly_params, *node.params.params][bound:]
        names = {}
        for position, parameter in enumerate((*parameters, *node.params.kwonly_params)):
            name = parameter.name.value
            given = frame.script.argument(call, name, position if position < len(parameters) else None)
            if given is not None:
                names[name] = self.value(frame, given)
            elif parameter.default is not None and not frame.script.hides_arguments(call):
                default = self.value(Frame(function.script), parameter.default)
                names[name] = UNKNOWN if isinstance(default, (list, dict)) else default
            else:
                names[name] = UNKNOWN
        is_method = function.script.names.owner(node) is not None
        made = (frame.script.value(call.func).made or frame.made) if is_method else None
        return Frame(function.script, names, made)

    # Expressions

    def _value(self, frame: Frame, node: syntax.Node) -> Any:
        self.charge(1)
        if len(self._active) > _MOST_ACTIVE:
            raise UnfoldableError
        match node:
            case syntax.Name():
                return self._name(frame, node)
            case syntax.Attribute():
                return self._attribute(frame, node)
            case syntax.Subscript(value=base, slice=[syntax.SubscriptElement(slice=index)]):
                return self._item(frame, self._value(frame, base), index)
            case syntax.List(elements=elements) | syntax.Tuple(elements=elements):
                return self._sequence(frame, node, elements)
            case syntax.Dict():
                return self._dict(frame, node)
            case syntax.ListComp(elt=element, for_in=loop) | syntax.GeneratorExp(elt=element, for_in=loop):
                return self._budget.kept(self._comprehension(frame, element, loop))
            case syntax.BinaryOperation(left=left, operator=kind, right=right) if type(kind) in ARITHMETIC:
                return self._budget.apply(ARITHMETIC[type(kind)], self._value(frame, left), self._value(frame, right))
            case syntax.UnaryOperation(operator=syntax.Minus(), expression=inner):
                return self._budget.apply(operator.sub, 0, self._value(frame, inner))
            case syntax.UnaryOperation(operator=syntax.Not(), expression=inner):
                known = self._value(frame, inner)
                return known if known in (UNKNOWN, NOTHING) else not known
            case syntax.Comparison(left=left, comparisons=[syntax.ComparisonTarget(operator=kind, comparator=right)]):
                if type(kind) in COMPARISONS:
                    return self._budget.apply(COMPARISONS[type(kind)], self._value(frame, left), self._value(frame, right))
            case syntax.BooleanOperation(left=left, operator=kind, right=right):
                return self._boolean(self._value(frame, left), isinstance(kind, syntax.And), self._value(frame, right))
            case syntax.IfExp(test=test, body=body, orelse=orelse):
                known = self._value(frame, test)
                return UNKNOWN if known in (UNKNOWN, NOTHING) else self._value(frame, body if known else orelse)
            case syntax.Call():
                return self._call(frame, node)
        return self._constant(frame, node)

    @staticmethod
    def _boolean(left: Any, is_and: bool, right: Any) -> Any:
        if left is UNKNOWN or left is NOTHING:
            return right if right is (not is_and) else UNKNOWN
        return right if bool(left) is is_and else left

    def _sequence(self, frame: Frame, node: syntax.List | syntax.Tuple, elements: Any) -> Any:
        found: list[Any] = []
        for element in elements:
            value = self._value(frame, element.value)
            if isinstance(element, syntax.StarredElement):
                if not isinstance(value, (list, tuple)):
                    return UNKNOWN
                found += value
            else:
                found.append(value)
        return tuple(found) if isinstance(node, syntax.Tuple) else found

    def _dict(self, frame: Frame, node: syntax.Dict) -> Any:
        found = {}
        for element in node.elements:
            if not isinstance(element, syntax.DictElement):
                return UNKNOWN
            key = self._value(frame, element.key)
            if not isinstance(key, (str, int)):
                return UNKNOWN
            found[key] = self._value(frame, element.value)
        return found

    def _item(self, frame: Frame, base: Any, index: syntax.BaseSlice) -> Any:
        if isinstance(index, syntax.Index):
            key = self._value(frame, index.value)
            if key is UNKNOWN or key is NOTHING or not isinstance(base, (list, tuple, dict)):
                return UNKNOWN
            return base[key]
        assert isinstance(index, syntax.Slice)
        ends = [self._value(frame, end) if end is not None else None for end in (index.lower, index.upper, index.step)]
        if any(end is UNKNOWN or end is NOTHING for end in ends) or not isinstance(base, (list, tuple, str)):
            return UNKNOWN
        return self._budget.kept(base[slice(*ends)])

    def _comprehension(self, frame: Frame, element: syntax.BaseExpression, loop: syntax.CompFor) -> list[Any]:
        iterated = self._value(frame, loop.iter)
        if not isinstance(iterated, (list, tuple, dict, str)):
            raise UnfoldableError
        found: list[Any] = []
        for each in iterated:
            inner = frame.turn(self.bind(loop.target, each))
            tests = [self._value(inner, test.test) for test in loop.ifs]
            if any(test is UNKNOWN for test in tests):
                raise UnfoldableError
            if all(tests):
                if loop.inner_for_in is not None:
                    found += self._comprehension(inner, element, loop.inner_for_in)
                else:
                    found.append(self._value(inner, element))
        return found

    def _constant(self, frame: Frame, node: syntax.Node) -> Any:
        """The constant that an expression is known to be."""
        if frame.is_run and not isinstance(node, syntax.Integer | syntax.Float | syntax.SimpleString | syntax.Name):
            return UNKNOWN
        assert isinstance(node, syntax.BaseExpression)
        constant = frame.script.constant(node)
        return UNKNOWN if constant is None or constant.entry is not None else constant.value

    # Names and attributes

    def _name(self, frame: Frame, name: syntax.Name) -> Any:
        script = frame.script
        bindings = script.names.reaching(name)
        kinds = {binding.kind for binding in bindings}
        if name.value in frame.turns and (frame.is_run or kinds == {Kind.FOR}):
            return frame.turns[name.value]
        if frame.is_run and name.value in frame.names:
            return frame.names[name.value]
        if frame.is_run and script.names.scope(name).lookup(name.value) not in (None, script.names.module):
            return UNKNOWN
        if name.value in frame.names and kinds == {Kind.PARAMETER}:
            return frame.names[name.value]
        if not bindings:
            return self._constant(frame, name)
        values = [self._of_binding(frame, binding) for binding in bindings if self._may_hold(frame, binding)]
        if not values or any(value is UNKNOWN or value is NOTHING or value != values[0] for value in values):
            return self._constant(frame, name)
        if isinstance(values[0], (list, dict)) and self._may_change(script, name):
            return UNKNOWN
        return values[0]

    def _of_binding(self, frame: Frame, binding: Binding) -> Any:
        if isinstance(binding.node, syntax.Param):
            return self._parameter(frame, binding.node)
        if binding.kind is not Kind.ASSIGN or binding.value is None:
            return UNKNOWN
        outside = replace(frame, turns={})
        value = self._guarded(binding.node, lambda: self._value(outside, binding.value or binding.node))
        for step in binding.path:
            if not isinstance(value, (list, tuple)) or step is None:
                return UNKNOWN
            value = value[step]
        return value

    def _parameter(self, frame: Frame, parameter: syntax.Param) -> Any:
        """What all known calls pass for a parameter; its default where no call is known."""
        script = frame.script
        function = script.source.enclosing(parameter, syntax.FunctionDef, syntax.Lambda)
        if not isinstance(function, syntax.FunctionDef):
            return UNKNOWN
        passed = list(script.values.passed(parameter)) or [(script, None)]
        given = []
        for where, value in passed:
            handed = (script, parameter.default) if value is None else (where, value)
            answer = functools.partial(self._given, *handed)
            given.append(self._guarded((parameter, where.path, value), answer))
        known = [value for value in given if value is not NOTHING]
        return _agreed(known)

    def _given(self, script: Script, value: syntax.BaseExpression | None) -> Any:
        return self._value(Frame(script), value) if value is not None else UNKNOWN

    def _guarded(self, key: object, answer: Callable[[], Any]) -> Any:
        if key in self._active:
            return NOTHING
        self._active.add(key)
        try:
            return answer()
        finally:
            self._active.discard(key)

    def _may_hold(self, frame: Frame, binding: Binding) -> bool:
        """Whether no branch around the binding is known not to be taken."""
        child: syntax.Node = binding.node
        for up in frame.script.source.ancestors(binding.node):
            if isinstance(up, _NESTED):
                break
            if isinstance(up, syntax.If) and child in (up.body, up.orelse):
                test = self._guarded(up, functools.partial(self._value, frame, up.test))
                if test is not UNKNOWN and test is not NOTHING and bool(test) is not (child is up.body):
                    return False
            child = up
        return True

    def _may_change(self, script: Script, name: syntax.Name) -> bool:
        """Whether a list or dict is changed in place, under this name, another one, or by a function that it is given to."""
        for use in script.names.uses(name):
            parent = script.source.parents[use]
            if isinstance(parent, syntax.Assign):
                return True
            if isinstance(parent, syntax.Attribute) and parent.value is use and parent.attr.value in _GROWS:
                return True
            if isinstance(parent, syntax.Subscript) and isinstance(
                script.source.parents[parent], syntax.AssignTarget | syntax.Del
            ):
                return True
            if isinstance(parent, syntax.Arg) and self._gives_away(script, parent):
                return True
        return False

    def _gives_away(self, script: Script, arg: syntax.Arg) -> bool:
        """Whether a call may change what it is given."""
        call = script.source.parents[arg]
        if not isinstance(call, syntax.Call) or script.name(call.func) in LEAVE_ALONE:
            return False
        if (script.name(call.func) or "").startswith(("torch.", "numpy.", "itertools.", "tqdm.")):
            return False
        callee = script.callee(call)
        if callee is None or not isinstance(callee.node, syntax.FunctionDef):
            return True
        inside = callee.script.source.inside
        grows = (each for each in inside(callee.node, syntax.Attribute) if each.attr.value in _GROWS)
        writes = (
            each
            for each in inside(callee.node, syntax.Subscript)
            if isinstance(callee.script.source.parents[each], syntax.AssignTarget | syntax.Del | syntax.AugAssign)
        )
        return next(grows, None) is not None or next(writes, None) is not None

    def _attribute(self, frame: Frame, node: syntax.Attribute) -> Any:
        script = frame.script
        base = script.value(node.value)
        is_own = is_name(node.value, "self")
        if is_own and f"self.{node.attr.value}" in frame.names:
            return frame.names[f"self.{node.attr.value}"]
        made = frame.made if is_own else base.made
        if made is not None and base.definition is not None and isinstance(base.definition.node, syntax.ClassDef):
            found = self._of_object(made, node.attr.value)
            if found is not UNKNOWN:
                return found
        constant = self._constant(frame, node)
        return constant if constant is not UNKNOWN else self._option(frame, node)

    def _of_object(self, made: Made, name: str) -> Any:
        """What ``__init__`` sets an attribute to, of the object that a call made; no other method may set it."""
        init = made.script.callee(made.call)
        definition = made.script.value(made.call).definition
        if init is None or not isinstance(init.node, syntax.FunctionDef) or definition is None:
            return UNKNOWN
        roles = definition.script.roles
        set_in = [script.function(value) for script, value, _ in roles.assigned_on_self(definition, name)]
        if any(function is not init.node for function in set_in) or init.script.values.is_counted(name):
            return UNKNOWN
        places = {script.path: script for script in (definition.script, init.script, made.script)}.values()
        if any(_changes_attribute(script, name, init.node) for script in places):
            return UNKNOWN
        if made.call not in self._objects:
            self._objects[made.call] = {}
            frame = self.called(Frame(made.script), made.call, init)
            local = Frame(init.script, dict(frame.names), made, is_run=True)
            with contextlib.suppress(UnfoldableError):
                self._block(local, init.node.body, [])
            self._objects[made.call] = local.names
        return self._objects[made.call].get(f"self.{name}", UNKNOWN)

    def _option(self, frame: Frame, node: syntax.Attribute) -> Any:
        """A command-line option that the script sets again: what it is set to, if that is what it was."""
        name = node.attr.value
        found = [
            value
            for script, setting in frame.script.values.settings(node.value)
            if isinstance(setting, syntax.Call)
            for value in self._settings_of(script, name)
        ]
        return _agreed([value for value in found if value is not NOTHING])

    def _settings_of(self, script: Script, name: str) -> Iterator[Any]:
        for option in script.values.options(name):
            default = script.argument(option, "default")
            yield self._value(Frame(script), default) if default is not None else UNKNOWN
        for assign in script.source.of(syntax.Assign):
            for target in assign.targets:
                if isinstance(target.target, syntax.Attribute) and target.target.attr.value == name:
                    yield self._guarded((script.path, name), functools.partial(self._value, Frame(script), assign.value))

    # Calls

    def _call(self, frame: Frame, call: syntax.Call) -> Any:
        name = frame.script.name(call.func)
        if name is not None and all(arg.keyword is None and not arg.star for arg in call.args):
            given = [self._value(frame, arg.value) for arg in call.args if name != "isinstance"]
            known = not any(value is UNKNOWN or value is NOTHING for value in given)
            if name == "isinstance":
                return self._is_instance(frame, call)
            for value in given:
                self._budget.kept(value)
            if known and (found := self._budget.builtin(name, given)) is not UNKNOWN:
                return self._budget.kept(found)
        callee = frame.script.callee(call)
        if callee is not None and isinstance(callee.node, syntax.FunctionDef) and callee.node.name.value != "__init__":
            with contextlib.suppress(UnfoldableError):
                found = self._run(frame, call, callee)
                if found is not UNKNOWN:
                    return found
        if frame.is_run and any(self._gives_away(frame.script, arg) for arg in call.args):
            values = [self._value(frame, arg.value) for arg in call.args]
            if any(isinstance(value, (list, dict)) for value in values):
                raise UnfoldableError
        if callee is not None and callee.node.name.value != "__init__":
            return self._displayed(callee)
        return self._constant(frame, call)

    @staticmethod
    def _displayed(function: Definition) -> Any:
        """As many unknown things as all returns of a function write out in a list or tuple."""
        results = list(returned(function))
        lengths = {len(each.elements) for each in results if isinstance(each, (syntax.List, syntax.Tuple))}
        is_plain = all(
            isinstance(each, (syntax.List, syntax.Tuple)) and all(isinstance(part, syntax.Element) for part in each.elements)
            for each in results
        )
        decorators = function.node.decorators if isinstance(function.node, syntax.FunctionDef) else ()
        return [UNKNOWN] * lengths.pop() if is_plain and len(lengths) == 1 and not decorators else UNKNOWN

    def _is_instance(self, frame: Frame, call: syntax.Call) -> Any:
        value = self._value(frame, call.args[0].value)
        names = {frame.script.name(each) for each in _alternatives(call.args[1].value)}
        if names - {"list", "tuple", "dict", "int", "float", "str"}:
            return UNKNOWN
        if value is UNKNOWN or value is NOTHING:
            role = frame.script.role(call.args[0].value)
            return (
                False if role in (Role.TENSOR, Role.MODULE) and not frame.script.value(call.args[0].value).made else UNKNOWN
            )
        return type(value).__name__ in names

    def _run(self, frame: Frame, call: syntax.Call, function: Definition) -> Any:
        """What a function of numbers and lists returns, or yields, followed statement by statement."""
        depth = sum(1 for each in self._active if isinstance(each, tuple) and each[0] == "run")
        if depth > _DEEPEST:
            raise UnfoldableError
        key = ("run", depth)
        self._active.add(key)
        try:
            assert isinstance(function.node, syntax.FunctionDef)
            names = (function.script.name(each.decorator) for each in function.node.decorators)
            if any(name not in _HARMLESS for name in names):
                raise UnfoldableError
            inner = self.called(frame, call, function)
            local = Frame(inner.script, dict(inner.names), inner.made, is_run=True)
            yielded: list[Any] = []
            result = self._block(local, function.node.body, yielded)
            is_generator = any(True for _ in inner.script.source.inside(function.node, syntax.Yield))
            return yielded if is_generator else (result[0] if result else None)
        finally:
            self._active.discard(key)

    def _block(self, frame: Frame, block: syntax.BaseSuite, yielded: list[Any]) -> tuple[Any] | None:
        """Follows the statements; the value returned, in a tuple, where they return."""
        for line in block.body:
            parts = line.body if isinstance(line, syntax.SimpleStatementLine) else (line,)
            for statement in parts:
                result = self._statement(frame, statement, yielded)
                if result is not None:
                    return result
        return None

    def _statement(self, frame: Frame, statement: syntax.Node, yielded: list[Any]) -> tuple[Any] | None:
        self.charge(1)
        match statement:
            case syntax.Return(value=value):
                return (self._value(frame, value) if value is not None else None,)
            case syntax.Expr(value=syntax.Yield(value=value)):
                self._yield(frame, value, yielded)
            case syntax.Expr(value=syntax.Call() as call):
                self._change(frame, call)
            case syntax.Expr(value=syntax.SimpleString()) | syntax.Pass() | syntax.Assert():
                pass
            case syntax.Assign(targets=targets, value=value):
                known = self._value(frame, value)
                for target in targets:
                    frame.names.update(self._bound(target.target, known))
            case syntax.AugAssign(target=target):
                names = self._bound(target, UNKNOWN)
                if any(isinstance(frame.names.get(name), (list, dict)) for name in names):
                    raise UnfoldableError
                frame.names.update(names)
            case syntax.If():
                return self._branch(frame, statement, yielded)
            case syntax.With(body=body):
                return self._block(frame, body, yielded)
            case syntax.For(target=target, iter=iterated, body=body, orelse=None):
                return self._turns(frame, target, self._value(frame, iterated), body, yielded)
            case _:
                raise UnfoldableError
        if any(True for _ in frame.script.source.inside(statement, syntax.NamedExpr)):
            raise UnfoldableError
        return None

    def _bound(self, target: syntax.Node, value: Any) -> dict[str, Any]:
        """The names that an assignment in a function that is followed gives a value."""
        parts = (
            [element.value for element in target.elements] if isinstance(target, (syntax.Tuple, syntax.List)) else [target]
        )
        if any(isinstance(part, syntax.Subscript | syntax.StarredElement) for part in parts):
            raise UnfoldableError
        return self.bind(target, value)

    def _turns(
        self, frame: Frame, target: syntax.Node, elements: Any, body: syntax.BaseSuite, yielded: list[Any]
    ) -> tuple[Any] | None:
        if not isinstance(elements, (list, tuple)):
            raise UnfoldableError
        for each in elements:
            frame.names.update(self.bind(target, each))
            result = self._block(frame, body, yielded)
            if result is not None:
                return result
        return None

    def _branch(self, frame: Frame, branch: syntax.If, yielded: list[Any]) -> tuple[Any] | None:
        holds = self._value(frame, branch.test)
        if holds is UNKNOWN or holds is NOTHING:
            raise UnfoldableError
        if holds:
            return self._block(frame, branch.body, yielded)
        if isinstance(branch.orelse, syntax.Else):
            return self._block(frame, branch.orelse.body, yielded)
        return self._branch(frame, branch.orelse, yielded) if branch.orelse is not None else None

    def _change(self, frame: Frame, call: syntax.Call) -> None:
        """What a call that is a statement does to the lists of the function: ``found.append(x)``."""
        if isinstance(call.func, syntax.Attribute):
            held = [frame.names.get(name) for name in self.bind(call.func.value, UNKNOWN)]
            if held and isinstance(held[0], list) and call.func.attr.value == "append" and len(call.args) == 1:
                held[0].append(self._value(frame, call.args[0].value))
                return
            if held and isinstance(held[0], (list, dict)):
                raise UnfoldableError
        if frame.script.name(call.func) not in LEAVE_ALONE:
            given = [self._value(frame, arg.value) for arg in call.args]
            if any(isinstance(value, (list, dict)) for value in given):
                raise UnfoldableError

    def _yield(self, frame: Frame, value: syntax.BaseExpression | syntax.From | None, yielded: list[Any]) -> None:
        if isinstance(value, syntax.From):
            several = self._value(frame, value.item)
            if not isinstance(several, (list, tuple)):
                raise UnfoldableError
            yielded += several
        else:
            yielded.append(self._value(frame, value) if value is not None else None)
        self.charge(1)


def _changes_attribute(script: Script, name: str, init: syntax.Node) -> bool:
    """Whether a script may change an attribute of this name, or what it holds, elsewhere than in ``init``."""
    if b"setattr(" in script.source.data:
        return True
    for attribute in script.source.of(syntax.Attribute):
        if attribute.attr.value != name or script.source.contains(init, attribute):
            continue
        parent = script.source.parents[attribute]
        if isinstance(parent, syntax.AssignTarget | syntax.AugAssign | syntax.Subscript | syntax.Arg):
            is_read = isinstance(parent, syntax.Arg) or not isinstance(
                script.source.parents[parent], syntax.AssignTarget | syntax.Del | syntax.Assign
            )
            if not is_read:
                return True
        if isinstance(parent, syntax.Attribute) and parent.attr.value in _GROWS:
            return True
    return False


def _agreed(values: list[Any]) -> Any:
    """The one value that all are, or UNKNOWN."""
    return values[0] if values and all(value == values[0] for value in values) else UNKNOWN


def _alternatives(node: syntax.BaseExpression) -> Iterator[syntax.BaseExpression]:
    if isinstance(node, syntax.Tuple):
        for element in node.elements:
            yield element.value
    else:
        yield node
