"""Constants, argparse, dataclass and dict defaults: what an argument is, and where it was set."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from speedlint.semantics import configs
from speedlint.semantics.configs import Entry
from speedlint.semantics.names import Binding, Kind
from speedlint.semantics.terms import Constant, Definition

if TYPE_CHECKING:
    from speedlint.semantics.script import Script

_LITERALS = (cst.Integer, cst.Float, cst.SimpleString, cst.ConcatenatedString)
_NAMED = {"True": True, "False": False, "None": None}
_COPIES = ("dataclasses.replace", "copy.copy", "copy.deepcopy")
_MOST_ON_THE_WAY = 100
"""Expressions through which a configuration object is followed."""
PARSERS = ("parse_args", "parse_known_args", "parse_intermixed_args")


class Values:
    """Answers for one script; reached scripts are asked through their own."""

    def __init__(self, script: Script) -> None:
        self.script = script

    # Constants

    def constant(self, expression: cst.CSTNode) -> Constant | None:
        """The expression's value where it is known before the script runs."""
        return self.script.program.flow.ask(("constant", expression), lambda: self._evaluate(expression), None)

    def _evaluate(self, expression: cst.CSTNode) -> Constant | None:
        match expression:
            case cst.Integer() | cst.Float() | cst.SimpleString() | cst.ConcatenatedString():
                return self._literal(expression)
            case cst.Name(value=("True" | "False" | "None") as name):
                return Constant(_NAMED[name], self.script, expression)
            case cst.Name():
                return agreed(self._of_binding(binding) for binding in self.script.names.reaching(expression))
            case cst.UnaryOperation(operator=cst.Minus(), expression=inner):
                found = self.constant(inner)
                if found is not None and isinstance(found.value, (int, float)):
                    return Constant(-found.value, self.script, expression)
            case cst.UnaryOperation(operator=cst.Not(), expression=inner):
                found = self.constant(inner)
                return Constant(not found.value, found.script, found.node) if found is not None else None
            case cst.BooleanOperation(left=left, operator=operator, right=right):
                return self._decided(self.constant(left), isinstance(operator, cst.And), self.constant(right))
            case cst.BinaryOperation(left=left, operator=operator, right=right):
                return self._arithmetic(expression, self.constant(left), operator, self.constant(right))
            case cst.Attribute():
                return self._attribute(expression)
            case cst.Subscript(value=base, slice=[cst.SubscriptElement(slice=cst.Index(value=key))]):
                return self._item(base, key)
            case cst.Call(func=func) if self.script.name(func) in configs.LOADS:
                return self._entry(configs.loaded(self.script, expression), expression)
            case cst.Call(func=func, args=[cst.Arg(value=inner)]) if self.script.name(func) in configs.SEEN_THROUGH:
                found = self.constant(inner)
                return found if found is not None and found.entry is not None else None
            case cst.Call(func=cst.Name(value=("int" | "float" | "str" | "bool")), args=[cst.Arg(value=inner)]):
                return self.constant(inner)
            case cst.Call(func=cst.Attribute(value=base, attr=cst.Name("get")), args=[cst.Arg(value=key), *_]):
                return self._item(base, key)
        return None

    @staticmethod
    def _decided(left: Constant | None, is_and: bool, right: Constant | None) -> Constant | None:
        """The side that decides ``and`` or ``or`` whatever the other one is; the right one where both are known."""
        decides = next((side for side in (left, right) if side is not None and bool(side.value) is not is_and), None)
        return decides or (right if left is not None else None)

    def _literal(self, expression: cst.BaseExpression) -> Constant | None:
        try:
            return Constant(ast.literal_eval(self.script.source.module.code_for_node(expression)), self.script, expression)
        except (ValueError, SyntaxError):
            return None

    def _arithmetic(
        self, node: cst.BaseExpression, left: Constant | None, operator: cst.BaseBinaryOp, right: Constant | None
    ) -> Constant | None:
        if left is None or right is None:
            return None
        a, b = left.value, right.value
        if not isinstance(a, (int, float)) or not isinstance(b, (int, float)):
            return None
        match operator:
            case cst.Add():
                return Constant(a + b, self.script, node)
            case cst.Subtract():
                return Constant(a - b, self.script, node)
            case cst.Multiply():
                return Constant(a * b, self.script, node)
        return None

    def _of_binding(self, binding: Binding) -> Constant | None:
        if binding.kind is Kind.PARAMETER and isinstance(binding.node, cst.Param):
            return self._parameter(binding.node)
        if binding.kind is Kind.IMPORT and binding.dotted is not None:
            reached, script = self.script.imported_binding(binding.dotted)
            return script.values._of_binding(reached) if reached is not None and script is not None else None
        if binding.kind is not Kind.ASSIGN or binding.value is None:
            return None
        if not binding.path:
            return self.constant(binding.value)
        value: cst.BaseExpression = binding.value
        for step in binding.path:
            if step is None or not isinstance(value, (cst.Tuple, cst.List)) or step >= len(value.elements):
                return None
            value = value.elements[step].value
        return self.constant(value)

    def _parameter(self, parameter: cst.Param) -> Constant | None:
        function = self.script.source.enclosing(parameter, cst.FunctionDef, cst.Lambda)
        if not isinstance(function, cst.FunctionDef):
            return None
        passed = list(self.passed(function, parameter))
        if not passed:
            return None
        return agreed(
            script.values.constant(value) if value is not None else self._default(parameter) for script, value in passed
        )

    def _default(self, parameter: cst.Param) -> Constant | None:
        return self.constant(parameter.default) if parameter.default is not None else None

    def passed(self, function: cst.FunctionDef, parameter: cst.Param) -> Iterator[tuple[Script, cst.BaseExpression | None]]:
        """What each known call of the function passes for the parameter; None where the default holds."""
        for script, call in self.script.call_sites(function):
            given = self.given(function, parameter, script, call)
            if given is None and script.hides_arguments(call):
                return
            yield script, given

    def given(
        self, function: cst.FunctionDef, parameter: cst.Param, script: Script, call: cst.Call
    ) -> cst.BaseExpression | None:
        """What one call, in ``script``, passes for the parameter; None where it does not."""
        name = parameter.name.value
        names = [p.name.value for p in (*function.params.posonly_params, *function.params.params)]
        position = names.index(name) if name in names else None
        owner = self.script.names.owner(function)
        if position is not None and owner is not None and not is_static(function):
            position -= 1
        return script.argument(call, name, position)

    def passed_beyond(self, function: cst.FunctionDef) -> Iterator[tuple[Script, list[cst.BaseExpression]]]:
        """What each known call of the function passes for its ``*args``."""
        owner = self.script.names.owner(function)
        named = len(function.params.posonly_params) + len(function.params.params)
        named -= owner is not None and not is_static(function)
        for script, call in self.script.call_sites(function):
            plain = [arg for arg in call.args if arg.keyword is None and arg.star != "**"]
            if not any(arg.star for arg in plain):
                yield script, [arg.value for arg in plain[named:]]

    # Arguments

    def argument(self, call: cst.Call, keyword: str, position: int | None) -> cst.BaseExpression | None:
        """The expression passed for a parameter, through ``**kwargs`` of a known dict too."""
        for arg in call.args:
            if arg.keyword is not None and arg.keyword.value == keyword:
                return arg.value
        plain = [arg for arg in call.args if arg.keyword is None]
        if position is not None and 0 <= position < len(plain) and not any(arg.star for arg in plain[: position + 1]):
            return plain[position].value
        for arg in call.args:
            if arg.star == "**" and (entries := self.entries(arg.value)) is not None and keyword in entries:
                return entries[keyword]
        return None

    def hides_arguments(self, call: cst.Call) -> bool:
        """Whether ``*args`` or ``**kwargs`` of unknown contents are passed."""
        return any(arg.star == "*" or (arg.star == "**" and self.entries(arg.value) is None) for arg in call.args)

    def entries(self, expression: cst.BaseExpression) -> dict[str, cst.BaseExpression] | None:
        """The entries of a dict whose keys are all known and which nothing changes after it is made but ``update`` with
        known entries, in every run or where there is a GPU: on a CPU those may be absent."""
        if isinstance(expression, cst.Subscript):
            match expression.slice:
                case [cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString() as key))]:
                    held = (self.entries(expression.value) or {}).get(str(key.evaluated_value))
                    return self.entries(held) if isinstance(held, (cst.Dict, cst.Call)) else None
            return None
        if not isinstance(expression, cst.Name):
            return self._written(expression)
        bindings = self.script.names.reaching(expression)
        if len(bindings) != 1 or bindings[0].kind is not Kind.ASSIGN or bindings[0].path or bindings[0].value is None:
            return None
        found = self._written(bindings[0].value)
        for added in self._updates(expression) if found is not None else ():
            found = {**found, **added} if found is not None and added is not None else None
        return found

    def _written(self, node: cst.CSTNode) -> dict[str, cst.BaseExpression] | None:
        """The entries of ``{"a": 1}`` and ``dict(a=1)``."""
        if isinstance(node, cst.Dict):
            found = {}
            for element in node.elements:
                if not isinstance(element, cst.DictElement) or not isinstance(element.key, cst.SimpleString):
                    return None
                found[str(element.key.evaluated_value)] = element.value
            return found
        if isinstance(node, cst.Call) and self.script.name(node.func) == "dict" and all(arg.keyword for arg in node.args):
            return {arg.keyword.value: arg.value for arg in node.args if arg.keyword}
        return None

    def _updates(self, name: cst.Name) -> Iterator[dict[str, cst.BaseExpression] | None]:
        """What is added to a dict, in order; None for a change of which not all is known."""
        source = self.script.source
        for change in self.changes(name):
            match change, source.parents[change]:
                case cst.Attribute(attr=cst.Name("update")), cst.Call(args=args) as call if (
                    isinstance(source.parents[call], cst.Expr)
                    and source.order[call] < source.order[name]
                    and self.script.function(call) is self.script.function(name)
                    and self.script.loops.guards.runs_on_gpu(call)
                ):
                    yield from (
                        self.entries(arg.value) if arg.keyword is None and not arg.star else None
                        for arg in args
                        if arg.keyword is None
                    )
                    yield {arg.keyword.value: arg.value for arg in args if arg.keyword is not None}
                case _:
                    yield None

    def is_changed(self, name: cst.Name) -> bool:
        """Whether something is added to a dict or taken out of it after it is made."""
        return any(True for _ in self.changes(name))

    def changes(self, name: cst.Name) -> Iterator[cst.Attribute | cst.Subscript]:
        """Where entries of the dict that a variable holds are set, or taken out."""
        for use in self.script.names.uses(name):
            parent = self.script.source.parents[use]
            if isinstance(parent, cst.Attribute) and parent.attr.value in ("update", "setdefault", "pop"):
                yield parent
            if isinstance(parent, cst.Subscript) and parent.value is use:
                writer = self.script.source.parents[parent]
                if isinstance(writer, (cst.AssignTarget, cst.Del)) or (
                    isinstance(writer, cst.AugAssign) and writer.target is parent
                ):
                    yield parent

    # Configuration objects

    def _entry(self, entry: Entry | None, node: cst.CSTNode) -> Constant | None:
        return Constant(entry.scalar, self.script, node, entry) if entry is not None else None

    def _configured(self, base: cst.BaseExpression, key: str) -> Constant | None:
        """The value under a key of a configuration file, which the script does not change."""
        held = self.constant(base)
        if held is None or not isinstance(held.value, Entry):
            return None
        if self.script.values.is_assigned(key) or (isinstance(base, cst.Name) and self.is_changed(base)):
            return None
        return held.script.values._entry(held.value.at(key), held.node)

    def _item(self, base: cst.BaseExpression, key: cst.BaseExpression) -> Constant | None:
        if isinstance(key, cst.SimpleString) and (found := self._configured(base, str(key.evaluated_value))) is not None:
            return found
        entries = self.entries(base)
        if entries is not None and isinstance(key, cst.SimpleString):
            value = entries.get(str(key.evaluated_value))
            return self.constant(value) if value is not None else None
        return None

    def _attribute(self, attribute: cst.Attribute) -> Constant | None:
        dotted = self.script.names.dotted(attribute)
        if dotted is not None:
            binding, script = self.script.imported_binding(dotted)
            if binding is not None and script is not None:
                return script.values._of_binding(binding)
        name = attribute.attr.value
        configured = self._configured(attribute.value, name)
        if configured is not None:
            return configured
        return agreed(self._option(script, setting, name) for script, setting in self.settings(attribute.value))

    def settings(self, base: cst.BaseExpression, seen: set[cst.CSTNode] | None = None) -> list[tuple[Script, cst.CSTNode]]:
        """Where a configuration object comes from: ``parse_args()`` calls, configuration classes and calls of them."""
        found: list[tuple[Script, cst.CSTNode]] = []
        seen = set() if seen is None else seen
        if base in seen or len(seen) > _MOST_ON_THE_WAY:
            return found
        seen.add(base)
        match base:
            case cst.Call(func=cst.Attribute(attr=cst.Name(value=method))) if method in PARSERS:
                return [(self.script, base)]
            case cst.Call(args=[cst.Arg(value=inner), *_]) if self.script.name(base.func) in _COPIES:
                return [(self.script, base)] if len(base.args) > 1 else self.settings(inner, seen)
            case cst.Call():
                definition = self.script.definition(base.func)
                if definition is not None and isinstance(definition.node, cst.ClassDef):
                    return [(self.script, base)] if base.args else [(definition.script, definition.node)]
                if definition is not None:
                    for result in returned(definition):
                        found += definition.script.values.settings(result, seen)
            case cst.Name() | cst.Attribute():
                definition = self.script.definition(base)
                if definition is not None and isinstance(definition.node, cst.ClassDef):
                    return [(definition.script, definition.node)]
                if isinstance(base, cst.Name) and (owner := self._owner_of_self(base)) is not None:
                    return [(self.script, owner)]
                for script, value in self.script.roles.origins(base):
                    found += script.values.settings(value, seen)
            case cst.IfExp(body=body, orelse=orelse):
                return self.settings(body, seen) + self.settings(orelse, seen)
            case cst.Subscript(value=inner):
                return self.settings(inner, seen)
        return found

    def _owner_of_self(self, name: cst.Name) -> cst.ClassDef | None:
        """The class whose method takes the name as its ``self``."""
        bindings = self.script.names.reaching(name)
        if len(bindings) != 1 or not isinstance(bindings[0].node, cst.Param):
            return None
        function = self.script.source.enclosing(bindings[0].node, cst.FunctionDef, cst.Lambda)
        if not isinstance(function, cst.FunctionDef) or is_static(function):
            return None
        first = next(iter((*function.params.posonly_params, *function.params.params)), None)
        return self.script.names.owner(function) if first is bindings[0].node else None

    def _option(self, script: Script, setting: cst.CSTNode, name: str, depth: int = 0) -> Constant | None:
        if isinstance(setting, cst.ClassDef):
            return script.values.class_field(setting, name)
        if isinstance(setting, cst.Call) and not _is_parser(setting):
            return script.values._given_option(setting, name, depth)
        return script.values.parsed_option(name, setting if isinstance(setting, cst.Call) else None)

    def _given_option(self, call: cst.Call, name: str, depth: int) -> Constant | None:
        """A field of what ``Config(workers=4)`` or ``replace(config, workers=4)`` makes."""
        given = self.argument(call, name, None)
        if given is not None or self.hides_arguments(call) or depth > 6:
            return self.constant(given) if given is not None else None
        if self.script.name(call.func) in _COPIES:
            before = self.settings(call.args[0].value)
            return agreed(self._option(script, setting, name, depth + 1) for script, setting in before)
        definition = self.script.definition(call.func)
        if definition is None or not isinstance(definition.node, cst.ClassDef):
            return None
        by_position = any(arg.keyword is None for arg in call.args)
        if by_position and self.script.roles.calls.method(definition, "__init__") is None:
            return None
        return definition.script.values.class_field(definition.node, name)

    def class_field(self, node: cst.ClassDef, name: str) -> Constant | None:
        """The default of a class attribute, a dataclass field, or what ``__init__`` sets it to."""
        if self.script.values.is_assigned(name):
            return None
        set_in = list(self.script.roles.assigned_on_self(Definition(self.script, node), name))
        bindings = self.script.names.scope(node.body).bindings.get(name, [])
        is_also_set = any(value is not bindings[0].value for _, value, _ in set_in) if bindings else len(set_in) != 1
        if is_also_set or any(script.values.is_counted(name) for script, _, _ in set_in):
            return None
        if bindings:
            value = bindings[0].value
            if isinstance(value, cst.Call) and self.script.name(value.func) == "dataclasses.field":
                default = self.argument(value, "default", None)
                return self.constant(default) if default is not None else None
            return self._of_binding(bindings[0])
        script, given, path = set_in[0]
        return script.values.constant(given) if not path else None

    def parsed_option(self, name: str, parsed: cst.Call | None) -> Constant | None:
        """The default of the command-line option stored under ``name``; None if the script sets it again.

        ``parsed`` is the call of ``parse_args``: of several parsers' options, its own parser's is taken.
        """
        flag = name.replace("_", "[-_]").encode()
        places = self.script.everywhere(re.compile(rb"""[(,=]\s{0,99}["']-{0,2}""" + flag + rb"""["']"""))
        options = [(script, call) for script in places for call in script.values.options(name)]
        own = [(script, call) for script, call in options if script is self.script and self._is_of(call, parsed)]
        options = own or options
        assigned = re.compile(rb"\." + name.encode() + rb"\b[^\n=(]{0,99}=[^=]|set_defaults\(")
        if len(options) != 1 or any(script.values.is_assigned(name) for script in self.script.everywhere(assigned)):
            return None
        script, call = options[0]
        action = script.argument(call, "action", None)
        kind = script.constant(action).value if action is not None and script.constant(action) else None  # type: ignore[union-attr]
        if (default := script.argument(call, "default", None)) is not None:
            return script.constant(default)
        if kind in ("store_true", "store_false"):
            return Constant(kind == "store_false", script, call)
        return Constant(None, script, call) if not script.argument(call, "required", None) else None

    def _is_of(self, option: cst.Call, parsed: cst.Call | None) -> bool:
        """Whether an option is added to the parser, by the name it is bound to, that ``parsed`` is a call of."""
        match option.func, parsed:
            case cst.Attribute(value=cst.Name() as adds), cst.Call(func=cst.Attribute(value=cst.Name() as parser)):
                made = self.script.names.reaching(parser)
                return len(made) == 1 and self.script.names.reaching(adds) == made
        return False

    def options(self, name: str) -> Iterator[cst.Call]:
        """The ``add_argument`` calls of this file that store under ``name``."""
        for call in self.script.method_calls("add_argument"):
            if self.destination(call) == name:
                yield call

    def destination(self, call: cst.Call) -> str | None:
        """The name under which an ``add_argument`` call stores its option."""
        explicit = self.argument(call, "dest", None)
        if isinstance(explicit, cst.SimpleString):
            return str(explicit.evaluated_value)
        flags = [
            str(arg.value.evaluated_value)
            for arg in call.args
            if arg.keyword is None and isinstance(arg.value, cst.SimpleString)
        ]
        chosen = next((flag for flag in flags if flag.startswith("--")), flags[0] if flags else "")
        return chosen.lstrip("-").replace("-", "_") or None

    def is_assigned(self, name: str) -> bool:
        """Whether the script assigns to an attribute of this name, as in ``args.workers = 4``, or calls ``set_defaults``."""
        return name in self._assigned_attributes

    def is_counted(self, name: str) -> bool:
        """Whether the script adds to an attribute of this name, as in ``self.step += 1``."""
        counted = (each.target for each in self.script.source.of(cst.AugAssign))
        return any(isinstance(target, cst.Attribute) and target.attr.value == name for target in counted)

    @cached_property
    def _assigned_attributes(self) -> frozenset[str]:
        found: set[str] = set()
        for target in self.script.source.of(cst.AssignTarget):
            inner = target.target
            if isinstance(inner, cst.Attribute) and not (isinstance(inner.value, cst.Name) and inner.value.value == "self"):
                found.add(inner.attr.value)
        for call in self.script.method_calls("set_defaults"):
            found |= {arg.keyword.value for arg in call.args if arg.keyword}
        return frozenset(found)


def _is_parser(call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and call.func.attr.value in PARSERS


def agreed(found: Iterator[Constant | None]) -> Constant | None:
    """The constant that all of ``found`` agree on, if there are any and all are known."""
    constants = list(found)
    first = constants[0] if constants else None
    return first if first is not None and all(c is not None and c.equals(first) for c in constants) else None


def is_static(function: cst.FunctionDef) -> bool:
    """Whether a method takes no ``self``."""
    return any(isinstance(d.decorator, cst.Name) and d.decorator.value == "staticmethod" for d in function.decorators)


def returned(definition: Definition) -> Iterator[cst.BaseExpression]:
    """The expressions a function returns, those of nested functions left out."""
    source = definition.script.source
    for node in source.inside(definition.node, cst.Return):
        if node.value is not None and source.enclosing(node, cst.FunctionDef, cst.Lambda) is definition.node:
            yield node.value
