"""The environment that a program sets for itself: which variables, to what, and how to take that away again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes.backend import intent
from speedlint.shapes.backend.intent import Intent

_ENVIRON = "os.environ"
_SETTERS = (f"{_ENVIRON}.setdefault", f"{_ENVIRON}.__setitem__", "os.putenv")
_UPDATE = f"{_ENVIRON}.update"


class Setting(NamedTuple):
    """One place that sets a variable.

    Attributes:
        node: the assignment, the call, or the entry of a dict.
        key: the node that names the variable, where it is an expression.
        value: what it is set to; None where that is not known before the run.
        is_written: whether the value is written there, not taken from an option or a variable.
    """

    script: Script
    node: syntax.Assign | syntax.Call | syntax.DictElement | syntax.Arg
    key: syntax.BaseExpression | None
    name: str
    value: str | None
    is_written: bool


def settings(script: Script, *names: str) -> Iterator[Setting]:
    """Where this file sets one of the variables, in source order of each form: assignments, calls, updates."""
    for assign in script.source.of(syntax.Assign):
        for target in assign.targets:
            key = _key_of(script, target.target)
            if key is not None:
                yield from _setting(script, assign, key, assign.value, names)
    for call in script.calls(*_SETTERS):
        if len(call.args) == 2:
            yield from _setting(script, call, call.args[0].value, call.args[1].value, names)
    for entry, key, value in _updates(script):
        yield from _setting(script, entry, key, value, names)


def _updates(
    script: Script,
) -> Iterator[tuple[syntax.DictElement | syntax.Arg, syntax.BaseExpression | None, syntax.BaseExpression]]:
    """The entries of ``os.environ.update(...)`` and of ``os.environ |= {...}``."""
    given = [arg for call in script.calls(_UPDATE) for arg in call.args]
    for arg in given:
        if arg.keyword is not None:
            yield arg, None, arg.value
    dicts = [arg.value for arg in given if arg.keyword is None]
    dicts += [each.value for each in script.source.of(syntax.AugAssign) if script.name(each.target) == _ENVIRON]
    for written in dicts:
        for _, value in script.roles.origins(written):
            for element in value.elements if isinstance(value, syntax.Dict) and value in script.source.parents else ():
                if isinstance(element, syntax.DictElement):
                    yield element, element.key, element.value


def _key_of(script: Script, target: syntax.Node) -> syntax.BaseExpression | None:
    match target:
        case syntax.Subscript(value=base, slice=[syntax.SubscriptElement(slice=syntax.Index(value=key))]):
            return key if script.name(base) == _ENVIRON else None
    return None


def _setting(
    script: Script,
    node: syntax.Assign | syntax.Call | syntax.DictElement | syntax.Arg,
    key: syntax.BaseExpression | None,
    value: syntax.BaseExpression,
    names: tuple[str, ...],
) -> Iterator[Setting]:
    said = script.constant(key) if key is not None else None
    name = said.value if said is not None else node.keyword.value if isinstance(node, syntax.Arg) and node.keyword else None
    if isinstance(name, str) and name in names:
        known = script.constant(value)
        text = str(known.value) if known is not None else None
        is_written = known is not None and known.script is script and script.source.contains(node, known.node)
        yield Setting(script, node, key, name, text, is_written)


def intent_of(setting: Setting) -> Intent:
    """When a variable is set, and set so: what an option decides is chosen."""
    found = intent.of(setting.script, setting.node)
    return found if setting.is_written else min(found, Intent.CHOSEN)


def is_undone(setting: Setting) -> bool:
    """Whether a line further down sets the variable to something else, or takes it away."""
    again = (other.node for other in settings(setting.script, setting.name) if other.value != setting.value)
    return intent.is_undone(setting.script, setting.node, (*again, *_removals(setting.script, setting.name)))


def _removals(script: Script, name: str) -> Iterator[syntax.Node]:
    for call in script.calls(f"{_ENVIRON}.pop", "os.unsetenv"):
        if call.args and _says(script, call.args[0].value, name):
            yield call
    for statement in script.source.of(syntax.Del):
        key = _key_of(script, statement.target)
        if key is not None and _says(script, key, name):
            yield statement


def _says(script: Script, expression: syntax.BaseExpression, name: str) -> bool:
    said = script.constant(expression)
    return said is not None and said.value == name


def may_be_read(script: Script, name: str) -> bool:
    """Whether the program names the variable anywhere but where it sets it."""
    return any(_mentions(one, name) for one in script.everywhere(name.encode()))


def _mentions(script: Script, name: str) -> bool:
    keys = {setting.key for setting in settings(script, name)}
    return any(
        string.evaluated_value == name and string not in keys and not _is_stored_under(script, string)
        for string in script.source.of(syntax.SimpleString)
    )


def _is_stored_under(script: Script, string: syntax.SimpleString) -> bool:
    """Whether something is only stored under the name, as in ``other["NAME"] = "1"``."""
    index = script.source.parents[string]
    subscript = script.source.enclosing(string, syntax.Subscript)
    return isinstance(index, syntax.Index) and isinstance(script.source.parents.get(subscript or index), syntax.AssignTarget)
