"""A `DistributedSampler` that is not told the epoch gives one order to all epochs; without one, each process reads all.

## What it does
Finds shuffling `DistributedSampler`s of loaders that training reads in several epochs, in programs that call `set_epoch`
nowhere, as a note, since no step is faster for it; and loaders without a sampler in training that `DistributedDataParallel`
or `FullyShardedDataParallel` runs in several processes.

## Why it is slow
The sampler draws its order from its seed and the number of the epoch. Where the number stays 0, every epoch has the same
batches in the same order, and more epochs are needed to get as far. Without such a sampler each process works through the
whole dataset: as many times the work as there are processes.

## Example
```python
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

sampler = DistributedSampler(dataset)
loader = DataLoader(dataset, batch_size=64, sampler=sampler)
for epoch in range(100):
    for batch in loader:
        train(batch)
```

## Use instead
```python
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

sampler = DistributedSampler(dataset)
loader = DataLoader(dataset, batch_size=64, sampler=sampler)
for epoch in range(100):
    sampler.set_epoch(epoch)
    for batch in loader:
        train(batch)
```

## Fix safety
Never fixed: it changes which items each step trains on.

## Sources
PyTorch's documentation of `DistributedSampler`: without `set_epoch` "the same ordering will be always used". Run with torch
2.13: two passes over it give the same indices; after `set_epoch` they differ.

- [PyTorch: torch.utils.data](https://docs.pytorch.org/docs/stable/data.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Level, Related, Rule, Worth
from speedlint.shapes.data import sharing
from speedlint.shapes.data.loaders import Loader, loader

_TELL = "call `sampler.set_epoch(epoch)` at the start of each epoch; not written: it changes what each step trains on"
_SHARE = "pass `sampler=DistributedSampler(dataset)` in place of `shuffle=True`, and call its `set_epoch` in each epoch; not"
_CHANGES = "written: it changes what each step trains on"


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    found = loader(script, call)
    if found is None or found.hides_arguments or not found.is_torch:
        return
    sampler = sharing.sampler(found)
    if sampler is not None:
        yield from _sampled(found, *sampler)
    elif (wrap := sharing.wraps(found)) is not None and sharing.trains_again(found) and not sharing.may_share(found):
        message = "each process reads all of the data of this loader: nothing shares it among them"
        related = (Related(wrap[0].source, wrap[1], "the model is wrapped for several processes here"),)
        yield Finding(call, message, advice=f"{_SHARE} {_CHANGES}", level=Level.WARNING, related=related)


def _sampled(found: Loader, script: Script, made: syntax.Call) -> Iterator[Finding]:
    if not sharing.shuffles(script, made) or not sharing.trains_again(found) or sharing.tells_epoch(found.script):
        return
    message = "nothing tells this sampler the epoch: every epoch has the same order"
    if script is found.script:
        yield Finding(made, message, advice=_TELL, level=Level.NOTE)
    else:
        related = (Related(script.source, made, "the sampler is made here"),)
        yield Finding(found.call, message, advice=_TELL, level=Level.NOTE, related=related)


RULE = Rule(
    "SPD214",
    on=syntax.Call,
    check=check,
    triggers=(b"Loader",),
    worth=Estimate(Worth.UNKNOWN, "it changes what is learned, not its speed"),
)
