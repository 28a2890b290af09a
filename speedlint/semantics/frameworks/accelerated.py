"""Accelerate and Fabric: the object that a loop of one's own trains with, and what it is handed to prepare."""

from __future__ import annotations

import re
from collections.abc import Iterator

from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.semantics import library
from speedlint.semantics.frameworks import launch, lightning
from speedlint.semantics.optimizer import exchanges
from speedlint.semantics.precision.halves import refuse_module_hazards
from speedlint.semantics.script import Script
from speedlint.semantics.terms import Role
from speedlint.semantics.training import Placement, roots, trained_modules

_GRADIENT = re.compile(rb"\.grad\b")
_PREPARE = ("prepare", "prepare_model", "setup", "setup_module")
_FULL = (None, "no", 32, "32", "32-true")
_CLIPS = ("torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_value_", "torch.nn.utils.clip_grad_norm")


def placements(script: Script) -> list[Placement]:
    """Where this script hands the modules it trains to an ``Accelerator`` or a ``Fabric``, which put them on the device."""
    return script.once("prepared modules", lambda: list(_placements(script)), [])


def _placements(script: Script) -> Iterator[Placement]:
    if not script.method_calls(*_PREPARE):
        return
    for place, made in script.calls_everywhere(*library.ACCELERATORS, *library.FABRICS):
        for other, call in place.calls_on(made, *_PREPARE):
            for arg in call.args if other is script else ():
                if script.role(arg.value) is Role.MODULE and _is_trained(script, arg.value):
                    yield Placement(call, arg.value)


def _is_trained(script: Script, module: syntax.BaseExpression) -> bool:
    trained = {id(node) for _, node in trained_modules(script)}
    return any(id(node) in trained for _, node in roots(script, module))


def is_told_precision(script: Script) -> bool:
    """Whether an ``Accelerator`` or ``Fabric`` of the program, or what launches it, is told to compute in half precision,
    or may be."""
    made = list(script.calls_everywhere(*library.ACCELERATORS, *library.FABRICS))
    return any(_is_told(place, call) for place, call in made) or (bool(made) and launch.chooses_precision(script))


def _is_told(script: Script, made: syntax.Call) -> bool:
    is_fabric = script.is_call_to(made, *library.FABRICS)
    given = lightning.asked_for(script, made, "precision") if is_fabric else asked_for(script, made)
    known = script.constant(given) if given is not None else None
    return given is not None and (known is None or known.value not in _FULL)


def asked_for(script: Script, accelerator: syntax.Call) -> syntax.BaseExpression | None:
    """The ``mixed_precision`` that an ``Accelerator`` is given."""
    return script.argument(accelerator, "mixed_precision", 2)


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


def is_accumulated(script: Script, backward: syntax.Call) -> bool:
    """Whether a backward pass runs in each step of a loop, which exchanges gradients, and the optimizer steps only in every
    few of them."""
    found, loop = exchanges.gathering(script, backward), script.loops.driving_loop(backward)
    held_back = loop is not None and any(
        each.attr.value == "no_sync" for each in script.source.inside(loop, syntax.Attribute)
    )
    return found is not None and not held_back and not exchanges.may_be_each(script, found)
