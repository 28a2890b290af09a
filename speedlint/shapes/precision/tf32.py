"""Where a program decides the precision of float32 products: through `fp32_precision` (torch 2.9), or as it was before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes import eras

_BACKENDS = "torch.backends."
_NEW: dict[str, frozenset[str]] = {
    "fp32_precision": frozenset({"matmul", "cudnn"}),
    "cuda.matmul.fp32_precision": frozenset({"matmul"}),
    "cudnn.fp32_precision": frozenset({"matmul", "cudnn"}),
    "cudnn.conv.fp32_precision": frozenset({"cudnn"}),
    "cudnn.rnn.fp32_precision": frozenset({"cudnn"}),
}
"""What each covers; that of `cudnn` as a whole reaches the matrix products too (seen in torch 2.13)."""
_OLD = {"cuda.matmul.allow_tf32": "matmul", "cudnn.allow_tf32": "cudnn"}
_SETTER, _GETTER = "torch.set_float32_matmul_precision", "torch.get_float32_matmul_precision"
_MEANS: dict[object, bool] = {"tf32": True, "ieee": False, "high": True, "highest": False, True: True, False: False}
_MARKS = (b"allow_tf32", b"set_float32_matmul_precision")


class Setting(NamedTuple):
    """One place that sets a precision.

    Attributes:
        covers: ``matmul`` and ``cudnn``, whichever it is for.
        tf32: whether it allows TF32; None where it is neither a plain yes nor a plain no.
    """

    script: Script
    node: syntax.Node
    covers: frozenset[str]
    tf32: bool | None


def new_setting(script: Script, assign: syntax.Assign) -> Setting | None:
    """What an assignment to one of the `fp32_precision` sets; None for any other."""
    if len(assign.targets) != 1:
        return None
    name = (script.name(assign.targets[0].target) or "").removeprefix(_BACKENDS)
    return Setting(script, assign, _NEW[name], _meaning(script, assign.value)) if name in _NEW else None


def old_settings(script: Script) -> Iterator[Setting]:
    """The places of the program that set a precision as it was done before."""
    for place in script.everywhere(*_MARKS):
        for assign in place.source.of(syntax.Assign):
            for target in assign.targets:
                name = (place.name(target.target) or "").removeprefix(_BACKENDS)
                if name in _OLD:
                    yield Setting(place, assign, frozenset({_OLD[name]}), _meaning(place, assign.value))
        for call in place.calls(_SETTER):
            if call.args:
                yield Setting(place, call, frozenset({"matmul"}), _meaning(place, call.args[0].value))


def old_reads(script: Script, after: Setting) -> Iterator[syntax.BaseExpression]:
    """The reads of the old settings of matrix products that run after a new one, in the same function."""
    source, function = script.source, script.function(after.node)
    reads: list[syntax.BaseExpression] = list(script.calls(_GETTER))
    for node in source.of(syntax.Attribute):
        written = isinstance(source.parents[node], (syntax.AssignTarget, syntax.Attribute))
        if node.attr.value == "allow_tf32" and not written and script.name(node) == f"{_BACKENDS}cuda.matmul.allow_tf32":
            reads.append(node)
    for read in reads:
        is_later = script.order.runs_before(after.node, read)
        if is_later and script.function(read) is function and source.enclosing(read, syntax.Try) is None:
            yield read


def _meaning(script: Script, value: syntax.BaseExpression) -> bool | None:
    known = script.constant(value)
    return _MEANS.get(known.value) if known is not None and isinstance(known.value, (str, bool)) else None


def may_exclude(one: Setting, other: Setting) -> bool:
    """Whether two settings may be meant for different releases: something beside one of them asks which it is."""
    return any(_asks(setting) for setting in (one, other))


def _asks(setting: Setting) -> bool:
    script, source = setting.script, setting.script.source
    if source.enclosing(setting.node, syntax.Try) is not None:
        return True
    function = script.function(setting.node)
    return eras.asks_what_is_there(script, function if function is not None else source.module)


def is_beside(one: Setting, other: Setting) -> bool:
    """Whether two settings are statements of the same block, so that both run or neither."""
    if one.script is not other.script:
        return False
    source = one.script.source
    statements = (source.statement(one.node), source.statement(other.node))
    return source.parents[statements[0]] is source.parents[statements[1]]
