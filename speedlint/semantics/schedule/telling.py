"""Text that is written in every step: printed, logged, or drawn by a progress bar of the project's own."""

from __future__ import annotations

import libcst as cst

from speedlint.semantics.counts import turns
from speedlint.semantics.loops import Does, Loop
from speedlint.semantics.script import Script
from speedlint.semantics.sync.displays import is_display, shown_tensors
from speedlint.semantics.terms import FREQUENT, Frequency

_WRITES = ("sys.stdout.write", "sys.stderr.write")
_TEXT = ("print", "logging.", "loguru.", "tqdm.tqdm.write")
_FEW = 1000
_LEVELS = frozenset({"info", "warning", "warn", "error", "critical"})


def writes_text(script: Script, call: cst.Call) -> bool:
    """Whether a call itself writes a line: boards that collect numbers and bars that draw themselves now and then do not."""
    name = script.name(call.func)
    if name is not None:
        return name in _WRITES or (is_display(script, call) and name.startswith(_TEXT))
    return isinstance(call.func, cst.Attribute) and call.func.attr.value in _LEVELS and is_display(script, call)


def writer(script: Script, call: cst.Call) -> tuple[Script, cst.Call] | None:
    """The call that writes text whenever the given one is made: itself, or one in a function of the project that does no
    more than that."""
    if writes_text(script, call):
        return script, call
    callee = script.callee(call)
    if callee is None or not isinstance(callee.node, cst.FunctionDef):
        return None
    other, function = callee.script, callee.node
    if other.loops.function_does(function) & ~Does.NO_TRAINING:
        return None
    for inner in other.source.inside(function.body, cst.Call):
        up = other.source.enclosing(inner, cst.If, cst.IfExp, cst.BooleanOperation, cst.Try, cst.FunctionDef, cst.Lambda)
        if up is function and writes_text(other, inner):
            return other, inner
    return None


def in_every_step(script: Script, call: cst.Call, loop: Loop) -> bool:
    """Whether a call is a statement of its own that every turn of a loop over the steps reaches."""
    if not isinstance(script.source.parents[call], cst.Expr) or script.frequency(call) not in FREQUENT:
        return False
    if script.source.enclosing(call, cst.If, cst.Else, cst.Try, cst.For, cst.While) is not loop:
        return False
    return not _is_short(script, loop)


def _is_short(script: Script, loop: Loop) -> bool:
    """Whether all steps of the program are a few, as written: ``for step in range(100)`` that runs once."""
    function, steps = script.function(loop), 1
    if function is not None and script.frequency(function.body) is not Frequency.ONCE:
        return False
    around: cst.CSTNode | None = loop
    while isinstance(around, (cst.For, cst.While)):
        most = turns(script, around)
        if most is None:
            return False
        steps, around = steps * most, script.source.enclosing(around, cst.For, cst.While, cst.FunctionDef)
    return steps <= _FEW


def waits(script: Script, call: cst.Call) -> bool:
    """Whether what is shown is read from the GPU at that: the text is the smaller part then."""
    read = (each.attr.value for each in script.source.inside(call, cst.Attribute))
    return any(name in ("item", "cpu", "tolist", "data") for name in read) or any(True for _ in shown_tensors(script, call))
