"""Programs that run on the CPU as they are shipped: an option that is off by default, and in their own commands, asks for
the GPU."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.semantics import shipped
from speedlint.semantics.terms import Place
from speedlint.semantics.values import option_of

if TYPE_CHECKING:
    from speedlint.semantics.script import Script

_FLAG = re.compile(r"(?:use|enable|with|on)?_?(?:cuda|gpu)", re.IGNORECASE)
_DEVICE = "device"
_NAMES_GPU = re.compile(rb"CUDA_VISIBLE_DEVICES=[\"']?\d")


def runs_on_host(script: Script) -> bool:
    """Whether the commands that the project ships for a program, and the defaults of its options, train on the CPU."""
    return script.once("runs on the host", lambda: _runs_on_host(script), False)


def _runs_on_host(script: Script) -> bool:
    return any(
        _is_left_off(place, option, name) and _decides(script, name)
        for place in script.everywhere(b"add_argument")
        for option in place.method_calls("add_argument")
        if (name := place.values.destination(option)) is not None and (name == _DEVICE or _FLAG.fullmatch(name))
    )


def _is_left_off(script: Script, option: syntax.Call, name: str) -> bool:
    """Whether no default and no command asks for the GPU by an option, and there are commands."""
    default = script.values.default_of(option)
    is_off = default is not None and (default.value == "cpu" if name == _DEVICE else default.value is False)
    if not is_off or not shipped.is_started(script) or _starts_on_gpu(script):
        return False
    given = shipped.given(script, option)
    return all(each == "cpu" for each in given) if name == _DEVICE else not given


def _starts_on_gpu(script: Script) -> bool:
    """Whether a command of the project names the GPU that it is to run on."""
    return any(script.program.disk.mentions(str(path), _NAMES_GPU) for path in shipped.texts(script))


def _decides(script: Script, name: str) -> bool:
    """Whether nothing in a program puts anything on a GPU but where an option is asked, and something does."""
    found = [(place, node) for place in script.everywhere(b"cuda", name.encode()) for node in _puts(place, name)]
    return bool(found) and all(_is_asked(place, node, name) for place, node in found)


def _puts(script: Script, name: str) -> Iterator[syntax.Node]:
    """What puts things on a GPU, or on the device that an option names."""
    for call in script.method_calls("cuda"):
        if script.name(call.func) is None:
            yield call
    for text in script.source.of(syntax.SimpleString):
        if (
            str(text.evaluated_value).startswith("cuda")
            and option_of(script, text) is None
            and not _is_compared(script, text)
        ):
            yield text
    for call in script.calls("torch.device"):
        if call.args and _names(script, call.args[0].value, name):
            yield call
    for call in script.method_calls("to"):
        if (
            call.args
            and script.roles.calls.place_of_move(call, Place.HOST) is not Place.HOST
            and _names(script, call.args[0].value, name)
        ):
            yield call


def _is_compared(script: Script, text: syntax.SimpleString) -> bool:
    return isinstance(script.source.parents[text], (syntax.Comparison, syntax.ComparisonTarget))


def _is_asked(script: Script, node: syntax.Node, name: str) -> bool:
    """Whether an option's value is what is put there, or decides whether it is."""
    child = node
    if not isinstance(node, syntax.SimpleString) and any(
        _names(script, arg.value, name) for arg in getattr(node, "args", ())
    ):
        return True
    for up in script.source.ancestors(node):
        if isinstance(up, (syntax.If, syntax.IfExp)) and child is not up.test and _names(script, up.test, name):
            return True
        if isinstance(up, syntax.BooleanOperation) and _names(script, up.left, name):
            return True
        child = up
    return False


def _names(script: Script, expression: syntax.BaseExpression, name: str) -> bool:
    """Whether an expression, or what it was given, names an option's value."""
    written = [(script, expression), *((place, node) for place, node in script.roles.origins(expression))]
    for part in script.source.inside(expression, syntax.Name):
        written += script.roles.origins(part)
    return any(_says(place, node, name) for place, node in written)


def _says(script: Script, expression: syntax.Node, name: str) -> bool:
    inside = script.source.inside
    attributes = (each for each in inside(expression, syntax.Attribute) if each.attr.value == name)
    variables = (each for each in inside(expression, syntax.Name) if each.value == name)
    is_option = any(script.name(each) is None for each in attributes)
    return is_option or any(not isinstance(script.source.parents[each], syntax.Attribute) for each in variables)
