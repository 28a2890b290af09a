"""How a tensor is made on the device instead of copied there."""

from __future__ import annotations

from speedlint.ask.script import Script
from speedlint.cures import spelling
from speedlint.edits import CannotEdit, add_argument
from speedlint.facts import syntax
from speedlint.rule import Edit
from speedlint.shapes.sync.creation import MOVES, Created, filled_by, is_like_tensor, is_type, target
from speedlint.source import is_name, is_target
from speedlint.torch.words import Role


def ranged_on_device(script: Script, subscript: syntax.Subscript, index: syntax.Call) -> tuple[Edit, ...]:
    """The edits that count the range on the device of the tensor. Raises CannotEdit."""
    source = script.source
    if not isinstance(subscript.value, syntax.Name):
        raise CannotEdit("the tensor is no plain variable")
    if script.is_call_to(index, "torch.arange"):
        if not source.contains(subscript, index):
            raise CannotEdit("it is made on one line and used on another")
        if filled_by(index) is not None:
            raise CannotEdit("it fills a tensor that is made on the host: `out=`")
        return (add_argument(source, index, f"device={subscript.value.value}.device"),)
    if is_target(source, subscript):
        raise CannotEdit("it is written to")
    counted = index.args[0].value if script.name(index.func) == "list" else index
    assert isinstance(counted, syntax.Call)
    name, imports = spelling.spell(script, "torch.arange")
    arguments = ", ".join(source.text(arg.value) for arg in counted.args)
    made = f"{name}({arguments}, device={subscript.value.value}.device)"
    start, end = source.code_span(index)
    return (Edit(source.path, start, end, made), *imports)


def on_device(script: Script, found: Created) -> tuple[Edit, ...]:
    """The edits that make the tensor on the device and take the copy away, or leave the cast of it. Raises CannotEdit."""
    source, move, factory = script.source, found.move, found.factory
    if not isinstance(move.func, syntax.Attribute) or move.func.attr.value not in MOVES:
        raise CannotEdit(f"`{script.text(move.func)}` copies it")
    if is_type(script, factory):
        raise CannotEdit(f"`{script.text(factory.func)}` takes no GPU")
    device = target(script, move)
    assert isinstance(move.func, syntax.Attribute) and device is not None
    if found.held is not None:
        raise CannotEdit("it is made on one line and copied on another")
    if filled_by(factory) is not None:
        raise CannotEdit("it fills a tensor that is made on the host: `out=`")
    if any(is_name(arg.keyword, "requires_grad") for arg in factory.args):
        raise CannotEdit("the gradient would go to another tensor: the one on the host asks for it")
    if any(arg.star for arg in move.args) or any(is_name(arg.keyword, "copy", "memory_format") for arg in move.args):
        raise CannotEdit("the copy is asked for in more ways than one")
    given = script.argument(move, "device", 0) or script.argument(move, "other", 0)
    if given is not None and is_like_tensor(script, given):
        if not found.is_exact and not found.is_random:
            raise CannotEdit("the copy takes the other tensor's dtype, which may cut off fractions that round otherwise")
        return (add_argument(source, factory, f"device={device}"),)
    if move.func.attr.value == "cuda" and given is not None and not _is_surely_device(script, given):
        raise CannotEdit("the device may be None")
    rest = [arg for arg in move.args if arg.value is not given and not is_name(arg.keyword, "non_blocking")]
    if any(arg.keyword is None and not script.roles.calls.is_dtype(arg.value) for arg in rest):
        raise CannotEdit("it is not known what else the copy is told")
    start, end = source.span(move.func.value).end, source.code_span(move).end
    if b"#" in source.data[start:end]:
        raise CannotEdit("a comment stands in the middle")
    converted = ", ".join(_without_comma(script, arg) for arg in rest)
    return (
        add_argument(source, factory, f"device={device}"),
        Edit(source.path, start, end, f".to({converted})" if converted else ""),
    )


def _without_comma(script: Script, arg: syntax.Arg) -> str:
    keyword = f"{arg.keyword.value}=" if arg.keyword is not None else ""
    return keyword + script.text(arg.value)


def _is_surely_device(script: Script, device: syntax.BaseExpression) -> bool:
    return isinstance(device, (syntax.Integer, syntax.SimpleString)) or script.role(device) is Role.DEVICE
