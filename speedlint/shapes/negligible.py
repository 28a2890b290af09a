"""Costs that are nothing beside what they are part of, and why: updates, the choice of convolutions, workers' start.

A fused update saves some tenths of a millisecond of launches, and of memory traffic 24 bytes a parameter under SGD with
momentum, 50 under Adam: 0.02 and 0.03 ms for a million parameters on a GPU that moves 1.5 TB a second.
"""

from __future__ import annotations

import re
from functools import reduce

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes import durations, evaluation, steps
from speedlint.shapes.backend import cudnn
from speedlint.shapes.backend.cudnn import PLANAR
from speedlint.shapes.data import pace, scale
from speedlint.shapes.data.loaders import Loader, Start, reads_thumbnails
from speedlint.shapes.model import launches
from speedlint.shapes.model.networks import (
    Network,
    is_library_transformer,
    network,
    root_definition,
    root_network,
    with_named,
)
from speedlint.shapes.optimizer import optimizers
from speedlint.shapes.schedule import periods
from speedlint.shapes.sync import reads
from speedlint.shapes.training import Root, roots
from speedlint.solve import gradients, off
from speedlint.solve.loops import Does
from speedlint.torch import library
from speedlint.torch.words import Frequency, Role

_WIDE = 4096
"""Outputs of a Linear layer from which on it has as many parameters as all convolutions beside it, as in AlexNet and VGG."""
_PATCH = 8
"""Pixels of a kernel's side from which on it cuts the patches that attention goes over."""
_PLANAR_LAYERS = ("torch.nn.Conv2d", "torch.nn.Conv3d")
_REPEATS = (syntax.For, syntax.While, syntax.ListComp, syntax.GeneratorExp)
_MANY_STEPS = 500
"""Steps from which on they take so long, at 50 ms each, that the start of some workers is half a percent."""
_SYSTEM = re.compile(r"os\.name|platform|windows|darwin", re.IGNORECASE)


def why_update(script: Script, call: syntax.Call) -> str | None:
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
        reads.how_often(place, step)
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
        node not in held and evaluation.freezes(place, node) and _is_of_convolutions(place, root_network(place, node))
        for step in steps.of_program(script)
        for place, node in steps.chosen_modules(step)
    )


def _is_small(made_of: Network) -> bool:
    """Whether a network is a few layers, none of which convolves, attends or is wide."""
    has_layers = made_of.convolutions or made_of.attention or made_of.recurrent
    return not has_layers and made_of.widest_known < _WIDE


def _runs_without_gradients(script: Script, trained: list[Root]) -> bool:
    """Whether each training step of the program runs a network of convolutions or attention without gradients, and none of
    what the optimizer holds."""
    held = {node for _, node in trained}
    found = list(steps.of_program(script))
    return bool(found) and all(any(_is_frozen_body(step.script, call, held) for call in step.calls()) for step in found)


def _is_frozen_body(script: Script, call: syntax.Call, held: set[syntax.Node]) -> bool:
    if script.role(call.func) is not Role.MODULE or gradients.told(script, call) is not True:
        return False
    body = roots(script, call.func)
    return bool(body) and all(
        node not in held and ((made_of := root_network(place, node)).attention or _is_of_convolutions(place, made_of))
        for place, node in body
    )


def why_convolutions(script: Script, module: syntax.Node) -> str | None:
    """Why faster convolutions of a network gain next to nothing in its training; None where they may."""
    if pace.waits_for_items(script):
        return "the step waits for its loader, which decodes or parses each item"
    if reads_thumbnails(script) and pace.reads_small_batches(script):
        return "small batches of images of 32 by 32 pixels take longer to launch than to convolve"
    made = roots(script, module)
    if made and all(is_library_transformer(*root) for root in made):
        return "a library's transformer convolves once, and attention takes the step"
    made_of = network(script, module)
    if (made_of.recurrent or made_of.narrow_recurrent or made_of.attention) and not _holds_planar(script, module):
        return "recurrent layers or attention take the step, not convolutions in one dimension"
    if _is_left_for_other(script, module):
        return "the network that is trained by default does not convolve"
    return launches.why_launching_takes_longer(script)


def _is_left_for_other(script: Script, module: syntax.Node) -> bool:
    """Whether options choose among several networks, and by default one without convolutions."""
    made = roots(script, module)
    chosen = [root_network(*each) for each in made if not off.is_off(*each)]
    return 0 < len(chosen) < len(made) and not any(each.convolutions or not each.is_known for each in chosen)


def _holds_planar(script: Script, module: syntax.Node) -> bool:
    """Whether the code of a network, as far as it is in sight, convolves in two or three dimensions, but to cut patches, or
    in one layer of its own class."""
    for place, node in roots(script, module):
        definition = root_definition(place, node)
        parts = with_named(definition.script, definition.node) if definition is not None else ((place, node),)
        for each, part in parts:
            patching = sum(_cuts_patches(each, call) for call in each.source.inside(part, syntax.Call))
            others = len(PLANAR.findall(each.text(part).encode())) - patching
            is_top = definition is not None and part is definition.node
            if others > 1 or (others and not (is_top and _has_one_layer(each, part))):
                return True
    return False


def _has_one_layer(script: Script, part: syntax.Node) -> bool:
    """Whether a class makes one convolution of two or three dimensions, and makes it once."""
    layers = [call for call in script.source.inside(part, syntax.Call) if script.name(call.func) in _PLANAR_LAYERS]
    return len(layers) == 1 and script.source.enclosing(layers[0], *_REPEATS) is None


