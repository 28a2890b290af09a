"""Attention layers of torch's own, which take another path where gradients are off: one fused operation reads the weights of
all parts, runs none of them, and gives zeros for positions that are padding."""

from __future__ import annotations

import re
from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes.model import networks, surgery
from speedlint.solve.flow import once
from speedlint.solve.names import Kind
from speedlint.source import is_none
from speedlint.torch.words import Role

_MARK = re.compile(rb"Transformer|MultiheadAttention")
_BATCH_FIRST = {
    "torch.nn.TransformerEncoderLayer": 6,
    "torch.nn.TransformerDecoderLayer": 6,
    "torch.nn.MultiheadAttention": 8,
    "torch.nn.Transformer": 10,
}
"""Which argument says that the first dimension is that of the batch, without which nothing is fused (torch 2.13)."""
_MASKED = {"torch.nn.TransformerEncoder": 2, **dict.fromkeys(_BATCH_FIRST, 2), "torch.nn.MultiheadAttention": 3}
"""How many arguments may be given by their places before a mask of padded positions, or one that is not told from it."""
_MASKS = frozenset({"src_key_padding_mask", "tgt_key_padding_mask", "key_padding_mask"})
_PARTS = frozenset(
    "self_attn linear1 linear2 dropout dropout1 dropout2 norm1 norm2 activation forward __call__ _call_impl _sa_block "
    "_ff_block".split()
)
"""What a layer of an encoder runs unless it is fused."""


def why_not_fused(script: Script, region: syntax.Node) -> str | None:
    """Why the networks that are run in a region may give something else once gradients are off; None where they hold no
    attention layer that may be fused, or nothing is padded in the program and no part of a layer is its own."""
    if not all(script.program.mentions(script, mark) for mark in (_MARK, b"batch_first")) or _is_without(script, region):
        return None
    if not any(_may_be_fused(place) for place in script.everywhere(_MARK)):
        return None
    for place in script.everywhere():
        for call in place.source.of(syntax.Call):
            if place.role(call.func) is Role.MODULE and any(arg.star == "**" for arg in call.args):
                return f"whether `{place.text(call.func)}` is handed a mask of padded positions is not known"
            if (mask := _mask(place, call)) is not None:
                return f"torch's fused attention, which runs then, may give zeros where `{place.text(mask)}` hides positions"
        part = next(_own_parts(place), None)
        if part is not None:
            return f"torch's fused attention, which runs then, does not run `{part}`, which the program has of its own"
    for change in surgery.changes(script):
        if change.name is None or change.name in _PARTS:
            where = change.place(script)
            return (
                f"torch's fused attention, which runs then, does not run what {where} may put in the place of a layer's part"
            )
    return None


def _is_without(script: Script, region: syntax.Node) -> bool:
    """Whether all that is run in a region are networks that are in sight and do not attend."""
    runs = False
    for call in script.source.inside(region, syntax.Call):
        if script.role(call.func) is Role.MODULE:
            made_of, runs = networks.network(script, call.func), True
            if not made_of.is_known or made_of.attention or made_of.narrow_attention:
                return False
        elif script.callee(call) is not None:
            return False
    return runs


@once(False)
def _may_be_fused(script: Script) -> bool:
    """Whether a file makes an attention layer of torch's, or derives one, that takes batches first for all that is known."""
    for call in script.source.of(syntax.Call):
        place = _BATCH_FIRST.get(script.name(call.func) or "")
        given = script.argument(call, "batch_first", place) if place is not None else None
        known = script.constant(given) if given is not None else None
        if place is not None and (given is not None or script.hides_arguments(call)) and (known is None or known.value):
            return True
    return any(any(True for _ in _bases(script, klass)) for klass in script.source.of(syntax.ClassDef))


def _bases(script: Script, klass: syntax.ClassDef) -> Iterator[str]:
    return (name for base in klass.bases if (name := script.name(base.value)) is not None and name in _MASKED)


def _mask(script: Script, call: syntax.Call) -> syntax.BaseExpression | None:
    """What a call gives as a mask of padded positions."""
    for arg in call.args:
        if arg.keyword is not None and arg.keyword.value in _MASKS and _may_be_given(script, arg.value):
            return arg.value
    if len(call.args) < 3 or script.role(call.func) is not Role.MODULE:
        return None
    made = ((place, node) for place, node in script.roles.origins(call.func) if isinstance(node, syntax.Call))
    before = min((_MASKED[name] for place, node in made if (name := place.name(node.func)) in _MASKED), default=None)
    given = call.args[before:] if before is not None else ()
    return next((arg.value for arg in given if arg.keyword is None and _may_be_given(script, arg.value)), None)


def _may_be_given(script: Script, value: syntax.BaseExpression) -> bool:
    """Whether a value may be something else than None: a parameter is None where each call that is seen leaves it so."""
    if is_none(value):
        return False
    bindings = script.names.reaching(value) if isinstance(value, syntax.Name) else []
    for binding in bindings:
        if binding.kind is not Kind.PARAMETER or not isinstance(binding.node, syntax.Param):
            return True
        default, passed = binding.node.default, list(script.values.passed(binding.node))
        if default is None or not is_none(default) or not passed:
            return True
        if any(given is not None and not is_none(given) for _, given in passed):
            return True
    return not bindings


def _own_parts(script: Script) -> Iterator[str]:
    """The parts of its own that a file's classes of torch's layers have: methods, and layers that are set."""
    for klass in script.source.of(syntax.ClassDef):
        if not any(True for _ in _bases(script, klass)):
            continue
        methods = {each.name.value for each in script.source.inside(klass, syntax.FunctionDef)}
        yield from sorted(methods & {"_sa_block", "_ff_block"})
        for target in script.source.inside(klass, syntax.AssignTarget):
            match target.target:
                case syntax.Attribute(value=syntax.Name("self"), attr=syntax.Name(name)) if name in _PARTS:
                    yield f"self.{name}"
