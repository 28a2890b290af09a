"""Where single precision does not hold what Python's numbers do: very large and very small factors, large numbers that are
added or taken away, and squares that are subtracted from each other, as in a variance."""

from __future__ import annotations

import math
from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.shapes.sync import whole_parts
from speedlint.solve import reach
from speedlint.solve.folding import Folding, Frame
from speedlint.solve.names import Kind
from speedlint.solve.unpacking import all_written, written
from speedlint.source import is_name

_FARTHEST = 15
"""By how many powers of ten a number may be scaled: single precision ends at 38, and what is scaled is not known."""
_LARGE = 1000.0
"""From where on a number that is added leaves too few of the seven digits."""
_DEEPEST = 12
_SQUARES = frozenset("pow math.pow numpy.square numpy.power".split())
_HALF = "which leaves too few digits in single precision"


def scaled(script: Script, factor: syntax.BaseExpression, *, divides: bool) -> float:
    """By how many powers of ten a factor or divisor scales a number. Raises CannotEdit where numbers in it are too far."""
    kinds = (syntax.Float, syntax.Name, syntax.Attribute)
    known = _power(script, factor)
    parts = [each for kind in kinds for each in script.source.inside(factor, kind)] if known is None else [factor]
    for each in parts:
        check_power(_power(script, each) or 0.0, script.text(each))
    return 0.0 if known is None else -known if divides else known


def check_power(power: float, factors: str) -> None:
    """Raises CannotEdit where factors scale a number too far, by so many powers of ten."""
    if abs(power) > _FARTHEST:
        raise CannotEdit(f"`{factors}` may lead out of the range of single precision")


def is_large(script: Script, number: syntax.BaseExpression) -> bool:
    """Whether a number that is added or subtracted is certainly so large that few digits of the rest are left."""
    known = _number(script, number)
    return known is not None and abs(known) >= _LARGE


def check_offset(script: Script, number: syntax.BaseExpression) -> None:
    """Raises CannotEdit where a large number is added or subtracted."""
    if is_large(script, number):
        raise CannotEdit(f"`{script.text(number)}` is large, {_HALF}")


def check_subtracted(script: Script, number: syntax.Node) -> None:
    """Raises CannotEdit where what is left of a sum, or of what is computed of it, after a subtraction may be its error."""
    todo: list[tuple[Script, syntax.Node, bool, int]] = [(script, number, False, _DEEPEST)]
    seen = set[tuple[syntax.Node, bool]]()
    while todo:
        place, node, squared, depth = todo.pop()
        if (node, squared) in seen or not depth:
            continue
        seen.add((node, squared))
        if (why := _lost(place, node, squared=squared) or _since(place, node, number)) is not None:
            where = f"line {place.source.line(node)}" + (f" of {place.path.name}" if place is not script else "")
            raise CannotEdit(f"{why} on {where}, {_HALF}")
        todo += ((other, then, squares, depth - 1) for other, then, squares in _goes_to(place, node, squared=squared))


def _lost(script: Script, node: syntax.Node, *, squared: bool) -> str | None:
    match script.source.parents[node]:
        case syntax.BinaryOperation(left=left, operator=syntax.Add() | syntax.Subtract() as operator, right=right):
            other = right if left is node else left
            if is_large(script, other):
                return f"`{script.text(other)}` is added"
            if isinstance(operator, syntax.Subtract) and _number(script, other) is None:
                return "squares are subtracted" if squared or _is_square(script, other, 3) else None
        case syntax.AugAssign(operator=syntax.SubtractAssign(), value=value):
            return "squares are subtracted" if squared or _is_square(script, value, 3) else None
    return None


def _since(script: Script, node: syntax.Node, number: syntax.Node) -> str | None:
    """The same of ``total - before``, where ``before`` is what the sum was then."""
    match script.source.parents[node]:
        case syntax.BinaryOperation(left=left, operator=syntax.Subtract(), right=syntax.Name() as before) if left is node:
            kept = filter(None, map(written, script.names.reaching(before)))
            if isinstance(number, syntax.Name) and any(is_name(each, number.value) for each in kept):
                return f"what `{number.value}` was before is subtracted"
    return None


def _goes_to(script: Script, node: syntax.Node, *, squared: bool) -> Iterator[tuple[Script, syntax.Node, bool]]:
    """What is computed of a number, and whether that is a square."""
    up = script.source.parents[node]
    call = script.source.parents[up] if isinstance(up, syntax.Arg) else None
    if isinstance(call, syntax.Call) and script.name(call.func) in _SQUARES:
        yield script, call, True
        return
    callee = script.callee(call) if isinstance(call, syntax.Call) else None
    if callee is not None and isinstance(call, syntax.Call) and isinstance(up, syntax.Arg):
        parameter = reach.parameter_of(script, callee, call, up)
        uses = callee.script.names.uses(parameter) if parameter is not None else []
        yield from ((callee.script, use, squared) for use in uses)
    squares = squared or (isinstance(up, syntax.BinaryOperation) and _multiplies_sums(script, up))
    yield from ((other, then, squares) for other, then in whole_parts.goes_to(script, node))


def _is_square(script: Script, node: syntax.BaseExpression, depth: int) -> bool:
    """Whether an expression is made of a square, or of a product of sums."""
    inside = script.source.inside
    if any(_multiplies_sums(script, each) for each in inside(node, syntax.BinaryOperation)):
        return True
    if any(script.name(call.func) in _SQUARES for call in inside(node, syntax.Call)):
        return True
    return depth > 0 and any(
        _is_square(script, value, depth - 1)
        for name in inside(node, syntax.Name)
        for value in all_written(script.names.reaching(name))
    )


def _multiplies_sums(script: Script, operation: syntax.BinaryOperation) -> bool:
    match operation:
        case syntax.BinaryOperation(left=left, operator=syntax.Power(), right=right):
            return _number(script, left) is None and _number(script, right) != 0.5
        case syntax.BinaryOperation(left=left, operator=syntax.Multiply(), right=right):
            return script.text(left) == script.text(right) or all(_is_of_sum(script, side) for side in (left, right))
    return False


def _is_of_sum(script: Script, node: syntax.BaseExpression, depth: int = 2) -> bool:
    """Whether an expression is made of a sum, by way of variables too."""
    bindings = [each for name in script.source.inside(node, syntax.Name) for each in script.names.reaching(name)]
    return any(binding.kind is Kind.AUGMENT for binding in bindings) or (
        depth > 0 and any(_is_of_sum(script, value, depth - 1) for value in filter(None, map(written, bindings)))
    )


def _power(script: Script, factor: syntax.BaseExpression) -> float | None:
    number = _number(script, factor)
    return math.log10(abs(number)) if number and math.isfinite(number) else None


def _number(script: Script, node: syntax.BaseExpression) -> float | None:
    """What an expression is as a number, as far as that is known before the script runs."""
    known = script.constant(node)
    value = known.value if known is not None else Folding().value(Frame(script), node)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
