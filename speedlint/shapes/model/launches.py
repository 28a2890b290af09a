"""Networks whose steps are bound by launching kernels, not by what these compute: half precision only adds casts to them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from math import prod
from typing import NamedTuple

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes.data import pace, scale
from speedlint.shapes.data.loaders import near, reads_digits, reads_digits_by_default, reads_thumbnails, sides
from speedlint.shapes.model import widths
from speedlint.shapes.model.networks import (
    RECURRENT_CELLS,
    WIDE,
    Network,
    code_network,
    is_small,
    network,
    root_definition,
    with_named,
)
from speedlint.shapes.steps import (
    Step,
    chosen_modules,
    chosen_network,
    modules_of,
    of_program,
    step_network,
    training_steps,
)
from speedlint.shapes.training import roots, trained_modules
from speedlint.solve.flow import once
from speedlint.solve.terms import Definition
from speedlint.torch import library
from speedlint.torch.words import Role

_LINES = ("torch.nn.Conv1d", "torch.nn.ConvTranspose1d")
_LAYERS = (*_LINES, "torch.nn.Conv2d", "torch.nn.Conv3d", "torch.nn.ConvTranspose2d", "torch.nn.ConvTranspose3d")
_PLANES = ("torch.nn.Conv2d", "torch.nn.ConvTranspose2d")
_OF_CONVOLUTION = (("in_channels", 0), ("out_channels", 1), ("kernel_size", 2))
_REPEATS = (syntax.For, syntax.While, syntax.ListComp, syntax.GeneratorExp)
_LITTLE = 3_500_000_000
"""Products of all convolutions of a forward pass, up to which a step of them, 21 GFLOP, takes 0.7 ms at the 30 TFLOPS that
TF32 gives: as long as the launches of some ten layers forward and backward, and of their update."""
_RECURRENT = ("torch.nn.LSTM", "torch.nn.GRU", "torch.nn.RNN")
_ATTENDING = ("torch.nn.MultiheadAttention",)
_ATTENDING_LAYERS = ("torch.nn.TransformerEncoderLayer", "torch.nn.TransformerDecoderLayer", "torch.nn.Transformer")
_GRAPHS = ("torch_geometric.nn.", "dgl.nn.", "torch_scatter.")
_GRAPH_PACKAGES = frozenset({"dgl", "torch_geometric", "torch_scatter", "torch_sparse"})
_FUNCTIONS = ("torch.nn.functional.conv", "torch.conv", "torch.nn.LazyConv")
_NARROW = 64
"""Channels up to which a convolution of 32 by 32 pixels takes no longer than its launch, some 5 to 10 microseconds."""
_NARROW_PRODUCT = 256
"""Outputs of a Linear layer up to which a product of some thousand rows takes no longer than its launch."""
_FEW_LAYERS, _SMALL_BATCH = 4, 32
"""Convolutions, and items of a batch, up to which narrow ones take less than a millisecond on patches of some 40 pixels."""
_NARROW_RECURRENT = 256
"""Hidden units up to which each position of a recurrent layer takes no longer than its launch."""
_FEW_PRODUCTS = 2_000_000_000
"""Products of a Linear layer in a forward pass, up to which a step of it, 12 GFLOP, takes 0.4 ms at the 30 TFLOPS that TF32
gives: less than the hundred positions of a recurrent layer, of several kernels each."""
_NARROW_LINE = 32
"""The same for a convolution of sequences."""
_NARROW_ATTENTION = 64
"""The width of attention up to which its products of some thousand positions take no longer than their launch."""
_TORCHVISION = "torchvision.models."
_SHRINKING = ("resnet", "resnext", "regnet", "densenet", "mobilenet", "efficientnet", "shufflenet", "mnasnet", "squeezenet")
"""torchvision's networks of many layers that halve an image's sides twice or more before the first of them."""
_PLAIN_BATCH = 128
"""Items of 32 by 32 pixels, up to which the hundred layers and more of such a network take no longer than their launch: 37
to 84 million products an item are 30 to 65 GFLOP a step, 2 to 4 ms at 15 TFLOPS, as are 600 launches."""
_FEW_IMAGES, _USUAL_SIDE = 4, 256
"""Images of a batch, and pixels of their sides, up to which a network that shrinks them before its first layers is bound by
its launches: a ResNet-50 computes some 100 GFLOP a step of these, 3 ms at the 30 TFLOPS that TF32 gives, and launches some
600 kernels, 3 to 6 ms."""
_SIGNALS = 2
"""Signals side by side, as two electrodes are, that a kernel of two dimensions may take together."""
_COLOURS = 4
"""Channels up to which what a convolution reads is an image."""
_AT_FULL_SIZE = ("torch.nn.ConvTranspose", "torch.nn.Upsample", "torch.nn.functional.interpolate", "torch.nn.PixelShuffle")
"""What makes an image's sides larger again, as a network does that gives an image."""
_OF_LARGE = frozenset(
    "torchvision timm transformers diffusers peft torchaudio monai detectron2 mmcv mmengine segmentation_models_pytorch "
    "efficientnet_pytorch pretrainedmodels open_clip clip sentence_transformers fairseq espnet speechbrain ultralytics "
    "pytorch_pretrained_bert pytorch_transformers pytorch_pretrained xformers flash_attn deepspeed megatron".split()
)
"""Packages whose networks, or whose data, make a step's kernels large."""
_SHOWS = ("torchvision.utils.", "torchvision.transforms.ToTensor.", "torchvision.transforms.ToPILImage.")
"""What a program imports that only makes pictures of its results."""
_NOTHING_MADE: dict[syntax.Node, list[widths.Given]] = {}


