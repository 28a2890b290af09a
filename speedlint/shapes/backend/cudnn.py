"""The backend's switches: where ``torch.backends.cudnn`` is told what, and whether for the sake of reproducible runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from speedlint.facts import syntax
from speedlint.shapes import entry
from speedlint.shapes.backend import intent
from speedlint.shapes.data import stacked
from speedlint.shapes.data.loaders import loader
from speedlint.shapes.model.networks import network
from speedlint.shapes.steps import of_program, step_network
from speedlint.shapes.training import roots
from speedlint.solve import off
from speedlint.solve.values import option_of
from speedlint.source import is_name, is_none
from speedlint.torch import library

if TYPE_CHECKING:
    from speedlint.ask.script import Script

PLANAR = re.compile(
    rb"Conv(?:Transpose)?[23]d|conv[23]d|torchvision\.models|from torchvision import .*models|timm|segmentation_models"
)
_SHALLOW = 2
_PLANAR_MARKS = (b"Conv", b"conv", b"models", b"timm", b"segmentation_models")
_VARIES = re.compile(
    rb"(?=[mptrabMPTRAB-])(?i:\bmulti_?scale\b|--multi-scale\b|torch_geometric|models\.detection|\bRandomResize\("
    rb"|BucketIterator|random_size)"
)
"""Said in any case; their first letters come first, since that is found two times as fast."""
_SEQUENCES = re.compile(rb"pad_sequence|pack_padded")
_BOXES = re.compile(rb"(?=[abAB])(?i:bbox|anchor_?(?:box|gen|size)|\bboxes\b)")
_REGIONS = re.compile(
    rb"(?=[abrcABRC])(?i:\broi|\brois?\b|region_?proposal|aspect_?ratio_?group|batch_?sampler|crop_and_resize|bucket)"
)
"""Where networks take regions of images, as many as there are, or batches gather images of like sizes."""
_SIZED = re.compile(
    rb"Resize\(|RandomCrop|CenterCrop|ResizedCrop|resize\([^)]{0,80}\(\s*\d|MNIST|CIFAR|resolution|imsize"
    rb"|(?i:(?:crop|ima?ge?|patch|fine|load)_?size)[\"']?\s*[,:=]\s*(?:type|default|\(?\d\d)"
    rb"|(?i:input_?size)[\"']?\s*[,:=]\s*(?:(?:type\s*=\s*int\s*,\s*)?default\s*=\s*)?\(?\d\d"
)
"""What a program says that gives its pictures one size, where each batch is a single one: an input of 2 is no picture."""
_LOADER_MARKS = tuple({name.rpartition(".")[2].encode() for name in library.LOADERS})
_CUDNN = "torch.backends.cudnn"
_REPRODUCIBLE = ("seed", "determin", "reproduc", "repeatab")
_SEEDERS = ("torch.manual_seed", "torch.cuda.manual_seed", "torch.cuda.manual_seed_all", "random.seed", "numpy.random.seed")
_TAKE_SWITCHES = (f"{_CUDNN}.flags", f"{_CUDNN}.set_flags", *sorted(library.LIGHTNING_TRAINERS), "dict")
_KEYWORDS = {"benchmark": ("cudnn_benchmark", "benchmark"), "deterministic": ("deterministic",)}


class Setting(NamedTuple):
    """One assignment to a switch; ``value`` is None where it is not known before the run."""

    script: Script
    assign: syntax.Assign
    value: bool | None


def settings(script: Script, switch: str) -> Iterator[Setting]:
    """Where ``torch.backends.cudnn.<switch>`` is set in this file."""
    for assign in script.source.of(syntax.Assign):
        targets = [each.target for each in assign.targets if not _is_other_attribute(each.target, switch)]
        if any(script.name(each) == f"{_CUDNN}.{switch}" for each in targets):
            constant = script.constant(assign.value)
            known = constant is not None and isinstance(constant.value, (bool, int))
            yield Setting(script, assign, bool(constant.value) if constant is not None and known else None)


def _made(script: Script, switch: str) -> Iterator[Setting]:
    """Those that may be made: not in a function that nothing calls."""
    return (each for each in settings(script, switch) if not entry.is_never_called(script, each.assign))


def _is_other_attribute(node: syntax.Node, name: str) -> bool:
    return isinstance(node, syntax.Attribute) and node.attr.value != name


def is_undone(script: Script, assign: syntax.Assign, switch: str) -> bool:
    """Whether a line further down sets the switch again."""
    return intent.is_undone(script, assign, (setting.assign for setting in settings(script, switch)))


def may_be_on(script: Script, switch: str) -> bool:
    """Whether something in this file may turn the switch on: an assignment, in no function that nothing calls, a context
    manager, an option of a trainer."""
    if any(setting.value is not False for setting in _made(script, switch)):
        return True
    return any(
        is_name(arg.keyword, *_KEYWORDS[switch]) and not _is_off(script, arg.value)
        for call in script.calls(*_TAKE_SWITCHES)
        for arg in call.args
    )


def _is_off(script: Script, value: syntax.BaseExpression) -> bool:
    constant = script.constant(value)
    return constant is not None and not constant.value


def is_on_in_program(script: Script, switch: str) -> bool:
    """Whether a script of the program may turn the switch on."""
    return any(may_be_on(one, switch) for one in script.everywhere(switch.encode()))


def is_off_in_program(script: Script) -> bool:
    """Whether a file that each program of the script's reads switches cuDNN off as it is imported."""
    return any(
        setting.value is False and one.function(setting.assign) is None and script.program.is_always_with(script, one)
        for one in script.everywhere(b"cudnn.enabled")
        for setting in settings(one, "enabled")
        if not is_conditional(one, setting.assign) and not is_undone(one, setting.assign, "enabled")
    )


