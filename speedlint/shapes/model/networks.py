"""What a network is made of: convolutions, attention, recurrence, matrix products, and how wide.

A module's class is read with its bases, the first-party classes and functions it names, and theirs; library networks by
name. What is out of sight is said to be: ``Network.is_known``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import reduce
from typing import NamedTuple

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes.training import roots
from speedlint.solve import off, picked
from speedlint.solve.flow import once
from speedlint.solve.names import last_name
from speedlint.solve.terms import Definition
from speedlint.torch import library
from speedlint.torch.words import Role

_LOSS = re.compile(r"loss|criterion", re.IGNORECASE)
_CONVOLUTIONS = tuple(f"torch.nn.{name}" for name in ("Conv", "LazyConv", "functional.conv"))
_ATTENTION = (
    "torch.nn.MultiheadAttention",
    "torch.nn.Transformer",
    "torch.nn.functional.scaled_dot_product_attention",
    "torch.nn.functional.multi_head_attention_forward",
)
_STACKS = ("torch.nn.TransformerEncoder", "torch.nn.TransformerDecoder")
_RECURRENT = tuple(f"torch.nn.{name}" for name in ("LSTM", "GRU", "RNN"))
_PRODUCTS = frozenset("torch.matmul torch.bmm torch.einsum torch.baddbmm torch.addmm torch.mm".split())
PRODUCT_METHODS = ("bmm", "matmul", "mm")
_CONVOLUTIONAL_LIBRARIES = (
    "torchvision.models.",
    "segmentation_models_pytorch.",
    "efficientnet_pytorch.",
    "resnest.",
    "pretrainedmodels.",
    "timm.",
    "monai.networks.",
)
_ATTENTION_NAMES = (
    "vit",
    "swin",
    "deit",
    "beit",
    "bert",
    "gpt",
    "transformer",
    "cait",
    "xcit",
    "eva",
    "clip",
    "maxvit",
    "llama",
)
_OF_IMAGES = ("timm.create_model", "timm.models.", "torchvision.models.")
_TRANSFORMERS = ("transformers.", "pytorch_transformers.", "pytorch_pretrained_bert.", "pytorch_pretrained.")
"""The library by its names since 2018."""
_MODEL = re.compile(r"Model|For[A-Z]|T5|GPT|LM")
"""Classes of transformers that hold weights: its tokenizers, configurations and processors are loaded by the same name."""
_SMALL_ONE = re.compile(r"tiny|mini|small|distil(?!led)|nano|micro|atto|femto|pico|mobile|swin_t\b")
_NO_NETWORKS = (
    "torch.",
    "numpy.",
    "typing.",
    "collections.",
    "functools.",
    "dataclasses.",
    "torchvision.transforms.",
    "torchvision.datasets.",
    "pathlib.",
    "enum.",
    "PIL.",
    "torchvision.ops.",
    "easydict.",
    "omegaconf.",
)
_PLAIN_MODULES = "torch.nn."
RECURRENT_CELLS = frozenset({"torch.nn.LSTMCell", "torch.nn.GRUCell", "torch.nn.RNNCell"})
"""Layers that take one position of a sequence at a time."""
RECURRENT_LAYERS = RECURRENT_CELLS | {"torch.nn.LSTM", "torch.nn.GRU", "torch.nn.RNN"}
WIDE = 1024
"""Numbers up to which a Linear layer is a small part of what its launch takes."""
_NARROW = 256
"""Hidden units up to which a step of a recurrent layer is bound by the launch of its kernels."""
_NARROW_ATTENTION = 128
"""Numbers a position up to which attention is bound by the launch of its kernels."""
_HEAD = 2


class Network(NamedTuple):
    """What a module is made of.

    Attributes:
        convolutions: layers and calls that convolve.
        attention: whether it attends: an attention layer or a softmax between matrix products, wide or of unknown width.
        narrow_attention: whether it holds an attention layer of at most 128 numbers a position.
        recurrent: whether it holds an LSTM, GRU or RNN that is wide, or whose width is not known.
        narrow_recurrent: whether it holds one of at most 256 hidden units.
        products: matrix products written out: ``bmm``, ``einsum``, ``@``.
        linears: its Linear layers.
        widest: the widest constant Linear layer; None where one is not known.
        widest_known: the widest Linear layer among those that are known.
        is_known: whether all of it was in sight.
    """

    convolutions: int = 0
    attention: bool = False
    narrow_attention: bool = False
    recurrent: bool = False
    narrow_recurrent: bool = False
    products: int = 0
    linears: int = 0
    widest: int | None = 0
    widest_known: int = 0
    is_known: bool = True

    def __or__(self, other: Network) -> Network:
        known_width = self.widest is not None and other.widest is not None
        return Network(
            self.convolutions + other.convolutions,
            self.attention or other.attention,
            self.narrow_attention or other.narrow_attention,
            self.recurrent or other.recurrent,
            self.narrow_recurrent or other.narrow_recurrent,
            self.products + other.products,
            self.linears + other.linears,
            max(self.widest or 0, other.widest or 0) if known_width else None,
            max(self.widest_known, other.widest_known),
            self.is_known and other.is_known,
        )


_UNKNOWN = Network(widest=None, is_known=False)


def is_convolutional(script: Script, module: syntax.Node) -> bool:
    """Whether a module, the value of an expression, is built on convolutions; no where it is out of sight."""
    return network(script, module).convolutions > 0


def is_small_linear(script: Script, module: syntax.Node) -> bool:
    """Whether a module holds nothing but Linear layers with constant widths of at most 1024."""
    made_of = network(script, module)
    return made_of.is_known and made_of.widest is not None and is_small(made_of)


def is_small(made_of: Network) -> bool:
    """Whether all that is seen of a network are products, narrow recurrent layers, and Linear ones not known to be wide."""
    heavier = made_of.convolutions or made_of.attention or made_of.recurrent
    return made_of.is_known and not heavier and made_of.widest_known <= WIDE


def is_matmul_heavy(script: Script, module: syntax.Node) -> bool:
    """Whether much of a module's work is matrix products outside of cuDNN: attention, wide Linear layers, or more of them
    beside a recurrent layer (which cuDNN computes) than its head."""
    made_of = network(script, module)
    if made_of.attention:
        return True
    if made_of.convolutions:
        return False
    if made_of.recurrent or made_of.narrow_recurrent:
        return made_of.linears > _HEAD
    return made_of.widest_known > WIDE


def attends_by_choice(script: Script, module: syntax.Node) -> bool:
    """Whether a network attends only where a name chooses the part that does among others that convolve, and no option is
    known to choose that one: ``if backbone == "resnet": ... elif backbone == "vit": ...``."""
    made_of = network(script, module)
    definitions = [root_definition(*root) for root in roots(script, module)]
    known = [each for each in definitions if each is not None]
    if not made_of.attention or not made_of.convolutions or len(known) < len(definitions):
        return False
    always = {part: place for each in known for place, part in _always_named(each)}
    return bool(known) and not any(_own(place, part).attention for part, place in always.items())


def _always_named(definition: Definition) -> Iterator[tuple[Script, syntax.Node]]:
    """What ``with_named`` gives of a class or function, but for what only a choice by a name leads to."""
    todo, seen = [definition], {definition.node}
    while todo:
        script, top = (each := todo.pop()).script, each.node
        yield script, top
        for other in _named_definitions(script, top):
            if other.node not in seen and not all(_is_chosen(script, name) for name in _names_of(script, top, other)):
                seen.add(other.node)
                todo.append(other)


def _names_of(script: Script, top: syntax.Node, definition: Definition) -> Iterator[syntax.Name]:
    for name in script.source.inside(top, syntax.Name):
        found = script.definition(name)
        if found is not None and found.node is definition.node:
            yield name


def _is_chosen(script: Script, name: syntax.Name) -> bool:
    """Whether a name stands in a branch of a choice by a string, beside one whose parts convolve and do not attend."""
    child: syntax.Node = name
    for up in script.source.ancestors(name):
        if isinstance(up, syntax.If) and child is not up.test and _compares_to_string(script, up.test):
            is_met = off.values(script, up.test) == (child is up.body,)
            branches = [each for each in _branches(script, up) if not script.source.contains(each, name)]
            return not is_met and any(_only_convolves(script, each) for each in branches)
        child = up
    return False


def _compares_to_string(script: Script, test: syntax.BaseExpression) -> bool:
    return isinstance(test, syntax.Comparison) and any(True for _ in script.source.inside(test, syntax.SimpleString))


def _branches(script: Script, branch: syntax.If) -> list[syntax.Node]:
    """The bodies of a whole chain of ``if`` and ``elif``, from any of them."""
    top = branch
    while isinstance(up := script.source.parents[top], syntax.If) and up.orelse is top:
        top = up
    found: list[syntax.Node] = [top.body]
    rest = top.orelse
    while isinstance(rest, syntax.If):
        found.append(rest.body)
        rest = rest.orelse
    return [*found, rest.body] if isinstance(rest, syntax.Else) else found


def _only_convolves(script: Script, branch: syntax.Node) -> bool:
    made_of = reduce(Network.__or__, (code_network(*each) for each in _named_definitions(script, branch)), Network())
    return made_of.convolutions > 0 and not made_of.attention


@once(_UNKNOWN)
def network(script: Script, module: syntax.Node) -> Network:
    """What a module, the value of an expression, is made of; of a union of its kinds where it may be several."""
    origins = roots(script, module)
    made = [root for root in origins if not _is_loaded(*root)]
    found = [root_network(*root) for root in made or origins]
    return reduce(Network.__or__, found) if found else _UNKNOWN


def _is_loaded(script: Script, node: syntax.Node) -> bool:
    """Whether a module is read from a checkpoint: then it is what the script makes when it starts anew."""
    match node:
        case syntax.Subscript(slice=[syntax.SubscriptElement(slice=syntax.Index(value=syntax.SimpleString()))]):
            return True
    return script.is_call_to(node, "torch.load")


def is_loss(script: Script, call: syntax.Call) -> bool:
    """Whether a call is one of a loss: torch's own, or a module without layers; out of sight, one of a class named so."""
    if script.role(call.func) is not Role.MODULE:
        return False
    made_of = network(script, call.func)
    names = [
        place.name(node.func) or place.text(node.func)
        for place, node in roots(script, call.func)
        if isinstance(node, syntax.Call)
    ]
    if made_of.is_known and not any(name.startswith("torch.nn.") for name in names):
        return not (made_of.convolutions or made_of.attention or made_of.recurrent or made_of.products or made_of.linears)
    defined = script.value(call.func).definition
    return any(_LOSS.search(name.rpartition(".")[2]) for name in (*names, defined.name if defined is not None else ""))