class Bound(NamedTuple):
    """Why launching a step's kernels takes longer than what they compute; ``is_toy``: so that nobody would ask for speed."""

    because: str
    is_toy: bool


class _Layer(NamedTuple):
    """A layer with weights, by its full name; the most channels that it may have, None where that is not known; how high
    and how wide its kernel is, where that is written out."""

    name: str
    channels: int | None
    kernel: tuple[int, int] | None


@once(None)
def bound_by(step: Step) -> Bound | None:
    """Why the kernels of a step's network are too small to gain from half precision; None where that is not known."""
    if reads_digits(step.script):
        return Bound("its images have 28 by 28 pixels at most", is_toy=True)
    if _is_light(step):
        return Bound("nothing that is seen of it is wide", is_toy=True)
    because = _small_kernels(step) or _small_by_default(step) or _small_for_all_that_is_seen(step)
    return Bound(because, is_toy=False) if because else None


@once(None)
def why_launching_takes_longer(script: Script) -> str | None:
    """Why launching the kernels of each training step of the program takes longer than what they compute; None where it may
    not."""
    return _why_all(list(of_program(script)))


def why_of_module(script: Script, module: syntax.Node) -> str | None:
    """The same of those training steps of the program alone that run a module; None where no step is seen to."""
    made = {node for _, node in roots(script, module)}
    return _why_all([step for step in of_program(script) if any(node in made for _, node in modules_of(step))])


def _why_all(found: list[Step]) -> str | None:
    bounds = [bound_by(step) for step in found]
    known = [each for each in bounds if each is not None]
    is_bound = bool(found) and len(known) == len(bounds)
    return f"launching its kernels takes longer than what they compute: {known[0].because}" if is_bound else None


def drives_short_steps(script: Script, loop: syntax.For | syntax.While) -> bool:
    """Whether the training steps that a loop drives, itself or by functions it calls, take as long as their launches."""
    found = [step for step in training_steps(script) if script.source.contains(loop.body, step.backward)]
    for call in script.source.inside(loop.body, syntax.Call) if not found else ():
        callee = script.callee(call)
        if callee is not None and isinstance(callee.node, syntax.FunctionDef):
            found += [step for step in training_steps(callee.script) if step.region is callee.node]
    return bool(found) and all(bound_by(step) is not None for step in found)


def _small_by_default(step: Step) -> str:
    """The same of the data and the network that the runs that are made choose; empty where that is not known."""
    if reads_digits_by_default(step.script):
        return "by default its images have 28 by 28 pixels at most"
    is_one_of_several = len(chosen_modules(step)) < len(modules_of(step))
    is_small_one = is_one_of_several and is_small(chosen_network(step))
    return "nothing that is seen of the network that it trains by default is wide" if is_small_one else ""


