"""How many samples a training step takes, where that is written out, and whether gradients are gathered over several."""

from __future__ import annotations

import re

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes import training
from speedlint.shapes.data.loaders import Loader
from speedlint.solve.loops import Does, Loop
from speedlint.solve.terms import Constant
from speedlint.torch.words import Frequency, Role

_ACCUMULATION = re.compile(rb"accumulation|accum_|_accum\b|\.accumulate\(|virtual_batch|update_freq", re.IGNORECASE)
_MARKS = (b"accum", b"Accum", b"virtual_batch", b"update_freq")


def of_training(found: Loader) -> Constant | None:
    """The number of samples in a batch of a loader that training steps go over, where it is known."""
    setting = found.setting("batch_size")
    known = setting.value
    if known is None or setting.expression is None or type(known.value) is not int or not is_trained_on(found):
        return None
    return known


def is_trained_on(found: Loader) -> bool:
    """Whether a loop of training steps goes over a loader."""
    return any(
        isinstance(start.node, syntax.For) and start.script.loops.kind(start.node) is Frequency.STEP
        for start in found.starts
    )


def accumulates(script: Script) -> bool:
    """Whether the program may gather the gradients of several batches for one step of the optimizer."""
    if training.is_framework_driven(script):
        return True
    if any(_ACCUMULATION.search(place.source.data) for place in script.everywhere(*_MARKS)):
        return True
    return any(_steps_now_and_then(place, loop) for place in script.everywhere(b".step(") for loop in _loops(place))


def _loops(script: Script) -> list[Loop]:
    loops: list[Loop] = [*script.source.of(syntax.For), *script.source.of(syntax.While)]
    return [loop for loop in loops if script.loops.kind(loop) is Frequency.STEP]


def _steps_now_and_then(script: Script, loop: Loop) -> bool:
    """Whether a loop steps its optimizer less often than it makes a backward pass."""
    if not script.loops.does(loop.body, Does.BACKWARD):
        return False
    if script.loops.accumulates(loop):
        return True
    return any(
        script.role(call.func.value) in (Role.OPTIMIZER, Role.SCALER)
        and script.source.contains(loop.body, call)
        and script.frequency(call) is Frequency.THROTTLED
        for call in script.method_calls("step")
        if isinstance(call.func, syntax.Attribute)
    )
