"""A `DataLoader` made anew in every epoch starts its workers anew, and a dataset made with it is read anew.

## What it does
Finds loaders with workers that are made within the loop over the epochs, or in a function that it calls in each turn, out of
a dataset and of arguments that are the same in each epoch, also one for each of the splits of an epoch; and loaders whose
dataset is made there, again of the same.

Loaders are left alone where their dataset, sampler or any argument may change from epoch to epoch, where they are made under
a condition, and where a whole training runs in each turn of the loop, as over folds.

## Why it is slow
Each new loader starts its workers, which import the script and take a copy of the dataset, and its first batch waits for
them. `persistent_workers` cannot help, since the loader itself is thrown away.

## Example
```python
from torch.utils.data import DataLoader

for epoch in range(100):
    loader = DataLoader(dataset, batch_size=64, shuffle=True, num_workers=8)
    for batch in loader:
        train(batch)
```

## Use instead
```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=64, shuffle=True, num_workers=8, persistent_workers=True)
for epoch in range(100):
    for batch in loader:
        train(batch)
```

## Fix safety
Never fixed: whether nothing out of sight changes the dataset between two epochs is not in the script. A shuffling loader
draws another order in each pass, made once or made anew.

## Sources
Run with torch 2.13 on two cores of a shared CPU, a loader of a `TensorDataset` with two workers and 100 batches, the best of
ten runs: 0.23 s an epoch where it is made again in each, 0.18 s where it is made once with `persistent_workers=True`.

- [PyTorch: torch.utils.data](https://docs.pytorch.org/docs/stable/data.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Finding, Level, Related, Rule
from speedlint.shapes import worth
from speedlint.shapes.data import remade
from speedlint.shapes.data.loader_settings import is_surely_positive
from speedlint.shapes.data.loaders import Loader, loader

_PERSISTENT_SINCE = (1, 7)
_ADVICE = "not written: whether nothing changes the data between two epochs is for you to say"


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    found = loader(script, call)
    if found is None or found.hides_arguments or (turn := remade.epoch_turn(script, call)) is None:
        return
    if found.is_read_again or not found.matters or not _is_read_within(found, turn.region):
        return
    if not all(remade.is_same_in_each_turn(script, arg.value, turn, call) for arg in call.args):
        return
    dataset = found.parameter("dataset")
    made = remade.is_made_in_turn(script, dataset, turn) if dataset is not None else None
    workers = found.setting("num_workers")
    if made is not None and _may_be_slow(script, made):
        related = (Related(script.source, made, "the dataset is made here"),)
        message = f"`{script.first_line(made)}` makes the same dataset again in every epoch"
        yield Finding(call, message, advice=f"make it before the loop; {_ADVICE}", level=Level.WARNING, related=related)
    elif not workers.is_off:
        is_known = workers.value is not None or (
            workers.expression is not None and is_surely_positive(script, workers.expression)
        )
        level = Level.WARNING if is_known else Level.NOTE
        message = "this loader is made again in every epoch, and starts all of its workers again"
        advice = f"make it once before the loop, with `persistent_workers=True`; {_ADVICE}"
        yield Finding(call, message, advice=advice, level=level, since=_PERSISTENT_SINCE)


def _is_read_within(found: Loader, region: syntax.Node) -> bool:
    """Whether each place that reads the loader stands in the turn that makes it, as far as is seen."""
    starts = found.starts
    return found.is_followed and all(
        start.script is not found.script or found.script.source.contains(region, start.node) or _is_called(found, start.node)
        for start in starts
    )


def _is_called(found: Loader, node: syntax.Node) -> bool:
    return found.script.function(node) is not found.script.function(found.call)


def _may_be_slow(script: Script, made: syntax.Call) -> bool:
    """Whether making a dataset does work: it is a class of the project or of torchvision, not a view of what is there."""
    if script.definition(made.func) is not None:
        return True
    return (script.name(made.func) or "").startswith("torchvision.datasets.")


RULE = Rule(
    "SPD211",
    on=syntax.Call,
    check=check,
    triggers=(b"Loader",),
    worth=worth.WORKERS_START,
)
