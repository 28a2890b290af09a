"""What is known of one line of a file: of each of its expressions, how often it runs, and why. What `speedlint ask` says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from speedlint import target
from speedlint.ask.program import Program
from speedlint.ask.script import Options, Script
from speedlint.config import Settings
from speedlint.diagnostic import Place
from speedlint.errors import UserError
from speedlint.facts import syntax
from speedlint.shapes import entry
from speedlint.solve.configs import Entry
from speedlint.solve.terms import Constant, Value
from speedlint.torch.words import Frequency, Role
from speedlint.torch.words import Place as Where

_NAMING = (syntax.ImportAlias, syntax.AsName, syntax.NameItem, syntax.ImportFrom, syntax.FunctionDef, syntax.ClassDef)
"""What names stand right below that are no expressions of their own."""
_CALLED = frozenset({Role.MODULE, Role.INSTANCE})
"""What is an object of its own where it is called; of a function its call says all."""
_WRITTEN = frozenset({Role.NUMBER, Role.NONE})
"""What ``True``, ``False`` and ``None`` are, which Python takes for names."""
_LOOPS = {
    Frequency.STEP: "each turn of this loop is a training step",
    Frequency.EVAL_STEP: "each turn of this loop is an evaluation step",
    Frequency.EPOCH: "each turn of this loop is an epoch",
}
_APART = "each turn of this loop is a training step, but in the passes in which this runs"
_LIMITS = {
    Frequency.EVAL_STEP: "in evaluation only",
    Frequency.THROTTLED: "every so many turns only",
    Frequency.EPOCH: "once or so in a whole loop",
    Frequency.ONCE: "once at most",
}


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of an expression. Lines and columns count from 1; the end column is the one after the last character.

    Attributes:
        constant: the value that it has before the script runs, alone in a tuple; an empty one where it is not known.
        set_at: where that value is set.
        name: the full name of the library's object that it stands for or calls.
        definition: the first-party function or class that it stands for, calls, or is an instance of.
        made: the call that made the object, or the loader that a tensor came from.
    """

    text: str
    line: int
    column: int
    end_line: int
    end_column: int
    role: Role
    place: Where
    constant: tuple[object, ...]
    set_at: Place | None
    name: str | None
    definition: Place | None
    made: Place | None
    frequency: Frequency


@dataclass(frozen=True, slots=True)
class Line:
    """What is known of a line.

    Attributes:
        frequency: how often what stands on it runs; None where there is no code.
        why: the conditions, calls and loops that make it so, from the line outwards.
        callers: all calls that make it run as often as it does.
        on_gpu: whether the program shows that it trains on a GPU.
    """

    path: Path
    number: int
    text: str
    frequency: Frequency | None
    why: tuple[Place, ...]
    callers: tuple[Place, ...]
    on_gpu: bool
    expressions: tuple[Known, ...]


def ask(path: Path, number: int, column: int | None, settings: Settings) -> Line:
    """What is known of a line, and of its expressions, or of those around a column.

    Raises UserError for a line that the file does not have, SourceError and OSError for a file that cannot be read.
    """
    options = Options(target.find(settings, path.absolute().parent).release, settings.amp)
    script = Program(options, asked=(path,)).script(path)
    lines = len(script.source.data.splitlines())
    if not 1 <= number <= lines:
        what = f"name one from 1 to {lines}" if lines else "it is empty"
        raise UserError(f"{path}:{number}: is no line of this file; {what}")
    nodes = [node for node in _expressions(script, number) if column is None or _covers(script, node, number, column)]
    first = nodes[0] if nodes else _statement(script, number)
    return Line(
        path,
        number,
        script.source.line_text(number),
        script.frequency(first) if first is not None else None,
        tuple(_why(script, first)) if first is not None else (),
        tuple(_callers(script, first)) if first is not None else (),
        script.on_gpu,
        tuple(_known(script, node) for node in nodes),
    )


# Which expressions


def _expressions(script: Script, number: int) -> list[syntax.Node]:
    """The expressions that begin on a line, or else the innermost one that goes through it, in source order."""
    nodes: list[syntax.Node] = [
        node for node in _around(script, number) if isinstance(node, (syntax.BaseExpression, syntax.Param))
    ]
    begun = [node for node in nodes if script.source.line(node) == number and _is_value(script, node)]
    return begun or [node for node in nodes if _goes_through(script, node, number) and _is_value(script, node)][-1:]


def _around(script: Script, number: int) -> Iterator[syntax.Node]:
    """The nodes of the file's statement that a line is part of, in source order."""
    source = script.source
    ends = (each for each in source.module.body if source.position(source.span(each).end)[0] >= number)
    statement = next(ends, None)
    if statement is not None:
        yield from map(source.tree.node, range(statement.row, source.last(statement) + 1))


def _is_value(script: Script, node: syntax.Node) -> bool:
    """Whether a node is an expression with a value of its own, not a part of a name, a string or an annotation."""
    if isinstance(node, (syntax.Param, syntax.StarredElement)):
        return isinstance(node, syntax.Param)
    up = script.source.parents[node]
    match up:
        case syntax.Call(func=func):
            return func is not node or script.role(func) in _CALLED
        case syntax.Attribute(attr=attr):
            return attr is not node and script.name(up) is None
        case syntax.Arg(keyword=keyword):
            return keyword is not node
    if isinstance(up, (syntax.Param, syntax.ConcatenatedString, *_NAMING)):
        return isinstance(up, syntax.Param) and up.default is node
    return script.source.enclosing(node, syntax.Annotation) is None


def _goes_through(script: Script, node: syntax.Node, number: int) -> bool:
    start, end = (script.source.position(offset)[0] for offset in script.source.span(node))
    return start < number <= end


