"""Calls that cut text into tokens: by the functions and tokenizers of libraries, and by tokenizers of the project's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.solve.flow import once
from speedlint.solve.names import last_name
from speedlint.solve.terms import Definition
from speedlint.source import is_name

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_FUNCTIONS = frozenset(
    "nltk.word_tokenize nltk.tokenize.word_tokenize nltk.wordpunct_tokenize nltk.tokenize.wordpunct_tokenize jieba.cut "
    "jieba.lcut clip.tokenize open_clip.tokenize".split()
)
_METHODS = frozenset(
    "encode encode_plus batch_encode_plus encode_batch encode_ordinary encode_as_ids EncodeAsIds tokenize "
    "apply_chat_template".split()
)
_MAKERS = ("tiktoken.", "tokenizers.", "sentencepiece.", "transformers.")
_SHAPES = frozenset({"padding", "truncation", "max_length", "return_tensors", "add_special_tokens", "pad_to_max_length"})
_TABLES = (
    "datasets.load_dataset",
    "datasets.load_from_disk",
    "datasets.Dataset.from_",
    "datasets.DatasetDict",
    "datasets.concatenate_datasets",
)
_STEPS = frozenset(
    "map filter shuffle select sort train_test_split rename_column rename_columns remove_columns with_format cast "
    "cast_column add_column flatten shard".split()
)
_OF_TOKENIZERS = frozenset(
    "convert_tokens_to_ids convert_ids_to_tokens build_inputs_with_special_tokens create_token_type_ids_from_sequences "
    "pad_token_id cls_token_id sep_token_id eos_token_id bos_token_id mask_token_id unk_token_id".split()
)
"""What tokenizers alone have."""
_DEPTH = 5


def tokenized(script: Script, call: syntax.Call) -> syntax.BaseExpression | None:
    """The text that a call cuts into tokens; None where it is no such call."""
    if not call.args or call.args[0].star:
        return None
    text = script.argument(call, "text", 0)
    if script.name(call.func) in _FUNCTIONS:
        return text
    if isinstance(call.func, syntax.Attribute) and call.func.attr.value in _METHODS:
        shows = call.func.attr.value.endswith("_plus") or _has_shape(call)
        return text if _is_tokenizer(script, call.func.value, shows) else None
    if isinstance(call.func, (syntax.Name, syntax.Attribute)) and script.name(call.func) is None:
        return text if _is_tokenizer(script, call.func, _has_shape(call)) else None
    return None


def _has_shape(call: syntax.Call) -> bool:
    return any(is_name(arg.keyword, *_SHAPES) for arg in call.args)


def _is_tokenizer(script: Script, holder: syntax.BaseExpression, shows: bool) -> bool:
    """Whether an expression is a tokenizer; what is out of sight is one if it is called so and used like one."""
    made = [_is_made(where, value) for where, value in script.roles.origins(holder)]
    known = [each for each in made if each is not None]
    if known:
        return any(known)
    name = last_name(holder) or ""
    return "tokenizer" in name.lower() and (shows or _is_asked_like_one(script, name))


@once(False)
def _is_asked_like_one(script: Script, name: str) -> bool:
    """Whether a script asks what a name stands for, or an attribute, for what tokenizers alone have."""
    return any(
        last_name(each.value) == name for each in script.source.of(syntax.Attribute) if each.attr.value in _OF_TOKENIZERS
    )


def _is_made(script: Script, value: syntax.Node) -> bool | None:
    """Whether an expression makes a tokenizer; None where what it makes is out of sight."""
    if not isinstance(value, syntax.Call):
        return False
    definition = script.definition(value.func)
    if definition is None and isinstance(value.func, syntax.Attribute):
        definition = script.definition(value.func.value)
    if definition is not None:
        return isinstance(definition.node, syntax.ClassDef) and "tokenizer" in definition.name.lower()
    name = script.name(value.func)
    if name is None:
        return None
    return name.startswith(_MAKERS[:3]) or (name.startswith(_MAKERS) and "Tokenizer" in name)


# datasets.map


def mapped_one_by_one(script: Script, call: syntax.Call) -> syntax.Call | None:
    """The call of a fast tokenizer that ``map(function)`` of the ``datasets`` library makes for one text at a time."""
    match call.func:
        case syntax.Attribute(value=table, attr=syntax.Name("map")):
            batched = script.argument(call, "batched")
            known = script.constant(batched) if batched is not None else None
            is_off = batched is None or (known is not None and known.value is False)
            function = script.argument(call, "function", 0)
            if not is_off or function is None or script.hides_arguments(call) or not is_table(script, table):
                return None
            return next(_fast_calls(script, function), None)
    return None


def is_table(script: Script, expression: syntax.Node, depth: int = 0) -> bool:
    """Whether an expression is a dataset of the ``datasets`` library."""
    if depth > _DEPTH:
        return False
    match expression:
        case syntax.Call(func=func):
            name = script.name(func)
            if name is not None:
                return name.startswith(_TABLES)
            is_step = isinstance(func, syntax.Attribute) and func.attr.value in _STEPS
            return is_step and isinstance(func, syntax.Attribute) and is_table(script, func.value, depth + 1)
        case syntax.Subscript(value=value):
            return is_table(script, value, depth + 1)
        case syntax.Name() | syntax.Attribute():
            found = list(script.roles.origins(expression))
            return bool(found) and any(where is not None and is_table(where, node, depth + 1) for where, node in found)
    return False


def _fast_calls(script: Script, function: syntax.BaseExpression) -> Iterator[syntax.Call]:
    definition: Definition | None = script.definition(function)
    where, node = (definition.script, definition.node) if definition is not None else (script, function)
    if not isinstance(node, (syntax.FunctionDef, syntax.Lambda)):
        return
    for call in where.source.inside(node.body, syntax.Call):
        if tokenized(where, call) is not None and _is_fast(where, call):
            yield call


def _is_fast(script: Script, call: syntax.Call) -> bool:
    """Whether the tokenizer is one that works on many texts at once: written in Rust."""
    is_direct = not isinstance(call.func, syntax.Attribute) or call.func.attr.value not in _METHODS
    holder = call.func if is_direct else call.func.value
    for where, value in script.roles.origins(holder):
        if not isinstance(value, syntax.Call):
            continue
        name = where.name(value.func) or ""
        fast = where.argument(value, "use_fast")
        known = where.constant(fast) if fast is not None else None
        if known is not None and known.value is False:
            return False
        if "AutoTokenizer" in name or "Fast" in name:
            return True
    return False
