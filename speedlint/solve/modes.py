"""Which calls of a function run one of its lines: constants that are passed choose its branches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from speedlint.facts import syntax
from speedlint.solve import reach, truths
from speedlint.solve.flow import once
from speedlint.solve.guards import deciding_tests
from speedlint.solve.truths import Values
from speedlint.source import is_none
from speedlint.torch import library
from speedlint.torch.words import Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_EQUALITIES = (syntax.Equal, syntax.NotEqual, syntax.Is, syntax.IsNot, syntax.In, syntax.NotIn)
_OBJECTS = frozenset({Role.TENSOR, Role.BATCH, Role.ARRAY, Role.MODULE, Role.OPTIMIZER, Role.LOADER, Role.DATASET})
Sites = list[tuple["Script", syntax.Call]]


class Condition(NamedTuple):
    """A test of the function's parameters, and whether it must hold for a line to run."""

    test: syntax.BaseExpression
    is_met: bool


def conditions(script: Script, node: syntax.Node) -> tuple[Condition, ...]:
    """The tests of a function's parameters that decide whether a node of its body runs."""
    return _of_block(script, node) if isinstance(node, syntax.IndentedBlock) else tuple(_conditions(script, node))


@once(())
def _of_block(script: Script, block: syntax.IndentedBlock) -> tuple[Condition, ...]:
    return tuple(_conditions(script, block))


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
            return bool(reach.parameters(script, test))
        case syntax.Call(args=[syntax.Arg(value=syntax.Name() as asked), _]) if script.is_call_to(test, "isinstance"):
            return bool(reach.parameters(script, asked))
        case syntax.UnaryOperation(operator=syntax.Not(), expression=inner):
            return _asks_parameter(script, inner)
        case syntax.BooleanOperation(left=left, right=right):
            return _asks_parameter(script, left) or _asks_parameter(script, right)
        case syntax.Comparison(left=left, comparisons=[syntax.ComparisonTarget(operator=compared)]):
            return isinstance(compared, _EQUALITIES) and _asks_parameter(script, left)
    return False


def reaching(
    script: Script, function: syntax.FunctionDef, asked: tuple[Condition, ...], sites: Iterable[tuple[Script, syntax.Call]]
) -> Sites:
    """Those of a function's calls that pass no constant by which one of ``asked`` is known to fail."""
    return [
        (other, call)
        for other, call in sites
        if not any(
            truths.truth(each.test, _Passed(script, function, other, call).value) is (not each.is_met) for each in asked
        )
    ]


def is_common(script: Script, node: syntax.Node) -> bool:
    """Whether no known call of a node's function passes a constant that rules the node out."""
    function, asked = script.function(node), conditions(script, node)
    if function is None or not asked:
        return True
    sites = script.call_sites(function)
    return len(reaching(script, function, asked, sites)) == len(sites)


def _is_object(script: Script, node: syntax.BaseExpression) -> bool:
    """Whether an expression certainly is an object of PyTorch's or an array, and not None."""
    if script.role(node) not in _OBJECTS:
        return False
    made = [given for _, given in script.roles.origins(node)]
    return bool(made) and not any(is_none(part) for given in made for part in _branches(given))


def _is_plain_tensor(script: Script, node: syntax.BaseExpression) -> bool:
    """Whether an expression certainly is one tensor itself, no packed sequence and no dict or tuple of tensors."""
    made = [each for each in script.roles.origins(node) if not is_none(each[1])]
    return bool(made) and all(isinstance(each, syntax.Call) and _gives_tensor(place, each) for place, each in made)


def _gives_tensor(script: Script, call: syntax.Call) -> bool:
    name = script.name(call.func)
    if name is not None:
        return name in library.FACTORIES
    layer = script.value(call.func)
    return layer.made is not None and layer.made.script.name(layer.made.call.func) in library.LAYERS_OF_ONE_TENSOR


def _branches(node: syntax.BaseExpression) -> Iterator[syntax.BaseExpression]:
    if isinstance(node, syntax.IfExp):
        yield from _branches(node.body)
        yield from _branches(node.orelse)
    else:
        yield node


class _Passed(NamedTuple):
    """One call of a function, in ``caller``."""

    script: Script
    function: syntax.FunctionDef
    caller: Script
    call: syntax.Call

    def value(self, side: syntax.BaseExpression) -> Values | None:
        """The value of a constant, or of the constant that is passed for a parameter; None where it is not known."""
        script, given = self.script, side
        match side:
            case syntax.Name() if script.names.reaching(side):
                parameter = self._parameter(side)
                if parameter is None:
                    return None
                passed = script.values.given(self.function, parameter, self.caller, self.call)
                may_be_left_out = parameter.default is not None and is_none(parameter.default)
                if passed is not None and may_be_left_out and _is_object(self.caller, passed):
                    return (truths.SOME_OBJECT,)
                if passed is None and (passed := parameter.default) is None:
                    return None
                script, given = (script if passed is parameter.default else self.caller), passed
            case syntax.Call(args=[syntax.Arg(value=syntax.Name() as asked), syntax.Arg(value=kind)]) if script.is_call_to(
                side, "isinstance"
            ):
                is_one = self._is_instance(asked, kind)
                return None if is_one is None else (is_one,)
        known = script.loops.guards.fixed(given)
        return (known.value,) if known is not None else None

    def _parameter(self, name: syntax.Name) -> syntax.Param | None:
        """The function's own parameter that a name stands for, if the call shows what it is given."""
        found = reach.parameters(self.script, name)
        if len(found) != 1 or self.caller.hides_arguments(self.call):
            return None
        around = self.script.source.enclosing(found[0], syntax.FunctionDef, syntax.Lambda)
        return found[0] if around is self.function else None

    def _is_instance(self, name: syntax.Name, kind: syntax.BaseExpression) -> bool | None:
        """Whether what is passed for a parameter is of a class; None where that is not known."""
        parameter = self._parameter(name)
        if parameter is None:
            return None
        passed = self.script.values.given(self.function, parameter, self.caller, self.call)
        if passed is None or not _is_plain_tensor(self.caller, passed):
            return None
        kinds = [each.value for each in kind.elements] if isinstance(kind, syntax.Tuple) else [kind]
        names = {self.script.name(each) for each in kinds}
        return True if "torch.Tensor" in names else (False if names <= library.NO_TENSORS else None)
