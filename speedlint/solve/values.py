"""Constants, argparse, dataclass and dict defaults: what an argument is, and where it was set."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from speedlint.disk import words
from speedlint.facts import syntax
from speedlint.solve import configs, operations
from speedlint.solve.configs import Entry
from speedlint.solve.flow import once
from speedlint.solve.names import Binding, Kind, last_name
from speedlint.solve.terms import Constant, Definition
from speedlint.solve.unpacking import key_of, written
from speedlint.source import is_name

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_NAMED = {"True": True, "False": False, "None": None}
_COPIES = ("dataclasses.replace", "copy.copy", "copy.deepcopy")
_MOST_ON_THE_WAY = 100
"""Expressions through which a configuration object is followed."""
_DECLARE = ("add_argument", "option", "set_defaults")
_MAY_NOT_RUN = (syntax.If, syntax.For, syntax.While, syntax.Try)
_ASSIGNED = rb"\b(?:[^\n=(,]|,(?!\s{0,9}\w{1,99}=(?!=)[^\n(]{0,99}\))){0,99}=[^=]"
"""What follows an attribute that is assigned: not a keyword, beside which it is handed on, ``f(args.device, dtype=x)``."""
PARSERS = ("parse_args", "parse_known_args", "parse_intermixed_args")


class Values:
    """Answers for one script; reached scripts are asked through their own."""

    def __init__(self, script: Script) -> None:
        self.script = script

    # Constants

    @once(None)
    def constant(self, expression: syntax.Node) -> Constant | None:
        """The expression's value where it is known before the script runs."""
        match expression:
            case syntax.Integer() | syntax.Float() | syntax.SimpleString() | syntax.ConcatenatedString():
                return self._literal(expression)
            case syntax.Name(value=("True" | "False" | "None") as name):
                return Constant(_NAMED[name], self.script, expression)
            case syntax.Name():
                bindings = self.script.names.reaching(expression)
                return agreed(map(self._of_binding, bindings)) if bindings else self._imported(expression)
            case syntax.UnaryOperation(operator=syntax.Minus(), expression=inner):
                found = self.constant(inner)
                if found is not None and isinstance(found.value, (int, float)):
                    return Constant(-found.value, self.script, expression)
            case syntax.UnaryOperation(operator=syntax.Not(), expression=inner):
                found = self.constant(inner)
                return Constant(not found.value, found.script, found.node) if found is not None else None
            case syntax.BooleanOperation(left=left, operator=operator, right=right):
                return self._decided(self.constant(left), isinstance(operator, syntax.And), self.constant(right))
            case syntax.BinaryOperation(left=left, operator=operator, right=right):
                return self._arithmetic(expression, self.constant(left), operator, self.constant(right))
            case syntax.Attribute():
                return self._attribute(expression)
            case syntax.Subscript(value=base, slice=[syntax.SubscriptElement(slice=syntax.Index(value=key))]):
                return self._item(base, key)
            case syntax.Call(func=func) if self.script.name(func) in configs.LOADS:
                return self._entry(configs.loaded(self.script, expression), expression)
            case syntax.Call(func=func, args=[syntax.Arg(value=inner)]) if self.script.name(func) in configs.SEEN_THROUGH:
                found = self.constant(inner)
                return found if found is not None and found.entry is not None else None
            case syntax.Call(func=syntax.Name(value=("int" | "float" | "str" | "bool")), args=[syntax.Arg(value=inner)]):
                return self.constant(inner)
            case syntax.Call(
                func=syntax.Attribute(value=base, attr=syntax.Name(value=("startswith" | "endswith") as name)),
                args=[syntax.Arg(value=inner)],
            ):
                return self._has_affix(expression, self.constant(base), name, self.constant(inner))
            case syntax.Call(func=syntax.Attribute(value=base, attr=syntax.Name("get")), args=[syntax.Arg(value=key), *_]):
                return self._item(base, key)
        return None

    @staticmethod
    def _decided(left: Constant | None, is_and: bool, right: Constant | None) -> Constant | None:
        """The side that decides ``and`` or ``or`` whatever the other one is; the right one where both are known."""
        decides = next((side for side in (left, right) if side is not None and bool(side.value) is not is_and), None)
        return decides or (right if left is not None else None)

    def _has_affix(self, node: syntax.Node, text: Constant | None, asked: str, affix: Constant | None) -> Constant | None:
        if text is None or affix is None or not isinstance(text.value, str) or not isinstance(affix.value, str):
            return None
        is_there = text.value.startswith if asked == "startswith" else text.value.endswith
        return Constant(is_there(affix.value), self.script, node)

    def _literal(self, expression: syntax.BaseExpression) -> Constant | None:
        try:
            return Constant(ast.literal_eval(f"({self.script.text(expression)}\n)"), self.script, expression)
        except (ValueError, SyntaxError):
            return None

    def _arithmetic(
        self, node: syntax.BaseExpression, left: Constant | None, operator: syntax.BaseBinaryOp, right: Constant | None
    ) -> Constant | None:
        if left is None or right is None:
            return None
        a, b = left.value, right.value
        if not isinstance(a, (int, float)) or not isinstance(b, (int, float)):
            return None
        match operator:
            case syntax.Add():
                return Constant(a + b, self.script, node)
            case syntax.Subtract():
                return Constant(a - b, self.script, node)
            case syntax.Multiply():
                return Constant(a * b, self.script, node)
        return None

    def _of_binding(self, binding: Binding) -> Constant | None:
        if binding.kind is Kind.PARAMETER and isinstance(binding.node, syntax.Param):
            return self._parameter(binding.node)
        if binding.kind is Kind.IMPORT and binding.dotted is not None:
            reached, script = self.script.imported_binding(binding.dotted)
            return script.values._of_binding(reached) if reached is not None and script is not None else None
        value = written(binding)
        return self.constant(value) if value is not None else None

    def _imported(self, expression: syntax.BaseExpression) -> Constant | None:
        """The constant of another module that a name stands for, after ``import *`` too."""
        dotted = self.script.dotted(expression)
        binding, script = self.script.imported_binding(dotted) if dotted is not None else (None, None)
        return script.values._of_binding(binding) if binding is not None and script is not None else None

    def _parameter(self, parameter: syntax.Param) -> Constant | None:
        function = self.script.source.enclosing(parameter, syntax.FunctionDef, syntax.Lambda)
        is_decorated = isinstance(function, syntax.FunctionDef) and bool(function.decorators)
        entry = configs.composed(self.script, function) if is_decorated else None
        return (
            self._entry(entry, parameter)
            if entry is not None
            else agreed(
                script.values.constant(value) if value is not None else self._default(parameter)
                for script, value in self.passed(parameter)
            )
        )

    def _default(self, parameter: syntax.Param) -> Constant | None:
        return self.constant(parameter.default) if parameter.default is not None else None

    def passed(self, parameter: syntax.Param) -> Iterator[tuple[Script, syntax.BaseExpression | None]]:
        """What each known call of its function passes for a parameter; None where the default holds; nothing for a lambda's.
        A caller's file is read when its turn comes: whoever knows enough from the first may leave the others."""
        function = self.script.source.enclosing(parameter, syntax.FunctionDef, syntax.Lambda)
        if not isinstance(function, syntax.FunctionDef):
            return
        for script, call in self._handing(function, set()):
            given = self.given(function, parameter, script, call)
            if given is None and script.hides_arguments(call):
                return
            yield script, given

    def _handing(self, function: syntax.FunctionDef, seen: set[syntax.Node]) -> Iterator[tuple[Script, syntax.Call]]:
        """The known calls of a function; in the place of one that hands on all that its own function is given,
        ``super().__init__(*args, **kwargs)``, the calls of that."""
        seen.add(function)
        for script, call in self.script.roles.calls.sites(function):
            through = script.function(call) if _hands_all_on(script, call) else None
            if through is None:
                yield script, call
            elif through not in seen:
                yield from script.values._handing(through, seen)

    def given(
        self, function: syntax.FunctionDef, parameter: syntax.Param, script: Script, call: syntax.Call
    ) -> syntax.BaseExpression | None:
        """What one call, in ``script``, passes for the parameter; None where it does not."""
        name = parameter.name.value
        names = [p.name.value for p in (*function.params.posonly_params, *function.params.params)]
        position = names.index(name) if name in names else None
        if position is not None:
            position -= self.bound_first(function, script, call)
        return script.argument(call, name, position)

    def bound_first(self, function: syntax.FunctionDef, script: Script, call: syntax.Call) -> int:
        """How many of a function's first parameters a call, in ``script``, does not write: the ``self`` of a method, the
        context of an operation that it applies."""
        if self.script.names.owner(function) is None:
            return 0
        return int(not is_static(function) or operations.hands_context(script, call))

    def passed_beyond(self, function: syntax.FunctionDef) -> Iterator[tuple[Script, list[syntax.BaseExpression]]]:
        """What each known call of the function passes for its ``*args``."""
        taken = len(function.params.posonly_params) + len(function.params.params)
        for script, call in self.script.call_sites(function):
            named = taken - self.bound_first(function, script, call)
            plain = [arg for arg in call.args if arg.keyword is None and arg.star != "**"]
            if not any(arg.star for arg in plain):
                yield script, [arg.value for arg in plain[named:]]

    # Arguments

    def argument(self, call: syntax.Call, keyword: str, position: int | None) -> syntax.BaseExpression | None:
        """The expression passed for a parameter, through ``**kwargs`` of a known dict too."""
        for arg in call.args:
            if is_name(arg.keyword, keyword):
                return arg.value
        plain = [arg for arg in call.args if arg.keyword is None]
        if position is not None and 0 <= position < len(plain) and not any(arg.star for arg in plain[: position + 1]):
            return plain[position].value
        held = (self._entry_of(arg.value, keyword) for arg in call.args if arg.star == "**")
        return next((value for value in held if value is not None), None)

    def _entry_of(self, expression: syntax.BaseExpression, key: str) -> syntax.BaseExpression | None:
        """What a dict has under a key, in every run or where there is a GPU; others may be set in some runs only."""
        entries = self.entries(expression)
        if entries is not None or not isinstance(expression, syntax.Name):
            return (entries or {}).get(key)
        found = (self._bound_entries(expression) or {}).get(key)
        set_ = [key_of(change) if isinstance(change, syntax.Subscript) else None for change in self.changes(expression)]
        return None if key in set_ or None in set_ else found

    def hides_arguments(self, call: syntax.Call) -> bool:
        """Whether ``*args`` or ``**kwargs`` of unknown contents are passed."""
        return any(arg.star == "*" or (arg.star == "**" and self.entries(arg.value) is None) for arg in call.args)

    def entries(self, expression: syntax.BaseExpression) -> dict[str, syntax.BaseExpression] | None:
        """The entries of a dict whose keys are all known and which nothing changes after it is made but ``update`` with
        known entries, in every run or where there is a GPU: on a CPU those may be absent."""
        if isinstance(expression, syntax.Subscript):
            match expression.slice:
                case [syntax.SubscriptElement(slice=syntax.Index(value=syntax.SimpleString() as key))]:
                    held = (self.entries(expression.value) or {}).get(str(key.evaluated_value))
                    return self.entries(held) if isinstance(held, (syntax.Dict, syntax.Call)) else None
            return None
        if not isinstance(expression, syntax.Name):
            return self._chosen_entries(expression)
        found = self._bound_entries(expression)
        for added in self._updates(expression) if found is not None else ():
            found = {**found, **added} if found is not None and added is not None else None
        return found

    def _bound_entries(self, name: syntax.Name) -> dict[str, syntax.BaseExpression] | None:
        """The entries of the dict that a variable is given; of two, the one that it is given where there is a GPU."""
        bindings = self.script.names.reaching(name)
        values = [written(binding) for binding in bindings]
        if len(bindings) == 1 and values[0] is not None:
            return self._chosen_entries(values[0])
        if len(bindings) != 2 or values[0] is None or values[1] is None:
            return None
        guards, source = self.script.loops.guards, self.script.source
        last, first = (binding.node for binding in bindings)
        if guards.runs_on_gpu(last):
            return self._of_gpu(values[0], values[1])
        test = source.enclosing(first, syntax.If)
        is_other_branch = isinstance(test, syntax.If) and test.orelse is not None and source.contains(test.orelse, last)
        return self._of_gpu(values[1], values[0]) if is_other_branch and guards.runs_on_gpu(first) else None

    def _chosen_entries(self, node: syntax.Node) -> dict[str, syntax.BaseExpression] | None:
        """The entries of a dict that is written out, also of ``{"pin_memory": True} if use_cuda else {}``."""
        if isinstance(node, syntax.IfExp) and self.script.loops.guards.is_true_on_gpu(node.test):
            return self._of_gpu(node.body, node.orelse)
        return self.written_entries(node)

    def _of_gpu(self, there: syntax.Node, elsewhere: syntax.Node) -> dict[str, syntax.BaseExpression] | None:
        """The entries of a dict that is taken where there is a GPU, if the other one has none that it lacks."""
        found, other = self.written_entries(there), self.written_entries(elsewhere)
        return found if found is not None and other is not None and other.keys() <= found.keys() else None

    def varies(self, expression: syntax.BaseExpression) -> bool:
        """Whether a dict may have other entries in one run than in another: it is changed after it is made, or another one
        is taken where there is no GPU."""
        if not isinstance(expression, syntax.Name):
            return isinstance(expression, syntax.IfExp)
        bindings = self.script.names.reaching(expression)
        is_chosen = len(bindings) > 1 or any(isinstance(binding.value, syntax.IfExp) for binding in bindings)
        return is_chosen or self.is_changed(expression)

    def written_entries(self, node: syntax.Node) -> dict[str, syntax.BaseExpression] | None:
        """The entries of ``{"a": 1}`` and ``dict(a=1)``; None for anything else, and where a key is not written out."""
        if isinstance(node, syntax.Dict):
            found = {}
            for element in node.elements:
                if not isinstance(element, syntax.DictElement) or not isinstance(element.key, syntax.SimpleString):
                    return None
                found[str(element.key.evaluated_value)] = element.value
            return found
        if isinstance(node, syntax.Call) and self.script.name(node.func) == "dict" and all(arg.keyword for arg in node.args):
            return {arg.keyword.value: arg.value for arg in node.args if arg.keyword}
        return None

    def _updates(self, name: syntax.Name) -> Iterator[dict[str, syntax.BaseExpression] | None]:
        """What is added to a dict, in order; None for a change of which not all is known."""
        source = self.script.source
        for change in self.changes(name):
            match change, source.parents[change]:
                case syntax.Attribute(attr=syntax.Name("update")), syntax.Call(args=args) as call if (
                    isinstance(source.parents[call], syntax.Expr)
                    and self.script.order.may_run_before(call, name)
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

    def is_changed(self, name: syntax.Name) -> bool:
        """Whether something is added to a dict or taken out of it after it is made."""
        return any(True for _ in self.changes(name))

    def changes(self, name: syntax.Name) -> Iterator[syntax.Attribute | syntax.Subscript]:
        """Where entries of the dict that a variable holds are set, or taken out."""
        changes = map(self.change_of, self.script.names.uses(name))
        return (change for change in changes if change is not None)

    def change_of(self, held: syntax.Name | syntax.Attribute) -> syntax.Attribute | syntax.Subscript | None:
        """Where an entry of the dict that an expression stands for is set there, or taken out; None where it is read."""
        parent = self.script.source.parents[held]
        if isinstance(parent, syntax.Attribute) and parent.attr.value in ("update", "setdefault", "pop"):
            return parent
        if not isinstance(parent, syntax.Subscript) or parent.value is not held:
            return None
        writer = self.script.source.parents[parent]
        is_set = isinstance(writer, syntax.AssignTarget | syntax.Del)
        return parent if is_set or (isinstance(writer, syntax.AugAssign) and writer.target is parent) else None

    # Configuration objects

    def _entry(self, entry: Entry | None, node: syntax.Node) -> Constant | None:
        value = entry.scalar if entry is not None else None
        is_filled_in = isinstance(value, str) and "${" in value
        return Constant(value, self.script, node, entry) if entry is not None and not is_filled_in else None

    def _configured(self, base: syntax.BaseExpression, key: str) -> Constant | None:
        """The value under a key of a configuration file, which the script does not change."""
        held = self.constant(base)
        if held is None or not isinstance(held.value, Entry):
            return None
        if (isinstance(base, syntax.Name) and self.is_changed(base)) or self.is_written_anywhere(key):
            return None
        return held.script.values._entry(held.value.at(key), held.node)

    @once(True)
    def is_written_anywhere(self, key: str) -> bool:
        """Whether the program sets an attribute or an entry of this name, of whatever object but ``self``."""
        return any(
            place.values.is_assigned(key) or key in place.values._assigned_keys
            for place in self.script.everywhere(words([key]))
        )

    def _item(self, base: syntax.BaseExpression, key: syntax.BaseExpression) -> Constant | None:
        if isinstance(key, syntax.SimpleString) and (found := self._configured(base, str(key.evaluated_value))) is not None:
            return found
        entries = self.entries(base)
        if entries is not None and isinstance(key, syntax.SimpleString):
            value = entries.get(str(key.evaluated_value))
            return self.constant(value) if value is not None else None
        return None

    def _attribute(self, attribute: syntax.Attribute) -> Constant | None:
        imported = self._imported(attribute)
        if imported is not None:
            return imported
        name = attribute.attr.value
        configured = self._configured(attribute.value, name)
        if configured is not None:
            return configured
        owner = self._owner_of_self(attribute.value) if isinstance(attribute.value, syntax.Name) else None
        if owner is not None and self._is_set_by_heirs(owner, name):
            return None
        return agreed(self._option(script, setting, name) for script, setting in self.settings(attribute.value))

    def settings(
        self, base: syntax.BaseExpression, seen: set[syntax.Node] | None = None
    ) -> list[tuple[Script, syntax.Node]]:
        """Where a configuration object comes from: ``parse_args()`` calls, configuration classes and calls of them."""
        found: list[tuple[Script, syntax.Node]] = []
        seen = set() if seen is None else seen
        if base in seen or len(seen) > _MOST_ON_THE_WAY:
            return found
        seen.add(base)
        match base:
            case syntax.Call(func=syntax.Attribute(attr=syntax.Name(value=method))) if method in PARSERS:
                return [(self.script, base)]
            case syntax.Call(args=[syntax.Arg(value=inner), *_]) if self.script.name(base.func) in _COPIES:
                return [(self.script, base)] if len(base.args) > 1 else self.settings(inner, seen)
            case syntax.Call():
                definition = self.script.definition(base.func) or self.script.callee(base)
                if definition is not None and isinstance(definition.node, syntax.ClassDef):
                    return [(self.script, base)] if base.args else [(definition.script, definition.node)]
                if definition is not None and not _sets_by_name(definition):
                    for result in returned(definition):
                        found += definition.script.values.settings(result, seen)
            case syntax.Name() | syntax.Attribute():
                definition = self.script.definition(base)
                if definition is not None and isinstance(definition.node, syntax.ClassDef):
                    return [(definition.script, definition.node)]
                if isinstance(base, syntax.Name) and (owner := self._owner_of_self(base)) is not None:
                    return [(self.script, owner)]
                for script, value in self.script.roles.origins(base):
                    found += script.values.settings(value, seen)
            case syntax.IfExp(body=body, orelse=orelse):
                return self.settings(body, seen) + self.settings(orelse, seen)
            case syntax.Subscript(value=inner):
                return self.settings(inner, seen)
        return found

    def _owner_of_self(self, name: syntax.Name) -> syntax.ClassDef | None:
        """The class whose method takes the name as its ``self``."""
        bindings = self.script.names.reaching(name)
        if len(bindings) != 1 or not isinstance(bindings[0].node, syntax.Param):
            return None
        function = self.script.source.enclosing(bindings[0].node, syntax.FunctionDef, syntax.Lambda)
        if not isinstance(function, syntax.FunctionDef) or is_static(function):
            return None
        first = next(iter((*function.params.posonly_params, *function.params.params)), None)
        return self.script.names.owner(function) if first is bindings[0].node else None

    @once(False)
    def _is_set_by_heirs(self, owner: syntax.ClassDef, name: str) -> bool:
        """Whether a class of the program that derives from one of this script's sets an attribute by itself, or some by
        names that are computed, as out of a configuration; or may, where such classes are too many."""
        from speedlint.solve import heirs

        derived = heirs.derived(Definition(self.script, owner))
        return derived is None or any(
            isinstance(each.node, syntax.ClassDef)
            and (each.script.values._sets(each.node, name) or each.script.values._sets_by_text(each.node))
            for each in derived
        )

    @once(False)
    def _sets_by_text(self, node: syntax.ClassDef) -> bool:
        """Whether a class gives its objects attributes by names that are computed: ``self.__dict__[key] = ...``,
        ``setattr(self, key, ...)``."""
        source = self.script.source
        if b"setattr(" not in source.data and b"__dict__" not in source.data:
            return False
        for call in source.inside(node, syntax.Call):
            match call:
                case syntax.Call(func=syntax.Name("setattr"), args=[syntax.Arg(value=syntax.Name("self")), key, _]):
                    if self.constant(key.value) is None:
                        return True
                case syntax.Call(func=syntax.Attribute(value=held, attr=syntax.Name("update"))) if _is_own_dict(held):
                    return True
        targets = (each.target for each in source.inside(node, syntax.AssignTarget))
        return any(isinstance(each, syntax.Subscript) and _is_own_dict(each.value) for each in targets)

    def _sets(self, node: syntax.ClassDef, name: str) -> bool:
        """Whether a class binds an attribute in its body, or one of its methods does."""
        assigned = self.script.roles.assigned_on_self(Definition(self.script, node), name)
        return name in self.script.names.scope(node.body).bindings or any(
            script is self.script and self.script.source.contains(node, value) for script, value, _ in assigned
        )

    def _option(self, script: Script, setting: syntax.Node, name: str, depth: int = 0) -> Constant | None:
        if isinstance(setting, syntax.ClassDef):
            return script.values.class_field(setting, name)
        if isinstance(setting, syntax.Call) and not _is_parser(setting):
            return script.values._given_option(setting, name, depth)
        return script.values.parsed_option(name, setting if isinstance(setting, syntax.Call) else None)

    def _given_option(self, call: syntax.Call, name: str, depth: int) -> Constant | None:
        """A field of what ``Config(workers=4)`` or ``replace(config, workers=4)`` makes."""
        given = self.argument(call, name, None)
        if given is not None or self.hides_arguments(call) or depth > 6:
            return self.constant(given) if given is not None else None
        if self.script.name(call.func) in _COPIES:
            before = self.settings(call.args[0].value)
            return agreed(self._option(script, setting, name, depth + 1) for script, setting in before)
        definition = self.script.definition(call.func)
        if definition is None or not isinstance(definition.node, syntax.ClassDef):
            return None
        by_position = any(arg.keyword is None for arg in call.args)
        if by_position and self.script.roles.calls.method(definition, "__init__") is None:
            return None
        return definition.script.values.class_field(definition.node, name)

    def class_field(self, node: syntax.ClassDef, name: str) -> Constant | None:
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
            if isinstance(value, syntax.Call) and self.script.name(value.func) == "dataclasses.field":
                default = self.argument(value, "default", None)
                return self.constant(default) if default is not None else None
            return self._of_binding(bindings[0])
        script, given, path = set_in[0]
        return script.values.constant(given) if not path else None

    def parsed_option(self, name: str, parsed: syntax.Call | None) -> Constant | None:
        """The default of the command-line option stored under ``name``; None if the script sets it again. Of what is no
        option, what the one line gives it that sets it: ``args.workers = 4``.

        ``parsed`` is the call of ``parse_args``: of several parsers' options, its own parser's is taken.
        """
        options = self.declared(name, parsed)
        if len(options) == 1:
            return options[0][0].values.default_of(options[0][1])
        return self._added_to_parsed(name) if not options and parsed is not None else None

    def _added_to_parsed(self, name: str) -> Constant | None:
        """What is added to the parsed options under a name that none of them has, by one line of this script, under no
        condition."""
        source, attribute = self.script.source, b"." + name.encode()
        set_here = [
            (assign, target.target)
            for assign in source.of(syntax.Assign)
            for target in assign.targets
            if isinstance(target.target, syntax.Attribute) and target.target.attr.value == name
        ]
        if len(set_here) != 1 or source.enclosing(set_here[0][0], *_MAY_NOT_RUN) is not None:
            return None
        assign, target = set_here[0]
        if not isinstance(target.value, syntax.Name) or target.value.value == "self" or self.is_counted(name):
            return None
        if not any(isinstance(setting, syntax.Call) and _is_parser(setting) for _, setting in self.settings(target.value)):
            return None
        for place in self.script.everywhere(_quoted(name), re.compile(re.escape(attribute) + _ASSIGNED)):
            if any(True for _ in place.values.options(name)) or (
                place is not self.script and place.values.is_assigned(name)
            ):
                return None
        return self.constant(assign.value)

    def declared(self, name: str, parsed: syntax.Call | None) -> list[tuple[Script, syntax.Call]]:
        """The calls that declare the command-line option stored under ``name`` (see ``parsed_option``), of one program or
        another; none where a script sets it again, to anything but its default."""
        places = self.script.everywhere((max(name.split("_"), key=len).encode(), _quoted(name)))
        options = [(script, call) for script in places for call in script.values.options(name)]
        if not options:
            return []
        own = [(script, call) for script, call in options if script is self.script and self._is_of(call, parsed)]
        attribute = b"." + name.encode()
        assigned = (attribute, re.compile(re.escape(attribute) + _ASSIGNED))
        again = [script for script in self.script.everywhere(assigned, b"set_defaults(") if script.values.is_assigned(name)]
        found = own or options
        if again and not (len(found) == 1 and all(script.values._is_set_back(name, *found[0]) for script in again)):
            return []
        return found

    def _is_set_back(self, name: str, place: Script, option: syntax.Call) -> bool:
        """Whether all that this script assigns to an attribute of an option's name is the option's default."""
        default = place.values.default_of(option)
        if default is None or any(self.script.argument(call, name) for call in self.script.method_calls("set_defaults")):
            return False
        targets = [
            target
            for each in self.script.source.of(syntax.AssignTarget)
            for target in _targets(each.target)
            if isinstance(target, syntax.Attribute) and target.attr.value == name
        ]
        given = [
            assign.value
            for assign in self.script.source.of(syntax.Assign)
            for target in assign.targets
            if target.target in targets
        ]
        known = [self.constant(value) for value in given]
        return len(given) == len(targets) and all(each is not None and each.equals(default) for each in known)

    def default_of(self, option: syntax.Call) -> Constant | None:
        """The value of an option, declared by a call of this script, that no command passes."""
        script = self.script
        action = script.argument(option, "action", None)
        kind = script.constant(action).value if action is not None and script.constant(action) else None  # type: ignore[union-attr]
        if (default := script.argument(option, "default", None)) is not None:
            return script.constant(default)
        if kind in ("store_true", "store_false"):
            return Constant(kind == "store_false", script, option)
        return Constant(None, script, option) if not script.argument(option, "required", None) else None

    def _is_of(self, option: syntax.Call, parsed: syntax.Call | None) -> bool:
        """Whether an option is added to the parser, by the name it is bound to, that ``parsed`` is a call of."""
        match option.func, parsed:
            case syntax.Attribute(value=syntax.Name() as adds), syntax.Call(
                func=syntax.Attribute(value=syntax.Name() as parser)
            ):
                made = self.script.names.reaching(parser)
                return len(made) == 1 and self.script.names.reaching(adds) == made
        return False

    def options(self, name: str) -> Iterator[syntax.Call]:
        """The ``add_argument`` calls of this file that store under ``name``."""
        for call in self.script.method_calls("add_argument"):
            if self.destination(call) == name:
                yield call

    def destination(self, call: syntax.Call) -> str | None:
        """The name under which an ``add_argument`` call stores its option."""
        explicit = self.argument(call, "dest", None)
        if isinstance(explicit, syntax.SimpleString):
            return str(explicit.evaluated_value)
        flags = [
            str(arg.value.evaluated_value)
            for arg in call.args
            if arg.keyword is None and isinstance(arg.value, syntax.SimpleString)
        ]
        chosen = next((flag for flag in flags if flag.startswith("--")), flags[0] if flags else "")
        return chosen.lstrip("-").replace("-", "_") or None

    def is_assigned(self, name: str) -> bool:
        """Whether the script assigns to an attribute of this name, as in ``args.workers = 4``, or calls ``set_defaults``."""
        return name in self._assigned_attributes

    def is_counted(self, name: str) -> bool:
        """Whether the script adds to an attribute of this name, as in ``self.step += 1``."""
        counted = (each.target for each in self.script.source.of(syntax.AugAssign))
        return any(isinstance(target, syntax.Attribute) and target.attr.value == name for target in counted)

    @cached_property
    def _assigned_attributes(self) -> frozenset[str]:
        found: set[str] = set()
        for inner in chain.from_iterable(_targets(each.target) for each in self.script.source.of(syntax.AssignTarget)):
            if not isinstance(inner, syntax.Attribute) or self.script.name(inner) is not None:
                continue  # have: cudnn.deterministic = True beside args.deterministic
            if not isinstance(inner.value, syntax.Name) or inner.value.value != "self":
                found.add(inner.attr.value)
        for call in self.script.method_calls("set_defaults"):
            found |= {arg.keyword.value for arg in call.args if arg.keyword}
        return frozenset(found)

    @cached_property
    def _assigned_keys(self) -> frozenset[str]:
        """The keys of the entries that the script sets, of whatever mapping, by ``update`` too."""
        source, found = self.script.source, set[str]()
        for target in chain.from_iterable(_targets(each.target) for each in source.of(syntax.AssignTarget)):
            key = key_of(target) if isinstance(target, syntax.Subscript) else None
            found |= {key} if isinstance(key, str) else set()
        for arg in (arg for call in self.script.method_calls("update") for arg in call.args):
            found |= {arg.keyword.value} if arg.keyword is not None else set(self.written_entries(arg.value) or ())
        return frozenset(found)


def _targets(target: syntax.Node) -> Iterator[syntax.Node]:
    """What an assignment's target sets, seen through ``a, (b.c, *d) = value``."""
    if isinstance(target, (syntax.Tuple, syntax.List)):
        for element in target.elements:
            yield from _targets(element.value)
    else:
        yield target


def _is_parser(call: syntax.Call) -> bool:
    return isinstance(call.func, syntax.Attribute) and call.func.attr.value in PARSERS


def agreed(found: Iterable[Constant | None]) -> Constant | None:
    """The constant that all of ``found`` agree on, if there are any and all are known; asked no further than they do."""
    first: Constant | None = None
    for each in found:
        if each is None or not each.equals(first or each):
            return None
        first = first or each
    return first


def mapped(script: Script, function: syntax.Lambda, parameter: syntax.Param) -> syntax.BaseExpression | None:
    """What ``map(lambda part: ..., parts)``, or ``filter``, takes a parameter's values out of; None for any other lambda."""
    arg = script.source.parents[function]
    call = script.source.parents[arg] if isinstance(arg, syntax.Arg) else None
    if not isinstance(call, syntax.Call) or not script.is_call_to(call, "map", "filter"):
        return None
    at = list(function.params.params).index(parameter) + 1 if parameter in function.params.params else len(call.args)
    return call.args[at].value if at < len(call.args) else None


def is_static(function: syntax.FunctionDef) -> bool:
    """Whether a method takes no ``self``."""
    return _is_decorated(function, "staticmethod")


def needs_no_object(function: syntax.FunctionDef) -> bool:
    """Whether a method is made to be called on its class: a static method or a class method."""
    return _is_decorated(function, "staticmethod", "classmethod")


def is_class_method(function: syntax.FunctionDef) -> bool:
    """Whether a method takes its class in place of an object."""
    return _is_decorated(function, "classmethod")


def is_property(method: Definition) -> bool:
    """Whether a method runs where its name is read."""
    return isinstance(method.node, syntax.FunctionDef) and _is_decorated(method.node, "property", "cached_property")


def _is_decorated(function: syntax.FunctionDef, *names: str) -> bool:
    return any(last_name(each.decorator) in names for each in function.decorators)


def _hands_all_on(script: Script, call: syntax.Call) -> bool:
    """Whether a call takes ``*args, **kwargs`` and no more, which is all that the function around it takes beside its
    ``self``."""
    function = script.function(call)
    if function is None or not call.args or not all(arg.star for arg in call.args):
        return False
    taken = function.params
    if taken.posonly_params or taken.kwonly_params or len(taken.params) != (script.names.owner(function) is not None):
        return False
    stars = [each for each in (taken.star_arg, taken.star_kwarg) if isinstance(each, syntax.Param)]
    if len(stars) != len(call.args) or len(set(map(id, stars))) != len(call.args) or is_static(function):
        return False
    handed = [script.names.reaching(arg.value) if isinstance(arg.value, syntax.Name) else [] for arg in call.args]
    return all([each.node for each in bound] == [star] for bound, star in zip(handed, stars, strict=True))


def _sets_by_name(definition: Definition) -> bool:
    """Whether a function puts values into an object by names that are not written out, such as a file's:
    ``vars(args).update(read)`` or ``setattr(args, key, value)``."""
    place = definition.script
    for call in place.source.inside(definition.node, syntax.Call):
        match call:
            case syntax.Call(args=[_, syntax.Arg(value=key), *_]) if place.is_call_to(call, "setattr"):
                if not isinstance(key, syntax.SimpleString):
                    return True
            case syntax.Call(func=syntax.Attribute(value=held, attr=syntax.Name(value="update"))):
                is_dict = isinstance(held, syntax.Attribute) and held.attr.value == "__dict__"
                if is_dict or place.is_call_to(held, "vars"):
                    return True
    return False


def returned(definition: Definition) -> Iterator[syntax.BaseExpression]:
    """The expressions a function returns, those of nested functions left out."""
    source = definition.script.source
    for node in source.inside(definition.node, syntax.Return):
        if node.value is not None and source.enclosing(node, syntax.FunctionDef, syntax.Lambda) is definition.node:
            yield node.value


def _quoted(option: str) -> re.Pattern[bytes]:
    """An option's name as ``add_argument`` is handed it, no key. It begins with the name, and looks back for the rest: so it
    is found ten times as fast."""
    flag = option.replace("_", "[-_]").encode()
    before = b"|".join(rb"""(?<=[^\[{]["']""" + dashes + flag + rb"""["'])""" for dashes in (b"", b"-", b"--"))
    return re.compile(flag + rb"""["'](?:""" + before + rb")")


def option_of(script: Script, node: syntax.Node) -> syntax.Call | None:
    """The call that declares an option of the command line, or sets its default, that a node is or stands in."""
    call = node if isinstance(node, syntax.Call) else script.source.enclosing(node, syntax.Call)
    declares = isinstance(call, syntax.Call) and isinstance(call.func, syntax.Attribute) and call.func.attr.value in _DECLARE
    return call if isinstance(call, syntax.Call) and declares else None


def _is_own_dict(node: syntax.BaseExpression) -> bool:
    """Whether an expression is ``self.__dict__``."""
    match node:
        case syntax.Attribute(value=syntax.Name("self"), attr=syntax.Name("__dict__")):
            return True
    return False
