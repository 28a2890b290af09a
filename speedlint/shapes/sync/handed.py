"""Functions that read on the host what they are handed: a meter or a logger that takes numbers of one caller and tensors of
another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.solve.flow import listed_once
from speedlint.solve.guards import deciding_tests
from speedlint.torch.words import FREQUENT, Role

_READING = frozenset({"float", "int", "math.isnan", "math.isinf", "math.isfinite"})
_READING_METHODS = frozenset({"item"})
_TENSORS = frozenset({"torch.Tensor", "torch.autograd.Variable"})


class Read(NamedTuple):
    """A place of a function where the host waits if a tensor on the GPU is handed to a parameter."""

    script: Script
    node: syntax.Node
    parameter: syntax.Param


@listed_once
def within(script: Script, function: syntax.FunctionDef) -> Iterator[Read]:
    """The reads of a function itself, in source order, of parameters that may be a number as well as a tensor."""
    parameters = (*function.params.posonly_params, *function.params.params, *function.params.kwonly_params)
    for parameter in parameters:
        given = script.roles.given(parameter)
        if given is None or given.role is not Role.UNKNOWN:
            continue
        kept = set(_kept(script, function, parameter))
        for call in script.source.inside(function.body, syntax.Call):
            read = _read(script, call)
            if read is None or script.function(call) is not function or script.frequency(call) not in FREQUENT:
                continue
            is_read = _is(script, read, parameter) or (isinstance(read, syntax.Attribute) and script.text(read) in kept)
            if is_read and _runs_for_tensors(script, function, call, parameter):
                yield Read(script, call, parameter)
        for comprehension in script.source.inside(function.body, syntax.CompFor):
            test = _test_of_elements(script, comprehension, parameter)
            if test is None or script.frequency(comprehension) not in FREQUENT:
                continue
            if _runs_for_tensors(script, function, comprehension, parameter):
                yield Read(script, test, parameter)


def _test_of_elements(
    script: Script, comprehension: syntax.CompFor, parameter: syntax.Param
) -> syntax.BaseExpression | None:
    """What a comprehension over all elements of what was handed asks of each of them: it waits for each in turn."""
    if not _is(script, comprehension.iter, parameter) or not isinstance(comprehension.target, syntax.Name):
        return None
    for condition in comprehension.ifs:
        names = script.source.inside(condition.test, syntax.Name)
        if any(name.value == comprehension.target.value for name in names) and not _asks_no_value(script, condition.test):
            return condition.test
    return None


def _asks_no_value(script: Script, test: syntax.BaseExpression) -> bool:
    """Whether a test may be met by what an element is, and not by its value: ``x is None``, ``isinstance(x, Tensor)``."""
    compared = script.source.inside(test, syntax.ComparisonTarget)
    is_identity = any(isinstance(each.operator, syntax.Is | syntax.IsNot) for each in compared)
    return is_identity or any(True for _ in script.source.inside(test, syntax.Call))


def behind(script: Script, call: syntax.Call) -> list[Read]:
    """The reads behind a call, of tensors on the GPU that it hands on."""
    callee = script.callee(call)
    if callee is None or not isinstance(callee.node, syntax.FunctionDef):
        return []
    function, place = callee.node, callee.script
    return [
        each
        for each in within(place, function)
        if (given := place.values.given(function, each.parameter, script, call)) is not None
        and script.is_shown_device_tensor(given)
    ]


def _read(script: Script, call: syntax.Call) -> syntax.BaseExpression | None:
    """What a call reads on the host if it is a tensor."""
    match call:
        case syntax.Call(func=func, args=[syntax.Arg(value=given, keyword=None, star="")]) if script.name(func) in _READING:
            return given
        case syntax.Call(func=syntax.Attribute(value=given, attr=syntax.Name(value=method)), args=[]):
            return given if method in _READING_METHODS else None
    return None


def _is(script: Script, node: syntax.Node, parameter: syntax.Param) -> bool:
    """Whether an expression is what was handed to a parameter, as it was."""
    if not isinstance(node, syntax.Name) or node.value != parameter.name.value:
        return False
    return [binding.node for binding in script.names.reaching(node)] == [parameter]


def _kept(script: Script, function: syntax.FunctionDef, parameter: syntax.Param) -> Iterator[str]:
    """The attributes to which a function adds what a parameter is handed, or which it sets to that."""
    for statement in script.source.inside(function.body, syntax.AugAssign):
        names = script.source.inside(statement.value, syntax.Name)
        if isinstance(statement.target, syntax.Attribute) and any(_is(script, name, parameter) for name in names):
            yield script.text(statement.target)
    for assign in script.source.inside(function.body, syntax.Assign):
        if len(assign.targets) == 1 and _is(script, assign.value, parameter):
            yield script.text(assign.targets[0].target)


def _runs_for_tensors(script: Script, function: syntax.FunctionDef, read: syntax.Node, parameter: syntax.Param) -> bool:
    """Whether a read is reached whenever a tensor is handed: all conditions around it ask for that, or for its value, or
    whether a count that is handed beside it is above zero."""
    child = read
    for up in script.source.ancestors(read):
        if up is function:
            return True
        if not all(_lets_tensors_by(script, test, is_met, parameter) for test, is_met in deciding_tests(up, child)):
            return False
        if isinstance(up, syntax.For | syntax.While | syntax.Try | syntax.Lambda):
            return False
        child = up
    return False


def _lets_tensors_by(script: Script, test: syntax.BaseExpression, is_met: bool, parameter: syntax.Param) -> bool:
    match test:
        case syntax.Call(args=[syntax.Arg(value=asked), syntax.Arg(value=kind)]) if script.is_call_to(test, "isinstance"):
            return _is(script, asked, parameter) and _are_tensors(script, kind) is is_met
        case syntax.Comparison(
            left=syntax.Call(args=[syntax.Arg(value=asked)]) as left,
            comparisons=[syntax.ComparisonTarget(operator=syntax.Equal() | syntax.Is(), comparator=kind)],
        ) if script.is_call_to(left, "type"):
            return _is(script, asked, parameter) and _are_tensors(script, kind) is is_met
        case syntax.Call() if (read := _read(script, test)) is not None:
            return _is(script, read, parameter) and not is_met
        case syntax.Comparison(
            left=syntax.Name() as count,
            comparisons=[syntax.ComparisonTarget(operator=syntax.GreaterThan(), comparator=syntax.Integer(value="0"))],
        ):
            return is_met and script.role(count) is Role.NUMBER
    return False


def _are_tensors(script: Script, kind: syntax.BaseExpression) -> bool:
    kinds = [each.value for each in kind.elements] if isinstance(kind, syntax.Tuple) else [kind]
    return any(script.name(each) in _TENSORS for each in kinds)