def has_narrow_products(script: Script, module: syntax.Node) -> bool:
    """Whether a network's recurrent layers, which cuDNN computes, are all of it but Linear layers of a few hundred numbers
    at most."""
    made_of = network(script, module)
    if made_of.attention or not (made_of.recurrent or made_of.narrow_recurrent):
        return False
    made = widths.constructed(widths.Given(place, node) for place, node in roots(script, module))
    code = [part for place, node in roots(script, module) for part in _parts(place, node)]
    linears = [
        call
        for place, node in code
        for call in place.source.inside(node, syntax.Call)
        if place.name(call.func) == "torch.nn.Linear"
    ]
    taken, given = (
        [widths.most(widths.passed(made.get(call, ()), name, at)) for call in linears]
        for at, name in enumerate(("in_features", "out_features"))
    )
    are_narrow = all(each is not None and each <= _NARROW_PRODUCT for each in given)
    return bool(given) and are_narrow and all(each is None or each <= WIDE for each in taken)


def _is_light(step: Step) -> bool:
    """Whether nothing in sight of a step's modules gains from half precision: narrow Linear layers, widths not known, or
    modules out of sight that no data is loaded for."""
    made_of = step_network(step)
    if made_of.is_known:
        return is_small(made_of)
    has_layers = made_of.convolutions or made_of.attention or made_of.recurrent
    return not has_layers and not any(_takes_data(place, loop) for place, loop in _loops_of(step))


def _takes_data(script: Script, loop: syntax.For | syntax.While) -> bool:
    """Whether a loop goes over something, or is one of a program that loads data."""
    if isinstance(loop, syntax.For):
        return not script.is_call_to(loop.iter, "range")
    return any(True for _ in near(script))


def _loops_of(step: Step) -> Iterator[tuple[Script, syntax.For | syntax.While]]:
    """The loops whose turns are a step, in its function or those that call it."""
    todo: list[tuple[Script, syntax.Node]] = [(step.script, step.backward)]
    seen = set[syntax.Node]()
    while todo:
        place, node = todo.pop()
        if (loop := place.loops.driving_loop(node)) is not None:
            yield place, loop
        elif node not in seen:
            seen.add(node)
            todo += place.loops.callers(node)


def _small_kernels(step: Step) -> str:
    code = list(_code(step))
    names = {place.name(call.func) or "" for place, node in code for call in place.source.inside(node, syntax.Call)}
    if _shrinks_thumbnails(step, names):
        return "its images have 32 by 32 pixels, which its first layers leave 8 by 8 of"
    if any(name.startswith((*library.MODULE_FACTORIES, *_FUNCTIONS)) for name in names):
        return ""
    if _shrinks_few_images(step, code, names):
        return f"its batches have {_FEW_IMAGES} images at most, which its first layers shrink"
    if not RECURRENT_CELLS.isdisjoint(names) and not any(name in _LAYERS and name not in _LINES for name in names):
        return "its recurrent cells run as small kernels, position by position"
    layers, made_of = list(_layers(step, code)), chosen_network(step)
    if _recurs_narrowly(step, code, names):
        return f"its recurrent layers have {_NARROW_RECURRENT} hidden units at most"
    if not layers and made_of.widest_known <= WIDE and _goes_over_graphs(code):
        return "between its layers it gathers and adds up what nodes send each other, which half precision hardly speeds up"
    if (made_of.attention or made_of.narrow_attention) and _attends_narrowly(step, code):
        return "its attention is narrow, and so is all else in it"
    if not layers or made_of.attention or made_of.recurrent or made_of.widest_known > WIDE:
        return ""
    if any(_mixes(place, node) for place, node in code) and all((each.channels or 0) <= _NARROW for each in layers):
        return "each of its mixtures runs several small operations, one by one"
    is_of_filters = all(each.name == "torch.nn.Conv2d" and (each.channels or WIDE) <= _NARROW for each in layers)
    if is_of_filters and "torch.nn.Embedding" in names and all(_convolves_rows(*part) for part in code):
        return f"its convolutions go over embeddings, with {_NARROW} filters at most"
    is_of_lines = all(each.name in _LINES for each in layers) or _go_along_signals(layers)
    is_plain = not any(name.startswith(_AT_FULL_SIZE) for name in names) and not any(_repeats(*part) for part in code)
    is_of_few = (
        1 < len(layers) <= _FEW_LAYERS
        and is_plain
        and _runs_all_that_is_trained(step, code)
        and _reads_small_batches(step.script)
    )
    if not is_of_lines and not is_of_few and not reads_thumbnails(step.script):
        return "its convolutions of small crops compute little" if _computes_little(step, code) else ""
    most = _NARROW_LINE if is_of_lines else _NARROW
    is_narrow = all(each.channels is not None and each.channels <= most for each in layers)
    inputs = "small batches" if is_of_few else "small inputs"
    return f"its convolutions have {most} channels at most, and {inputs}" if is_narrow else ""


