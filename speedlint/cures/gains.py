"""Whether a read's way out gains anything: no other wait in the same step stays behind it."""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.cures import throttling
from speedlint.cures.deferral import keep_on_device
from speedlint.cures.gathering import copy_once
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Edit
from speedlint.shapes.sync import conditions, displays, reads
from speedlint.shapes.sync.companions import Read, runs_with
from speedlint.solve.loops import Loop
from speedlint.solve.names import Kind
from speedlint.torch.methods import CASTS, MOVES, RESHAPES

_SAME = RESHAPES | CASTS | MOVES | {"detach", "clone", "numpy"}


def check_gain(script: Script, read: syntax.Node, tensor: syntax.BaseExpression, *, throttling: bool = False) -> None:
    """Raises CannotEdit where the tensor is read in the same step a second time, in a way that stays.

    A display stays, unless fixes that show it less often (``throttling``) are made too.
    """
    loop = script.loops.driving_loop(read)
    if loop is None:
        return
    for other, seen in _reads_of_loop(script, loop):
        beside = not script.source.contains(read, other) and not script.source.contains(other, read)
        if not beside or not _is_of(script, tensor, seen) or not runs_with(script, other, read):
            continue
        if not (throttling and _can_be_throttled(script, other)) and _stays(script, other, seen):
            line = script.source.line(other)
            raise CannotEdit(f"`{reads.shown(script, other)}` on line {line} waits for it in the same step")


def check_gain_of_display(script: Script, display: syntax.Call | syntax.Assign, tensor: syntax.BaseExpression) -> None:
    """Raises CannotEdit where something a display shows is read in the same step by what is no display."""
    check_gain(script, display, tensor, throttling=True)
    for call in script.source.inside(display, syntax.Call):
        other = reads.scalar(script, call)
        if other is not None:
            check_gain(script, display, other, throttling=True)


def throttled(script: Script, display: syntax.Call | syntax.Assign, read: Read) -> tuple[Edit, ...]:
    """Shows a display every few steps, under one ``if`` with those right above and below it that can be shown so too.

    ``read`` gives the tensors that a display waits for. Raises CannotEdit.
    """
    line = script.source.enclosing(display, syntax.SimpleStatementLine)
    alone = throttling.throttled(script, display)
    block = script.source.parents[line] if line is not None else None
    if line is None or not isinstance(block, syntax.IndentedBlock):
        return alone
    first = last = block.body.index(line)
    while first and _can_join(script, block.body[first - 1], read):
        first -= 1
    while last + 1 < len(block.body) and _can_join(script, block.body[last + 1], read):
        last += 1
    return throttling.every_few_steps(script, block.body[first], block.body[last])


def _can_join(script: Script, line: syntax.Node, read: Read) -> bool:
    """Whether a line is a display that waits and can be shown every few steps, and says nothing to speedlint."""
    match line:
        case syntax.SimpleStatementLine(body=[syntax.Expr(value=syntax.Call() as display)]):
            is_shown = displays.is_display(script, display)
        case syntax.SimpleStatementLine(body=[syntax.Assign() as display]):
            is_shown = displays.display_around(script, display.value) is display
        case _:
            return False
    start, end = (script.source.position(offset)[0] for offset in script.source.span(line))
    if not is_shown or any("speedlint:" in script.source.line_text(each) for each in range(start, end + 1)):
        return False
    tensors = list(read(script, display))
    try:
        throttling.throttled(script, display)
        for tensor in tensors:
            check_gain_of_display(script, display, tensor)
    except CannotEdit:
        return False
    return bool(tensors)


def _reads_of_loop(script: Script, loop: Loop) -> Iterator[tuple[syntax.BaseExpression, syntax.BaseExpression]]:
    """The reads in a loop's body, each with the tensor it waits for."""
    inside, body = script.source.inside, loop.body
    for call in inside(body, syntax.Call):
        tensor = reads.scalar(script, call) or reads.copied(script, call)
        if tensor is not None:
            yield call, tensor
        elif displays.is_display(script, call):
            yield from ((call, shown) for shown in displays.shown_tensors(script, call))
    texts: list[syntax.BaseExpression] = [
        *inside(body, syntax.Call),
        *inside(body, syntax.FormattedString),
        *inside(body, syntax.BinaryOperation),
    ]
    for text in texts:
        yield from ((text, shown) for shown in displays.formatted_tensors(script, text))
    yield from ((test, test) for _, test in conditions.within(script, body))


def _is_of(script: Script, tensor: syntax.BaseExpression, other: syntax.BaseExpression) -> bool:
    """Whether ``other`` is the tensor, or is computed from the variable that holds it, or was added up in it."""
    held = list(_variables(script, tensor))
    if not held:
        return script.text(_root(tensor)) == script.text(_root(other))
    return any(
        name.value == mine.value and any(binding in script.names.reaching(mine) for binding in script.names.reaching(name))
        for name in script.source.inside(other, syntax.Name)
        for mine in held
    )


def _variables(script: Script, tensor: syntax.BaseExpression) -> Iterator[syntax.Name]:
    """The variables a tensor is read from, and for a sum what it adds up: ``loss`` of ``total += loss.detach()``."""
    for name in _operands_of(script, tensor):
        yield name
        for binding in script.names.reaching(name):
            if (
                binding.value is not None
                and not binding.path
                and (binding.kind is Kind.AUGMENT or isinstance(binding.value, syntax.BinaryOperation))
            ):
                yield from _operands_of(script, binding.value)


def _operands_of(script: Script, tensor: syntax.BaseExpression) -> Iterator[syntax.Name]:
    match _root(tensor):
        case syntax.BinaryOperation(left=left, right=right):
            yield from _operands_of(script, left)
            yield from _operands_of(script, right)
        case syntax.Name() as name if script.is_device_tensor(name):
            yield name


def _root(tensor: syntax.BaseExpression) -> syntax.BaseExpression:
    while True:
        match tensor:
            case syntax.Call(func=syntax.Attribute(value=inner, attr=syntax.Name(value=method))) if method in _SAME:
                tensor = inner
            case syntax.Attribute(value=inner, attr=syntax.Name(value="data")):
                tensor = inner
            case _:
                return tensor


def _can_be_throttled(script: Script, other: syntax.BaseExpression) -> bool:
    is_shown = isinstance(other, syntax.Call) and displays.is_display(script, other)
    display = other if is_shown else displays.display_around(script, other)
    try:
        return isinstance(display, syntax.Call | syntax.Assign) and bool(throttling.throttled(script, display))
    except CannotEdit:
        return False


def _stays(script: Script, other: syntax.BaseExpression, tensor: syntax.BaseExpression) -> bool:
    if not isinstance(other, syntax.Call):
        return True
    try:
        if reads.scalar(script, other) is not None:
            keep_on_device(script, other, tensor)
        elif reads.copied(script, other) is None:
            return True
        elif not reads.is_read_as_number(script, reads.chain(script, other)):
            copy_once(script, other, tensor)
    except CannotEdit:
        return True
    return False
