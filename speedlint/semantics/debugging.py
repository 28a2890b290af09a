"""Means to find faults that slow down all they are around: anomaly detection, profilers; and whether that is the training."""

from __future__ import annotations

import libcst as cst

from speedlint.semantics.loops import Does
from speedlint.semantics.model import FREQUENT
from speedlint.semantics.script import Script
from speedlint.source import last_statement

SETTERS = ("torch.autograd.set_detect_anomaly", "torch.autograd.anomaly_mode.set_detect_anomaly")
ANOMALY = (*SETTERS, "torch.autograd.detect_anomaly", "torch.autograd.anomaly_mode.detect_anomaly")

_CAUGHT = ("RuntimeError", "Exception", "BaseException")


def context(script: Script, call: cst.Call) -> cst.With | None:
    """The ``with`` that a call is an item of, itself, as one side of ``a if x else b``, or by a variable."""
    for up in script.source.ancestors(call):
        if isinstance(up, cst.WithItem):
            around = script.source.parents[up]
            return around if isinstance(around, cst.With) else None
        if not isinstance(up, cst.IfExp):
            return None
    return None


def slows_training(script: Script, around: cst.With) -> bool:
    """Whether training steps are taken within a ``with``, or it is itself entered in each step."""
    if script.frequency(around) in FREQUENT:
        return bool(script.loops.does(around.body) & (Does.BACKWARD | Does.TRAINS | Does.OPTIMIZER_STEP))
    return bool(script.loops.does(around.body) & Does.TRAINS)


def is_undone(script: Script, call: cst.Call, setters: tuple[str, ...] = SETTERS) -> bool:
    """Whether a call further down in the same function, which surely runs as well, switches the same thing off."""
    source = script.source
    return any(
        source.order[other] > source.order[call]
        and script.function(other) is script.function(call)
        and source.contains(source.parents[source.statement(other)], call)
        and (value := script.argument(other, "mode", 0)) is not None
        and (known := script.constant(value)) is not None
        and known.value is False
        for other in script.calls(*setters)
        if isinstance(source.parents[other], cst.Expr)
    )


def is_caught(script: Script) -> bool:
    """Whether the program goes on after a RuntimeError that is raised in its training."""
    return any(_goes_on(one) for one in script.everywhere(b"backward") if b"except" in one.source.data)


def _goes_on(script: Script) -> bool:
    return any(
        script.loops.does(each.body) & (Does.BACKWARD | Does.TRAINS)
        and any(_catches(script, handler) for handler in each.handlers)
        for each in script.source.of(cst.Try)
    )


def _catches(script: Script, handler: cst.ExceptHandler) -> bool:
    if isinstance(last_statement(handler.body), cst.Raise):
        return False
    kinds = [handler.type] if handler.type is not None else []
    if len(kinds) == 1 and isinstance(kinds[0], cst.Tuple):
        kinds = [element.value for element in kinds[0].elements]
    return not kinds or any(script.name(kind) in _CAUGHT or script.text(kind) in _CAUGHT for kind in kinds)
