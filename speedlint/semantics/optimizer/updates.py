"""Updates whose time is nothing beside their step's: what the network, the data and the step are like decides it.

A fused update saves some tenths of a millisecond of launches, and of memory traffic 24 bytes a parameter under SGD with
momentum, 50 under Adam: 0.02 and 0.03 ms for a million parameters on a GPU that moves 1.5 TB a second.
"""

from __future__ import annotations

from functools import reduce

from speedlint.facts import syntax
from speedlint.semantics import durations, gradients, library, steps
from speedlint.semantics.backend import cudnn
from speedlint.semantics.data import pace
from speedlint.semantics.model.networks import Network, network, root_definition, root_network
from speedlint.semantics.optimizer import optimizers
from speedlint.semantics.script import Script
from speedlint.semantics.sync import reads
from speedlint.semantics.terms import Frequency, Role
from speedlint.semantics.training import Root, roots

_WIDE = 4096
"""Outputs of a Linear layer from which on it has as many parameters as all convolutions beside it, as in AlexNet and VGG."""


def why_trifle(script: Script, call: syntax.Call) -> str | None:
    """Why the optimizer that a call makes updates its parameters in next to no time of its step; None where it may not."""
    if (long := durations.why_long(script)) is not None or not script.on_gpu:
        return long
    if (long := durations.why_tenths_are_nothing(script)) is not None:
        return long
    held = optimizers.parameters(script, call)
    origins = [root for one in held for root in roots(one.script, one.module)]
    made_of = reduce(Network.__or__, (network(one.script, one.module) for one in held), Network())
    name = script.name(call.func)
    if name == "torch.optim.SGD" and _is_of_convolutions(script, made_of):
        return "an update of SGD takes tenths of a millisecond, and the convolutions take the step"
    if made_of.convolutions and _is_of_convolutions(script, made_of) and pace.reads_large_images(script):
        return "an update takes tenths of a millisecond, and the convolutions of large images take the step"
    if (long := durations.of_modules(origins)) is not None:
        return long
    if _steps_seldom(script, call):
        return "it updates once for many batches"
    if held and all(_is_head(one.script, one.module) for one in held):
        return "the step runs the whole network, and only its head is updated"
    if origins and made_of.widest_known < _WIDE and _runs_frozen(script, origins):
        return "the step runs a frozen network, and only what is behind it is updated"
    if origins and _is_small(made_of) and _runs_without_gradients(script, origins):
        return "the step runs a network without gradients, and only what is behind it is updated"
    return None


def _is_of_convolutions(script: Script, made_of: Network) -> bool:
    """Whether convolutions take the step, and hold most parameters."""
    if made_of.attention or made_of.widest_known >= _WIDE:
        return False
    return made_of.convolutions > 0 or (not made_of.is_known and not made_of.recurrent and cudnn.is_planar(script))


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
    """Whether a module is a part of a library's network, ``model.fc``, or the one Linear layer of a network that convolves
    or attends."""
    if not isinstance(module, syntax.Attribute) or module.attr.value in ("module", "_orig_mod"):
        return False
    parts = roots(script, module)
    if parts and all(place.is_call_to(made, "torch.nn.Linear") for place, made in parts):
        whole = network(script, module.value)
        return whole.convolutions > 0 or whole.attention
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


def _is_small(made_of: Network) -> bool:
    """Whether a network is a few layers, none of which convolves, attends or is wide."""
    has_layers = made_of.convolutions or made_of.attention or made_of.recurrent
    return not has_layers and made_of.widest_known < _WIDE


def _runs_without_gradients(script: Script, trained: list[Root]) -> bool:
    """Whether each training step of the program runs a network of convolutions or attention without gradients, and none of
    what the optimizer holds."""
    held = {node for _, node in trained}
    found = [step for each in script.everywhere(b".backward(") for step in steps.training_steps(each)]
    return bool(found) and all(any(_is_frozen_body(step.script, call, held) for call in step.calls()) for step in found)


def _is_frozen_body(script: Script, call: syntax.Call, held: set[syntax.Node]) -> bool:
    if script.role(call.func) is not Role.MODULE or gradients.told(script, call) is not True:
        return False
    body = roots(script, call.func)
    return bool(body) and all(
        node not in held and ((made_of := root_network(place, node)).attention or _is_of_convolutions(place, made_of))
        for place, node in body
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
