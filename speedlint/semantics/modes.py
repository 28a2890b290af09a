"""Which calls of a function run one of its lines: constants that are passed choose its branches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from speedlint.facts import syntax
from speedlint.semantics.guards import deciding_tests
from speedlint.semantics.names import Kind

if TYPE_CHECKING:
    from speedlint.semantics.script import Script

Sites = list[tuple["Script", syntax.Call]]
_EQUAL = (syntax.Equal, syntax.Is)
_UNEQUAL = (syntax.NotEqual, syntax.IsNot)


class Condition(NamedTuple):
    """A test of the function's parameters, and whether it must hold for a line to run."""

    test: syntax.BaseExpression
    is_met: bool


def conditions(script: Script, node: syntax.Node) -> tuple[Condition, ...]:
    """The tests of a function's parameters that decide whether a node of its body runs."""
    nothing: tuple[Condition, ...] = ()
    if isinstance(node, syntax.IndentedBlock):
        return script.once(("conditions", node), lambda: tuple(_conditions(script, node)), nothing)
    return tuple(_conditions(script, node))


def _conditions(script: Script, node: syntax.Node) -> Iterator[Condition]:
    child = node
    for up in script.source.ancestors(node):
        if isinstance(up, (syntax.FunctionDef, syntax.Lambda)):
            return
        for test, is_met in deciding_tests(up, child):
            if _asks_parameter(script, test):
                yield Condition(test, is_met)
        if isinstance(up, syntax.IndentedBlock):
            yield from conditions(script, up)
            return
        child = up


def _asks_parameter(script: Script, test: syntax.BaseExpression) -> bool:
    """Whether a test asks for a parameter that is never bound anew; what else it asks for stays not known."""
    match test:
        case syntax.Name():
            bindings = script.names.reaching(test)
            return bool(bindings) and all(
                each.kind is Kind.PARAMETER and isinstance(each.node, syntax.Param) for each in bindings
            )
        case syntax.UnaryOperation(operator=syntax.Not(), expression=inner):
            return _asks_parameter(script, inner)
        case syntax.BooleanOperation(left=left, right=right):
            return _asks_parameter(script, left) or _asks_parameter(script, right)
        case syntax.Comparison(left=left, comparisons=[syntax.ComparisonTarget(operator=compared)]):
            return isinstance(compared, (*_EQUAL, *_UNEQUAL, syntax.In, syntax.NotIn)) and _asks_parameter(script, left)
    return False


def reaching(
    script: Script, function: syntax.FunctionDef, asked: tuple[Condition, ...], sites: Iterable[tuple[Script, syntax.Call]]
) -> Sites:
    """Those of a function's calls that pass no constant by which one of ``asked`` is known to fail."""
    return [
        (other, call)
        for other, call in sites
        if not any(_holds(_Passed(script, function, other, call), each.test) is (not each.is_met) for each in asked)
    ]


def is_common(script: Script, node: syntax.Node) -> bool:
    """Whether no known call of a node's function passes a constant that rules the node out."""
    function, asked = script.function(node), conditions(script, node)
    if function is None or not asked:
        return True
    sites = script.call_sites(function)
    return len(reaching(script, function, asked, sites)) == len(sites)


class _Passed(NamedTuple):
    """One call of a function, in ``caller``."""

    script: Script
    function: syntax.FunctionDef
    caller: Script
    call: syntax.Call

    def value(self, side: syntax.BaseExpression) -> tuple[object, ...]:
        """The value of a constant, or of the constant that is passed for a parameter, as the one entry; none where it is not
        known."""
        script, given = self.script, side
        if isinstance(side, syntax.Name) and (bound := script.names.reaching(side)):
            parameter = bound[0].node
            if len(bound) > 1 or not isinstance(parameter, syntax.Param) or self.caller.hides_arguments(self.call):
                return ()
            if script.source.enclosing(parameter, syntax.FunctionDef, syntax.Lambda) is not self.function:
                return ()
            passed = script.values.given(self.function, parameter, self.caller, self.call)
            if passed is None and (passed := parameter.default) is None:
                return ()
            script, given = (script if passed is parameter.default else self.caller), passed
        known = script.loops.guards.fixed(given)
        return (known.value,) if known is not None else ()


def _holds(passed: _Passed, test: syntax.BaseExpression) -> bool | None:
    """Whether a test holds in one call; None where that is not known."""
    match test:
        case syntax.UnaryOperation(operator=syntax.Not(), expression=inner):
            held = _holds(passed, inner)
            return None if held is None else not held
        case syntax.BooleanOperation(left=left, operator=joined, right=right):
            deciding = isinstance(joined, syntax.Or)
            sides = (_holds(passed, left), _holds(passed, right))
            return deciding if deciding in sides else None if None in sides else not deciding
        case syntax.Comparison(left=left, comparisons=[syntax.ComparisonTarget(operator=compared, comparator=right)]):
            known, among = passed.value(left), _among(passed, compared, right)
            if not known or not all(among):
                return None
            return (known in among) is isinstance(compared, (*_EQUAL, syntax.In))
    found = passed.value(test)
    return bool(found[0]) if found else None


def _among(passed: _Passed, compared: syntax.BaseCompOp, right: syntax.BaseExpression) -> list[tuple[object, ...]]:
    """The values that one is compared with: one, or those of a tuple, list or set that is written out."""
    if isinstance(compared, (*_EQUAL, *_UNEQUAL)):
        return [passed.value(right)]
    if not isinstance(right, (syntax.Tuple, syntax.List, syntax.Set)):
        return [()]
    return [passed.value(each.value) for each in right.elements]