def _covers(script: Script, node: syntax.Node, line: int, column: int) -> bool:
    start, end = (script.source.position(offset) for offset in script.source.span(node))
    return start <= (line, column) < end


def _statement(script: Script, number: int) -> syntax.Node | None:
    """The last statement that begins on a line, such as a ``break``."""
    kinds = (syntax.BaseStatement, syntax.BaseSmallStatement)
    found = [each for each in _around(script, number) if isinstance(each, kinds) and script.source.line(each) == number]
    return found[-1] if found else None


# What is known of one


def _known(script: Script, node: syntax.Node) -> Known:
    start, end = script.source.span(node)
    value = _value(script, node)
    constant = script.values.constant(node)
    definition = _definition(script, node, value)
    return Known(
        script.text(node),
        *script.source.position(start),
        *script.source.position(end),
        value.role,
        value.place,
        (constant.value,) if constant is not None and not isinstance(constant.value, Entry) else (),
        _set_at(constant) if constant is not None and constant.node is not node else None,
        _name(script, node) if definition is None else None,
        definition,
        _made(script, node, value),
        script.frequency(node),
    )


def _value(script: Script, node: syntax.Node) -> Value:
    """The value of an expression, or what a name that is bound here holds from here on."""
    if isinstance(node, (syntax.Name, syntax.Param)):
        return script.roles.given(node) or script.value(node)
    return script.value(node)


def _set_at(constant: Constant) -> Place:
    if constant.entry is not None:
        return Place(constant.entry.path, constant.entry.line, "set here")
    return Place(constant.script.path, constant.script.source.line(constant.node), "set here")


def _name(script: Script, node: syntax.Node) -> str | None:
    stands = node.func if isinstance(node, syntax.Call) else node
    is_named = isinstance(stands, (syntax.Name, syntax.Attribute)) and script.role(stands) not in _WRITTEN
    return script.name(stands) if is_named else None


def _made(script: Script, node: syntax.Node, value: Value) -> Place | None:
    made = value.made
    if made is None or made.call is node:
        return None
    how = "from" if value.role in (Role.TENSOR, Role.BATCH) else "made by"
    return _place(made.script, made.call, f"{how} `{made.script.text(made.call.func)}`")


def _definition(script: Script, node: syntax.Node, value: Value) -> Place | None:
    called = script.callee(node) if isinstance(node, syntax.Call) else None
    if called is not None:
        return _place(called.script, called.node, f"calls `{called.name}`")
    named = script.definition(node)
    if named is not None:
        return _place(named.script, named.node, f"`{named.name}`")
    made = value.definition
    return _place(made.script, made.node, f"an instance of `{made.name}`") if made is not None else None


def _place(script: Script, node: syntax.Node, message: str) -> Place:
    return Place(script.path, script.source.line(node), message)


# How often it runs, and why


def _callers(script: Script, node: syntax.Node) -> list[Place]:
    """The calls that make a node run as often as it does, where no loop of its own function decides."""
    found = script.loops.callers(node) if _loop(script, node) is None else []
    return [_place(other, call, "called here") for other, call in found]


def _loop(script: Script, node: syntax.Node) -> syntax.For | syntax.While | None:
    """The loop in the node's own function that decides how often it runs."""
    child = node
    for up in script.source.ancestors(node):
        if isinstance(up, syntax.FunctionDef) and child is up.body:
            return None
        if isinstance(up, (syntax.For, syntax.While)) and child is up.body and script.loops.kind(up) is not None:
            return up
        child = up
    return None


def _why(script: Script, node: syntax.Node) -> Iterator[Place]:
    """The conditions, the call and the loop that decide how often a node runs, from the node outwards."""
    seen: set[syntax.Node] = set()
    while node not in seen:
        seen.add(node)
        loop = _loop(script, node)
        yield from _limits(script, node, loop)
        if loop is not None:
            kind = script.loops.kind(loop) or Frequency.EPOCH
            if kind is Frequency.EPOCH and script.frequency(loop) is Frequency.STEP:
                yield _place(script, loop, "this loop is run in every training step")
                node = loop
                continue
            apart = kind is Frequency.STEP and script.loops.is_apart_from_training(loop, node)
            yield _place(script, loop, _APART if apart else _LOOPS[kind])
            return
        callers = script.loops.callers(node)
        if not callers:
            yield from _uncalled(script, node)
            return
        script, node = callers[0]
        yield _place(script, node, "called here")


def _limits(script: Script, node: syntax.Node, loop: syntax.Node | None) -> Iterator[Place]:
    """The conditions around a node, in its own function and in the loop that decides, that let it run more rarely."""
    child = node
    for up in script.source.ancestors(node):
        if up is loop or (isinstance(up, syntax.FunctionDef) and child is up.body):
            return
        limit = script.loops.guards.limit(up, child)
        if limit is not Frequency.STEP:
            yield _place(script, up, f"{_condition(up)}: {_LIMITS[limit]}")
        child = up


def _condition(up: syntax.Node) -> str:
    match up:
        case syntax.IndentedBlock():
            return "after a `continue` in this block"
        case syntax.ExceptHandler():
            return "when this exception is caught"
        case syntax.Else():
            return "when the condition above does not hold"
    return "under this condition"


def _uncalled(script: Script, node: syntax.Node) -> Iterator[Place]:
    function = script.function(node)
    if function is None:
        return
    if entry.is_never_called(script, node):
        yield _place(script, function, f"nothing in this program calls `{function.name.value}`")
    elif script.loops.of_function(function) is not Frequency.ONCE:
        yield _place(script, function, f"a framework calls `{function.name.value}` in each step")
    elif not script.call_sites(function):
        yield _place(script, function, f"no call of `{function.name.value}` is seen")
