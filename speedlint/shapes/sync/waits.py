"""All ways in which a piece of code waits for the GPU in every step and need not: numbers read, copies, displays,
conditions, sizes. Each has a rule of its own; this is what they find, asked of a function as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes.sync import batchwise, conditions, displays, implied, reads, returned, shapes, validated
from speedlint.shapes.sync.accumulators import may_be_overwritten
from speedlint.solve.flow import once
from speedlint.solve.terms import Value
from speedlint.torch.words import FREQUENT, Place, Role

_DEEPEST = 4


class Wait(NamedTuple):
    """One place where the host waits.

    Attributes:
        node: the expression that waits.
        tensor: what it waits for.
        by_library: whether it is for the sake of a library alone, which computes on the host.
    """

    script: Script
    node: syntax.BaseExpression
    tensor: syntax.BaseExpression
    by_library: bool = False

    def is_of_host(self, caller: Script, call: syntax.Call) -> bool:
        """Whether a call hands the function that waits something on the host for the very tensor it waits for."""
        function = self.script.function(self.node)
        if function is None:
            return False
        parameters = [
            each for name in self.script.source.inside(self.tensor, syntax.Name) for each in self._taken_from(name)
        ]
        return any(_hands_host(self.script, function, each, caller, call) for each in parameters)

    def _taken_from(self, name: syntax.Name, depth: int = 0) -> Iterator[syntax.Param]:
        """The parameters that a variable is, or is taken out of: ``v`` in ``for k, v in kwargs.items()``."""
        for binding in self.script.names.reaching(name):
            if isinstance(binding.node, syntax.Param):
                yield binding.node
            elif binding.value is not None and depth < _DEEPEST and (held := _holder(binding.value)) is not None:
                yield from self._taken_from(held, depth + 1)


def _holder(expression: syntax.BaseExpression) -> syntax.Name | None:
    """The variable out of which an expression takes a part; None for any other expression."""
    match expression:
        case syntax.Name():
            return expression
        case syntax.Subscript(value=inner):
            return _holder(inner)
        case syntax.Call(func=syntax.Attribute(value=inner, attr=syntax.Name("items" | "values")), args=[]):
            return _holder(inner)
    return None


def _hands_host(
    script: Script, function: syntax.FunctionDef, parameter: syntax.Param, caller: Script, call: syntax.Call
) -> bool:
    if parameter is function.params.star_kwarg:
        given = caller.roles.by_name(function, call)
        parts = [value for value in (*(part for _, part in given.keys), given.element) if value is not None]
        return bool(parts) and not any(value.role in (Role.TENSOR, Role.BATCH, Role.SEQUENCE) for value in parts)
    value = script.values.given(function, parameter, caller, call)
    return value is not None and _is_host(caller.value(value))


def _is_host(value: Value) -> bool:
    if value.role in (Role.SEQUENCE, Role.MAPPING):
        parts = (*value.items, *(part for _, part in value.keys)) or ((value.element,) if value.element else ())
        return bool(parts) and all(part is not None and _is_host(part) for part in parts)
    return value.place is Place.HOST


@once([])
def within(script: Script, function: syntax.FunctionDef) -> list[Wait]:
    """The waits of a function itself, in source order."""
    found: dict[syntax.BaseExpression, Wait] = {}
    for node, tensor in _candidates(script, function.body):
        if _hangs_on_wait(script, node):
            continue
        if reads.how_often(script, node) in FREQUENT and script.function(node) is function:
            found.setdefault(node, Wait(script, node, tensor))
    return sorted(found.values(), key=lambda wait: script.source.order[wait.node])


def _hangs_on_wait(script: Script, node: syntax.Node) -> bool:
    """Whether a node runs for some values of a device tensor alone: in a branch for which the host has waited already."""
    child = node
    for up in script.source.ancestors(node):
        if isinstance(up, syntax.FunctionDef):
            return False
        if isinstance(up, syntax.If) and child is not up.test and any(True for _ in conditions.asked(script, up)):
            return True
        child = up
    return False


def _implied(
    script: Script, node: syntax.Call | syntax.Subscript
) -> Iterator[tuple[syntax.BaseExpression, syntax.BaseExpression]]:
    read = implied.read(script, node)
    if read is not None and implied.is_needless(script, node, read):
        yield node, read.tensor


def _candidates(script: Script, block: syntax.Node) -> Iterator[tuple[syntax.BaseExpression, syntax.BaseExpression]]:
    for call in script.source.inside(block, syntax.Call):
        yield from _implied(script, call)
        tensor = reads.avoidable_scalar(script, call)
        if tensor is not None:
            yield call, tensor
        tensor = reads.avoidable_copy(script, call)
        if tensor is not None and not may_be_overwritten(script, tensor):
            yield reads.chain(script, call), tensor
        if returned.needed(script, call) is not None:
            yield reads.chain(script, call), call.func.value if isinstance(call.func, syntax.Attribute) else call
        if validated.waits(script, call):
            yield call, call
        gathered = batchwise.row_gather(script, call)
        if gathered is not None:
            yield call, gathered[1]
        if displays.is_display(script, call) and script.on_gpu:
            yield from ((shown, shown) for shown in displays.shown_tensors(script, call))
        if shapes.sized_by_values(script, call) is not None and shapes.is_only_reduced(script, call):
            yield call, call
    for subscript in script.source.inside(block, syntax.Subscript):
        yield from _implied(script, subscript)
        if shapes.sized_by_values(script, subscript) is not None and (
            shapes.is_only_reduced(script, subscript)
            or shapes.is_put_back(script, subscript)
            or shapes.is_filled(script, subscript)
        ):
            yield subscript, subscript
    for loop in script.source.inside(block, syntax.For):
        if (apart := batchwise.read_apart(script, loop)) is not None:
            yield apart.first, apart.rows[0]
    for assign in script.source.inside(block, syntax.Assign):
        if (given := returned.stored(script, assign)) is not None:
            yield assign.targets[0].target, given
    for node, test in conditions.within(script, block):
        if not conditions.decides_end(script, node):
            yield test, test
