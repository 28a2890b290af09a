"""The order of an image tensor's dimensions in memory: which networks gain from channels last, and what it would break."""

from __future__ import annotations

import enum
import re
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.shapes import devices
from speedlint.shapes.backend import intent
from speedlint.shapes.backend.intent import Intent
from speedlint.shapes.data import loaders
from speedlint.shapes.model.networks import network, with_named
from speedlint.shapes.optimizer import optimizers
from speedlint.shapes.precision.autocast import halvings
from speedlint.shapes.training import Placement, model_placements, passed_through, roots
from speedlint.source import is_name

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_SAYS = re.compile(rb"channels_last|memory_format")
_PLANAR = (
    "torchvision.models.",
    "timm.",
    "segmentation_models_pytorch.",
    "efficientnet_pytorch.",
    "resnest.",
    "pretrainedmodels.",
)
_CHANNELS_TO_SECOND = ["0", "3", "1", "2"]
_NOT_PLANAR = ("torchvision.models.video", "torchvision.models.detection")
_CONVOLUTIONS = ("torch.nn.Conv2d", "torch.nn.ConvTranspose2d", "torch.nn.functional.conv2d")
_LINES = ("torch.nn.Conv1d", "torch.nn.ConvTranspose1d", "torch.nn.functional.conv1d")
_VOLUMES = ("torch.nn.Conv3d", "torch.nn.ConvTranspose3d", "torch.nn.functional.conv3d")
_UNDONE = ("torch.nn.GroupNorm", "torch.nn.InstanceNorm2d", "torch.nn.functional.group_norm", "torch.nn.LocalResponseNorm")
_FEW = 3
_MANY = 6
"""Convolutions beside which attention is a part of the work, not most of it."""
_BREAKS = (
    (re.compile(rb"\.view\(|\.view_as\("), "a `.view()` of the program may merge dimensions that it separates"),
    (
        re.compile(rb"LBFGS|parameters_to_vector"),
        "something in the program views all parameters as one vector, which raises",
    ),
    (
        re.compile(rb"[dD]ropout\(|rand_like|randn_like|bernoulli"),
        "dropout draws its mask in the order of memory, so that other values would be dropped",
    ),
    (re.compile(rb"as_strided|data_ptr|\.stride\(|set_\("), "the program works with strides"),
    (
        re.compile(
            rb"\.(?:grad|data|weight)\b[^\n]{0,60}\.(?:reshape|flatten|ravel)\(|\.numpy\(\)\.(?:reshape|flatten|ravel)"
        ),
        "the program takes weights or gradients as one row, which would be a copy",
    ),
    (re.compile(rb"nn\.utils\.prune|import prune\b"), "pruning views weights as one row, which raises"),
    (re.compile(rb"Conv3d|ConvTranspose3d"), "the program holds three-dimensional convolutions, for which it raises"),
    (re.compile(rb"autograd\.Function|cpp_extension|Function\):"), "operations of its own may expect the usual layout"),
    (re.compile(rb"(?<!Distributed)DataParallel"), "whether the copies of `DataParallel` keep it is not known"),
)


def is_decided(script: Script) -> bool:
    """Whether the program speaks of memory formats, or turns batches so that their channels lie last already."""
    return script.program.mentions(script, _SAYS) or _collates_channels_last(script)


def _collates_channels_last(script: Script) -> bool:
    """Whether a collate function hands out images whose channels lie last and are only counted as the second dimension."""
    if not script.program.mentions(script, b".permute("):
        return False
    return any(
        [place.text(arg.value) for arg in call.args] == _CHANNELS_TO_SECOND
        for found in loaders.near(script)
        for place, function in found.collate
        for call in place.source.inside(function, syntax.Call)
        if isinstance(call.func, syntax.Attribute) and call.func.attr.value == "permute"
    )


def may_gain(script: Script, module: syntax.BaseExpression) -> bool:
    """Whether a module is in sight and convolves images, several times, with nothing between that needs the usual layout."""
    made_of = network(script, module)
    if made_of.convolutions == 0 or made_of.recurrent or made_of.narrow_recurrent:
        return False
    origins = roots(script, module)
    least = _MANY if made_of.attention or made_of.narrow_attention else _FEW
    return bool(origins) and all(_is_planar(place, node, least) for place, node in origins)


