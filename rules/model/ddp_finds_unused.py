"""`find_unused_parameters=True` walks the graph of every step in search of parameters that got no gradient.

## What it does
Notes `DistributedDataParallel(..., find_unused_parameters=True)` in programs that train, the value of an option's default or
a constant included. A note, because a model that skips some of its parameters in a step needs it.

## Why it is slow
At the end of each forward pass, DistributedDataParallel goes through the whole graph of the outputs to mark the parameters
that will get no gradient, and reduces the flags of all of them between the processes, in each step.

## Example
```python
import torch

model = torch.nn.parallel.DistributedDataParallel(net, device_ids=[rank], find_unused_parameters=True)
```

## Use instead
```python
import torch

model = torch.nn.parallel.DistributedDataParallel(net, device_ids=[rank])
```

## Fix safety
Shown, never written: where some parameter takes no part in a step, training stops with an error without it. Nothing is said
beside `static_graph=True`, with which the search happens once.

## Sources
PyTorch's documentation of `DistributedDataParallel`: it should be set only where it is needed. torch warns at run time where
the first step found no unused parameter.

- [PyTorch: DistributedDataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Level, Rule, Worth
from speedlint.shapes import evaluation
from speedlint.source import is_name

_DDP = "torch.nn.parallel.DistributedDataParallel"


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    if not script.is_call_to(call, _DDP) or not _is_on(script, call, "find_unused_parameters"):
        return
    static = script.argument(call, "static_graph")
    if static is not None and not is_name(static, "False"):
        return
    if script.is_test or not evaluation.trains(script):
        return
    yield Finding(
        call,
        "`find_unused_parameters=True` goes through the graph of each step in search of parameters without a gradient",
        advice="drop it where every parameter gets a gradient in each step (torch warns in the first step that it found no "
        "unused one), or pass `static_graph=True` where it is the same ones each time; not written here, because training "
        "stops with an error where one is left out",
        level=Level.NOTE,
    )


def _is_on(script: Script, call: syntax.Call, name: str) -> bool:
    value = script.argument(call, name)
    constant = script.constant(value) if value is not None else None
    return constant is not None and constant.value is True


RULE = Rule(
    "SPD607",
    on=syntax.Call,
    check=check,
    triggers=(b"find_unused_parameters",),
    worth=Estimate(Worth.LOW, "the graph is searched once more in each step"),
)
