"""Loops of Python over the parts of an array: one array operation, or one of another language, would go over all of it."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from speedlint.semantics.data.item_decoding import is_decoded
from speedlint.semantics.data.repeats import Hangs, Run

if TYPE_CHECKING:
    from speedlint.semantics.script import Script

_SIZES = frozenset({"shape", "size", "height", "width"})
_MANY = 4


class Walk(enum.Enum):
    """What a loop does in each turn."""

    PIXELS = "one pixel"
    ARRAYS = "several operations on whole arrays"
    MASKS = "one selection by value"


def within(run: Run) -> Iterator[tuple[cst.For, Walk]]:
    """The loops of a function's own code that go over arrays which are the same each time."""
    for loop in run.script.source.inside(run.function.body, cst.For):
        if run.script.function(loop) is not run.function or _is_within_loop(run, loop):
            continue
        walk = _walk(run, loop)
        if walk is not None and run.of(loop.iter) is not Hangs.CHANCE and _is_same(run, loop):
            yield loop, walk


def _is_within_loop(run: Run, loop: cst.For) -> bool:
    around = run.script.source.enclosing(loop, cst.For, cst.While, cst.FunctionDef)
    return isinstance(around, (cst.For, cst.While))


def _walk(run: Run, loop: cst.For) -> Walk | None:
    if any(_is_over_pixels(run, loop, inner) for inner in run.script.source.inside(loop.body, cst.For)):
        return Walk.PIXELS
    whole = sum(1 for _ in _array_statements(run.script, loop))
    if whole >= _MANY and _counts(run, loop):
        return Walk.ARRAYS
    return Walk.MASKS if any(_selects_by_value(each) for each in _targets(run.script, loop)) else None


def _counts(run: Run, loop: cst.For) -> bool:
    return run.script.is_call_to(loop.iter, "range")


def _is_over_pixels(run: Run, outer: cst.For, inner: cst.For) -> bool:
    """Whether two loops go over the rows and columns of an array and take or set one element in each turn."""
    script = run.script
    if not (isinstance(outer.target, cst.Name) and isinstance(inner.target, cst.Name)):
        return False
    if not all(_is_over_size(run, loop.iter) for loop in (outer, inner)):
        return False
    wanted = {outer.target.value, inner.target.value}
    for subscript in script.source.inside(inner.body, cst.Subscript):
        used = {name.value for element in subscript.slice for name in script.source.inside(element, cst.Name)}
        if wanted <= used:
            return True
    return False


def _is_over_size(run: Run, iterated: cst.BaseExpression) -> bool:
    """Whether a loop goes over the rows or columns of a picture: a table of boxes has a shape too, but is small."""
    script = run.script
    if not isinstance(iterated, cst.Call) or script.name(iterated.func) != "range" or len(iterated.args) != 1:
        return False
    bound = iterated.args[0].value
    if isinstance(bound, cst.Name):
        values = [binding.value for binding in script.names.reaching(bound) if binding.value is not None and binding.path]
        return any(_names_size(script, value) for value in values)
    if isinstance(bound, cst.Attribute):
        return bound.attr.value in ("height", "width")
    holder = bound.value if isinstance(bound, cst.Subscript) else None
    is_shape = isinstance(holder, cst.Attribute) and holder.attr.value in _SIZES
    return is_shape and isinstance(holder, cst.Attribute) and is_decoded(run, holder.value, 0)


def _names_size(script: Script, value: cst.CSTNode) -> bool:
    attributes = [value] if isinstance(value, cst.Attribute) else list(script.source.inside(value, cst.Attribute))
    return any(isinstance(each, cst.Attribute) and each.attr.value in _SIZES for each in attributes)


def _targets(script: Script, loop: cst.For) -> Iterator[cst.Subscript]:
    """The parts of arrays that the turns of a loop write."""
    for assign in script.source.inside(loop.body, cst.AssignTarget):
        if isinstance(assign.target, cst.Subscript):
            yield assign.target
    for augmented in script.source.inside(loop.body, cst.AugAssign):
        if isinstance(augmented.target, cst.Subscript):
            yield augmented.target


def _array_statements(script: Script, loop: cst.For) -> Iterator[cst.Subscript]:
    """The writes to many elements at once, through a slice or where a condition holds, and not to one row in each turn."""
    turn = {name.value for name in script.source.inside(loop.target, cst.Name)}
    for target in _targets(script, loop):
        parts = [name.value for each in target.slice for name in script.source.inside(each, cst.Name)]
        whole = any(isinstance(each.slice, cst.Slice) for each in target.slice) or _selects_by_condition(target)
        if whole and not turn.intersection(parts):
            yield target


def _selects_by_condition(target: cst.Subscript) -> bool:
    return any(
        isinstance(each.slice, cst.Index) and isinstance(each.slice.value, (cst.Comparison, cst.BinaryOperation))
        for each in target.slice
    ) and not _is_number(target)


def _is_number(target: cst.Subscript) -> bool:
    """Whether an index is computed with numbers, as in ``a[i + 1]``."""
    match target.slice:
        case [cst.SubscriptElement(slice=cst.Index(value=cst.BinaryOperation(operator=operator)))]:
            return not isinstance(operator, (cst.BitAnd, cst.BitOr))
    return False


def _selects_by_value(target: cst.Subscript) -> bool:
    """``labels[mask == value]``."""
    match target.slice:
        case [cst.SubscriptElement(slice=cst.Index(value=cst.Comparison(comparisons=[cst.ComparisonTarget(cst.Equal())])))]:
            return True
    return False


def _is_same(run: Run, loop: cst.For) -> bool:
    """Whether all that the loop writes and reads is the same each time that the item is read."""
    source = run.script.source
    for assign in source.inside(loop.body, cst.Assign):
        if run.of(assign.value) is Hangs.CHANCE or run.decided(assign) is Hangs.CHANCE:
            return False
    return all(run.of(target) is not Hangs.CHANCE for target in _targets(run.script, loop))
