"""How mixed precision is turned on where its default is written."""

from __future__ import annotations

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.cures import spelling
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Edit
from speedlint.shapes.precision.switches import APEX, Switch
from speedlint.solve.values import option_of
from speedlint.source import is_name
from speedlint.torch import library

_TRUE = {"False": "True", "0": "1"}


def turned_on(switch: Switch) -> tuple[Edit, ...]:
    """Makes a default that is off one that is on. Raises CannotEdit."""
    if switch.script.is_call_to(switch.call, APEX):
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
    action = next((arg.value for arg in option.args if is_name(arg.keyword, "action")), None)
    known = script.constant(action) if action is not None else None
    if action is None or known is None or known.value != "store_true":
        raise CannotEdit("the option is no plain `store_true`")
    name = script.values.destination(option) or ""
    taken = [each for each in script.method_calls("add_argument") if script.values.destination(each) == f"no_{name}"]
    flags = [script.text(arg.value) for arg in option.args if arg.keyword is None]
    if taken or not any(flag.strip("\"'").startswith("--") for flag in flags):
        raise CannotEdit(f"`--no-{name}` cannot be added beside it")
    spelled, imports = spelling.spell(script, "argparse.BooleanOptionalAction")
    replaced = edits.replace(script.source, action, spelled)
    return (*imports, replaced, edits.set_argument(script.source, option, "default", "True"))