@once(_UNKNOWN)
def root_network(script: Script, node: syntax.Node) -> Network:
    """What a module that is made by this expression is made of."""
    definition = root_definition(script, node)
    if definition is not None:
        return reduce(Network.__or__, _handed(script, node), code_network(*definition))
    if not isinstance(node, syntax.Call):
        return _UNKNOWN
    if named := picked.looked_up(script, node.func):
        found = reduce(Network.__or__, (code_network(*each) for each in named if each is not None), Network())
        return found._replace(is_known=False)  # what it is made of is an estimate: nothing that is written rests on it
    name = script.name(node.func) or _indexed_library(script, node.func)
    if name is None:
        chosen = (place.definition(each) for place, each in script.roles.calls.choices(node.func))
        classes = [each for each in chosen if each is not None and isinstance(each.node, syntax.ClassDef)]
        return reduce(Network.__or__, (code_network(*each) for each in classes)) if classes else _UNKNOWN
    if name.startswith(_PLAIN_MODULES):
        return reduce(Network.__or__, _taken_over(script, node), code_network(script, node))
    return _of_library(script, node, name)


@once(False)
def is_library_transformer(script: Script, node: syntax.Node) -> bool:
    """Whether a module that is made by this expression is, or holds, a library's transformer of a usual size: pretrained by
    transformers, or made by name by timm or torchvision."""
    definition = root_definition(script, node)
    parts = [(script, node)] if definition is None else with_named(definition.script, definition.node)
    return any(_makes_transformer(place, call) for place, part in parts for call in place.source.inside(part, syntax.Call))


