"""How long a training step takes, as far as code and data say: next to steps that are long, what costs some fixed part of a
millisecond in each of them is nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes import hosted, steps
from speedlint.shapes.backend import cudnn, debugging
from speedlint.shapes.data import pace
from speedlint.shapes.data.loaders import reads_thumbnails
from speedlint.shapes.model.networks import (
    RECURRENT_CELLS,
    is_library_transformer,
    root_definition,
    root_network,
    with_named,
)
from speedlint.shapes.steps import Step
from speedlint.shapes.training import Root
from speedlint.solve import counts
from speedlint.solve.flow import once
from speedlint.solve.loops import Does
from speedlint.source import is_name
from speedlint.torch.words import Frequency, Role

_VOLUMES = ("torch.nn.Conv3d", "torch.nn.ConvTranspose3d", "torch.nn.functional.conv3d")
_TRANSFORMERS = re.compile(rb"\b(?:from|import) transformers\b")
_DETECTORS = "torchvision.models.detection."
_SEVERAL = 3
"""Convolutions of volumes from which on a step takes a tenth of a second or more."""


@once(None)
def why_long(script: Script) -> str | None:
    """Why each training step of the program takes a tenth of a second or more; None where it may not."""
    if _pauses(script):
        return "each step pauses, for a plot or in its sleep"
    if (on_host := why_slow_on_host(script)) is not None or not script.on_gpu:
        return on_host
    if pace.waits_for_items(script):
        return "the step waits for its loader, which decodes or parses each item"
    if (waited := why_paced_by_workers(script)) is not None:
        return waited
    reasons = [_of_step(step) for step in steps.of_program(script)]
    return reasons[0] if reasons and None not in reasons else None


@once(None)
def why_paced_by_workers(script: Script) -> str | None:
    """Why a training step waits for its loader though that has workers, so that nothing the GPU saves is seen; None where it
    may not."""
    if pace.waits_for_texts(script):
        return "the step waits for its loader, which parses text for each item"
    if not pace.waits_for_analyses(script):
        return None
    made_of = [steps.step_network(each) for each in steps.of_program(script)]
    if any(each.attention or each.recurrent for each in made_of):
        return None
    return "the step waits for its loader, which analyses a recording for each item"


@once(None)
def why_tenths_are_nothing(script: Script) -> str | None:
    """Why some tenths of a millisecond, which the GPU idles behind one wait or a fused update saves, are nothing in a step;
    None where they may not be."""
    if not script.on_gpu:
        return None
    reasons = [_of_step(step) for step in steps.of_program(script)]
    if reasons and None not in reasons:
        return reasons[0]
    if _generates(script):
        return "the step generates text, with a forward pass for each token"
    if _each_step_runs(script, _detects):
        return "the step proposes and matches boxes, which waits many times itself"
    if reasons and pace.reads_recordings(script):
        return "the step goes over seconds of sound"
    of_images = _each_step_runs(script, lambda *root: root_network(*root).convolutions > 0)
    if of_images and pace.reads_large_images(script) and pace.reads_large_batches(script):
        return "the step convolves a hundred large images and more"
    return None


@once(None)
def why_one_wait_is_nothing(script: Script) -> str | None:
    """Why one wait more in a training step is nothing: what else waits there, or how long it takes. Where launches bind
    it, a wait costs some 20 microseconds; where the GPU does, some tenths of a millisecond. None where it may not be."""
    if (tenths := why_tenths_are_nothing(script)) is not None or not script.on_gpu:
        return tenths
    if debugging.searches_for_nan(script):
        return "anomaly detection waits at each operation of the backward pass"
    if trains_library_transformer(script):
        return "the step trains a library's transformer, which takes some tens of milliseconds to launch alone"
    return None


@once(False)
def trains_library_transformer(script: Script) -> bool:
    """Whether each training step of the program runs a library's transformer of a usual size."""
    return _each_step_runs(script, is_library_transformer)


def _each_step_runs(script: Script, holds: Callable[[Script, syntax.Node], bool]) -> bool:
    """Whether each training step of the program runs a module of which something holds, whichever of those that may be
    chosen it is."""
    found = list(steps.of_program(script))
    return bool(found) and all(
        any(all(holds(*root) for root in each) for each in steps.alternatives(step)) for step in found
    )


def _of_step(step: Step) -> str | None:
    """Why a step takes long, whichever of the modules that may be chosen it runs; None where it may not."""
    for each in steps.alternatives(step):
        reasons = [_of_module(*root) for root in each]
        if None not in reasons:
            return reasons[0]
    return None


