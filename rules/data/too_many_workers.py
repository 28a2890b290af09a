"""A `DataLoader` with more workers than the machine has cores makes them take turns.

## What it does
Finds loaders whose `num_workers` is a number above 16, also where it comes from a default of the command line, a constant, a
dataclass field or a dict. Always a note, since large machines have that many cores to spare.

## Why it is slow
Workers beyond the cores only switch among them. Each one takes a copy of what the dataset holds, has batches of its own in
flight, and has to be started, in every process of a distributed training.

## Example
```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=64, num_workers=32)
```

## Use instead
```python
import os

from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=64, num_workers=min(8, os.cpu_count() or 1))
```

## Fix safety
Never fixed: how many cores the machine has that trains is not in the script. A number worked out from the cores is left
alone.

## Sources
Run with torch 2.13: a `DataLoader` with more workers than the process has cores warns that this "might get DataLoader
running slow or even freeze".

- [PyTorch: torch.utils.data](https://docs.pytorch.org/docs/stable/data.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.cures.loader_arguments import set_at
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Level, Rule, Worth
from speedlint.shapes.data.loader_settings import Setting
from speedlint.shapes.data.loaders import Loader, loader

_MOST = 16


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    found = loader(script, call)
    if found is None:
        return
    workers = found.setting("num_workers")
    count = workers.value.value if workers.value is not None else None
    if isinstance(count, int) and count > _MOST and found.matters:
        yield _finding(found, workers, count)


def _finding(found: Loader, workers: Setting, count: int) -> Finding:
    message = f"this loader has {count} workers: more than the cores, they take turns"
    advice = "use as many as the machine has cores to spare, and measure with half and twice as many; not written: how many"
    related = set_at(found.script, workers, "the number of workers is set here")
    return Finding(found.call, message, advice=f"{advice} that is is not in the script", level=Level.NOTE, related=related)


RULE = Rule(
    "SPD213",
    on=syntax.Call,
    check=check,
    triggers=(b"Loader",),
    worth=Estimate(Worth.UNKNOWN, "it depends on the machine's cores"),
)
