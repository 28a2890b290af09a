"""Accelerate: the ``Accelerator`` that a loop trains with, and what it is handed to prepare."""

from __future__ import annotations

import libcst as cst

from speedlint.edits import CannotEdit
from speedlint.semantics.halves import refuse_module_hazards
from speedlint.semantics.model import Frequency, Role
from speedlint.semantics.script import Script

ACCELERATORS = ("accelerate.Accelerator", "accelerate.accelerator.Accelerator")
_CLIPS = ("torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_value_", "torch.nn.utils.clip_grad_norm")


def prepared(script: Script, accelerator: cst.Call) -> list[tuple[Script, cst.BaseExpression]]:
    """What an accelerator is handed to prepare. Raises CannotEdit where that is hidden in ``*args``."""
    found = []
    for place, call in script.calls_on(accelerator, "prepare", "prepare_model", "prepare_optimizer"):
        for arg in call.args:
            if arg.star:
                raise CannotEdit("what it prepares is hidden")
            found.append((place, arg.value))
    return found


def refuse_scaling(script: Script, accelerator: cst.Call, *, half: bool) -> None:
    """Raises CannotEdit where half precision may break what is computed, or scaled gradients are met by hand."""
    handed = prepared(script, accelerator)
    modules = [(place, value) for place, value in handed if place.role(value) is Role.MODULE]
    if not modules:
        raise CannotEdit("the module that it prepares is not seen")
    for place, module in modules:
        refuse_module_hazards(place, module, half=half)
    anywhere = (
        (place, arg.value)
        for place in script.everywhere(b".prepare")
        for call in place.method_calls("prepare", "prepare_optimizer")
        for arg in call.args
    )
    known = {id(node) for place, value in anywhere for _, node in place.roles.origins(value)}
    for place in script.everywhere():
        if half and (any(True for _ in place.calls(*_CLIPS)) or b".grad" in place.source.data.replace(b".grad_", b"")):
            raise CannotEdit("gradients are met by hand, which loss scaling changes")
        for call in place.source.of(cst.Call):
            if place.role(call) is Role.OPTIMIZER and _is_made(place, call) and id(call) not in known:
                raise CannotEdit(f"`{place.text(call.func)}` makes an optimizer that it does not prepare")


def _is_made(script: Script, call: cst.Call) -> bool:
    return (script.name(call.func) or "").startswith("torch.optim.")


def is_accumulated(script: Script, backward: cst.Call) -> bool:
    """Whether a backward pass runs in each step of a loop, and the optimizer steps only in every few of them."""
    loop = script.loops.driving_loop(backward)
    if loop is None or script.frequency(backward) is not Frequency.STEP:
        return False
    steps = [
        call for call in script.method_calls("step") if script.source.contains(loop.body, call) and _steps(script, call)
    ]
    return bool(steps) and all(script.frequency(call) is Frequency.THROTTLED for call in steps)


def _steps(script: Script, call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and script.role(call.func.value) is Role.OPTIMIZER
