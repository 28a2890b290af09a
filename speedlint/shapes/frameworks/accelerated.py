"""Accelerate and Fabric: the object that a loop of one's own trains with, and what it is handed to prepare."""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes.frameworks import launch, lightning
from speedlint.shapes.optimizer import exchanges
from speedlint.shapes.training import Placement, roots, trained_modules
from speedlint.solve.flow import listed_once
from speedlint.torch import library
from speedlint.torch.words import Role

_PREPARE = ("prepare", "prepare_model", "setup", "setup_module")
_FULL = (None, "no", 32, "32", "32-true")


@listed_once
def placements(script: Script) -> Iterator[Placement]:
    """Where this script hands the modules it trains to an ``Accelerator`` or a ``Fabric``, which put them on the device."""
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


def is_accumulated(script: Script, backward: syntax.Call) -> bool:
    """Whether a backward pass runs in each step of a loop, which exchanges gradients, and the optimizer steps only in every
    few of them."""
    found, loop = exchanges.gathering(script, backward), script.loops.driving_loop(backward)
    held_back = loop is not None and any(
        each.attr.value == "no_sync" for each in script.source.inside(loop, syntax.Attribute)
    )
    return found is not None and not held_back and not exchanges.may_be_each(script, found)
