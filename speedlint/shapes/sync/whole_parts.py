"""Where the whole part is taken of a number: ``int(100 * x)``, ``x // 1``, ``"%d" % x``. Of a sum that is rounded otherwise
it may be another number."""

from __future__ import annotations

import re
from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.solve.names import Binding

_TAKES = frozenset(
    "int round divmod math.floor math.ceil math.trunc math.modf math.fmod numpy.floor numpy.ceil numpy.trunc numpy.rint "
    "numpy.fix numpy.int32 numpy.int64 numpy.floor_divide numpy.mod".split()
)
_HANDS_ON = frozenset(
    "float min max abs numpy.float32 numpy.float64 numpy.abs numpy.minimum numpy.maximum numpy.clip".split()
)
_METHODS = frozenset("is_integer __int__ __floor__ __trunc__ astype long int".split())
_CONVERSIONS = re.compile(r"%[-+ #0]*\d*(?:\.\d+)?([a-zA-Z%])")
_DEEPEST = 12
"""How many steps a number is followed: some operations, a variable, a function's result, and as many again."""


def taken(script: Script, number: syntax.Node) -> tuple[Script, syntax.Node] | None:
    """Where the whole part of a number is taken, in its function or by those that call it; None where that is not seen."""
    todo: list[tuple[Script, syntax.Node, int]] = [(script, number, _DEEPEST)]
    seen = set[syntax.Node]()
    while todo:
        place, node, depth = todo.pop()
        if node in seen or not depth:
            continue
        seen.add(node)
        if _takes(place, node):
            return place, node
        todo += ((other, then, depth - 1) for other, then in goes_to(place, node))
    return None


def _takes(script: Script, node: syntax.Node) -> bool:
    match up := script.source.parents[node]:
        case syntax.BinaryOperation(left=left, operator=syntax.FloorDivide() | syntax.Modulo() as operator):
            return left is node or (isinstance(operator, syntax.Modulo) and _is_shown_whole(script, left, 0))
        case syntax.Element():
            match parts := script.source.parents[up]:
                case syntax.Tuple(elements=elements):
                    shown = script.source.parents[parts]
                    is_right = isinstance(shown, syntax.BinaryOperation) and shown.right is parts
                    is_format = is_right and isinstance(shown.operator, syntax.Modulo)
                    return is_format and _is_shown_whole(script, shown.left, elements.index(up))
            return False
        case syntax.AugAssign(target=target, operator=syntax.FloorDivideAssign() | syntax.ModuloAssign()):
            return target is node
        case syntax.Attribute(attr=syntax.Name(value=method)):
            return method in _METHODS
        case syntax.Arg():
            call = script.source.parents[up]
            if not isinstance(call, syntax.Call) or script.name(call.func) not in _TAKES:
                return False
            return script.name(call.func) != "round" or len(call.args) == 1
    return False


def _is_shown_whole(script: Script, text: syntax.BaseExpression, place: int) -> bool:
    """Whether a text shows what stands at a place behind its ``%`` as a whole number."""
    known = script.constant(text)
    if known is None or not isinstance(known.value, str):
        return False
    shown = [each for each in _CONVERSIONS.findall(known.value) if each != "%"]
    return place < len(shown) and shown[place] in "di"


def goes_to(script: Script, node: syntax.Node) -> Iterator[tuple[Script, syntax.Node]]:
    """The expressions that are the number too, or are computed from it."""
    match up := script.source.parents[node]:
        case syntax.BinaryOperation() | syntax.UnaryOperation():
            yield script, up
        case syntax.IfExp(test=test) if test is not node:
            yield script, up
        case syntax.Arg():
            call = script.source.parents[up]
            if isinstance(call, syntax.Call) and script.name(call.func) in _HANDS_ON:
                yield script, call
        case syntax.Element() | syntax.DictElement():
            several = script.source.parents[up]
            if isinstance(script.source.parents[several], (syntax.Return, syntax.Assign)):
                yield script, several
        case syntax.Subscript(value=value) if value is node:
            yield script, up
        case syntax.Assign(targets=[syntax.AssignTarget(target=syntax.Name() as name)], value=value) if value is node:
            yield from _uses(script, name)
        case syntax.Return():
            function = script.function(up)
            yield from script.call_sites(function) if function is not None else ()
        case syntax.Assign(targets=[syntax.AssignTarget(target=syntax.Tuple(elements=parts))], value=value) if value is node:
            for part in parts:
                if isinstance(part.value, syntax.Name):
                    yield from _uses(script, part.value)


def _uses(script: Script, name: syntax.Name) -> Iterator[tuple[Script, syntax.Node]]:
    """Where a variable is read that has what is assigned here."""

    def is_this(binding: Binding) -> bool:
        return binding.node is name

    yield from (
        (script, use) for use in script.names.uses(name) if use is not name and any(map(is_this, script.names.reaching(use)))
    )
