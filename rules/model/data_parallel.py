"""`nn.DataParallel` drives all GPUs from one Python thread and copies the model to each of them on every step.

## What it does
Finds modules wrapped in `torch.nn.DataParallel`, under any name or by a class derived from it, in programs that train. It is
a note where the same function wraps in `DistributedDataParallel` in another branch, or only evaluates, and where the program
itself makes one GPU visible by default or names one in `device_ids`. Nothing is said where the training asks the wrapper for
what only the module within has, or where nothing moves the module to a GPU, which raises: that branch never ran; nor where
only the module within is called, `model.module(x)`.

## Why it is slow
Each forward pass copies all parameters from the first GPU to the others, scatters the batch, runs one Python thread for
each GPU under one interpreter lock, and gathers the outputs on the first GPU, whose memory and time the others wait for.
Each process of `DistributedDataParallel` has its own interpreter and its own copy; only gradients travel, during the
backward pass.

## Example
```python
import torch
from torch import nn

model = nn.DataParallel(nn.Linear(512, 512)).cuda()
```

## Use instead
```python
import os

import torch
from torch import nn

rank = int(os.environ["LOCAL_RANK"])  # started by: torchrun --nproc-per-node=gpu train.py
torch.distributed.init_process_group("nccl")
model = nn.parallel.DistributedDataParallel(nn.Linear(512, 512).to(rank), device_ids=[rank])
```

## Fix safety
Shown, never written: the loader needs a `DistributedSampler`, the batch size becomes that of one GPU, logging and saving
belong to one process, and the script is started by `torchrun`.

## Sources
PyTorch's documentation of `DataParallel` recommends `DistributedDataParallel` even for one machine.

- [PyTorch: DataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Level, Rule, Worth
from speedlint.shapes import evaluation, worth
from speedlint.shapes.model import wrapping

_WRAPPERS = frozenset({"torch.nn.DataParallel"})
_COPIED = Estimate(Worth.HIGH, "the model is copied to each GPU in each step, by one process")


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    if not call.args or not (script.is_call_to(call, *_WRAPPERS) or script.roles.calls.is_own_wrapper(call, _WRAPPERS)):
        return
    if script.loops.guards.is_without_gpu(call) or script.is_test or not evaluation.trains(script):
        return
    if wrapping.is_asked_in_vain(script, call) or wrapping.is_left_on_host(script, call):
        return
    if wrapping.is_passed_by(script, call):
        return
    level, estimate = Level.WARNING, _COPIED
    if (trifle := _why_trifle(call, script)) is not None:
        level, estimate = Level.NOTE, Estimate(Worth.LOW, trifle)
    yield Finding(
        call,
        f"`{script.text(call)}` copies the model to every GPU on each step, driven by one Python process",
        advice="use `nn.parallel.DistributedDataParallel`, started by `torchrun --nproc-per-node=gpu`; not written here, "
        "because the sampler, the batch size, the logging and the way the script is started change with it",
        level=level,
        worth=estimate,
    )


def _why_trifle(call: syntax.Call, script: Script) -> str | None:
    if wrapping.is_distributed_beside(script, call):
        return "the script has `DistributedDataParallel` in another branch, for those who ask for speed"
    if wrapping.sees_one_gpu(script):
        return "the program lets itself see one GPU by default, where the wrapper only hands the call on"
    if wrapping.names_one_gpu(script, call):
        return "it is told of one GPU, where the wrapper only hands the call on"
    return "what follows only evaluates" if wrapping.is_for_evaluation(script, call) else None


RULE = Rule(
    "SPD603",
    on=syntax.Call,
    check=check,
    triggers=(b"DataParallel",),
    worth=_COPIED,
    cause=worth.one_setup("SPD603"),
    on_gpu=True,
)
