"""Loops of Python over the parts of an array: one array operation, or one of another language, would go over all of it."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.shapes.data.item_decoding import is_decoded
from speedlint.shapes.data.repeats import Hangs, Run

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_SIZES = frozenset({"shape", "size", "height", "width"})
_MANY = 4


class Walk(enum.Enum):
    """What a loop does in each turn."""

    PIXELS = "one pixel"
    ARRAYS = "several operations on whole arrays"
    MASKS = "one selection by value"


def within(run: Run) -> Iterator[tuple[syntax.For, Walk]]:
    """The loops of a function's own code that go over arrays which are the same each time."""
    for loop in run.script.source.inside(run.function.body, syntax.For):
        if run.script.function(loop) is not run.function or _is_within_loop(run, loop):
            continue
        walk = _walk(run, loop)
        if walk is not None and run.of(loop.iter) is not Hangs.CHANCE and _is_same(run, loop):
            yield loop, walk


def _is_within_loop(run: Run, loop: syntax.For) -> bool:
    around = run.script.source.enclosing(loop, syntax.For, syntax.While, syntax.FunctionDef)
    return isinstance(around, (syntax.For, syntax.While))


def _walk(run: Run, loop: syntax.For) -> Walk | None:
    if any(_is_over_pixels(run, loop, inner) for inner in run.script.source.inside(loop.body, syntax.For)):
        return Walk.PIXELS
    whole = sum(1 for _ in _array_statements(run.script, loop))
    if whole >= _MANY and _counts(run, loop):
        return Walk.ARRAYS
    return Walk.MASKS if any(_selects_by_value(each) for each in _targets(run.script, loop)) else None


def _counts(run: Run, loop: syntax.For) -> bool:
    return run.script.is_call_to(loop.iter, "range")


def _is_over_pixels(run: Run, outer: syntax.For, inner: syntax.For) -> bool:
    """Whether two loops go over the rows and columns of an array and take or set one element in each turn."""
    script = run.script
    if not (isinstance(outer.target, syntax.Name) and isinstance(inner.target, syntax.Name)):
        return False
    if not all(_is_over_size(run, loop.iter) for loop in (outer, inner)):
        return False
    wanted = {outer.target.value, inner.target.value}
    for subscript in script.source.inside(inner.body, syntax.Subscript):
        used = {name.value for element in subscript.slice for name in script.source.inside(element, syntax.Name)}
        if wanted <= used:
            return True
    return False


def _is_over_size(run: Run, iterated: syntax.BaseExpression) -> bool:
    """Whether a loop goes over the rows or columns of a picture: a table of boxes has a shape too, but is small."""
    script = run.script
    if not isinstance(iterated, syntax.Call) or script.name(iterated.func) != "range" or len(iterated.args) != 1:
        return False
    bound = iterated.args[0].value
    if isinstance(bound, syntax.Name):
        values = [binding.value for binding in script.names.reaching(bound) if binding.value is not None and binding.path]
        return any(_names_size(script, value) for value in values)
    if isinstance(bound, syntax.Attribute):
        return bound.attr.value in ("height", "width")
    holder = bound.value if isinstance(bound, syntax.Subscript) else None
    is_shape = isinstance(holder, syntax.Attribute) and holder.attr.value in _SIZES
    return is_shape and isinstance(holder, syntax.Attribute) and is_decoded(run, holder.value, 0)


def _names_size(script: Script, value: syntax.Node) -> bool:
    attributes = [value] if isinstance(value, syntax.Attribute) else list(script.source.inside(value, syntax.Attribute))
    return any(isinstance(each, syntax.Attribute) and each.attr.value in _SIZES for each in attributes)


def _targets(script: Script, loop: syntax.For) -> Iterator[syntax.Subscript]:
    """The parts of arrays that the turns of a loop write."""
    for assign in script.source.inside(loop.body, syntax.AssignTarget):
        if isinstance(assign.target, syntax.Subscript):
            yield assign.target
    for augmented in script.source.inside(loop.body, syntax.AugAssign):
        if isinstance(augmented.target, syntax.Subscript):
            yield augmented.target


def _array_statements(script: Script, loop: syntax.For) -> Iterator[syntax.Subscript]:
    """The writes to many elements at once, through a slice or where a condition holds, and not to one row in each turn."""
    turn = {name.value for name in script.source.inside(loop.target, syntax.Name)}
    for target in _targets(script, loop):
        parts = [name.value for each in target.slice for name in script.source.inside(each, syntax.Name)]
        whole = any(isinstance(each.slice, syntax.Slice) for each in target.slice) or _selects_by_condition(target)
        if whole and not turn.intersection(parts):
            yield target


def _selects_by_condition(target: syntax.Subscript) -> bool:
    return any(
        isinstance(each.slice, syntax.Index) and isinstance(each.slice.value, (syntax.Comparison, syntax.BinaryOperation))
        for each in target.slice
    ) and not _is_number(target)


def _is_number(target: syntax.Subscript) -> bool:
    """Whether an index is computed with numbers, as in ``a[i + 1]``."""
    match target.slice:
        case [syntax.SubscriptElement(slice=syntax.Index(value=syntax.BinaryOperation(operator=operator)))]:
            return not isinstance(operator, (syntax.BitAnd, syntax.BitOr))
    return False


def _selects_by_value(target: syntax.Subscript) -> bool:
    """``labels[mask == value]``."""
    match target.slice:
        case [
            syntax.SubscriptElement(
                slice=syntax.Index(value=syntax.Comparison(comparisons=[syntax.ComparisonTarget(syntax.Equal())]))
            )
        ]:
            return True
    return False


def _is_same(run: Run, loop: syntax.For) -> bool:
    """Whether all that the loop writes and reads is the same each time that the item is read."""
    source = run.script.source
    for assign in source.inside(loop.body, syntax.Assign):
        if run.of(assign.value) is Hangs.CHANCE or run.decided(assign) is Hangs.CHANCE:
            return False
    return all(run.of(target) is not Hangs.CHANCE for target in _targets(run.script, loop))