def is_placed_before(script: Script, placement: Placement) -> bool:
    """Whether another script, where the model is made and which is asked for too, puts it on its device already."""
    origins = roots(script, placement.module)
    makers = {place for place, _ in origins if place is not script and script.is_reported(place)}
    made = {id(node) for _, node in origins}
    return any(
        id(node) in made for place in makers for other in model_placements(place) for _, node in roots(place, other.module)
    )


def in_branches(script: Script, placed: list[Placement]) -> list[Placement]:
    """The placements, of those that give one variable its model in several branches the first, which then has the others as
    its ``further`` ones."""
    found: dict[object, Placement] = {}
    for one in (each for placement in placed for each in _that_run(script, placement)):
        parent = script.source.parents[one.call]
        target = parent.targets[0].target if isinstance(parent, syntax.Assign) else None
        branch = script.source.enclosing(one.call, syntax.If)
        key = (script.function(one.call), script.text(target)) if target is not None and branch is not None else one.call
        first = found.get(key)
        found[key] = one if first is None else Placement(first.call, first.module, (*first.further, one.call))
    return list(found.values())


def _that_run(script: Script, placement: Placement) -> list[Placement]:
    """A placement without those of its calls that stand under a condition which is false."""
    calls = [call for call in (placement.call, *placement.further) if intent.of(script, call) is not Intent.NEVER]
    return [Placement(calls[0], placement.module, tuple(calls[1:]))] if calls else []


def _is_planar(script: Script, node: syntax.Node, least: int) -> bool:
    if not isinstance(node, syntax.Call):
        return False
    definition = script.definition(node.func) or script.value(node).definition
    if definition is None:
        name = script.name(node.func) or ""
        return name.startswith(_PLANAR) and not name.startswith(_NOT_PLANAR) and least == _FEW
    planar = library = lines = 0
    parts = {code: place for place, code in (*with_named(definition.script, definition.node), *with_named(script, node))}
    for code, place in parts.items():
        for call in place.source.inside(code, syntax.Call):
            name = place.name(call.func) or ""
            if name in _VOLUMES or name in _UNDONE:
                return False
            lines += name in _LINES
            planar += name in _CONVOLUTIONS
            library += name.startswith(_PLANAR) and not name.startswith(_NOT_PLANAR)
    return (library > 0 and least == _FEW) or (planar >= least and planar > lines)


class Half(enum.IntEnum):
    """Whether a training computes in half precision, in which tensor cores gain most from channels last."""

    NEVER = 0
    CHOSEN = 1
    """Where an option or a condition asks for it."""
    ALWAYS = 2


def half(script: Script, module: syntax.BaseExpression) -> Half:
    """Whether the program's work, that of a module without attention, is in half precision."""
    if (made_of := network(script, module)).attention or made_of.narrow_attention:
        return Half.NEVER
    marked = script.everywhere(b"autocast", b"NativeScaler", b"use_amp", b".half()")
    return max((_half_at(place, node) for place in marked for node in halvings(place)), default=Half.NEVER)


def _half_at(script: Script, node: syntax.Node) -> Half:
    call = script.source.enclosing(node, syntax.Call)
    asked = script.argument(call, "enabled") if isinstance(call, syntax.Call) else None
    is_on = asked is None or is_name(asked, "True")
    return Half(min(intent.of(script, node), Intent.ALWAYS if is_on else Intent.CHOSEN))


def why_not(script: Script, placement: Placement) -> str | None:
    """Why the layout of a placed module is not changed by an edit; None where nothing speaks against it."""
    breaks = next((why for mark, why in _BREAKS if script.program.mentions(script, mark)), None)
    if breaks is not None:
        return breaks
    if optimizers.loads_state(script):
        return "a state of the optimizer that was saved before lies otherwise in memory"
    if placement.further:
        return "the model is moved in several branches"
    if any(
        isinstance(node, syntax.Call) and _is_wrapper(place, node)
        for place, node in passed_through(script, placement.module)
    ):
        return "the model is wrapped for several GPUs before"
    if devices.may_be_mps(script):
        return "the device may be an Apple GPU"
    return None


def _is_wrapper(script: Script, call: syntax.Call) -> bool:
    return (script.name(call.func) or "").endswith(("DataParallel", "FullyShardedDataParallel"))
