"""A dataset that tokenizes a text each time it is read does so again in every epoch.

## What it does
Finds tokenizers called in `__getitem__` of the datasets that training reads, or in what it calls, on a text that hangs on
nothing but the item's index. In a `collate_fn`, and beside the decoding of a picture or sound, it is a note. So is
`map(function)` of the `datasets` library without `batched=True` where the function calls a fast tokenizer.

Texts that are drawn or changed by chance, and datasets that keep the tokens, are left alone.

## Why it is slow
The tokens of a text never change, and cutting a text costs much more than indexing a list of numbers. A fast tokenizer also
takes many texts at once, on several threads; one text at a time it does not.

## Example
```python
from torch.utils.data import Dataset
from transformers import AutoTokenizer


class Comments(Dataset):
    def __init__(self, texts):
        self.texts = texts
        self.tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        return self.tokenizer(self.texts[index], truncation=True)["input_ids"]
```

## Use instead
```python
from torch.utils.data import Dataset
from transformers import AutoTokenizer


class Comments(Dataset):
    def __init__(self, texts):
        tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")
        self.ids = tokenizer(texts, truncation=True)["input_ids"]

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        return self.ids[index]
```

## Fix safety
Never fixed: where the tokens are kept, and how long the start may take, is not in the script. With `batched=True` the
function is given lists, and `padding=True` pads to the longest text of a thousand, not of a batch: leave the padding to the
collate function.

## Sources
The Hugging Face course measures 59 s for `map` one by one and 11 s with `batched=True`, with a fast tokenizer.
Run with tokenizers 0.23 on one thread of a shared CPU: a fast tokenizer takes 0.34 ms for a text of a hundred words handed
in alone, 0.32 ms for one of two thousand handed in together, and indexing its tokens next to nothing; `map` over 10000 such
texts takes 5.8 s, and 3.6 s with `batched=True`.

- [Hugging Face course: slicing and dicing data](https://huggingface.co/learn/llm-course/chapter5/3)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Level, Related, Rule, Worth
from speedlint.shapes.data import item_work, tokenizing
from speedlint.shapes.data.item_work import Chain
from speedlint.shapes.data.loaders import Loader, loader
from speedlint.shapes.data.repeats import Hangs, Run
from speedlint.solve.terms import Definition

_AHEAD = "tokenize all texts once before training, many at a time, and index the tokens"
_WHY = "not written: where the tokens are kept is for you to choose"


def check(node: syntax.FunctionDef | syntax.Call, script: Script) -> Iterator[Finding]:
    if isinstance(node, syntax.FunctionDef):
        yield from _of_item(node, script)
        return
    found = loader(script, node)
    if found is not None:
        yield from _of_collate(found)
    elif (call := tokenizing.mapped_one_by_one(script, node)) is not None:
        message = "this `map` hands its tokenizer one text at a time"
        advice = "pass `batched=True`; not written: the function is then given lists of values"
        related = (Related(script.source, call, "the tokenizer is called here"),)
        yield Finding(node, message, advice=advice, level=Level.NOTE, related=related)


def _of_item(function: syntax.FunctionDef, script: Script) -> Iterator[Finding]:
    if function.name.value != "__getitem__" or not item_work.may_be_item(script, function):
        return
    run = item_work.reading(script, function)
    first = next(_tokenized(run), None)
    if first is None or item_work.keeps(run) or not item_work.is_trained_on(script, function):
        return
    inner, call, chain = first
    where, shown = chain[0] if chain else (inner.script, call)
    message = f"`{where.first_line(shown)}` tokenizes the same text again each time an item is read"
    related = (Related(inner.script.source, call, "the tokenizer is called here"),)
    level = Level.NOTE if item_work.decodes(run) else Level.WARNING
    yield Finding(function.name, message, advice=f"{_AHEAD}; {_WHY}", level=level, related=related)


def _of_collate(found: Loader) -> Iterator[Finding]:
    for script, node in found.collate:
        run = _gathering(script, node)
        first = next(_tokenized(run), None) if run is not None else None
        if first is None or run is None or not found.matters or item_work.keeps(run):
            continue
        inner, call, _ = first
        message = "the `collate_fn` of this loader tokenizes the same texts again in every epoch"
        related = (Related(inner.script.source, call, "the tokenizer is called here"),)
        yield Finding(found.call, message, advice=f"{_AHEAD}; {_WHY}", level=Level.NOTE, related=related)
        return


def _gathering(script: Script, node: syntax.Node) -> Run | None:
    """The run of a collate function for the items of one batch."""
    if isinstance(node, syntax.ClassDef):
        method = script.roles.calls.method(Definition(script, node), "__call__")
        script, node = (method.script, method.node) if method is not None else (script, node)
    if not isinstance(node, syntax.FunctionDef):
        return None
    params = (*node.params.posonly_params, *node.params.params, *node.params.kwonly_params)
    return Run(script, node, dict.fromkeys(params, Hangs.ITEM))


def _tokenized(run: Run) -> Iterator[tuple[Run, syntax.Call, Chain]]:
    """The calls that tokenize a text which is the same each time."""
    for inner, chain in item_work.runs(run):
        for call in inner.calls():
            text = tokenizing.tokenized(inner.script, call)
            if text is None or inner.of(text) is Hangs.CHANCE or inner.is_left_out(call):
                continue
            if not any(item_work.is_for_want_of_it(*place) for place in (*chain, (inner.script, call))):
                yield inner, call, chain


RULE = Rule(
    "SPD210",
    on=(syntax.FunctionDef, syntax.Call),
    check=check,
    triggers=(b"okeniz", b"encode", b"jieba", b"tiktoken"),
    worth=Estimate(Worth.MEDIUM, "each text is tokenised again in each epoch"),
)
