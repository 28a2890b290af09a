"""Switches of mixed precision: what decides whether autocast is on, and where its default is written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from speedlint import edits
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Edit
from speedlint.semantics import library
from speedlint.semantics.data.loader_settings import label
from speedlint.semantics.frameworks import accelerated
from speedlint.semantics.names import Kind
from speedlint.semantics.script import Script
from speedlint.semantics.terms import Constant
from speedlint.semantics.values import option_of

_AMP = re.compile(r"amp|fp_?16|bf_?16|half|mixed|autocast", re.IGNORECASE)
_APEX = "apex.amp.initialize"
_ENABLED = {_APEX: 2, "torch.autocast": 2, "torch.amp.autocast": 2, "torch.cuda.amp.autocast": 0}
_OFF = "no"
"""What an ``Accelerator`` is told to compute in float32."""
_TRUE = {"False": "True", "0": "1"}


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
        for call in place.calls(*library.AUTOCASTS, *library.ACCELERATORS, _APEX):
            if place.is_call_to(call, *library.ACCELERATORS) and accelerated.asked_for(place, call) is None:
                continue
            if not place.is_call_to(call, *library.AUTOCASTS) and _is_cast(script):
                return
            condition = _condition(place, call)
            if condition is None:
                return
            for setting in _deciding(place, condition):
                if setting.value in (False, 0, _OFF) and _AMP.search(_called(setting)):
                    found.setdefault(setting.node, Switch(place, call, setting))
    yield from found.values()


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


def turned_on(switch: Switch) -> tuple[Edit, ...]:
    """Makes a default that is off one that is on. Raises CannotEdit."""
    if switch.script.is_call_to(switch.call, _APEX):
        raise CannotEdit("apex may not be there; `torch.autocast` and a `GradScaler` do the same without it")
    if switch.script.is_call_to(switch.call, *library.ACCELERATORS):
        raise CannotEdit("what Accelerate's loss scaling meets is not followed through this switch")
    setting = switch.setting
    script, node = setting.script, setting.node
    if setting.entry is not None:
        raise CannotEdit(f"it is set in {setting.entry.path.name}, line {setting.entry.line}: write `true` there")
    if isinstance(node, syntax.Call):
        return _option_on(script, node)
    if isinstance(node, syntax.BaseExpression) and script.text(node) in _TRUE:
        if (option := option_of(script, node)) is not None:
            kind = script.argument(option, "type")
            if kind is not None and script.name(kind) == "bool":
                raise CannotEdit("`type=bool` takes any text for True, so that nothing could turn it off")
            if script.argument(option, "action") is not None:
                return _option_on(script, option)
        return (edits.replace(script.source, node, _TRUE[script.text(node)]),)
    raise CannotEdit("its default is not written as False")


def _option_on(script: Script, option: syntax.Call) -> tuple[Edit, ...]:
    """``action="store_true"`` becomes an option that is on, with a ``--no-...`` to turn it off."""
    action = next((arg.value for arg in option.args if arg.keyword is not None and arg.keyword.value == "action"), None)
    known = script.constant(action) if action is not None else None
    if action is None or known is None or known.value != "store_true":
        raise CannotEdit("the option is no plain `store_true`")
    name = script.values.destination(option) or ""
    taken = [each for each in script.method_calls("add_argument") if script.values.destination(each) == f"no_{name}"]
    flags = [script.text(arg.value) for arg in option.args if arg.keyword is None]
    if taken or not any(flag.strip("\"'").startswith("--") for flag in flags):
        raise CannotEdit(f"`--no-{name}` cannot be added beside it")
    spelled, imports = script.spell("argparse.BooleanOptionalAction")
    replaced = edits.replace(script.source, action, spelled)
    return (*imports, replaced, edits.set_argument(script.source, option, "default", "True"))
