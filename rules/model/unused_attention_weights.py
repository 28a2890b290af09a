"""`nn.MultiheadAttention` computes its weights for a caller who throws them away.

## What it does
Finds calls of a `torch.nn.MultiheadAttention` that leave `need_weights` at True, where nothing reads the weights that are
returned: `attention(q, k, v)[0]`, or a second name that is never used.

## Why it is slow
To return the weights the layer writes the whole matrix of queries by keys to memory, for each head, and averages it. Without
them it runs `scaled_dot_product_attention`, which keeps the matrix on the chip.

## Example
```python
import torch

attention = torch.nn.MultiheadAttention(256, 8, batch_first=True)
x = torch.randn(8, 512, 256)
out, _ = attention(x, x, x)
```

## Use instead
```python
import torch

attention = torch.nn.MultiheadAttention(256, 8, batch_first=True)
x = torch.randn(8, 512, 256)
out, _ = attention(x, x, x, need_weights=False)
```

## Fix safety
Numeric: fused kernels add up in another order, and draw other random numbers for dropout. A query that may look at nothing
at all gets 0 where it got NaN. Shown where the program has forward hooks, which may read the weights, where it takes second
derivatives, which the fused kernels lack, where it asks for deterministic algorithms, beside `is_causal`, and beside a mask
where the program replaces NaN.

## Sources
Run with torch 2.13 on one CPU thread, forward and backward, 8 heads of 64: 1.06 times faster for 64 positions, 1.5 for 512,
2.2 for 1024. The layer takes the fused path since torch 2.0.

- [PyTorch: MultiheadAttention](https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Fix, Level, Risk, Rule, Worth
from speedlint.shapes import eras, evaluation
from speedlint.shapes.model import attention
from speedlint.source import is_name

_SINCE = (2, 0)
_POSITION = 4

_MASKS = (("key_padding_mask", 3), ("attn_mask", 5))
"""The arguments that hide positions, and their places."""
_NAN = re.compile(rb"nan_to_num|nanmean|nansum")


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    if len(call.args) < 2 or script.hides_arguments(call) or not attention.is_layer(script, call):
        return
    asked = script.argument(call, "need_weights", _POSITION)
    if asked is not None and not is_name(asked, "True"):
        return
    if not attention.are_weights_unread(script, call) or script.is_test or not eras.may_be_on(script, _SINCE):
        return
    message = f"`{script.text(call.func)}` computes attention weights that nothing reads"
    advice = "pass `need_weights=False`"
    why = attention.refuses_fused(script)
    if why is None and script.argument(call, "is_causal", 7) is not None:
        why = "without weights `is_causal` takes the place of the mask: they must agree"
    hides = any(script.argument(call, *each) is not None for each in _MASKS)
    if why is None and hides and script.program.mentions(script, _NAN):
        why = "a position that may attend to nothing gets 0 where it got NaN, which the program asks for"
    level = Level.WARNING if evaluation.is_in_forward(script, call) else None
    if why is not None:
        yield Finding(call, message, advice=f"{advice}; not written here, because {why}", level=level)
        return
    if asked is None:
        edit = edits.add_argument(script.source, call, "need_weights=False")
    else:
        edit = edits.replace(script.source, asked, "False")
    yield Finding(call, message, Fix((edit,), Risk.NUMERIC), level=level)


RULE = Rule(
    "SPD606",
    on=syntax.Call,
    check=check,
    triggers=(b"MultiheadAttention",),
    worth=Estimate(Worth.MEDIUM, "the matrix of weights is written to memory, and the fast kernels are not taken"),
    since=_SINCE,
)
