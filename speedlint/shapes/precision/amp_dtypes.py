"""The half precisions that a program's autocast may compute in, and the loss scalers that go with them."""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.solve.names import Binding, Kind
from speedlint.source import is_none
from speedlint.torch import library

BFLOAT16, FLOAT16 = "torch.bfloat16", "torch.float16"
_ALIASES = {"torch.half": FLOAT16, "torch.float": "torch.float32", "torch.double": "torch.float64"}
_MARKS = (b"autocast", b"float16", b"half")
_DEPTH = 6


def of_program(script: Script) -> list[set[str]] | None:
    """The dtypes that each of the program's autocasts may have; None where one is not known, or where there is none."""
    found: list[set[str]] = []
    for place in script.everywhere(*_MARKS):
        if _is_cast_by_hand(place):
            return None
        for call in place.calls(*library.AUTOCASTS):
            if not _is_off(place, call):
                of_one = _of_autocast(place, call)
                if of_one is None:
                    return None
                found.append(of_one)
    return found or None


def _of_autocast(script: Script, call: syntax.Call) -> set[str] | None:
    if script.hides_arguments(call):
        return None
    dtype = script.argument(call, "dtype", 1)
    if isinstance(dtype, syntax.IfExp):
        return _all_of([_of_argument(script, dtype.body), _of_argument(script, dtype.orelse)])
    return _of_argument(script, dtype)


def _of_argument(script: Script, dtype: syntax.BaseExpression | None) -> set[str] | None:
    return {FLOAT16} if dtype is None or is_none(dtype) else dtypes(script, dtype)


def _is_off(script: Script, call: syntax.Call) -> bool:
    old = (script.name(call.func) or "").endswith(".amp.autocast") and script.name(call.func) != "torch.amp.autocast"
    enabled = script.argument(call, "enabled", 0 if old else 2)
    known = script.constant(enabled) if enabled is not None else None
    return known is not None and known.value is False and isinstance(enabled, syntax.Name)


def _is_cast_by_hand(script: Script) -> bool:
    """Whether a script turns modules or tensors to float16 itself."""
    if any(not call.args for call in script.method_calls("half")):
        return True
    return any(
        script.name(arg.value) in (FLOAT16, "torch.half") for call in script.method_calls("to", "type") for arg in call.args
    )


def dtypes(script: Script, expression: syntax.BaseExpression, depth: int = _DEPTH) -> set[str] | None:
    """The dtypes an expression may stand for; None where that is not known."""
    if depth == 0:
        return None
    if isinstance(expression, syntax.IfExp):
        return _all_of([dtypes(script, expression.body, depth - 1), dtypes(script, expression.orelse, depth - 1)])
    if isinstance(expression, syntax.Name) and (bindings := script.names.reaching(expression)):
        return _all_of([_of_binding(script, binding, depth) for binding in bindings])
    name = script.name(expression)
    if name in library.DTYPES:
        return {_ALIASES.get(name, name)}
    if isinstance(expression, syntax.Attribute):
        owner = script.value(expression.value).definition
        assigned = script.roles.self_assignments(owner, expression.attr.value) if owner is not None else ()
        given = [dtypes(place, value, depth - 1) for place, value in assigned]
        return _all_of(given) if given else None
    return None


def _of_binding(script: Script, binding: Binding, depth: int) -> set[str] | None:
    if binding.kind is Kind.IMPORT and binding.dotted in library.DTYPES:
        return {_ALIASES.get(binding.dotted, binding.dotted)}
    if binding.kind is Kind.PARAMETER and isinstance(binding.node, syntax.Param):
        return _of_parameter(script, binding.node, depth)
    if binding.kind is not Kind.ASSIGN or binding.path or binding.value is None:
        return None
    return dtypes(script, binding.value, depth - 1)


def _of_parameter(script: Script, parameter: syntax.Param, depth: int) -> set[str] | None:
    passed = script.values.passed(parameter)
    given = [(script, parameter.default) if value is None else (other, value) for other, value in passed]
    known = [dtypes(other, value, depth - 1) if value is not None else None for other, value in given]
    return _all_of(known) if known else None


def _all_of(found: list[set[str] | None]) -> set[str] | None:
    known = [each for each in found if each is not None]
    return set().union(*known) if len(known) == len(found) else None


# Scalers


def enabled(script: Script, scaler: syntax.Call) -> syntax.BaseExpression | None:
    """What the ``enabled`` of a scaler is, None where it is left to its default."""
    old = script.name(scaler.func) != "torch.amp.GradScaler"
    return script.argument(scaler, "enabled", 4 if old else 5)


def may_be_on(script: Script, scaler: syntax.Call) -> bool:
    """Whether a scaler may be enabled, as far as is seen."""
    given = enabled(script, scaler)
    if script.hides_arguments(scaler):
        return False
    known = script.constant(given) if given is not None else None
    return known is None or known.value is not False


def asks_for_dtype(script: Script, scaler: syntax.Call) -> bool:
    """Whether a scaler is only made or enabled where a condition that speaks of the precision holds."""
    return any(_speaks_of_dtype(*test) for test in _conditions(script, scaler))


def _conditions(script: Script, scaler: syntax.Call) -> Iterator[tuple[Script, syntax.Node]]:
    given = enabled(script, scaler)
    if given is not None:
        yield script, given
        yield from script.roles.origins(given)
    for up in script.source.ancestors(scaler):
        if isinstance(up, (syntax.If, syntax.IfExp)):
            yield script, up.test
            for name in script.source.inside(up.test, syntax.Name):
                yield from ((script, each.value) for each in script.names.reaching(name) if each.value is not None)


def _speaks_of_dtype(script: Script, test: syntax.Node) -> bool:
    text = script.text(test).lower()
    return any(word in text for word in ("dtype", "16", "half", "scal"))