def _convolves_rows(script: Script, code: syntax.Node) -> bool:
    """Whether what code convolves has one channel: the embeddings of a sequence, one below the other."""
    made = (call for call in script.source.inside(code, syntax.Call) if script.name(call.func) == "torch.nn.Conv2d")
    taken = (script.argument(call, "in_channels", 0) for call in made)
    return all(each is not None and (known := script.constant(each)) is not None and known.value == 1 for each in taken)


def _repeats(script: Script, code: syntax.Node) -> bool:
    """Whether code runs or makes a part several times: in a loop, by ``map``, or ``[layer] * 9``."""
    source = script.source
    if any(True for kind in (*_REPEATS, syntax.Lambda) for _ in source.inside(code, kind)):
        return True
    return any(
        isinstance(each.operator, syntax.Multiply) and isinstance(each.left, (syntax.List, syntax.Tuple))
        for each in source.inside(code, syntax.BinaryOperation)
    )


def _computes_little(step: Step, code: list[tuple[Script, syntax.Node]]) -> bool:
    """Whether all that a step convolves is known, and little: the channels and kernels of each layer, none of which is made
    in a loop, the batch, and the random crops that it goes over."""
    batch, known = pace.largest_batch(step.script), list(sides(step.script, "RandomCrop", "RandomResizedCrop"))
    side = max((each for each in known if each is not None), default=0)
    if batch is None or not known or None in known or not _runs_all_that_is_trained(step, code):
        return False
    made, products = _constructed(step), 0
    for place, node in code:
        for call in place.source.inside(node, syntax.Call):
            if place.name(call.func) not in _LAYERS:
                continue
            ways = made.get(call) or [widths.Given(place, call)]
            parts = [widths.most(widths.passed(ways, *part)) for part in _OF_CONVOLUTION]
            if None in parts or place.name(call.func) not in _PLANES or place.source.enclosing(call, *_REPEATS) is not None:
                return False
            inputs, outputs, kernel = (part or 0 for part in parts)
            products += inputs * outputs * kernel**2 * side**2
    return 0 < products * batch <= _LITTLE


def goes_over_graphs(script: Script, module: syntax.Node) -> bool:
    """Whether a network passes messages between the nodes of graphs, attends by no layer of torch's, and is not known to be
    wide."""
    return network(script, module).widest_known <= WIDE and _goes_over_graphs(
        [part for place, node in roots(script, module) for part in _parts(place, node)]
    )


def _goes_over_graphs(code: list[tuple[Script, syntax.Node]]) -> bool:
    names = {place.name(call.func) or "" for place, node in code for call in place.source.inside(node, syntax.Call)}
    if any(name.startswith(("torch.nn.MultiheadAttention", "torch.nn.Transformer")) for name in names):
        return False
    return any(name.startswith(_GRAPHS) for name in names) or any(_imports(place, _GRAPH_PACKAGES) for place, _ in code)


