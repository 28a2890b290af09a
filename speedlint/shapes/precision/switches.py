"""Switches of mixed precision: what decides whether autocast is on, and where its default is written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes.data.loader_settings import label
from speedlint.shapes.frameworks import accelerated
from speedlint.solve.flow import listed_once
from speedlint.solve.names import Kind
from speedlint.solve.terms import Constant
from speedlint.torch import library

_AMP = re.compile(r"amp|fp_?16|bf_?16|half|mixed|autocast", re.IGNORECASE)
APEX = "apex.amp.initialize"
_ENABLED = {APEX: 2, "torch.autocast": 2, "torch.amp.autocast": 2, "torch.cuda.amp.autocast": 0}
_OFF = "no"
"""What an ``Accelerator`` is told to compute in float32."""


class Switch(NamedTuple):
    """A switch that is off.

    Attributes:
        script: the script that would compute in half precision: by autocast, Accelerate or apex.
        call: the call that does.
        setting: the default, where it is written.
    """

    script: Script
    call: syntax.Call
    setting: Constant


def amp_off(script: Script) -> Iterator[Switch]:
    """The mixed precision of a program that is off by default, one for each setting; none where some of it is on.

    The setting has to be named for mixed precision: an option, field, key, parameter or variable.
    """
    found: dict[syntax.Node, Switch] = {}
    for place in script.everywhere(b"autocast", b"mixed_precision", b"apex"):
        for call, off in _under_conditions(place):
            if off is None or (not place.is_call_to(call, *library.AUTOCASTS) and _is_cast(script)):
                return
            for switch in off:
                found.setdefault(switch.setting.node, switch)
    yield from found.values()


@listed_once
def _under_conditions(script: Script) -> Iterator[tuple[syntax.Call, list[Switch] | None]]:
    """The calls of a file that bring in mixed precision, each with the switches that turn it off by default; None where it
    always takes effect."""
    for call in script.calls(*library.AUTOCASTS, *library.ACCELERATORS, APEX):
        if script.is_call_to(call, *library.ACCELERATORS) and accelerated.asked_for(script, call) is None:
            continue
        condition = _condition(script, call)
        settings = _deciding(script, condition) if condition is not None else ()
        off = [each for each in settings if each.value in (False, 0, _OFF) and _AMP.search(_called(each))]
        yield call, [Switch(script, call, each) for each in off] if condition is not None else None


def _is_cast(script: Script) -> bool:
    """Whether a program casts modules or tensors to bfloat16 by hand."""
    return any(place.method_calls("bfloat16") for place in script.everywhere(b".bfloat16("))


def _called(setting: Constant) -> str:
    """What a setting is called."""
    if setting.entry is not None:
        return setting.entry.key
    if isinstance(setting.node, syntax.Call):
        return " ".join(setting.script.text(arg) for arg in setting.node.args if arg.keyword is None)
    return label(setting.script, setting.node)


def _condition(script: Script, call: syntax.Call) -> syntax.BaseExpression | None:
    """What a call takes effect under: its ``enabled``, or the condition around it; None where it always does."""
    if script.is_call_to(call, *library.ACCELERATORS):
        return _asked_for(script, call)
    enabled = script.argument(call, "enabled", _ENABLED.get(script.name(call.func) or ""))
    if enabled is not None and script.text(enabled) != "True":
        return enabled
    child: syntax.Node = call
    for up in script.source.ancestors(call):
        if isinstance(up, (syntax.If, syntax.IfExp)) and child is up.body:
            return up.test
        if isinstance(up, syntax.IndentedBlock) and (left := _left_unless(up, child)) is not None:
            return left
        if isinstance(up, syntax.FunctionDef):
            return None
        child = up
    return None


def _asked_for(script: Script, accelerator: syntax.Call) -> syntax.BaseExpression | None:
    """``half`` of ``Accelerator(mixed_precision="fp16" if half else "no")``, or what gives it the ``"no"``."""
    given = accelerated.asked_for(script, accelerator)
    match given:
        case syntax.IfExp(test=test, orelse=syntax.SimpleString() as otherwise) if otherwise.evaluated_value == _OFF:
            return test
    known = script.constant(given) if given is not None else None
    return given if known is not None and known.value == _OFF else None


def _left_unless(block: syntax.IndentedBlock, child: syntax.Node) -> syntax.BaseExpression | None:
    """``enabled`` where ``if not enabled: return ...`` stands above a statement in its block."""
    for statement in block.body:
        match statement:
            case _ if statement is child:
                return None
            case syntax.If(
                test=syntax.UnaryOperation(operator=syntax.Not(), expression=asked),
                body=syntax.IndentedBlock(body=[*_, syntax.SimpleStatementLine(body=[*_, syntax.Return()])]),
                orelse=None,
            ):
                return asked
    return None


def _deciding(script: Script, test: syntax.BaseExpression) -> list[Constant]:
    """The settings that a condition hangs on, written elsewhere, one for each program: also for ``scaler is not None``."""
    match test:
        case syntax.BooleanOperation(operator=syntax.Or()):
            return []
        case syntax.Comparison(left=syntax.Name() as name, comparisons=[syntax.ComparisonTarget(operator=syntax.IsNot())]):
            bound = [binding.value for binding in script.names.reaching(name) if binding.kind is Kind.ASSIGN]
            made = list(script.roles.origins(name)) or [(script, value) for value in bound if value is not None]
            chosen = [(place, value) for place, value in made if isinstance(value, syntax.IfExp)]
            return [setting for place, value in chosen for setting in _deciding(place, value.test)]
    known = script.constant(test)
    return [known] if known is not None and known.node is not test else []