def switched_off_beside(script: Script, assign: syntax.Assign) -> syntax.Assign | None:
    """The line that turns ``benchmark`` on in the other branch of the ``if`` around an assignment, where that branch is
    taken only if an option is set."""
    for up in script.source.ancestors(assign):
        if isinstance(up, syntax.FunctionDef):
            break
        if isinstance(up, syntax.If):
            for fast in settings(script, "benchmark"):
                if fast.value and script.source.contains(up, fast.assign) and off.is_off(script, fast.assign):
                    return fast.assign
    return None


def is_for_reproducibility(script: Script, node: syntax.Node) -> bool:
    """Whether a statement serves to make runs repeatable: it stands in code named for that, or beside the seeds."""
    return is_named_for_reproducibility(script, node) or seeds(script, script.source.parents[script.source.statement(node)])


def is_named_for_reproducibility(script: Script, node: syntax.Node) -> bool:
    """Whether the statement stands in a function, or under a condition, that speaks of seeds or determinism."""
    for up in script.source.ancestors(node):
        if isinstance(up, syntax.If) and _mentions(script, up.test):
            return True
        if isinstance(up, syntax.FunctionDef):
            return _is_named(up.name.value)
    return False


def seeds(script: Script, block: syntax.Node) -> bool:
    """Whether a block itself, not a function or loop within it, seeds a random generator."""
    for name in _SEEDERS:
        for call in script.calls(name):
            statement = script.source.statement(call)
            if script.source.parents[statement] is block:
                return True
    return False


def _mentions(script: Script, test: syntax.BaseExpression) -> bool:
    return any(_is_named(name.value) for name in script.source.inside(test, syntax.Name))


def _is_named(name: str) -> bool:
    return any(word in name.lower() for word in _REPRODUCIBLE)


def is_settled(script: Script) -> bool:
    """Whether the program asks for determinism in every run, or leaves it to an option: then speed is not wanted first."""
    return any(
        setting.value is not False and not is_conditional(one, setting.assign)
        for one in script.everywhere(b"deterministic")
        for setting in _made(one, "deterministic")
    )


def is_conditional(script: Script, node: syntax.Node) -> bool:
    """Whether a node stands under an ``if`` that is no ``__main__`` guard, within its function."""
    for up in script.source.ancestors(node):
        if isinstance(up, syntax.FunctionDef):
            return False
        if isinstance(up, syntax.If) and "__name__" not in script.text(up.test):
            return True
    return False


