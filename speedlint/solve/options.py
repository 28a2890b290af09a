"""Command-line options: which are parsed and read by nothing in the program, but to be printed."""

from __future__ import annotations

from collections.abc import Iterator
from re import Pattern
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.solve.values import PARSERS

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_LOGGERS = frozenset({"print", "info", "debug", "warning", "log", "write", "print_log"})
_WHOLE = ("vars", "dataclasses.asdict")
_SHOWS = ("print", "str", "repr", "json.dumps", "pprint.pprint", "pprint.pformat", "yaml.dump", "argparse.Namespace")


def unused(script: Script, named: Pattern[str]) -> Iterator[tuple[Script, syntax.Call, str]]:
    """The ``add_argument`` calls of the program whose option has such a name and is read nowhere in it.

    None where all options are handed on at once, to where it is not seen what is read.
    """
    found = [
        (place, call, name)
        for place in script.everywhere(b"add_argument")
        for call in place.method_calls("add_argument")
        if (name := place.values.destination(call)) is not None
        and named.search(name)
        and not any(_reads(one, name) for one in script.everywhere(name.encode()))
    ]
    if found and not any(_hands_on(place) for place in script.everywhere()):
        yield from found


def _reads(script: Script, option: str) -> bool:
    read = any(
        attribute.attr.value == option and not _is_printed(script, attribute)
        for attribute in script.source.of(syntax.Attribute)
    )
    return read or any(string.evaluated_value == option for string in script.source.of(syntax.SimpleString))


def _is_printed(script: Script, node: syntax.Node) -> bool:
    for up in script.source.ancestors(node):
        if isinstance(up, syntax.BaseStatement):
            return False
        if isinstance(up, syntax.Call):
            last = up.func.attr.value if isinstance(up.func, syntax.Attribute) else getattr(up.func, "value", "")
            return last in _LOGGERS
    return False


def _hands_on(script: Script) -> bool:
    """Whether the parsed options go somewhere as a whole: ``**vars(args)``, or to a library's function."""
    for call in script.calls(*_WHOLE):
        around = script.source.enclosing(call, syntax.Call)
        if not (isinstance(around, syntax.Call) and _shows(script, around)) and not _is_walked(script, call):
            return True
    if any(attribute.attr.value == "__dict__" for attribute in script.source.of(syntax.Attribute)):
        return True
    return any(_passes_options(script, call) for call in script.source.of(syntax.Call))


def _is_walked(script: Script, call: syntax.Call) -> bool:
    """Whether a call stands in the head of a loop, as in ``for k, v in vars(args).items(): print(k, v)``."""
    return any(isinstance(up, syntax.For) and script.source.contains(up.iter, call) for up in script.source.ancestors(call))


def _passes_options(script: Script, call: syntax.Call) -> bool:
    if (
        _shows(script, call)
        or script.name(call.func) in _WHOLE
        or script.callee(call) is not None
        or script.definition(call.func) is not None
    ):
        return False
    return any(
        isinstance(arg.value, (syntax.Name, syntax.Attribute))
        and any(_is_parsed(value) for _, value in script.roles.origins(arg.value))
        for arg in call.args
    )


def _shows(script: Script, call: syntax.Call) -> bool:
    last = call.func.attr.value if isinstance(call.func, syntax.Attribute) else ""
    return script.name(call.func) in _SHOWS or last in _LOGGERS or last in ("update", "log_hyperparams", "save", "dump")


def _is_parsed(value: syntax.BaseExpression) -> bool:
    return isinstance(value, syntax.Call) and isinstance(value.func, syntax.Attribute) and value.func.attr.value in PARSERS
