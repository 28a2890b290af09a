"""Attention is written out, so the whole matrix of its weights goes through memory.

## What it does
Finds `softmax(q @ k.transpose(-2, -1) ...) @ v`, with the scale, mask and dropout that may stand between, where the weights
go nowhere else, but under a flag that is False unless something asks for them, in any spelling: `matmul`, `bmm`, `@`,
`F.softmax`, `x.softmax`, an `nn.Softmax` of the module.

## Why it is slow
Scores, masked scores, weights and dropped weights are each a matrix of queries by keys for every head, written to memory and
read back, and kept for the backward pass. `scaled_dot_product_attention` computes the same in one kernel that keeps them on
the chip, in memory that grows with the length and not with its square.

## Example
```python
def attend(q, k, v):
    weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.size(-1)), dim=-1)
    return weights @ v
```

## Use instead
```python
def attend(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v)
```

## Fix safety
Shown, never written: the mask has to be given as what is added or as what may be seen (True), the scale where it is not
`1 / sqrt(size)` (torch 2.1), dropout as a probability that is 0 in evaluation. Silent where the weights are always returned,
stored or changed, where queries are normalized (cosine and channel attention), beside a branch that calls a fused kernel,
and where the program takes second derivatives, which the fused kernels lack.

## Sources
Run with torch 2.13 on one CPU thread, forward and backward, 4 x 8 heads of 64: no faster up to 128 positions, 1.3 times for
256, 2.3 for 512, 3.7 for 1024. PyTorch documentation of `scaled_dot_product_attention`.

- [PyTorch: scaled_dot_product_attention](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Level, Rule, Worth
from speedlint.shapes import eras, evaluation
from speedlint.shapes.model import attention

_SINCE = (2, 0)


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    if not eras.may_be_on(script, _SINCE) or attention.names_fused(script):
        return
    found = attention.manual(script, call)
    if found is None or script.is_test or attention.differentiates_twice(script):
        return
    code = " ".join(script.text(found.output).split())
    arguments = "query, key, value"
    is_causal = found.masked and attention.is_of_triangle(script, call)
    arguments += ", is_causal=True" if is_causal else ", attn_mask=..." if found.masked else ""
    arguments += ", dropout_p=p if self.training else 0.0" if found.dropped else ""
    kept = f", keeping this way where `{script.text(found.kept_for)}` asks for the weights" if found.kept_for else ""
    yield Finding(
        call,
        f"attention written out: `{code}` reads a matrix of weights that one fused kernel would not write",
        advice=f"use `F.scaled_dot_product_attention({arguments})`, whose scale is `1 / sqrt(query.size(-1))` unless it is "
        "given, and whose fused kernels take four dimensions"
        + (" (`is_causal` where the triangle is all that masks)" if is_causal else "")
        + kept
        + "; not written here, because mask, scale and dropout have to be passed the way it expects them",
        level=Level.WARNING if evaluation.is_in_forward(script, call) else None,
    )


RULE = Rule(
    "SPD605",
    on=syntax.Call,
    check=check,
    triggers=(b"oftmax(",),
    worth=Estimate(Worth.MEDIUM, "the matrix of scores is written to memory and read again"),
    since=_SINCE,
)
