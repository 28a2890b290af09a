"""Text that is written in every step: printed, logged, or drawn by a progress bar of the project's own."""

from __future__ import annotations

import libcst as cst

from speedlint.semantics.displays import is_display, shown_tensors
from speedlint.semantics.loops import Does
from speedlint.semantics.model import FREQUENT
from speedlint.semantics.script import Script

_WRITES = ("sys.stdout.write", "sys.stderr.write")
_TEXT = ("print", "logging.", "loguru.", "tqdm.tqdm.write")
_LEVELS = frozenset({"info", "warning", "warn", "error", "critical"})


def writes_text(script: Script, call: cst.Call) -> bool:
    """Whether a call itself writes a line: boards that collect numbers and bars that draw themselves now and then do not."""
    name = script.name(call.func)
    if name is not None:
        return name in _WRITES or (is_display(script, call) and name.startswith(_TEXT))
    return isinstance(call.func, cst.Attribute) and call.func.attr.value in _LEVELS and is_display(script, call)


def draws(script: Script, call: cst.Call) -> cst.Call | None:
    """The call by which a function of the project writes text whenever it is called; None where it does more than that."""
    callee = script.callee(call)
    if callee is None or not isinstance(callee.node, cst.FunctionDef):
        return None
    other, function = callee.script, callee.node
    if other.loops.function_does(function) & ~Does.NO_TRAINING:
        return None
    for inner in other.source.inside(function.body, cst.Call):
        up = other.source.enclosing(inner, cst.If, cst.IfExp, cst.BooleanOperation, cst.Try, cst.FunctionDef, cst.Lambda)
        if up is function and writes_text(other, inner):
            return inner
    return None


def in_every_step(script: Script, call: cst.Call) -> bool:
    """Whether a call is a statement of its own that every turn of the loop over the steps reaches."""
    if not isinstance(script.source.parents[call], cst.Expr) or script.frequency(call) not in FREQUENT:
        return False
    loop = script.loops.driving_loop(call)
    return loop is not None and script.source.enclosing(call, cst.If, cst.Else, cst.Try, cst.For, cst.While) is loop


def waits(script: Script, call: cst.Call) -> bool:
    """Whether what is shown is read from the GPU at that: the text is the smaller part then."""
    reads = (each.func for each in script.source.inside(call, cst.Call))
    return any(isinstance(func, cst.Attribute) and func.attr.value in ("item", "cpu", "tolist") for func in reads) or any(
        True for _ in shown_tensors(script, call)
    )
