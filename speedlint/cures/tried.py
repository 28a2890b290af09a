"""Where a program counts on what a read, or a division of the number that it gives, raises; a tensor that stays on the
device raises neither: it may have several elements, and is infinite where it is divided by zero."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from speedlint.ask.script import Script
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.shapes.optimizer.retention import is_differentiated
from speedlint.solve.dtypes import is_scalar
from speedlint.solve.values import returned
from speedlint.source import last_statement
from speedlint.torch.words import FREQUENT

_NAMES_DIVISION = re.compile(rb"ZeroDivisionError|ArithmeticError")
_ALL = frozenset({"Exception", "BaseException"})
_ELSEWHERE = frozenset(
    "KeyboardInterrupt SystemExit GeneratorExit StopIteration StopAsyncIteration ImportError ModuleNotFoundError OSError "
    "FileNotFoundError EOFError KeyError AttributeError AssertionError".split()
)
"""What reading a tensor never raises."""


def check(reads: Sequence[tuple[Script, syntax.BaseExpression]], tensor: syntax.BaseExpression, *, divides: bool) -> None:
    """Raises CannotEdit where a program goes on in its steps after what one of some reads of a tensor may raise: the read
    itself, which is the first, and the calls that lead to it.

    ``divides`` is whether the number is divided by what may be zero, or divides.
    """
    if divides and any(script.program.mentions(script, _NAMES_DIVISION) for script, _ in reads):
        raise CannotEdit("the program counts on a `ZeroDivisionError`, which no tensor raises")
    for script, read in reads:
        for line, kinds in _caught(script, read):
            if (divides and kinds & _ALL) or (kinds - _ELSEWHERE and not _is_one_number(reads[0][0], tensor)):
                raise CannotEdit(f"the step goes on after an error on line {line}, which it no longer raises there")


def _is_one_number(script: Script, tensor: syntax.BaseExpression) -> bool:
    """Whether a tensor certainly has one element, as what a backward pass starts at."""
    return is_scalar(script, tensor) or (isinstance(tensor, syntax.Name) and is_differentiated(script, tensor))


def _caught(script: Script, read: syntax.Node) -> Iterator[tuple[int, set[str]]]:
    """The kinds of errors after which a step goes on around a read, and where it does."""
    for up in script.source.ancestors(read):
        if isinstance(up, syntax.FunctionDef | syntax.Lambda | syntax.ClassDef):
            return
        if isinstance(up, syntax.With) and script.source.contains(up.body, read):
            kinds = {kind for item in up.items for kind in _suppressed(script, item.item)}
        elif isinstance(up, syntax.Try) and script.source.contains(up.body, read):
            going_on = (each for each in up.handlers if not isinstance(last_statement(each.body), syntax.Raise))
            kinds = {kind for each in going_on for kind in _kinds(script, each)}
        else:
            continue
        if kinds and script.frequency(up) in FREQUENT:
            yield script.source.line(up), kinds


def _kinds(script: Script, handler: syntax.ExceptHandler) -> Iterator[str]:
    match handler.type:
        case None:
            yield "Exception"
        case syntax.Tuple(elements=elements):
            yield from (_kind(script, each.value) for each in elements)
        case kind:
            yield _kind(script, kind)


def _kind(script: Script, error: syntax.BaseExpression) -> str:
    return (script.name(error) or script.text(error)).removeprefix("builtins.")


def _suppressed(script: Script, manager: syntax.BaseExpression) -> Iterator[str]:
    """The kinds of errors that a context manager ends: the library's, or any where one of the project's may."""
    made = script.definition(manager.func) if isinstance(manager, syntax.Call) else script.value(manager).definition
    if made is None:
        if isinstance(manager, syntax.Call) and (script.name(manager.func) or "") == "contextlib.suppress":
            yield from (_kind(script, arg.value) for arg in manager.args)
    elif isinstance(made.node, syntax.ClassDef):
        left = script.roles.calls.method(made, "__exit__")
        if left is not None and any(left.script.text(value) not in ("None", "False") for value in returned(left)):
            yield "Exception"
    elif any(
        any(made.script.source.inside(each.body, syntax.Yield)) and each.handlers
        for each in made.script.source.inside(made.node, syntax.Try)
    ):
        yield "Exception"
