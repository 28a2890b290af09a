"""Each batch of a loader is pinned by hand in the training process, which the loader can do beside it.

## What it does
Finds `batch.pin_memory()` of what a loader yields, in loops of training or evaluation steps. Where the loader pins already
it is a note: the call then does nothing. Batches that are not a loader's, and what a dataset or a collate function pins, are
left alone.

## Why it is slow
Pinning allocates page-locked memory and copies the batch into it while the training waits; only then the copy to the GPU
begins. Altogether that may take longer than a plain `.to(device)`. A loader with `pin_memory=True` pins in a thread of its
own, ahead of the step.

## Example
```python
import torch

for images, labels in loader:
    images = images.pin_memory().to("cuda", non_blocking=True)
```

## Use instead
```python
import torch
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=64, num_workers=8, pin_memory=True)
for images, labels in loader:
    images = images.to("cuda", non_blocking=True)
```

## Fix safety
Shown, never written: the call may only go together with `pin_memory=True` where the loader is made. The values stay the same
bit for bit.

## Sources
PyTorch's tutorial on pinned memory and `non_blocking`: `pin_memory().to(...)` can take twice as long as `.to(...)`.

- [PyTorch: pin_memory() and non_blocking](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Level, Related, Rule, Worth
from speedlint.shapes.data.batches import source_loader
from speedlint.shapes.sync import reads
from speedlint.torch.words import FREQUENT, Place, Role

_PIN = "pass `pin_memory=True` to the loader, and drop the call"
_REASON = "not written, since both must change together"


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    match call:
        case syntax.Call(func=syntax.Attribute(value=batch, attr=syntax.Name("pin_memory")), args=[]):
            value = script.value(batch)
            if value.role is not Role.BATCH or value.place is not Place.HOST or script.frequency(call) not in FREQUENT:
                return
        case _:
            return
    found = source_loader(script, batch)
    shown = reads.shown(script, call)
    pinned = found.setting("pin_memory") if found is not None else None
    if found is None or pinned is None or pinned.is_off:
        related = (Related(found.script.source, found.call, "the loader, which could pin its batches"),) if found else ()
        message = f"`{shown}` pins each batch while the training waits"
        yield Finding(call, message, advice=f"{_PIN}; {_REASON}", related=related)
    elif pinned.value is not None and pinned.value.value is True:
        message = f"`{shown}` does nothing: the loader has pinned the batch"
        advice = "drop the call; not written, since a collate function of the project's own may yield what cannot be pinned"
        yield Finding(call, message, advice=advice, level=Level.NOTE)


RULE = Rule(
    "SPD207",
    on=syntax.Call,
    check=check,
    triggers=(b".pin_memory()",),
    worth=Estimate(Worth.LOW, "the host makes one more copy of each batch"),
    often=True,
)