def _cuts_patches(script: Script, call: syntax.Call) -> bool:
    """Whether a call makes the convolution before attention whose steps are as long as its kernel, or whose kernel is of the
    size of a patch."""
    if script.name(call.func) not in _PLANAR_LAYERS:
        return False
    kernel, stride = script.argument(call, "kernel_size", 2), script.argument(call, "stride", 3)
    if kernel is None or stride is None:
        return False
    sides = [each.value for each in kernel.elements] if isinstance(kernel, (syntax.Tuple, syntax.List)) else [kernel]
    known = [script.constant(side) for side in sides]
    if all(each is not None and isinstance(each.value, int) and each.value >= _PATCH for each in known):
        return True
    is_of_pixels = any(each is not None and each.value == 1 for each in known)
    return script.text(kernel) == script.text(stride) and not is_of_pixels


def why_workers_start(found: Loader) -> str | None:
    """Why the start of a loader's workers is nothing beside what it is for; None where it may not be."""
    if scale.is_large(found):
        return "a pass over so large a data set takes minutes, and the start of its workers a second"
    if durations.trains_library_transformer(found.script) and not found.has_few_rows:
        return "a pass of a library's transformer takes minutes, and the start of its workers some tenths of a second"
    if (slow := durations.why_slow_on_host(found.script)) is not None:
        return slow
    if _may_have_none(found):
        return "the program sets the number of its workers to 0 in some runs"
    if _has_none_by_default(found):
        return "by the defaults of the program's options it has no workers"
    if found.has_none_by_configs:
        return "the project's configurations give it no workers"
    read = [start for start in found.starts if isinstance(start.node, syntax.For)]
    if any(map(_is_left_early, read)):
        return "a loop over it is left before its end, and workers that persist first finish what they have begun"
    if read and len(read) == len(found.starts) and all(map(_is_read_seldom, read)):
        return "it is read once in many epochs, or in hundreds of steps"
    return None


def _is_left_early(start: Start) -> bool:
    """Whether a loop over a loader ends in a ``break`` by its own count of turns, in the runs that are made: by one that is
    kept from pass to pass, the training ends."""
    script, source, loop = start.script, start.script.source, start.node
    if not isinstance(loop, syntax.For):
        return False
    bound = set(source.inside(loop.target, syntax.Name))
    for end in source.inside(loop.body, syntax.Break):
        branch = source.enclosing(end, *_REPEATS, syntax.If)
        asked = source.inside(branch.test, syntax.Name) if isinstance(branch, syntax.If) else ()
        counts = (name for name in asked if script.role(name) is Role.NUMBER)
        is_counted = any(binding.node in bound for name in counts for binding in script.names.reaching(name))
        if is_counted and source.enclosing(end, *_REPEATS) is loop and not off.is_off(script, end):
            return True
    return False


def _may_have_none(found: Loader) -> bool:
    """Whether the number of its workers is an attribute, not known, that the program itself sets to 0, and not only on
    Windows: ``configs.num_workers = 0``."""
    workers = found.setting("num_workers")
    if not isinstance(workers.expression, syntax.Attribute) or workers.value is not None:
        return False
    name = workers.expression.attr.value
    return any(
        isinstance(target.target, syntax.Attribute)
        and target.target.attr.value == name
        and isinstance(assign.value, syntax.Integer)
        and int(assign.value.value, 0) == 0
        and _may_run(place, assign)
        for place in found.script.everywhere(name.encode())
        for assign in place.source.of(syntax.Assign)
        for target in assign.targets
    )


def _has_none_by_default(found: Loader) -> bool:
    """Whether the program's options give it no workers by their defaults: ``4 if args.raw else 0``, or a parameter that
    none but tests pass."""
    workers = found.setting("num_workers").expression
    if isinstance(workers, syntax.IfExp):
        asked = off.values(found.script, workers.test)
        workers = None if asked is None else workers.body if asked[0] else workers.orelse
    known = off.values(found.script, workers) if workers is not None else None
    return known is not None and known[0] == 0


def _may_run(script: Script, node: syntax.Node) -> bool:
    """Whether a node may run where trainings run: under no switch that is off by default, and no question for the system."""
    tests = [script.text(up.test) for up in script.source.ancestors(node) if isinstance(up, syntax.If)]
    return not any(_SYSTEM.search(test) for test in tests) and not off.is_off(script, node)


def _within(start: Start) -> tuple[Script, syntax.Call] | None:
    """A call that each turn of a loop over a loader makes."""
    source = start.script.source
    own = (
        each
        for each in source.inside(start.node, syntax.Call)
        if source.enclosing(each, syntax.If, syntax.For) is start.node
    )
    return next(((start.script, each) for each in own), None)


def _is_read_seldom(start: Start) -> bool:
    """Whether many steps of the training, or many epochs, are known to lie between two reads."""
    script = start.script
    function = script.function(start.node)
    if script.loops.does(start.node, Does.STEPS):
        return False
    found = periods.during_training(script, function) if function is not None else _within(start)
    one = periods.scheduled(*found) if found is not None else None
    between = periods.period(found[0], one) if found is not None and one is not None else None
    if found is None or one is None or between is None or not isinstance(between.value, int):
        return False
    of_epochs = found[0].loops.kind(one.loop) is Frequency.EPOCH
    return between.value >= (periods.EPOCHS if of_epochs else _MANY_STEPS)