def _small_for_all_that_is_seen(step: Step) -> str:
    """Why nothing says that a network is large which is made where that is not in sight, or whose weights are no layers'."""
    if _has_layers(step_network(step)):
        return ""
    if any(_imports(place, _OF_LARGE) for place in step.script.everywhere(*(name.encode() for name in _OF_LARGE))):
        return ""
    made = modules_of(step)
    made_of = reduce(Network.__or__, (code_network(*each) for root in made for each in _makers(*root)), step_network(step))
    has_layers = _has_layers(made_of)
    if made_of.is_known and made_of.attention and not has_layers and not any(True for _ in near(step.script)):
        return "it attends to a whole graph by weights of its own, and no layer of it is known to be wide"
    is_hidden = bool(made) and not made_of.is_known and not has_layers and not made_of.attention
    is_made_out_of_sight = all(isinstance(node, syntax.Call) for _, node in made)
    if is_hidden and not _decodes(step.script) and (is_made_out_of_sight or not _defines_large(step.script)):
        return "its network is not in sight, and nothing that is says that it is large"
    return ""


def _defines_large(script: Script) -> bool:
    """Whether a module that the program defines convolves, attends, or is wide: what a function is handed may be of it.

    Where it goes through narrow recurrent layers position by position, a Linear layer once an item does not make it so.
    """
    defined = (
        (code_network(place, each), place, each)
        for place in script.everywhere(b"nn")
        for each in place.source.of(syntax.ClassDef)
        if any(base.startswith("torch.nn.") for base in place.roles.calls.foreign_bases(Definition(place, each)))
    )
    return any(
        made_of.convolutions
        or made_of.attention
        or made_of.recurrent
        or (
            made_of.widest_known > WIDE
            and not made_of.narrow_recurrent
            and any(_is_wide(*part) for part in with_named(place, each))
        )
        for made_of, place, each in defined
    )


def _is_wide(script: Script, code: syntax.Node) -> bool:
    """Whether code makes a Linear layer of more weights than a wide one has, or with a wide side where one is not known: the
    positions of a short sequence, side by side, that become a few numbers are none."""
    for call in script.source.inside(code, syntax.Call):
        if script.is_call_to(call, "torch.nn.Linear", "torch.nn.LazyLinear", "torch.nn.Bilinear"):
            way = [widths.Given(script, call)]
            sides = [widths.most(widths.passed(way, name, at)) for at, name in enumerate(("in_features", "out_features"))]
            known = [side for side in sides if side is not None]
            if prod(known) > WIDE**2 if len(known) == len(sides) else max(known, default=0) > WIDE:
                return True
    return False


def _recurs_narrowly(step: Step, code: list[tuple[Script, syntax.Node]], names: set[str]) -> bool:
    """Whether all that a network holds beside recurrent layers, each known to be narrow, is Linear layers that are not
    known to be wide, and that do not tell one word of as many as are embedded."""
    made_of = chosen_network(step)
    if not (made_of.recurrent or made_of.narrow_recurrent) or made_of.attention or made_of.convolutions:
        return False
    if any(name.partition(".")[0] in _OF_LARGE for name in names):
        return False
    if any(_is_handed_modules(*root) for root in chosen_modules(step)):
        return False
    made = _constructed(step)
    calls = [(place, call) for place, node in code for call in place.source.inside(node, syntax.Call)]
    embedded = {
        place.text(rows)
        for place, call in calls
        if place.is_call_to(call, "torch.nn.Embedding") and (rows := place.argument(call, "num_embeddings", 0)) is not None
    }
    for place, call in calls:
        if place.is_call_to(call, *_RECURRENT):
            units = widths.most(widths.passed(made.get(call) or [widths.Given(place, call)], "hidden_size", 1))
            if units is None or units > _NARROW_RECURRENT:
                return False
        if place.is_call_to(call, "torch.nn.Linear"):
            way = made.get(call) or [widths.Given(place, call)]
            given = widths.passed(way, "out_features", 1)
            out = place.argument(call, "out_features", 1)
            is_wide = any((widths.most([each]) or 0) > WIDE for each in given)
            if (is_wide and not _multiplies_items(step, way)) or (out is not None and place.text(out) in embedded):
                return False
    return any(place.is_call_to(call, *_RECURRENT) for place, call in calls)