def _makes_transformer(script: Script, call: syntax.Call) -> bool:
    name = script.name(call.func) or ""
    if name.startswith(_TRANSFORMERS):
        kind, _, method = name.partition(".")[2].rpartition(".")
        is_model = method == "from_pretrained" and _MODEL.search(kind.rpartition(".")[2]) is not None
        return is_model and not _SMALL_ONE.search(_words(script, call, name))
    if not name.startswith(_OF_IMAGES):
        return False
    words = _words(script, call, name)
    return any(mark in words for mark in _ATTENTION_NAMES) and not _SMALL_ONE.search(words)


def _words(script: Script, call: syntax.Call, name: str) -> str:
    """The name of a library's network, and of its variant where it is known, in small letters."""
    variant = script.constant(call.args[0].value) if call.args else None
    return f"{name} {variant.value}".lower() if variant is not None and isinstance(variant.value, str) else name.lower()


def _handed(script: Script, made: syntax.Node) -> Iterator[Network]:
    """The modules that a module is made of elsewhere and handed: ``Translator(encoder, decoder)``; of a library's also what
    makes them: ``Contrast(torchvision.models.__dict__[name])``."""
    for arg in made.args if isinstance(made, syntax.Call) else ():
        holder = arg.value.value if isinstance(arg.value, syntax.Subscript) else arg.value
        if (name := script.name(holder) or "").startswith(_CONVOLUTIONAL_LIBRARIES):
            yield _by_name(name)
        elif isinstance(arg.value, (syntax.Name, syntax.Attribute)) and (
            script.role(arg.value) is Role.MODULE or _runs_handed(script, made, arg.value)
        ):
            yield network(script, arg.value)