def _generates(script: Script) -> bool:
    """Whether training steps let a network of the library ``transformers`` go on with a text, as reinforcement does."""
    return any(
        place.frequency(call) is Frequency.STEP and isinstance(call.func, syntax.Attribute) and _is_generator(place, call)
        for place in script.everywhere(b".generate(")
        for call in place.method_calls("generate")
    )


def _is_generator(script: Script, call: syntax.Call) -> bool:
    """Whether a call of ``generate``, none of the project's, is told a length as transformers are."""
    lengths = any(is_name(arg.keyword, "max_new_tokens", "max_length", "generation_config") for arg in call.args)
    return lengths and script.callee(call) is None and script.program.mentions(script, _TRANSFORMERS)


def _detects(script: Script, made: syntax.Node) -> bool:
    """Whether a module is a library's network that finds objects."""
    return isinstance(made, syntax.Call) and (script.name(made.func) or "").startswith(_DETECTORS)


@once(None)
def why_slow_on_host(script: Script) -> str | None:
    """Why an epoch of the runs that are made takes minutes: they convolve images on the CPU; None where they may not."""
    is_on_host = hosted.runs_on_host(script) or (not script.on_gpu and not reads_thumbnails(script))
    if not is_on_host or not cudnn.is_planar(script):
        return None
    found = (root for each in steps.of_program(script) for root in steps.chosen_modules(each))
    if any(root_network(*root).convolutions for root in found):
        return "it runs on the CPU, where convolutions take the step"
    return None


def _pauses(script: Script) -> bool:
    """Whether a training step of the program waits for a while on purpose."""
    return any(
        place.frequency(call) is Frequency.STEP
        for place in script.everywhere(b".pause(", b"sleep(")
        for call in place.calls("matplotlib.pyplot.pause", "time.sleep")
    )


def of_modules(found: Iterable[Root]) -> str | None:
    """Why a step that runs some modules takes long; None where it may not."""
    return next((why for root in found if (why := _of_module(*root)) is not None), None)


@once(None)
def _of_module(script: Script, module: syntax.Node) -> str | None:
    parts = _parts(script, module)
    if _runs_cells_in_loop(parts):
        return "the step goes through time in Python, with hundreds of kernels"
    if _goes_along_tensor(parts):
        return "the step runs a module on one slice of a tensor after the other, with hundreds of kernels"
    if _convolves_volumes(parts):
        return "the step convolves volumes"
    return None


def _parts(script: Script, module: syntax.Node) -> list[Root]:
    """The code of a module, as far as it is in sight."""
    definition = root_definition(script, module)
    return list(with_named(definition.script, definition.node)) if definition is not None else []


def _runs_cells_in_loop(parts: list[Root]) -> bool:
    """Whether code holds a recurrent layer's cell, and a loop that runs it."""
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


def _goes_along_tensor(parts: list[Root]) -> bool:
    """Whether code runs a module on one slice of a tensor after the other: ``for t in range(x.shape[1]): cell(x[:, t])``."""
    return any(
        _takes_slices(place, loop) and place.frequency(loop) is Frequency.STEP and _runs_same(place, loop)
        for place, node in parts
        for loop in place.source.inside(node, syntax.For)
    )


def _takes_slices(script: Script, loop: syntax.For) -> bool:
    """Whether a loop counts, by a number that is not written out, and takes what stands there out of a tensor."""
    if not isinstance(loop.target, syntax.Name) or not script.is_call_to(loop.iter, "range"):
        return False
    if counts.turns(script, loop) is not None:
        return False
    taken = (
        script.source.parents[script.source.parents[script.source.parents[use]]] for use in script.names.uses(loop.target)
    )
    return any(isinstance(each, syntax.Subscript) and script.role(each.value) is Role.TENSOR for each in taken)


def _runs_same(script: Script, loop: syntax.For) -> bool:
    """Whether each turn of a loop runs a module that its number does not choose, as it does one for each level or column."""
    counted = set(script.names.uses(loop.target)) if isinstance(loop.target, syntax.Name) else set()
    return any(
        script.role(call.func) is Role.MODULE and counted.isdisjoint(script.source.inside(call.func, syntax.Name))
        for call in script.source.inside(loop.body, syntax.Call)
    )


def _convolves_volumes(parts: list[Root]) -> bool:
    found = (
        call for place, node in parts for call in place.source.inside(node, syntax.Call) if place.name(call.func) in _VOLUMES
    )
    return sum(1 for _ in found) >= _SEVERAL
