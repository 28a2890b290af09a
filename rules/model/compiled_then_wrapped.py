"""A module is both compiled and wrapped in `nn.DataParallel`: the replicas on the GPUs do not run what was compiled.

## What it does
Finds, in programs that train, `torch.compile` of a module that `nn.DataParallel` may hold already, and `nn.DataParallel` of
a module that was compiled before, with `torch.compile(model)` or `model.compile()`, here or in the function it comes from.
Silent where the two stand under conditions that ask the same thing, and for `DistributedDataParallel`, which works with
compiled modules.

## Why it is slow
On several GPUs `DataParallel` makes new replicas of the module in each forward pass and runs them in threads. Around it,
`torch.compile` gains nothing: training falls back to the speed without it. Inside it, all replicas share the call that was
compiled for the module on the first GPU. The time spent compiling is lost either way.

## Example
```python
import torch
from torch import nn

model = nn.DataParallel(nn.Linear(512, 512).cuda())
model = torch.compile(model)
```

## Use instead
```python
import os

import torch
from torch import nn

rank = int(os.environ["LOCAL_RANK"])  # started by: torchrun --nproc-per-node=gpu train.py
torch.distributed.init_process_group("nccl")
model = nn.Linear(512, 512).to(rank)
model.compile()
model = nn.parallel.DistributedDataParallel(model, device_ids=[rank])
```

## Fix safety
Shown, never written: which of the two to give up, or the step to `DistributedDataParallel`, changes how the script is
started.

## Sources
pytorch issue 94636: compiling a `DataParallel` was 1.5 times faster on one GPU, and no faster than uncompiled on several.
That replicas share the compiled call: run with torch 2.13. PyTorch's documentation on where to apply `torch.compile`.

- [pytorch/pytorch, issue 94636](https://github.com/pytorch/pytorch/issues/94636)
- [PyTorch: torch.compile](https://docs.pytorch.org/docs/stable/generated/torch.compile.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Level, Related, Rule, Worth
from speedlint.shapes import evaluation
from speedlint.shapes.model import wrapping

_ADVICE = (
    "compile only where one GPU is used, or use `nn.parallel.DistributedDataParallel` around a module on which "
    "`model.compile()` was called; not written here, because that changes how the script is started"
)


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    compiled = wrapping.operand(script, call)
    wrapped = script.argument(call, "module", 0) if script.is_call_to(call, "torch.nn.DataParallel") else None
    if (compiled is None and wrapped is None) or script.is_test or not evaluation.trains(script):
        return
    if compiled is not None:
        found = wrapping.parallel_before(script, call, compiled)
        why = "compiles an `nn.DataParallel`: on several GPUs its replicas run uncompiled"
        said = "wrapped here"
    else:
        assert wrapped is not None
        found = wrapping.compiled_before(script, call, wrapped)
        why = "replicates a compiled module: its replicas on the other GPUs share the call compiled for the first one"
        said = "compiled here"
    if found is not None:
        related = (Related(found[0].source, found[1], said),)
        yield Finding(call, f"`{script.text(call)}` {why}", advice=_ADVICE, level=Level.WARNING, related=related)


RULE = Rule(
    "SPD610",
    on=syntax.Call,
    check=check,
    triggers=(b"compile(", b"DataParallel"),
    worth=Estimate(Worth.UNKNOWN, "it depends on what the compiler can take together"),
)