def takes_over(script: Script, module: syntax.BaseExpression) -> bool:
    """Whether a module is a container of the parts of another one that has a name, by which they may be trained."""
    return any(
        True
        for place, node in roots(script, module)
        for call in place.source.inside(node, syntax.Call)
        if isinstance(call.func, syntax.Attribute)
        and call.func.attr.value == "children"
        and isinstance(call.func.value, (syntax.Name, syntax.Attribute))
    )


def _taken_over(script: Script, made: syntax.Node) -> Iterator[Network]:
    """The modules of which a container has the first parts: ``nn.Sequential(*list(resnet.children())[:-1])``."""
    for arg in made.args if isinstance(made, syntax.Call) else ():
        parts = arg.value if arg.star == "*" else None
        match parts:
            case syntax.Subscript(value=whole, slice=[syntax.SubscriptElement(slice=syntax.Slice(lower=None, step=None))]):
                parts = whole
        match parts:
            case syntax.Call(args=[syntax.Arg(value=listed)]) if script.is_call_to(parts, "list"):
                parts = listed
        match parts:
            case syntax.Call(func=syntax.Attribute(value=whole, attr=syntax.Name("children")), args=[]):
                if script.role(whole) is Role.MODULE:
                    is_of_library = all(root_definition(*root) is None for root in roots(script, whole))
                    found = network(script, whole)
                    yield found if is_of_library else found._replace(is_known=False)


