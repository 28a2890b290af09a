"""Every text is padded to the same limit, however short it is.

## What it does
Finds tokenizers that are told `padding="max_length"`, or `pad_to_max_length=True` of old, where they make what a model of
transformers is trained on: in its datasets, in a function that `map` of the `datasets` library is handed, in a collate
function.

Always a note: how long the texts are, and whether something counts on the length, is not in the script. Left alone are
limits of 64 tokens or less, language models that are trained to go on with a text, whose texts mostly reach the limit,
programs that compile their model, run on a TPU, export it or gather tokens over processes, and networks of the project's own
that may count on the length, or go over what only pads, such as a recurrent layer behind the transformer.

## Why it is slow
A token that only pads goes through the whole network like any other, and the mask takes its effect away afterwards. Texts of
30 tokens in batches of 128 take four times as long as they need. Padded to the longest text of its own batch, a batch is as
long as it has to be.

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
        made = self.tokenizer(self.texts[index], truncation=True, padding="max_length", max_length=256)
        return {"input_ids": made["input_ids"], "attention_mask": made["attention_mask"]}
```

## Use instead
```python
from torch.utils.data import DataLoader
from transformers import DataCollatorWithPadding

loader = DataLoader(comments, batch_size=32, collate_fn=DataCollatorWithPadding(tokenizer))
```

with a dataset that leaves `padding` out.

## Fix safety
Never fixed: the program may count on the length somewhere, and how long the texts are is not in the script. Labels that are
padded too, as those of tokens and of sequences are, need the collator of transformers that is made for them.

## Sources
Hugging Face's documentation on padding pads a batch to its longest text by default, and calls `max_length` what a TPU needs.
Run with torch 2.13 on one thread of a CPU: two layers of an encoder, 768 wide, train on eight texts of 32 tokens in 0.34 s a
step, on the same padded to 128 in 1.2 s, to 512 in 6.8 s.

- [Hugging Face: padding and truncation](https://huggingface.co/docs/transformers/pad_truncation)
- [Hugging Face course: dynamic padding](https://huggingface.co/learn/llm-course/chapter3/2)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Level, Rule, Worth
from speedlint.shapes import worth
from speedlint.shapes.data import padding
from speedlint.shapes.sync import reads

_SHORT = 64
"""Tokens of a limit that is no more than a step is launched for."""
_ADVICE = (
    "leave the padding to the batch, which is then as long as its longest text: by the collator of transformers for the "
    'task, such as `DataCollatorWithPadding`, or `padding="longest"` in a collate function; not written: the program may '
    "count on the length"
)


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    if not padding.is_to_limit(script, call) or not padding.may_vary(script) or not padding.is_for_training(script, call):
        return
    limit = script.argument(call, "max_length")
    known = script.constant(limit) if limit is not None else None
    tokens = known.value if known is not None and isinstance(known.value, int) else None
    if (tokens is not None and tokens <= _SHORT) or padding.goes_on_with_texts(script):
        return
    shown = f"{tokens} tokens" if tokens is not None else "the same limit"
    message = f"`{reads.shown(script, call.func)}(...)` pads every text to {shown}, however short it is"
    yield Finding(call, message, advice=_ADVICE, level=Level.NOTE)


RULE = Rule(
    "SPD220",
    on=syntax.Call,
    check=check,
    triggers=(b"max_length",),
    worth=Estimate(Worth.MEDIUM, "as much of each step as is padding; how long the texts are is not seen"),
    cause=worth.one_setup("SPD220"),
)
