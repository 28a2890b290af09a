"""A copy to the host with `non_blocking=True` is read before it has ended.

## What it does
Finds `tensor.to("cpu", non_blocking=True)` of a GPU tensor whose values are read in the same function, in the same
expression, through a variable or a list, where nothing waits for the GPU before. Copies that a `synchronize()`, an event or
another read of the GPU follows are left alone, and so are those that are only handed on.

## Why it is slow
It is worse than slow: the host reads memory that the GPU is still writing to, and computes with old bytes. No error is
raised, and the numbers are wrong now and then. Waiting for the copy, as `.to("cpu")` does, takes no longer than a correct
read has to.

## Example
```python
import torch

outputs = model(images.cuda())
scores = outputs.to("cpu", non_blocking=True).numpy()
```

## Use instead
```python
import torch

outputs = model(images.cuda())
scores = outputs.to("cpu").numpy()
```

## Fix safety
Exact: `non_blocking=True` is dropped. The values that were right stay the same bit for bit; those that were read too early
become right. To overlap several copies, keep it and call `torch.cuda.synchronize()` once before the first read.

## Sources
PyTorch's tutorial on pinned memory and `non_blocking`: it shows such a copy to yield wrong values.

- [PyTorch: pin_memory() and non_blocking](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.edits import remove_argument
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Fix, Level, Related, Risk, Rule, Worth
from speedlint.shapes.data.unawaited import copied_to_host, first_read
from speedlint.shapes.sync import reads

_ADVICE = "drop `non_blocking=True`, or call `torch.cuda.synchronize()` before the first read"


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    asked = copied_to_host(script, call)
    read = first_read(script, call) if asked is not None else None
    if asked is None or read is None:
        return
    line = script.source.line(read)
    message = f"`{reads.shown(script, call)}` may still run when its values are read on line {line}: they may be wrong"
    related = (Related(script.source, read, "the values are read here"),) if line != script.source.line(call) else ()
    fix = Fix((remove_argument(script.source, asked),), Risk.EXACT)
    yield Finding(call, message, fix, _ADVICE, Level.WARNING, related)


RULE = Rule(
    "SPD206",
    on=syntax.Call,
    check=check,
    triggers=(b"non_blocking",),
    worth=Estimate(Worth.UNKNOWN, "it changes what is read, not how fast"),
)
