"""Outputs that are copied to the host one by one into a list, and how to copy them once when the loop is over."""

from __future__ import annotations

import re

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.cures import spelling
from speedlint.cures.filling import check_alias, filled_list
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Edit
from speedlint.shapes.sync import placed, reads
from speedlint.shapes.sync.owned import is_own, is_part
from speedlint.solve import changing
from speedlint.source import is_target
from speedlint.torch.methods import TRANSPOSES

_RESIZED = re.compile(rb"\.resize\(|OWNDATA|\.base\b")
_JOINS = ("torch.cat", "torch.concat", "torch.stack")


def copy_once(script: Script, copy: syntax.Call, tensor: syntax.BaseExpression) -> tuple[Edit, ...]:
    """The edits that append the tensor itself and copy what the list is joined to. Raises CannotEdit."""
    source = script.source
    whole = reads.chain(script, copy)
    is_array = _is_array(script, copy, whole)
    append, base = _append(script, whole)
    start, loop = filled_list(script, append, base)
    check_alias(script, copy, tensor)
    if not is_own(script, tensor, in_part=True):
        raise CannotEdit(f"whether nothing else holds or changes `{reads.shown(script, tensor)}` is not known")
    if placed.changes_device(script, copy):
        raise CannotEdit("its turns may compute on several GPUs, whose tensors are not joined there")
    changes: list[Edit] = [_cut(script, whole, tensor)]
    joined = 0
    for use in script.names.uses(base):
        if use is base or is_target(source, use) or start not in script.names.reaching(use):
            continue
        if script.function(use) is not script.function(copy) or not script.order.runs_before(loop, use):
            raise CannotEdit(f"`{base.value}` is used within the loop, on line {source.line(use)}")
        if not _is_length(script, use) and not is_asked_for_truth(script, use):
            changes += _join(script, use, is_array=is_array)
            joined += 1
    if not joined:
        raise CannotEdit(f"what `{base.value}` is for is not seen")
    return tuple(dict.fromkeys(changes))


def _is_array(script: Script, copy: syntax.Call, whole: syntax.BaseExpression) -> bool:
    """Whether the copy ends as a numpy array, not as a tensor on the host."""
    match whole:
        case syntax.Call(func=syntax.Attribute(attr=syntax.Name(value="cpu" | "to")), args=[] | [_]) if whole is copy:
            return False
        case syntax.Call(func=syntax.Attribute(value=inner, attr=syntax.Name(value="numpy")), args=[]) if inner is copy:
            return True
    raise CannotEdit(f"`{reads.shown(script, whole)}` is more than a copy")


def _append(script: Script, whole: syntax.BaseExpression) -> tuple[syntax.Call, syntax.Name]:
    arg = script.source.parents[whole]
    append = script.source.parents[arg]
    match append:
        case syntax.Call(func=syntax.Attribute(value=syntax.Name() as base, attr=syntax.Name(value="append")), args=[_]):
            return append, base
    raise CannotEdit("the copy is used at once")


def _cut(script: Script, whole: syntax.BaseExpression, tensor: syntax.BaseExpression) -> Edit:
    """Leaves ``x`` of ``x.cpu().numpy()``, copied on the GPU where it would keep the memory of all that it is a part of."""
    source = script.source
    kept = ".clone()" if is_part(script, tensor) else ""
    return Edit(source.path, source.span(tensor).end, source.code_span(whole).end, kept)


def _is_length(script: Script, use: syntax.Name) -> bool:
    call = script.source.parents[script.source.parents[use]]
    return script.is_call_to(call, "len")


def is_asked_for_truth(script: Script, use: syntax.BaseExpression) -> bool:
    """Whether an expression only decides a branch: ``if found:``, ``x if save and found else y``."""
    node: syntax.Node = use
    while isinstance(parent := script.source.parents[node], syntax.BooleanOperation):
        node = parent
    match parent:
        case syntax.UnaryOperation(operator=syntax.Not()):
            return True
        case syntax.If(test=test) | syntax.IfExp(test=test) | syntax.While(test=test) | syntax.Assert(test=test):
            return test is node
    return False


def _join(script: Script, use: syntax.Name, *, is_array: bool) -> list[Edit]:
    """Copies what the list is joined to."""
    source = script.source
    call = source.parents[source.parents[use]]
    if not isinstance(call, syntax.Call) or not call.args or call.args[0].value is not use:
        raise CannotEdit(f"`{use.value}` is not joined on line {source.line(use)}")
    end = source.span(call).end
    if not is_array and script.is_call_to(call, *_JOINS):
        return [Edit(source.path, end, end, ".cpu()")]
    if is_array and script.is_call_to(call, "numpy.concatenate") and _joins_rows(script, call):
        _check_like_arrays(script, use, call)
        torch, imports = spelling.spell(script, "torch")
        return [
            *imports,
            edits.replace(source, call.func, f"{torch}.cat"),
            *_renamed_axis(script, call),
            Edit(source.path, end, end, ".cpu().numpy()"),
        ]
    raise CannotEdit(
        f"`{reads.shown(script, call)}` on line {source.line(use)} has no like on the GPU that is certain to agree"
    )


def _check_like_arrays(script: Script, listed: syntax.Name, joined: syntax.Call) -> None:
    """Raises CannotEdit where what torch joins may not be the array that NumPy would make: of another dtype, laid out
    otherwise, or in memory of its own that may be resized; or where another error would be raised for no arrays."""
    appends = [
        use
        for use in script.names.uses(listed)
        if isinstance(up := script.source.parents[use], syntax.Attribute) and up.attr.value == "append"
    ]
    added = [script.source.enclosing(use, syntax.Call) for use in appends]
    for call in added:
        within = script.source.inside(call, syntax.Attribute) if call is not None else ()
        if any(each.attr.value in TRANSPOSES for each in within):
            raise CannotEdit("NumPy keeps the order of transposed arrays in memory, and torch does not")
        if call is not None and any(True for _ in script.source.inside(call, syntax.IfExp)):
            raise CannotEdit(f"the arrays in `{listed.value}` may be of several dtypes")
    if script.program.mentions(script, _RESIZED):
        raise CannotEdit("the program may resize the array, for which it must own its memory")
    for place, at in changing.ways_to(script, joined):
        if place.source.enclosing(at, syntax.Try) is not None:
            raise CannotEdit("the program may catch NumPy's error for no arrays at all")


def _joins_rows(script: Script, call: syntax.Call) -> bool:
    return (
        all(
            arg.star == ""
            and (arg.keyword is None or arg.keyword.value == "axis")
            and script.text(arg.value).lstrip("-").isdigit()
            for arg in call.args[1:]
        )
        and len(call.args) <= 2
    )


def _renamed_axis(script: Script, call: syntax.Call) -> list[Edit]:
    return [edits.replace(script.source, arg.keyword, "dim") for arg in call.args[1:] if arg.keyword is not None]
