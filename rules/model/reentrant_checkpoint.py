"""Activation checkpointing runs its older, reentrant way.

## What it does
Notes calls of `torch.utils.checkpoint.checkpoint` and `checkpoint_sequential` without `use_reentrant`, or with True.

## Why it is slow
The reentrant way computes the whole piece again in the backward pass, its last operations too, whose results nothing needs;
it runs a backward pass within the backward pass, gives nothing to parameters where no input asks for a gradient, and works
with neither `torch.autograd.grad` nor much of `torch.compile`. The other one stops as soon as it has what the backward pass
needs.

## Example
```python
from torch.utils.checkpoint import checkpoint

x = checkpoint(block, x)
```

## Use instead
```python
from torch.utils.checkpoint import checkpoint

x = checkpoint(block, x, use_reentrant=False)
```

## Fix safety
Shown, never written: it finds gradients where the reentrant way lost them, and hooks and detached tensors in the piece
behave differently. A note, for the speed differs from piece to piece.

## Sources
Run with torch 2.13 on one CPU thread, the best of twelve: 1.09 times faster for a wide perceptron, 1.04 for a Transformer
layer, 0.85 for a convolutional bottleneck, 0.77 for two tiny layers. Without the argument torch warns since 2.4 that it will
have to be given, and recommends False.

- [PyTorch: torch.utils.checkpoint](https://docs.pytorch.org/docs/stable/checkpoint.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Level, Rule, Worth
from speedlint.shapes import eras
from speedlint.source import is_name

_SINCE = (2, 0)
_CHECKPOINTS = ("torch.utils.checkpoint.checkpoint", "torch.utils.checkpoint.checkpoint_sequential")


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    if not script.is_call_to(call, *_CHECKPOINTS) or any(arg.star == "**" for arg in call.args):
        return
    asked = script.argument(call, "use_reentrant")
    if asked is not None and not is_name(asked, "True"):
        return
    if script.source.enclosing(call, syntax.ExceptHandler) is not None or script.is_test:
        return
    if eras.may_be_on(script, _SINCE):
        yield Finding(
            call,
            f"`{script.text(call.func)}` checkpoints the reentrant way, which computes the whole piece again",
            advice="pass `use_reentrant=False`, which torch recommends, and let `speedlint verify` time it; not written "
            "here, because gradients that the reentrant way loses are found then",
            level=Level.NOTE,
        )


RULE = Rule(
    "SPD611",
    on=syntax.Call,
    check=check,
    triggers=(b"checkpoint(", b"checkpoint_sequential("),
    worth=Estimate(Worth.LOW, "each block saves more than it needs"),
    off=True,
)
