"""`torch.use_deterministic_algorithms(True)` keeps the GPU from its fastest kernels.

## What it does
Finds `torch.use_deterministic_algorithms(True)` and `torch.set_deterministic_debug_mode` with a mode other than 0 in
programs that train on a GPU. Always a note: somebody who asks for it wants runs that repeat bit for bit.

## Why it is slow
Scattered additions, as in the backward pass of indexing, embeddings, pooling and interpolation, are fast when the GPU's
threads add in whatever order they come. In the deterministic way they are sorted first. Convolutions are held to
deterministic algorithms as well, and each `torch.empty` is filled.

## Example
```python
import torch

torch.use_deterministic_algorithms(True)
```

## Use instead
```python
import torch

if args.deterministic:
    torch.use_deterministic_algorithms(True)
```

## Fix safety
Never rewritten: whether runs have to repeat bit for bit is for the author to say. The seeds can stay.

## Sources
PyTorch's notes on reproducibility: deterministic operations are often slower. The gain depends on the model.

- [PyTorch: Reproducibility](https://docs.pytorch.org/docs/stable/notes/randomness.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Level, Related, Rule, Worth
from speedlint.shapes import evaluation
from speedlint.shapes.backend import cudnn, debugging, intent
from speedlint.shapes.backend.intent import Intent
from speedlint.shapes.sync import reads

_USE = "torch.use_deterministic_algorithms"
_MODE = "torch.set_deterministic_debug_mode"
_OFF = (False, 0, "default", None)


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    if not script.is_call_to(call, _USE, _MODE) or script.is_test or not evaluation.trains(script):
        return
    name = "mode" if script.name(call.func) == _USE else "debug_mode"
    mode = script.argument(call, name, 0)
    value = script.constant(mode) if mode is not None else None
    if value is None or value.value in _OFF or not script.on_gpu or debugging.is_undone(script, call, (_USE,)):
        return
    if intent.of(script, call) is not Intent.NEVER and not cudnn.is_conditional(script, call):
        message = f"`{reads.shown(script, call)}` makes runs repeatable, and scattered additions and convolutions slower"
        related = (Related(value.script.source, value.node, "the default is set here"),) if value.node is not mode else ()
        advice = "switch it on only for runs that have to repeat bit for bit; not rewritten, since only the author knows"
        yield Finding(call, message, advice=advice, level=Level.NOTE, related=related)


RULE = Rule(
    "SPD404",
    on=syntax.Call,
    check=check,
    triggers=(b"use_deterministic_algorithms", b"set_deterministic_debug_mode"),
    worth=Estimate(Worth.MEDIUM, "operations without a fast repeatable form run in a slow one"),
)
