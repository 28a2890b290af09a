"""A dataset draws random numbers one by one for all of its samples in every epoch.

## What it does
Finds calls in the loop over the epochs that run a method of a dataset which goes over its samples in a loop of Python and,
in a loop within that, draws a single number: negatives for each pair of a user and an item, `j = np.random.randint(n)`.
What draws arrays, and what runs once, is left alone.

## Why it is slow
A call that draws one number takes a microsecond, numpy's `choice` four, and the loop around it as long again; one that draws
a million takes some nanoseconds for each. The training waits meanwhile: nothing of the next epoch can be read before.

## Example
```python
import numpy as np
from torch.utils.data import DataLoader, Dataset


class Pairs(Dataset):
    def __init__(self, pairs, items):
        self.pairs, self.items = pairs, items

    def draw(self):
        self.drawn = []
        for user, item in self.pairs:
            self.drawn += [(user, item, np.random.randint(self.items)) for _ in range(4)]

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, index):
        return self.drawn[index]


def train(step, pairs, epochs):
    loader = DataLoader(Pairs(pairs, 10000), batch_size=256)
    for epoch in range(epochs):
        loader.dataset.draw()
        for batch in loader:
            step(batch)
```

## Use instead
```python
import numpy as np
from torch.utils.data import DataLoader, Dataset


class Pairs(Dataset):
    def __init__(self, pairs, items):
        self.pairs, self.items = np.asarray(pairs), items

    def draw(self):
        drawn = np.random.randint(self.items, size=(len(self.pairs), 4))
        pairs = np.repeat(self.pairs, 4, axis=0)
        self.drawn = np.column_stack([pairs, drawn.ravel()])

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, index):
        return self.drawn[index]


def train(step, pairs, epochs):
    loader = DataLoader(Pairs(pairs, 10000), batch_size=256)
    for epoch in range(epochs):
        loader.dataset.draw()
        for batch in loader:
            step(batch)
```

What must not be drawn is drawn again where it was, all of it at once, until nothing of it is left.

## Fix safety
Never fixed: other numbers come out of the random stream, and what else the loop does is for you to write for whole arrays.

## Sources
Run with numpy 2.4 on one thread of a shared CPU: 1.3 microseconds for `np.random.randint(100)`, 3.7 for `np.random.choice`,
0.2 for `random.randint`; 0.01 for each of a thousand that one call draws.

- [NumPy: random.Generator.integers](https://numpy.org/doc/stable/reference/random/generated/numpy.random.Generator.integers.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Level, Related, Rule, Worth
from speedlint.shapes.data import draws
from speedlint.shapes.schedule import periods
from speedlint.shapes.sync import reads
from speedlint.torch.words import Frequency


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    if script.is_test or script.frequency(call) is not Frequency.EPOCH:
        return
    one = periods.scheduled(script, call)
    if one is None or periods.is_conditional(script, one):
        return
    method = script.callee(call)
    drawn = draws.one_by_one(method) if method is not None else None
    if method is None or drawn is None:
        return
    text = method.script.text(drawn)
    yield Finding(
        call,
        f"`{reads.shown(script, call.func)}(...)` draws numbers one by one for all samples in every epoch: `{text}`",
        advice="draw all of them by one call; not written, since the loop around has to be written for whole arrays",
        level=Level.WARNING,
        related=(Related(method.script.source, drawn, "draws one number"),),
    )


RULE = Rule(
    "SPD217",
    on=syntax.Call,
    check=check,
    triggers=(b"for ", b"while "),
    often=True,
    worth=Estimate(Worth.MEDIUM, "a microsecond or more for each number, while the training waits"),
)