def _runs_handed(script: Script, made: syntax.Node, handed: syntax.BaseExpression) -> bool:
    """Whether the class of an object calls a value of an unknown kind that it is made with: ``self.encoder = encoder`` and
    ``self.encoder(x)``, where a library that nothing is known of makes it."""
    if not isinstance(made, syntax.Call) or script.role(handed) is not Role.UNKNOWN or script.name(handed) is not None:
        return False
    begun = script.callee(made)
    if begun is None or not isinstance(begun.node, syntax.FunctionDef):
        return False
    place, start = begun.script, begun.node
    klass = place.names.owner(start)
    taken = {each.name.value for each in start.params.params if place.values.given(start, each, script, made) is handed}
    if klass is None or not taken:
        return False
    kept = [
        assign.targets[0].target
        for assign in place.source.inside(start.body, syntax.Assign)
        if isinstance(assign.value, syntax.Name) and assign.value.value in taken
    ]
    texts, names = {place.text(each) for each in kept}, {last_name(each) for each in kept}
    called = (call.func for call in place.source.inside(klass, syntax.Call))
    return any(last_name(each) in names and place.text(each) in texts for each in called)


def root_definition(script: Script, node: syntax.Node) -> Definition | None:
    """The first-party class of a module that is made by this expression, or the function that makes it."""
    if not isinstance(node, syntax.Call | syntax.Param | syntax.Name):
        return None
    made_by = script.definition(node.func) if isinstance(node, syntax.Call) else None
    return made_by or script.value(node).definition


def _indexed_library(script: Script, function: syntax.Node) -> str | None:
    """``torchvision.models.__dict__`` for ``models.__dict__[arch]`` and ``getattr(models, arch)``."""
    if isinstance(function, syntax.Subscript):
        return script.name(function.value)
    if isinstance(function, syntax.Call) and script.name(function.func) == "getattr" and function.args:
        name = script.name(function.args[0].value)
        return f"{name}." if name else None
    return None


def _of_library(script: Script, call: syntax.Call, name: str) -> Network:
    """A library's network, by its name."""
    return _by_name(_words(script, call, name))


def _by_name(words: str) -> Network:
    if words.startswith("transformers.") or any(mark in words for mark in _ATTENTION_NAMES):
        return Network(attention=True, linears=2, widest=None)
    if words.startswith(_CONVOLUTIONAL_LIBRARIES):
        return Network(convolutions=1, linears=1)
    return _UNKNOWN


@once(Network())
def code_network(script: Script, top: syntax.Node) -> Network:
    """What a piece of code holds, with the first-party classes and functions it names."""
    return reduce(Network.__or__, (_own(place, node) for place, node in with_named(script, top)), Network())


def with_named(script: Script, top: syntax.Node, *, called: bool = False) -> Iterator[tuple[Script, syntax.Node]]:
    """A piece of code, and the first-party classes and functions that it names, and that these name; also those that are
    ``called`` in other ways."""
    todo: list[tuple[Script, syntax.Node]] = [(script, top)]
    seen = {top}
    while todo:
        place, node = todo.pop()
        yield place, node
        callees = map(place.callee, place.source.inside(node, syntax.Call)) if called else ()
        for other in (*_named_definitions(place, node), *(each for each in callees if each is not None)):
            if other.node not in seen and len(seen) < 200:
                seen.add(other.node)
                todo.append((other.script, other.node))


@once([])
def _named_definitions(script: Script, top: syntax.Node) -> list[Definition]:
    """The first-party classes and functions that a piece of code names, and a class's bases."""
    found: dict[syntax.Node, Definition] = {}
    for name in script.source.inside(top, syntax.Name):
        parent = script.source.parents[name]
        if isinstance(parent, syntax.Attribute) and parent.attr is name:
            node: syntax.Node = parent
        elif isinstance(parent, (syntax.Param, syntax.FunctionDef, syntax.ClassDef)) or (
            isinstance(parent, syntax.Arg) and parent.keyword is name
        ):
            continue
        else:
            node = name
        definition = script.definition(node)
        if definition is not None:
            found.setdefault(definition.node, definition)
    return list(found.values())


