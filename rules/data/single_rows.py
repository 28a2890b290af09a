"""A loader takes the rows of tensors in memory one by one, and stacks them to the batch that one index would give.

## What it does
Finds training loops over a `DataLoader` without workers whose dataset is a `TensorDataset`, a part of one, or one of the
project's own that only takes rows of tensors and numpy arrays, in batches of more than eight rows. Where the steps are not
seen to be short it is a note.

## Why it is slow
For each row of a batch each tensor is indexed and a tuple is made, and then the rows are stacked: some microseconds a row,
while the GPU waits. One index with all the row numbers of the batch takes as long as one row.

## Example
```python
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def train(inputs, targets, epochs):
    model = nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(inputs, targets), batch_size=64, shuffle=True)
    for epoch in range(epochs):
        for some, wanted in loader:
            optimizer.zero_grad()
            (model(some) - wanted).square().mean().backward()
            optimizer.step()
```

## Use instead
```python
import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset


def train(inputs, targets, epochs):
    model = nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rows = TensorDataset(inputs, targets)
    loader = DataLoader(rows, sampler=BatchSampler(RandomSampler(rows), 64, drop_last=False), batch_size=None)
    for epoch in range(epochs):
        for some, wanted in loader:
            optimizer.zero_grad()
            (model(some) - wanted).square().mean().backward()
            optimizer.step()
```

## Fix safety
Shown, never written: the batches are the same, but what asks the loader for its `batch_size` gets another answer.

## Sources
Run with torch 2.13 on one thread of a shared CPU: a batch of 64 rows of two tensors took 179 microseconds, 44 by row
numbers; a training step of three Linear layers with its batch 1.10 ms, 0.88 by row numbers. The batches and the random
stream are the same.

- [PyTorch: torch.utils.data](https://docs.pytorch.org/docs/stable/data.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Level, Related, Rule, Worth
from speedlint.shapes import worth
from speedlint.shapes.data import single_rows
from speedlint.shapes.data.loaders import loader
from speedlint.shapes.model import launches


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    found = loader(script, call)
    starts = single_rows.passes(found) if found is not None else []
    if not starts:
        return
    short = all(isinstance(each.node, syntax.For) and launches.drives_short_steps(each.script, each.node) for each in starts)
    message = "this loader takes the rows of tensors one by one, and stacks them to batches"
    advice = (
        "give it batches of row numbers: `DataLoader(rows, sampler=BatchSampler(RandomSampler(rows), size, "
        "drop_last=False), batch_size=None)`; not written, since other code may ask the loader for its `batch_size`"
    )
    related = tuple(Related(each.script.source, each.node, "the loop over it") for each in starts)
    yield Finding(call, message, advice=advice, level=Level.WARNING if short else Level.NOTE, related=related)


RULE = Rule(
    "SPD216",
    on=syntax.Call,
    check=check,
    triggers=(b"Loader",),
    worth=Estimate(Worth.HIGH, "some microseconds for each row, between short steps"),
    cause=worth.one_setup("SPD216"),
)
