"""Updates whose time is nothing beside their step's: what the network, the data and the step are like decides it.

A fused update saves some tenths of a millisecond of launches, and of memory traffic 24 bytes a parameter under SGD with
momentum, 50 under Adam: 0.02 and 0.03 ms for a million parameters on a GPU that moves 1.5 TB a second.
"""

from __future__ import annotations

from functools import reduce

from speedlint.facts import syntax
from speedlint.semantics import library, steps
from speedlint.semantics.backend import cudnn
from speedlint.semantics.data import pace
from speedlint.semantics.loops import Does
from speedlint.semantics.model.networks import RECURRENT_CELLS, Network, network, root_definition, root_network, with_named
from speedlint.semantics.optimizer import optimizers
from speedlint.semantics.script import Script
from speedlint.semantics.sync import reads
from speedlint.semantics.terms import Frequency
from speedlint.semantics.training import Root, roots

_WIDE = 4096
"""Outputs of a Linear layer from which on it has as many parameters as all convolutions beside it, as in AlexNet and VGG."""


def why_trifle(script: Script, call: syntax.Call) -> str | None:
    """Why the optimizer that a call makes updates its parameters in next to no time of its step; None where it may not."""
    if _pauses(script):
        return "each step pauses, for a plot or in its sleep"
    if not script.on_gpu:
        return None
    held = optimizers.parameters(script, call)
    origins = [root for one in held for root in roots(one.script, one.module)]
    made_of = reduce(Network.__or__, (network(one.script, one.module) for one in held), Network())
    if script.name(call.func) == "torch.optim.SGD" and _is_of_convolutions(script, made_of):
        return "an update of SGD takes tenths of a millisecond, and the convolutions take the step"
    if any(_runs_cells_in_loop(*root) for root in origins):
        return "the step goes through time in Python, with hundreds of kernels"
    if _steps_seldom(script, call):
        return "it updates once for many batches"
    if pace.waits_for_items(script):
        return "the step waits for its loader, which decodes or parses each item"
    if held and all(_is_head(one.script, one.module) for one in held):
        return "the step runs the whole network, and only its head is updated"
    if origins and made_of.widest_known < _WIDE and _runs_frozen(script, origins):
        return "the step runs a frozen network, and only what is behind it is updated"
    return None


def _pauses(script: Script) -> bool:
    """Whether a training step of the program waits for a while on purpose."""
    return any(
        place.frequency(call) is Frequency.STEP
        for place in script.everywhere(b".pause(", b"sleep(")
        for call in place.calls("matplotlib.pyplot.pause", "time.sleep")
    )


def _is_of_convolutions(script: Script, made_of: Network) -> bool:
    """Whether convolutions take the step, and hold most parameters."""
    if made_of.attention or made_of.widest_known >= _WIDE:
        return False
    return made_of.convolutions > 0 or (not made_of.is_known and not made_of.recurrent and cudnn.is_planar(script))


def _runs_cells_in_loop(script: Script, module: syntax.Node) -> bool:
    """Whether the code of a module holds a recurrent layer's cell, and a loop that runs it."""
    definition = root_definition(script, module)
    if definition is None:
        return False
    parts = list(with_named(definition.script, definition.node))
    holds_cell = any(
        place.name(made.func) in RECURRENT_CELLS for place, node in parts for made in place.source.inside(node, syntax.Call)
    )
    return holds_cell and any(
        True
        for place, node in parts
        for kind in (syntax.For, syntax.While)
        for loop in place.source.inside(node, kind)
        if place.loops.does(loop.body, Does.FORWARD)
    )


def _steps_seldom(script: Script, call: syntax.Call) -> bool:
    """Whether each step of the optimizer that is seen in a training loop is one for many batches."""
    found = [
        reads.frequency(place, step)
        for place in script.everywhere(b".step(")
        for step in place.method_calls("step")
        if isinstance(step.func, syntax.Attribute)
        and (made := optimizers.made(place, step.func.value)) is not None
        and made.call is call
    ]
    return bool(found) and all(each is Frequency.THROTTLED for each in found)


def _is_head(script: Script, module: syntax.BaseExpression) -> bool:
    """Whether a module is a part of a library's network: ``model.fc``."""
    if not isinstance(module, syntax.Attribute) or module.attr.value in ("module", "_orig_mod"):
        return False
    wholes = roots(script, module.value)
    return bool(wholes) and all(
        isinstance(made, syntax.Call) and (place.name(made.func) or "").startswith(library.MODULE_FACTORIES)
        for place, made in wholes
    )


def _runs_frozen(script: Script, trained: list[Root]) -> bool:
    """Whether a training step runs a convolutional network that is frozen, and that the optimizer does not hold whole."""
    held = {node for _, node in trained}
    return any(
        node not in held and _freezes(place, node) and _is_of_convolutions(place, root_network(place, node))
        for each in script.everywhere(b".backward(")
        for step in steps.training_steps(each)
        for place, node in steps.modules_of(step)
    )


def _freezes(script: Script, module: syntax.Node) -> bool:
    """Whether the class of a module holds a library's network, and runs a part without gradients or says that its
    parameters need none."""
    definition = root_definition(script, module)
    place = definition.script if definition is not None else script
    if definition is None or not any(
        (place.name(call.func) or "").startswith(library.MODULE_FACTORIES)
        for call in place.source.inside(definition.node, syntax.Call)
    ):
        return False
    if any(place.source.contains(definition.node, call) for call in place.calls(*library.NO_GRADS)):
        return True
    return any(
        isinstance(target.target, syntax.Attribute)
        and target.target.attr.value == "requires_grad"
        and isinstance(assign := place.source.parents[target], syntax.Assign)
        and (given := place.constant(assign.value)) is not None
        and given.value is False
        for target in place.source.inside(definition.node, syntax.AssignTarget)
    )