def shapes_are_fixed(script: Script) -> bool:
    """Whether the network's inputs keep one shape: batches that stack what their items hold, no word of other sizes, of
    sequences where the batches hold no pictures, or of boxes where not any items are stacked with any others."""
    if script.program.mentions(script, _VARIES):
        return False
    loaders = [
        (one, call)
        for one in script.everywhere(*_LOADER_MARKS)
        for call in one.calls(*library.LOADERS)
        if one is script or not entry.is_of_self_test(one, call)
    ]
    if not loaders:
        return False
    if any(_is_uneven(one, call) and not _is_left_over(script, one, call) for one, call in loaders):
        return False
    if script.program.mentions(script, _SEQUENCES) and not all(_hands_out_pictures(*each) for each in loaders):
        return False
    return not script.program.mentions(script, _BOXES) or _stacks_any(script, loaders)


def _is_left_over(script: Script, place: Script, call: syntax.Call) -> bool:
    """Whether a loader of another script stands in a function that nothing calls."""
    return place is not script and entry.is_never_called(place, call)


def _hands_out_pictures(script: Script, call: syntax.Call) -> bool:
    found = loader(script, call)
    return found is not None and stacked.hands_out_pictures(found)


def _stacks_any(script: Script, loaders: list[tuple[Script, syntax.Call]]) -> bool:
    """Whether loaders stack any items with any others, so that all have one shape, and nothing speaks of regions of them."""
    drawn = [script.argument(call, "sampler", 3) for script, call in loaders]
    if not all(each is None or is_none(each) for each in drawn) or script.program.mentions(script, _REGIONS):
        return False
    shuffled = (one.argument(call, "shuffle", 2) for one, call in loaders)
    return any(is_name(each, "True") for each in shuffled)


def _is_uneven(script: Script, call: syntax.Call) -> bool:
    """Whether a loader may hand out batches of several shapes: collated by more than to stack them, or one by one."""
    collate, size = script.argument(call, "collate_fn"), script.argument(call, "batch_size", 1)
    if collate is not None and not is_none(collate):
        made = loader(script, call)
        if made is None or made.parameter("batch_sampler") is not None or not stacked.keeps_shapes(made):
            return True
    known = script.constant(size) if size is not None else None
    is_one = known is not None and known.value == 1 and option_of(known.script, known.node) is None
    is_one = is_one and not script.program.mentions(script, _SIZED)
    return is_one or (script.hides_arguments(call) and size is None)


def is_planar(script: Script) -> bool:
    """Whether the project's networks convolve images: two or three dimensions, not one."""
    return any(PLANAR.search(one.source.data) for one in script.everywhere(*_PLANAR_MARKS))


def is_unused(script: Script) -> bool:
    """Whether all networks that the program is seen to train are known, and none convolves or is recurrent."""
    made = [step_network(step) for step in of_program(script)]
    return bool(made) and all(each.is_known and not each.convolutions and not each.recurrent for each in made)


def is_shallow(script: Script, module: syntax.Node) -> bool:
    """Whether a network is one class with one or two convolutions, none of them in a loop."""
    convolutions = network(script, module).convolutions
    for one, node in roots(script, module):
        definition = one.value(node).definition
        if definition is None or any(True for _ in definition.script.source.inside(definition.node, syntax.For)):
            return False
        own = [
            call
            for call in definition.script.source.inside(definition.node, syntax.Call)
            if (definition.script.name(call.func) or "").startswith("torch.nn.Conv")
        ]
        if not 0 < len(own) <= _SHALLOW or len(own) != convolutions:
            return False
    return True


def outermost(script: Script, node: syntax.Node) -> syntax.Node:
    """The outermost statement around a node that stands in its function's own block, or under the ``__main__`` guard."""
    found: syntax.Node = script.source.statement(node)
    for up in script.source.ancestors(found):
        if isinstance(up, (syntax.FunctionDef, syntax.ClassDef, syntax.Module, syntax.For, syntax.While)):
            break
        if isinstance(up, syntax.If) and "__name__" in script.text(up.test):
            break
        if isinstance(up, syntax.BaseStatement):
            found = up
    return found