def _multiplies_items(step: Step, layer: list[widths.Given]) -> bool:
    """Whether a Linear layer takes all positions of a sequence side by side, once an item, and few items at a time."""
    taken, given = (widths.most(widths.passed(layer, name, at)) for at, name in enumerate(("in_features", "out_features")))
    items = pace.largest_batch(step.script)
    if taken is None or given is None or items is None or taken <= 2 * _NARROW_RECURRENT:
        return False
    return taken * given * items <= _FEW_PRODUCTS


def _is_handed_modules(script: Script, made: syntax.Node) -> bool:
    """Whether a module is made of others, which its own code does not name: ``Translator(encoder, decoder)``."""
    args = made.args if isinstance(made, syntax.Call) else ()
    return any(script.role(arg.value) is Role.MODULE for arg in args)


def _has_layers(made_of: Network) -> bool:
    return bool(made_of.convolutions or made_of.recurrent or made_of.linears or made_of.narrow_attention)


def _imports(script: Script, packages: frozenset[str]) -> bool:
    """Whether a script imports one of some packages, or something of it but what shows pictures."""
    bound = (dotted for _, dotted in script.names.imports if not f"{dotted}.".startswith(_SHOWS))
    return any(dotted.partition(".")[0] in packages for dotted in bound)


def _makers(script: Script, made: syntax.Node) -> Iterator[tuple[Script, syntax.Node]]:
    """The functions of the project that a call may run to make a module: of a method, all that have its name."""
    maker = script.callee(made) if isinstance(made, syntax.Call) else None
    if maker is None or not isinstance(maker.node, syntax.FunctionDef):
        return
    name = maker.node.name.value
    for place in script.everywhere(f"def {name}".encode()) if maker.script.names.owner(maker.node) else (maker.script,):
        yield from ((place, each) for each in place.source.of(syntax.FunctionDef) if each.name.value == name)


def _decodes(script: Script) -> bool:
    """Whether a loader of the program reads images or recordings."""
    return any(scale.decodes(origin) for each in near(script) for origin in each.origins)


def _attends_narrowly(step: Step, code: list[tuple[Script, syntax.Node]]) -> bool:
    """Whether the widths of all layers of an attending network are known, and narrow; not where it is a package's."""
    made = _constructed(step)
    limits = {"torch.nn.Linear": ("out_features", 1, _NARROW_PRODUCT)}
    limits |= dict.fromkeys(_LAYERS, ("out_channels", 1, _NARROW_ATTENTION))
    limits |= dict.fromkeys(_RECURRENT, ("hidden_size", 1, 2 * _NARROW_ATTENTION))
    limits |= dict.fromkeys(_ATTENDING, ("embed_dim", 0, _NARROW_ATTENTION))
    limits |= dict.fromkeys(_ATTENDING_LAYERS, ("d_model", 0, _NARROW_ATTENTION))
    known: list[bool] = []
    for place, node in code:
        for call in place.source.inside(node, syntax.Call):
            if (name := place.name(call.func) or "").partition(".")[0] in _OF_LARGE:
                return False
            if name not in limits:
                continue
            keyword, at, most = limits[name]
            given = widths.most(widths.passed(made.get(call) or [widths.Given(place, call)], keyword, at))
            known.append(given is not None and given <= most)
    return bool(known) and all(known)


def _shrinks_thumbnails(step: Step, names: set[str]) -> bool:
    """Whether all that a step's modules convolve with are torchvision's networks for large images as they are, given small
    batches of thumbnails."""
    made = {name.removeprefix(_TORCHVISION) for name in names if name.startswith(_TORCHVISION)}
    if not made or any("." in name or not name.startswith(_SHRINKING) for name in made) or not names.isdisjoint(_LAYERS):
        return False
    most = pace.largest_batch(step.script)
    return reads_thumbnails(step.script) and most is not None and most <= _PLAIN_BATCH