def _own(script: Script, top: syntax.Node) -> Network:
    """What a piece of code holds itself."""
    convolutions = products = linears = widest_known = 0
    attention = narrow_attention = recurrent = narrow_recurrent = False
    softmax = False
    widest: int | None = 0
    library_parts = Network()
    for call in script.source.inside(top, syntax.Call):
        name = script.name(call.func)
        if name is None:
            if isinstance(call.func, syntax.Attribute):
                products += call.func.attr.value in PRODUCT_METHODS
                softmax = softmax or call.func.attr.value == "softmax"
            continue
        if name.startswith(_CONVOLUTIONS):
            convolutions += 1
        elif name in _STACKS and _is_layer_in_sight(script, call):
            continue
        elif name.startswith(_ATTENTION):
            is_narrow = (width := _attended(script, call)) is not None and width <= _NARROW_ATTENTION
            narrow_attention, attention = narrow_attention or is_narrow, attention or not is_narrow
        elif name in RECURRENT_LAYERS:
            hidden = script.constant(given) if (given := script.argument(call, "hidden_size", 1)) is not None else None
            is_narrow = hidden is not None and isinstance(hidden.value, int) and hidden.value <= _NARROW
            narrow_recurrent, recurrent = narrow_recurrent or is_narrow, recurrent or not is_narrow
        elif name in _PRODUCTS:
            products += 1
        elif name in ("torch.nn.Linear", "torch.nn.LazyLinear", "torch.nn.Bilinear"):
            linears += 1
            width = _width(script, call)
            widest = None if widest is None or width is None else max(widest, width)
            widest_known = max(widest_known, width or 0)
        elif name in ("torch.nn.Softmax", "torch.softmax", "torch.nn.functional.softmax"):
            softmax = True
        elif name.startswith((*library.MODULE_FACTORIES, "transformers.")) or _is_foreign_module(script, name):
            library_parts |= _of_library(script, call, name)
    if isinstance(top, syntax.ClassDef):
        attention = attention or any((script.name(base.value) or "").startswith(_ATTENTION) for base in top.bases)
    products += sum(
        isinstance(op.operator, syntax.MatrixMultiply) for op in script.source.inside(top, syntax.BinaryOperation)
    )
    attention = attention or (softmax and products >= 2)
    known = Network(
        convolutions, attention, narrow_attention, recurrent, narrow_recurrent, products, linears, widest, widest_known
    )
    return known | library_parts


def _is_layer_in_sight(script: Script, stack: syntax.Call) -> bool:
    """Whether the layer that a stack is made of is made by calls that are seen."""
    made = [node for _, node in script.roles.origins(stack.args[0].value)] if stack.args else []
    return bool(made) and all(isinstance(node, syntax.Call) for node in made)


def _attended(script: Script, call: syntax.Call) -> int | None:
    """The width of an attention layer, by its argument, or by the default of the parameter that this is."""
    given = script.argument(call, "embed_dim", 0) or script.argument(call, "d_model", 0)
    known = script.constant(given) if given is not None else None
    if known is None and isinstance(given, syntax.Name):
        nodes = [binding.node for binding in script.names.reaching(given)]
        defaults = [node.default for node in nodes if isinstance(node, syntax.Param) and node.default is not None]
        known = script.constant(defaults[0]) if len(defaults) == len(nodes) == 1 else None
    return known.value if known is not None and isinstance(known.value, int) else None


def _is_foreign_module(script: Script, name: str) -> bool:
    """Whether a name is a class of a library that may hold layers."""
    last = name.rpartition(".")[2]
    return "." in name and last[:1].isupper() and not name.startswith(_NO_NETWORKS) and script.imported(name) is None


def _width(script: Script, call: syntax.Call) -> int | None:
    """The wider side of a Linear layer, None where neither side is known."""
    sides = (script.argument(call, "in_features", 0), script.argument(call, "out_features", 1))
    known = [script.constant(side) for side in sides if side is not None]
    numbers = [side.value for side in known if side is not None and isinstance(side.value, int)]
    return max(numbers) if numbers else None
