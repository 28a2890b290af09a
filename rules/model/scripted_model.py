"""A model is trained as TorchScript, which is deprecated and optimizes less than `torch.compile`.

## What it does
Notes `torch.jit.script` and `torch.jit.trace` of a module that the training loop runs, or of a part of one that its class
keeps on `self`. Models that are scripted to be exported, and functions, are left alone.

## Why it is slow
TorchScript fuses chains of pointwise operations in some cases, and profiles and compiles in the first steps to do so. It is
no longer developed: what `torch.compile` fuses (reductions, normalizations, the backward pass) it runs operation by
operation, and it cannot be compiled again.

## Example
```python
import torch

model = torch.jit.script(torch.nn.Linear(512, 512).cuda())
```

## Use instead
```python
import torch

model = torch.nn.Linear(512, 512).cuda()
model.compile()
```

## Fix safety
Shown, never written: a traced module does not branch, and runs in the mode it was traced in; a compiled one does. Code that
was written around TorchScript's rules may have to change.

## Sources
`torch.jit.script` and `torch.jit.trace` warn that they are deprecated: run with torch 2.13. PyTorch's documentation of
TorchScript.

- [PyTorch: TorchScript](https://docs.pytorch.org/docs/stable/jit.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Level, Rule, Worth
from speedlint.shapes import eras, evaluation
from speedlint.shapes.model import wrapping
from speedlint.torch.words import Role

_SINCE = (2, 1)


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    if not script.is_call_to(call, "torch.jit.script", "torch.jit.trace") or not call.args:
        return
    if script.role(call.args[0].value) is not Role.MODULE or script.is_test or not eras.may_be_on(script, _SINCE):
        return
    if wrapping.is_run_in_training(script, call) or (wrapping.is_kept_part(script, call) and evaluation.trains(script)):
        yield Finding(
            call,
            f"`{script.text(call.func)}` makes the model TorchScript, which is deprecated, for training",
            advice="call `model.compile()` (torch 2.1) instead, and let `speedlint verify` time it; not written here, "
            "because a compiled module follows branches and modes that TorchScript fixes",
            level=Level.NOTE,
        )


RULE = Rule(
    "SPD612",
    on=syntax.Call,
    check=check,
    triggers=(b"jit.script(", b"jit.trace(", b"torch.jit import"),
    worth=Estimate(Worth.UNKNOWN, "it depends on the model"),
    since=_SINCE,
)
