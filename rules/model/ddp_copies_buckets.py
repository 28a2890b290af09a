"""DistributedDataParallel copies every gradient into its buckets and back.

## What it does
Notes `DistributedDataParallel` without `gradient_as_bucket_view=True`, around a module that an optimizer is seen to
train. Off unless it is selected.

## Why it is slow
Gradients are reduced between the processes in buckets. Without the option each gradient is copied into its bucket and, once
it is reduced, back into `p.grad`: two copies of all gradients in each step, and their memory twice.

## Example
```python
import torch

model = torch.nn.parallel.DistributedDataParallel(net, device_ids=[rank])
```

## Use instead
```python
import torch

model = torch.nn.parallel.DistributedDataParallel(net, device_ids=[rank], gradient_as_bucket_view=True)
```

## Fix safety
Shown, never written: gradients are views then, on which `detach_()` raises, as in `zero_grad` of a torch before 2.0 with
`set_to_none=False`; code that holds on to gradients between steps sees them change. Nothing is said where gradients are
computed by `torch.distributed.autograd`, which keeps them elsewhere.

## Sources
PyTorch's documentation of `DistributedDataParallel`: it saves memory of the size of all gradients, and the copies.

- [PyTorch: DistributedDataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Level, Rule, Worth
from speedlint.shapes import evaluation
from speedlint.shapes.model import wrapping
from speedlint.source import is_name


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    if not script.is_call_to(call, "torch.nn.parallel.DistributedDataParallel") or script.hides_arguments(call):
        return
    asked = script.argument(call, "gradient_as_bucket_view")
    if not call.args or (asked is not None and not is_name(asked, "False")):
        return
    if script.is_test or not evaluation.trains(script) or wrapping.uses_remote_gradients(script):
        return
    if not wrapping.is_trained(script, call.args[0].value):
        return
    yield Finding(
        call,
        f"`{script.text(call.func)}` copies every gradient into its buckets and back",
        advice="pass `gradient_as_bucket_view=True`; not written here, because gradients are views then, which `detach_()` "
        "and code that keeps them between steps does not expect",
        level=Level.NOTE,
    )


RULE = Rule(
    "SPD608",
    on=syntax.Call,
    check=check,
    triggers=(b"DistributedDataParallel",),
    worth=Estimate(Worth.LOW, "each step copies all gradients once"),
    off=True,
)
