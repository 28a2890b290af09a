"""Texts that are padded to a limit: where that is done for a training, and whether its batches may be of other lengths."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.shapes.data import datasets, loaders, tokenizing
from speedlint.shapes.frameworks import huggingface
from speedlint.shapes.model import compilation, networks
from speedlint.shapes.training import trained_modules
from speedlint.solve.flow import once
from speedlint.solve.names import last_name
from speedlint.solve.terms import Definition
from speedlint.solve.unpacking import written
from speedlint.torch.words import FREQUENT

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_ASKED = (("padding", "max_length"), ("pad_to_max_length", True))
_FULL = ("return_overflowing_tokens", "return_attention_mask", "stride", "text_target")
"""What a tokenizer is told where its rows are full, or where what it pads is no matter of a mask."""
_MASKED = re.compile(rb"attention_mask|transformers\b[^\n]*Trainer")
"""What says which tokens only pad: the mask by its name, or the ``Trainer`` of transformers, which hands all on."""
_ONE_LENGTH = re.compile(
    rb"(?i:\btpu|torch_xla|\bneuron|habana|\bonnx|tensorrt|cudagraph|cuda\.graph|torch_compile|\bdiffusers|siglip)"
    rb"|CLIP|openai/clip|gather\(|gather_for_metrics|sentence_transformers|IterableDataset|streaming\s?=\s?True"
    rb"|(?i:nystrom|reformer|fnet|longformer|bigbird)"
)
"""What needs one length, or pads by itself: a TPU, graphs of CUDA's, encoders of images and texts, and others."""
_COUNTS = frozenset(
    "view reshape flatten Flatten unflatten rearrange Conv1d Conv2d conv1d LSTM GRU RNN BatchNorm1d MaxPool1d AvgPool1d "
    "AdaptiveAvgPool1d max mean sum einsum permute transpose".split()
)
"""What a network may count the positions of a sequence by, or go over those that only pad."""
_GOES_ON = re.compile(rb"ForCausalLM|LMHeadModel|mlm\s?=\s?False|group_texts|block_size")


def is_to_limit(script: Script, call: syntax.Call) -> bool:
    """Whether a call cuts texts into tokens and pads each to a limit: ``padding="max_length"``."""
    if any(script.argument(call, name) is not None for name in _FULL):
        return False
    is_told = any(_is_given(script, call, name, value) for name, value in _ASKED)
    return is_told and tokenizing.tokenized(script, call) is not None


def _is_given(script: Script, call: syntax.Call, name: str, value: object) -> bool:
    given = script.argument(call, name)
    known = script.constant(given) if given is not None else None
    return known is not None and known.value == value


def is_for_training(script: Script, call: syntax.Call) -> bool:
    """Whether a tokenizer makes what a training reads: an item of its dataset, a batch, or a row of its table."""
    function = script.function(call)
    if function is None or script.is_test or script.frequency(call) in FREQUENT:
        return False
    if any(found.matters and found.collates_by(script, function) for found in loaders.near(script)):
        return True
    klass = script.names.owner(function)
    if klass is None:
        return any(_is_mapped(place, expression, script, function) for place, expression in _trained_on(script))
    definition = Definition(script, klass)
    origins = [each for found in loaders.near(script) if found.matters for each in found.origins]
    origins += [each for place, expression in _trained_on(script) for each in datasets.origins(place, expression)]
    return any(each.definition is not None and each.definition.node is definition.node for each in origins)


def _trained_on(script: Script) -> Iterator[tuple[Script, syntax.BaseExpression]]:
    """The datasets that a ``Trainer`` is to train on, in a program."""
    for place in script.everywhere(b"Trainer("):
        for one in huggingface.trainings(place):
            given = one.part("train_dataset")
            if given is not None:
                yield one.place, given


def _is_mapped(script: Script, table: syntax.BaseExpression, place: Script, function: syntax.FunctionDef) -> bool:
    """Whether a table of the ``datasets`` library comes from ``map`` of a function, which is handed there by its name."""
    nodes = [(script, table)]
    for name in script.source.inside(table, syntax.Name):
        given = map(written, script.names.reaching(name))
        nodes += [(script, each) for each in given if each is not None]
        nodes += script.roles.origins(name)
    for where, node in nodes:
        for call in where.source.inside(node, syntax.Call):
            mapped = where.argument(call, "function", 0)
            is_map = isinstance(call.func, syntax.Attribute) and call.func.attr.value == "map"
            found = where.definition(mapped) if is_map and mapped is not None else None
            if found is not None and found.node is function and found.script is place:
                return True
    return False


@once(False)
def may_vary(script: Script) -> bool:
    """Whether the batches of a program may have lengths of their own: all that it trains takes any length, a mask says what
    is padding, and nothing needs one shape."""
    if not script.program.mentions(script, _MASKED) or script.program.mentions(script, _ONE_LENGTH):
        return False
    return not compilation.is_compiled(script) and _trains_what_takes_any(script)


def _trains_what_takes_any(script: Script) -> bool:
    trained = [
        (place, node)
        for place, node in trained_modules(script)
        if not isinstance(node, syntax.Call) or not huggingface.is_trainer(place, node)
    ]
    tuned = [one for place in script.everywhere(b"Trainer(") for one in huggingface.trainings(place)]
    trained += [root for one in tuned for root in one.models]
    return bool(trained) and all(_takes_any_length(*each) for each in trained)


def _takes_any_length(script: Script, node: syntax.Node) -> bool:
    """Whether a model is one of transformers for a task, or one of the project's that holds a transformer of theirs, and
    nothing that counts positions, or goes over them, without a mask."""
    name = script.name(node.func) if isinstance(node, syntax.Call) else None
    if name is not None:
        return name.startswith("transformers.") and "For" in name
    definition = networks.root_definition(script, node)
    if definition is None or not networks.is_library_transformer(script, node):
        return False
    parts = networks.with_named(definition.script, definition.node)
    return not any(
        last_name(call.func) in _COUNTS for place, part in parts for call in place.source.inside(part, syntax.Call)
    )


def goes_on_with_texts(script: Script) -> bool:
    """Whether a program trains a model to go on with texts, which mostly are as long as it takes them."""
    return script.program.mentions(script, _GOES_ON)
