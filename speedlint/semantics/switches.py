"""Switches of mixed precision: what decides whether autocast or a loss scaler is on, and where its default is written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from speedlint import edits
from speedlint.edits import CannotEdit
from speedlint.rule import Edit
from speedlint.semantics import library
from speedlint.semantics.model import Constant
from speedlint.semantics.script import Script

_ENABLED = {"torch.autocast": 2, "torch.amp.autocast": 2}
_TRUE = {"False": "True", "0": "1"}


@dataclass(frozen=True, slots=True)
class Switch:
    """A switch that is off.

    Attributes:
        script: the script that would enter autocast or make a scaler.
        call: the call that does.
        setting: the default, where it is written.
    """

    script: Script
    call: cst.Call
    setting: Constant


def amp_off(script: Script) -> Iterator[Switch]:
    """The mixed precision of a program that is off by default, one for each setting."""
    seen = set()
    for place in script.everywhere(b"autocast", b"GradScaler"):
        for call in place.calls(*library.AUTOCASTS, *library.SCALERS):
            setting = _setting(place, call)
            if setting is not None and setting.value in (False, 0) and setting.node not in seen:
                seen.add(setting.node)
                yield Switch(place, call, setting)


def _setting(script: Script, call: cst.Call) -> Constant | None:
    """What decides whether a call takes effect: its ``enabled``, or the condition it stands under."""
    position = _ENABLED.get(script.name(call.func) or "", 0 if "cuda" in (script.name(call.func) or "") else None)
    enabled = script.argument(call, "enabled", position)
    if enabled is not None:
        known = script.constant(enabled)
        return known if known is not None and known.node is not enabled else None
    child: cst.CSTNode = call
    for up in script.source.ancestors(call):
        if isinstance(up, cst.If) and child is up.body:
            known = script.constant(up.test)
            if known is not None and isinstance(known.value, (bool, int)):
                return known
        if isinstance(up, cst.FunctionDef):
            return None
        child = up
    return None


def turned_on(setting: Constant) -> tuple[Edit, ...]:
    """Makes a default that is off one that is on. Raises CannotEdit."""
    script, node = setting.script, setting.node
    if setting.entry is not None:
        raise CannotEdit(f"it is set in {setting.entry.path.name}, line {setting.entry.line}: write `true` there")
    if isinstance(node, cst.Call):
        return _option_on(script, node)
    if isinstance(node, cst.BaseExpression) and script.text(node) in _TRUE:
        option = script.source.enclosing(node, cst.Call)
        if isinstance(option, cst.Call) and _is_action(script, option):
            return _option_on(script, option)
        return (edits.replace(script.source, node, _TRUE[script.text(node)]),)
    raise CannotEdit("its default is not written as False")


def _is_action(script: Script, option: cst.Call) -> bool:
    return script.argument(option, "action") is not None


def _option_on(script: Script, option: cst.Call) -> tuple[Edit, ...]:
    """``action="store_true"`` becomes an option that is on, with a ``--no-...`` to turn it off."""
    action = script.argument(option, "action")
    known = script.constant(action) if action is not None else None
    if action is None or known is None or known.value != "store_true":
        raise CannotEdit("the option is no plain `store_true`")
    spelled, imports = script.spell("argparse.BooleanOptionalAction")
    replaced = edits.replace(script.source, action, spelled)
    return (*imports, replaced, edits.set_argument(script.source, option, "default", "True"))
