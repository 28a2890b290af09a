"""Networks whose steps are bound by launching kernels, not by what these compute: half precision only adds casts to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from speedlint.facts import syntax
from speedlint.semantics import library
from speedlint.semantics.data.loaders import reads_digits, reads_thumbnails
from speedlint.semantics.model import widths
from speedlint.semantics.model.networks import RECURRENT_CELLS, WIDE, is_small, root_definition, with_named
from speedlint.semantics.script import Script
from speedlint.semantics.steps import Step, modules_of, step_network, training_steps

_LINES = ("torch.nn.Conv1d", "torch.nn.ConvTranspose1d")
_LAYERS = (*_LINES, "torch.nn.Conv2d", "torch.nn.Conv3d", "torch.nn.ConvTranspose2d", "torch.nn.ConvTranspose3d")
_GRAPHS = ("torch_geometric.nn.", "dgl.nn.", "torch_scatter.")
_FUNCTIONS = ("torch.nn.functional.conv", "torch.nn.LazyConv")
_NARROW = 64
"""Channels up to which a convolution of 32 by 32 pixels takes no longer than its launch, some 5 to 10 microseconds."""
_NARROW_LINE = 32
"""The same for a convolution of sequences."""


class Bound(NamedTuple):
    """Why launching a step's kernels takes longer than what they compute; ``is_toy``: so that nobody would ask for speed."""

    because: str
    is_toy: bool


class _Layer(NamedTuple):
    """A layer with weights, by its full name; the most channels that it may have, None where that is not known."""

    name: str
    channels: int | None


def bound_by(step: Step) -> Bound | None:
    """Why the kernels of a step's network are too small to gain from half precision; None where that is not known."""
    if reads_digits(step.script):
        return Bound("its images have 28 by 28 pixels at most", is_toy=True)
    if _is_light(step):
        return Bound("nothing that is seen of it is wide", is_toy=True)
    because = _small_kernels(step)
    return Bound(because, is_toy=False) if because else None


def drives_short_steps(script: Script, loop: syntax.For | syntax.While) -> bool:
    """Whether the training steps that a loop drives, itself or by functions it calls, take as long as their launches."""
    found = [step for step in training_steps(script) if script.source.contains(loop.body, step.backward)]
    for call in script.source.inside(loop.body, syntax.Call) if not found else ():
        callee = script.callee(call)
        if callee is not None and isinstance(callee.node, syntax.FunctionDef):
            found += [step for step in training_steps(callee.script) if step.region is callee.node]
    return bool(found) and all(bound_by(step) is not None for step in found)


def _is_light(step: Step) -> bool:
    """Whether nothing in sight of a step's modules gains from half precision: narrow Linear layers, widths not known, or
    modules out of sight that no data is loaded for."""
    made_of = step_network(step)
    if made_of.is_known:
        return is_small(made_of)
    has_layers = made_of.convolutions or made_of.attention or made_of.recurrent
    loop = step.script.loops.driving_loop(step.backward)
    return not has_layers and (not isinstance(loop, syntax.For) or step.script.is_call_to(loop.iter, "range"))


def _small_kernels(step: Step) -> str:
    code = list(_code(step))
    names = {place.name(call.func) or "" for place, node in code for call in place.source.inside(node, syntax.Call)}
    if any(name.startswith((*library.MODULE_FACTORIES, *_FUNCTIONS)) for name in names):
        return ""
    if not RECURRENT_CELLS.isdisjoint(names) and not any(name in _LAYERS and name not in _LINES for name in names):
        return "its recurrent cells run as small kernels, position by position"
    layers, made_of = list(_layers(step, code)), step_network(step)
    if not layers and not made_of.attention and any(name.startswith(_GRAPHS) for name in names):
        return "between its layers it gathers and adds up what nodes send each other, which half precision hardly speeds up"
    if not layers or made_of.attention or made_of.recurrent or made_of.widest_known > WIDE:
        return ""
    if any(_mixes(place, node) for place, node in code) and all((each.channels or 0) <= _NARROW for each in layers):
        return "each of its mixtures runs several small operations, one by one"
    is_of_lines = all(each.name in _LINES for each in layers)
    if not is_of_lines and not reads_thumbnails(step.script):
        return ""
    most = _NARROW_LINE if is_of_lines else _NARROW
    is_narrow = all(each.channels is not None and each.channels <= most for each in layers)
    return f"its convolutions have {most} channels at most, and small inputs" if is_narrow else ""


def _code(step: Step) -> Iterator[tuple[Script, syntax.Node]]:
    """What the modules of a step are made of, as far as it is first-party; else the expression that makes them."""
    seen = set()
    for script, node in modules_of(step):
        definition = root_definition(script, node)
        start = (definition.script, definition.node) if definition is not None else (script, node)
        for place, each in with_named(*start):
            if each not in seen:
                seen.add(each)
                yield place, each


def _layers(step: Step, code: list[tuple[Script, syntax.Node]]) -> Iterator[_Layer]:
    """The convolutions of a step's network."""
    made = [widths.Given(script, node) for script, node in modules_of(step)]
    found = widths.arguments(made, "out_channels", 1)
    for place, node in code:
        for call in place.source.inside(node, syntax.Call):
            if (name := place.name(call.func)) in _LAYERS:
                given = found.get(call) or [widths.given(place, call, "out_channels", 1)]
                yield _Layer(name or "", widths.most(given))


def _mixes(script: Script, top: syntax.Node) -> bool:
    """Whether code adds up what candidate operations give, each times its weight, as a supernet does."""
    return any(_is_mixture(script, each) for each in script.source.inside(top, syntax.GeneratorExp)) or any(
        _is_mixture(script, each) for each in script.source.inside(top, syntax.ListComp)
    )


def _is_mixture(script: Script, made: syntax.GeneratorExp | syntax.ListComp) -> bool:
    """Whether it is ``w * op(x) for w, op in zip(weights, self.ops)``."""
    match made:
        case (
            syntax.GeneratorExp(
                elt=syntax.BinaryOperation(left=left, operator=syntax.Multiply(), right=right), for_in=clause
            )
            | syntax.ListComp(elt=syntax.BinaryOperation(left=left, operator=syntax.Multiply(), right=right), for_in=clause)
        ) if script.is_call_to(clause.iter, "zip"):
            targets = {name.value for name in script.source.inside(clause.target, syntax.Name)}
            called = (each.func for each in (left, right) if isinstance(each, syntax.Call))
            return any(isinstance(each, syntax.Name) and each.value in targets for each in called)
    return False
