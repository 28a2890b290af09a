"""How mixed precision is turned on where its default is written."""

from __future__ import annotations

import re

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.cures import spelling
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Edit
from speedlint.shapes.data.loader_settings import label
from speedlint.shapes.precision.switches import APEX, Switch
from speedlint.shapes.sync.reads import shown
from speedlint.solve.names import last_name
from speedlint.solve.terms import Constant
from speedlint.solve.values import option_of
from speedlint.source import is_name
from speedlint.torch import library
from speedlint.torch.words import Role

_NAME = re.compile(r"\w+")
_PRECISION = re.compile(r"(?i)16|32|half|float|single|mixed|amp|no|full|^$")
"""What texts hold that choose a precision."""
_EXITS = ("exit", "_exit", "error", "abort")
_TRUE = {"False": "True", "0": "1"}


def turned_on(switch: Switch) -> tuple[Edit, ...]:
    """Makes a default that is off one that is on. Raises CannotEdit."""
    if switch.script.is_call_to(switch.call, APEX):
        raise CannotEdit("apex may not be there; `torch.autocast` and a `GradScaler` do the same without it")
    if switch.script.is_call_to(switch.call, *library.ACCELERATORS):
        raise CannotEdit("what Accelerate's loss scaling meets is not followed through this switch")
    setting = switch.setting
    script, node = setting.script, setting.node
    _refuse_other_uses(setting)
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


def _refuse_other_uses(setting: Constant) -> None:
    """Raises CannotEdit where the programs stop if the switch is on, as without a GPU, or give files other names."""
    script = setting.script
    option = setting.node if isinstance(setting.node, syntax.Call) else option_of(script, setting.node)
    name = script.values.destination(option) if option is not None else _NAME.findall(label(script, setting.node))[-1:]
    for other in script.everywhere(name.encode()) if (name := "".join(name or "")) else ():
        for use in (*other.source.of(syntax.Attribute), *other.source.of(syntax.Name)):
            called = use.attr.value if isinstance(use, syntax.Attribute) else use.value
            if called == name and (asked := _stops(other, use) or _names(other, use)) is not None:
                where = f"line {other.source.line(asked)}" + (f" of {other.path.name}" if other is not script else "")
                raise CannotEdit(f"`{shown(other, asked)}` ({where}) is decided by it too")


def _stops(script: Script, use: syntax.BaseExpression) -> syntax.Node | None:
    """The statement that raises or ends the program if a switch is on."""
    child: syntax.Node = use
    for up in script.source.ancestors(use):
        if isinstance(up, syntax.Assert):
            return up
        if isinstance(up, syntax.If):
            raised = next(script.source.inside(up.body, syntax.Raise), None) if child is up.test else None
            exits = (each for each in script.source.inside(up.body, syntax.Call) if last_name(each.func) in _EXITS)
            return raised or (next(exits, None) if child is up.test else None)
        if isinstance(up, syntax.BaseStatement | syntax.Call):
            return None
        child = up
    return None


def _names(script: Script, use: syntax.BaseExpression) -> syntax.IfExp | None:
    """The text that is another one if a switch is on, and none that chooses a precision."""
    chosen = script.source.parents[use]
    if not isinstance(chosen, syntax.IfExp) or chosen.test is not use:
        return None
    texts = [each for each in (chosen.body, chosen.orelse) if script.role(each) is Role.STRING]
    known = (script.constant(each) for each in texts)
    return chosen if any(each is None or not _PRECISION.search(str(each.value)) for each in known) else None


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
