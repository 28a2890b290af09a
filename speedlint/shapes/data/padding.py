"""Texts that are padded to a limit: where that is done for a training, and whether its batches may be of other lengths."""

from __future__ import annotations

import enum
import re
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.shapes import evaluation
from speedlint.shapes.data import item_work, loaders, tokenizing
from speedlint.shapes.model import compilation
from speedlint.solve.flow import once
from speedlint.solve.terms import Definition
from speedlint.torch.words import FREQUENT, Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_ASKED = (("padding", "max_length"), ("pad_to_max_length", True))
_MASKED = re.compile(rb"attention_mask|transformers\b[^\n]*Trainer")
"""What says which tokens only pad: the mask by its name, or the ``Trainer`` of transformers, which hands all on."""
_ONE_LENGTH = re.compile(rb"torch_xla|\bdiffusers\b|open_clip|CLIPTokenizer|CLIPText|SentenceTransformer")
"""What needs one length, or pads by itself: a TPU, text encoders of image models, and a library that cuts texts again."""
_GOES_ON = re.compile(rb"ForCausalLM|LMHeadModel|mlm\s?=\s?False|group_texts|block_size")


class Made(enum.Enum):
    """What a tokenizer makes."""

    ITEM = enum.auto()
    BATCH = enum.auto()
    WHOLE = enum.auto()
    """All texts of a set."""


def is_to_limit(script: Script, call: syntax.Call) -> bool:
    """Whether a call cuts texts into tokens and pads each to a limit, ``padding="max_length"``, or makes what does."""
    is_told = any(_is_given(script, call, name, value) for name, value in _ASKED)
    return is_told and (tokenizing.tokenized(script, call) is not None or _makes_collator(script, call))


def _makes_collator(script: Script, call: syntax.Call) -> bool:
    return (script.name(call.func) or "").startswith("transformers.DataCollator")


def _is_given(script: Script, call: syntax.Call, name: str, value: object) -> bool:
    given = script.argument(call, name)
    known = script.constant(given) if given is not None else None
    return known is not None and known.value == value


def made_for(script: Script, call: syntax.Call) -> Made | None:
    """What a tokenizer makes for a training; None where it makes nothing for one, as far as is seen."""
    if script.is_test or not evaluation.trains(script) or script.frequency(call) in FREQUENT:
        return None
    function = script.function(call)
    if _makes_collator(script, call):
        return Made.BATCH
    if any(script.function(made) is function for made in script.calls("torch.utils.data.TensorDataset")):
        return Made.WHOLE
    if function is None:
        return None
    klass = script.names.owner(function)
    if klass is not None and script.roles.instance(Definition(script, klass)).role is Role.DATASET:
        return Made.ITEM if item_work.is_trained_on(script, function) else None
    if any(each.collates_by(script, function) for each in loaders.near(script)):
        return Made.BATCH
    return Made.ITEM if _is_mapped(script, function) else None


def _is_mapped(script: Script, function: syntax.FunctionDef) -> bool:
    """Whether a function is handed to ``map`` of a table of the ``datasets`` library."""
    for use in script.names.uses(function.name):
        arg = script.source.parents[use]
        call = script.source.parents[arg] if isinstance(arg, syntax.Arg) else None
        match call:
            case syntax.Call(func=syntax.Attribute(value=table, attr=syntax.Name("map"))):
                if tokenizing.is_table(script, table) or script.role(table) is Role.UNKNOWN:
                    return True
    return False


@once(False)
def may_vary(script: Script) -> bool:
    """Whether the batches of a program may have lengths of their own: a mask says what is padding, and nothing compiles for
    one shape."""
    if not script.program.mentions(script, _MASKED) or script.program.mentions(script, _ONE_LENGTH):
        return False
    return not compilation.is_compiled(script)


def goes_on_with_texts(script: Script) -> bool:
    """Whether a program trains a model to go on with texts, which mostly are as long as it takes them."""
    return script.program.mentions(script, _GOES_ON)
