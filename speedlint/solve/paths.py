"""The paths of files that expressions name: texts that are written out, what is joined of them, places beside the code."""

from __future__ import annotations

import os.path
import re
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.solve.flow import once
from speedlint.solve.names import Kind

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_SAME = frozenset(
    "str pathlib.Path pathlib.PurePath os.fspath os.path.abspath os.path.realpath os.path.normpath "
    "hydra.utils.to_absolute_path".split()
)
_PLAIN = re.compile(r"""[fF](["'])(?!\1)(?:[^\\{]|\{(?!\{))*\1""")
"""An f-string of one line without escapes, in which a brace begins an expression."""
_ITSELF = ("resolve", "absolute", "as_posix", "expanduser")


@once(None)
def path_of(script: Script, expression: syntax.BaseExpression) -> str | None:
    """The path that an expression is; absolute where it is told from the place of the file, ``Path(__file__).parent / "a"``.
    None where a part of it is not known."""
    match expression:
        case syntax.Name("__file__"):
            return str(script.key)
        case syntax.Attribute(value=inner, attr=syntax.Name("parent")):
            return _above(path_of(script, inner), 1)
        case syntax.Subscript(
            value=syntax.Attribute(value=inner, attr=syntax.Name("parents")),
            slice=[syntax.SubscriptElement(slice=syntax.Index(value=syntax.Integer(value=steps)))],
        ):
            return _above(path_of(script, inner), int(steps, 0) + 1)
        case syntax.BinaryOperation(left=left, operator=syntax.Divide(), right=right):
            return _joined(script, left, right)
        case syntax.Call():
            return _called(script, expression)
        case syntax.FormattedString():
            return _formatted(script, expression)
    known = script.constant(expression)
    if known is not None:
        return known.value if isinstance(known.value, str) else None
    bindings = script.names.reaching(expression) if isinstance(expression, syntax.Name) else []
    value = bindings[0].value if len(bindings) == 1 and bindings[0].kind is Kind.ASSIGN and not bindings[0].path else None
    return path_of(script, value) if isinstance(value, syntax.BaseExpression) else None


def _called(script: Script, call: syntax.Call) -> str | None:
    arguments = [arg.value for arg in call.args if not arg.star and arg.keyword is None]
    if len(arguments) < len(call.args):
        return None
    name = script.name(call.func) or ""
    if name == "os.path.join" or (name in _SAME and arguments):
        return _joined(script, *arguments)
    if name == "os.path.dirname" and len(arguments) == 1:
        return _above(path_of(script, arguments[0]), 1)
    match call.func:
        case syntax.Attribute(value=inner, attr=syntax.Name(value=method)) if method in _ITSELF and not arguments:
            return path_of(script, inner)
        case syntax.Attribute(value=inner, attr=syntax.Name("joinpath")):
            return _joined(script, inner, *arguments)
    return None


def _joined(script: Script, *parts: syntax.BaseExpression) -> str | None:
    found = [path_of(script, part) for part in parts]
    return None if None in found else os.path.join(*(each for each in found if each is not None))  # noqa: PTH118


def _formatted(script: Script, string: syntax.FormattedString) -> str | None:
    whole = script.text(string)
    if _PLAIN.fullmatch(whole) is None:
        return None
    found, rest = "", whole[2:-1]
    for part in string.parts:
        before, _, rest = rest.partition(script.text(part))
        if not isinstance(part, syntax.FormattedStringExpression) or part.format_spec or part.conversion or part.equal:
            return None
        if (value := path_of(script, part.expression)) is None:
            return None
        found += before + value
    return found + rest


def _above(path: str | None, steps: int) -> str | None:
    for _ in range(steps):
        path = os.path.dirname(path) if path else None  # noqa: PTH120
    return path