def _shrinks_few_images(step: Step, code: list[tuple[Script, syntax.Node]], names: set[str]) -> bool:
    """Whether all networks of a step halve an image's sides twice before the first of their layers, and are given batches of
    a few images of the usual size."""
    made_of, most = chosen_network(step), pace.largest_batch(step.script)
    if not made_of.is_known or made_of.attention or made_of.recurrent or most is None or most > _FEW_IMAGES:
        return False
    if any(name.startswith((*_LINES, "torch.nn.Conv3d", *_AT_FULL_SIZE)) for name in names):
        return False
    known = list(sides(step.script, "Resize", "CenterCrop", "RandomCrop", "RandomResizedCrop"))
    if not known or any(side is None or side > _USUAL_SIDE for side in known):
        return False
    strides = [
        (place, place.argument(call, "stride", 3))
        for place, node in code
        for call in place.source.inside(node, syntax.Call)
        if place.name(call.func) == "torch.nn.Conv2d" and _reads_image(place, call)
    ]
    least = 2 if "torch.nn.MaxPool2d" in names else 4
    constants = [place.constant(stride) if stride is not None else None for place, stride in strides]
    return bool(strides) and all(
        each is not None and isinstance(each.value, int) and each.value >= least for each in constants
    )


def _reads_image(script: Script, convolution: syntax.Call) -> bool:
    channels = script.argument(convolution, "in_channels", 0)
    known = script.constant(channels) if channels is not None else None
    return known is not None and isinstance(known.value, int) and known.value <= _COLOURS


def _runs_all_that_is_trained(step: Step, code: list[tuple[Script, syntax.Node]]) -> bool:
    """Whether a step names each module that the program trains, or one that it is a part of: no generator is run out of
    sight."""
    named = {node for _, node in modules_of(step)}
    return all(
        node in named or any(place is script and script.source.contains(part, node) for place, part in code)
        for script, node in trained_modules(step.script)
    )


def _reads_small_batches(script: Script) -> bool:
    """Whether all that a program is seen to load is batches of a few items that are no images in files."""
    read = [each for each in near(script) if each.matters]
    most = pace.largest_batch(script)
    is_small_batch = most is not None and most <= _SMALL_BATCH
    return is_small_batch and all(origin.is_known and not scale.decodes(origin) for each in read for origin in each.origins)


def _code(step: Step) -> Iterator[tuple[Script, syntax.Node]]:
    """What the modules of a step are made of, as far as it is first-party; else the expression that makes them."""
    seen = set()
    for root in chosen_modules(step):
        for place, each in _parts(*root):
            if each not in seen:
                seen.add(each)
                yield place, each


def _parts(script: Script, module: syntax.Node) -> Iterator[tuple[Script, syntax.Node]]:
    """The code of the class of a module; else the expression that makes it."""
    definition = root_definition(script, module)
    yield from with_named(*((definition.script, definition.node) if definition is not None else (script, module)))


@once(_NOTHING_MADE)
def _constructed(step: Step) -> dict[syntax.Node, list[widths.Given]]:
    """The calls of a library that making a step's modules leads to."""
    return widths.constructed(widths.Given(script, node) for script, node in chosen_modules(step))


def _layers(step: Step, code: list[tuple[Script, syntax.Node]]) -> Iterator[_Layer]:
    """The convolutions of a step's network."""
    made = _constructed(step)
    for place, node in code:
        for call in place.source.inside(node, syntax.Call):
            if (name := place.name(call.func)) in _LAYERS:
                given = widths.passed(made.get(call) or [widths.Given(place, call)], "out_channels", 1)
                yield _Layer(name or "", widths.most(given), _kernel(place, call))


def _kernel(script: Script, layer: syntax.Call) -> tuple[int, int] | None:
    kernel = script.argument(layer, "kernel_size", 2) if script.name(layer.func) in _PLANES else None
    sides = [script.constant(each.value) for each in kernel.elements] if isinstance(kernel, syntax.Tuple) else []
    known = [each.value for each in sides if each is not None and isinstance(each.value, int)]
    return (known[0], known[1]) if len(known) == 2 else None


def _go_along_signals(layers: list[_Layer]) -> bool:
    """Whether convolutions of two dimensions go along the samples of one or two signals: each kernel is one or two high and
    one of its sides is 1, or all are so the other way round."""
    kernels = [each.kernel for each in layers]
    return any(all(each is not None and each[side] <= _SIGNALS and 1 in each for each in kernels) for side in (0, 1))


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
