"""What forbids to tell a trainer that it computes in half precision."""

from __future__ import annotations

import re

from speedlint.ask.script import Script
from speedlint.cures.halves import refuse_code_hazards, refuse_module_hazards
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.shapes.frameworks.huggingface import Training, checkpoint, own_trainer
from speedlint.shapes.training import roots
from speedlint.torch.words import Role

_GRADIENT = re.compile(rb"\.grad\b")
_CLIPS = ("torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_value_", "torch.nn.utils.clip_grad_norm")
_OVERFLOWS = re.compile(r"t5|pegasus", re.IGNORECASE)
"""Models whose activations leave float16: they were trained in bfloat16."""
_PLAIN = (Role.NUMBER, Role.STRING, Role.NONE, Role.LOADER, Role.DATASET)
_BY_HAND = (b"automatic_optimization", b"LBFGS", b".half()", b".double()")


def prepared(script: Script, accelerator: syntax.Call) -> list[tuple[Script, syntax.BaseExpression]]:
    """What an accelerator is handed to prepare. Raises CannotEdit where that is hidden in ``*args``."""
    found = []
    for place, call in script.calls_on(accelerator, "prepare", "prepare_model", "prepare_optimizer"):
        for arg in call.args:
            if arg.star:
                raise CannotEdit("what it prepares is hidden")
            found.append((place, arg.value))
    return found


def refuse_scaling(script: Script, accelerator: syntax.Call, *, half: bool) -> None:
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
        if half and (any(True for _ in place.calls(*_CLIPS)) or _GRADIENT.search(place.source.data)):
            raise CannotEdit("gradients are met by hand, which loss scaling changes")
        for call in place.source.of(syntax.Call):
            if place.role(call) is Role.OPTIMIZER and _is_made(place, call) and id(call) not in known:
                raise CannotEdit(f"`{place.text(call.func)}` makes an optimizer that it does not prepare")


def _is_made(script: Script, call: syntax.Call) -> bool:
    return (script.name(call.func) or "").startswith("torch.optim.")


def refuse_half(one: Training, *, half: bool) -> None:
    """Raises CannotEdit where float16 (``half``), or autocast at all, may break what the trainer computes."""
    own = own_trainer(one.place, one.trainer)
    if own is not None:
        if own.script.roles.calls.method(own, "training_step") is not None:
            raise CannotEdit(f"`{own.name}` takes its training steps itself")
        refuse_code_hazards(own.script, own.node, half=half)
    if one.is_set("fsdp") or one.is_set("fsdp_config"):
        raise CannotEdit("the model is sharded")
    for script, node in one.models:
        if isinstance(node, syntax.Call) and half and _OVERFLOWS.search(_told(script, node)):
            raise CannotEdit("its model was trained in bfloat16, and leaves the range of float16")
        if isinstance(node, syntax.BaseExpression):
            refuse_module_hazards(script, node, half=half)


def _told(script: Script, call: syntax.Call) -> str:
    """By what names a model goes: of what makes it, of the library's classes that its own derives from, its checkpoint's."""
    definition = script.value(call).definition
    bases = script.roles.calls.foreign_bases(definition) if definition is not None else ()
    return f"{script.name(call.func)} {checkpoint(script, call)} {' '.join(bases)}"


def refuse_manual(script: Script, module: syntax.BaseExpression) -> None:
    """Raises CannotEdit where a module steps its optimizer by hand, in a way that loss scaling changes, or is made with
    parts that are out of sight: a loss or a network that is handed to it."""
    for root_script, made in roots(script, module):
        value = root_script.value(made)
        if value.definition is None or not isinstance(made, syntax.Call):
            raise CannotEdit("the class of the module is not seen")
        if any(mark in value.definition.script.source.data for mark in _BY_HAND):
            raise CannotEdit("the module may step its optimizer by hand, or choose a precision of its own")
        for arg in made.args:
            given = root_script.value(arg.value)
            if given.role not in _PLAIN and root_script.constant(arg.value) is None:
                raise CannotEdit(f"what `{root_script.text(arg.value)}` does in float16 is not followed")
