"""Whether gradients lie in memory as their parameters do, which torch's fused optimizers take them to.

The fused kernels go through a parameter, its gradient and its moments side by side in memory, whatever their strides say
(torch 2.13, on the CPU: other numbers, and no error). A backward pass gives a gradient the strides of its parameter, but for
one that has gaps, such as some columns of a matrix; what a program sets as a gradient itself lies as it was made.
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes.sync.reads import shown
from speedlint.solve.unpacking import all_written
from speedlint.source import is_none
from speedlint.torch import library
from speedlint.torch.methods import CASTS, DETACHES, EXPANDS, MOVES, PARTS, RESHAPES, TRANSPOSES

_KEEPS = RESHAPES | TRANSPOSES | DETACHES | CASTS | MOVES
"""What has gaps where that has which it is asked of."""
_PRETRAINED = ("torch.nn.Embedding.from_pretrained", "torch.nn.EmbeddingBag.from_pretrained")
_DEEPEST = 3
"""Variables that are followed to what they are made of."""


def why_unlike(script: Script) -> str | None:
    """Why a gradient may lie otherwise than its parameter, in a clause; None where nothing in the programs says so."""
    for place in script.everywhere(b"grad"):
        if (by_hand := next(_set_by_hand(place), None)) is not None:
            return f"`{shown(place, by_hand)}` is set by hand, and may lie otherwise in memory than its parameter"
    for place in script.everywhere(b"Parameter", b"from_pretrained", b".data"):
        for given in _made_of(place):
            if _may_have_gaps(place, given, _DEEPEST):
                return f"`{shown(place, given)}` may have gaps in memory, which its gradient has not"
    return None


def _set_by_hand(script: Script) -> Iterator[syntax.Attribute]:
    for target in script.source.of(syntax.AssignTarget):
        assign, gradient = script.source.parents[target], target.target
        holder = gradient.value if isinstance(gradient, syntax.Attribute) and gradient.attr.value == "data" else gradient
        if not isinstance(holder, syntax.Attribute) or holder.attr.value != "grad" or not isinstance(assign, syntax.Assign):
            continue
        is_same = script.text(holder) in script.text(assign.value)
        if isinstance(gradient, syntax.Attribute) and not is_none(assign.value) and not is_same:
            yield gradient


def _made_of(script: Script) -> Iterator[syntax.BaseExpression]:
    """What parameters are made of, and what is put in their place."""
    for call in script.calls(*library.PARAMETERS, *_PRETRAINED):
        yield from (arg.value for arg in call.args[:1])
    for target in script.source.of(syntax.AssignTarget):
        assign = script.source.parents[target]
        is_data = isinstance(target.target, syntax.Attribute) and target.target.attr.value == "data"
        if is_data and isinstance(assign, syntax.Assign):
            yield assign.value


def _may_have_gaps(script: Script, node: syntax.BaseExpression, depth: int) -> bool:
    """Whether a tensor is, or may be, a part of another one in its memory."""
    match node:
        case syntax.Subscript(slice=parts):
            return any(isinstance(each.slice, syntax.Slice) for each in parts)
        case syntax.Call(func=syntax.Attribute(value=base, attr=syntax.Name(value=name))) if script.name(node.func) is None:
            return name in PARTS | EXPANDS or (name in _KEEPS and _may_have_gaps(script, base, depth))
        case syntax.Call():
            return (script.name(node.func) or "").rpartition(".")[2] in PARTS | EXPANDS
        case syntax.Name() if depth:
            return any(_may_have_gaps(script, each, depth - 1) for each in all_written(script.names.reaching(node)))
    return False
