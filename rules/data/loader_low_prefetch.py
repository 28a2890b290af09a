"""A `DataLoader` whose workers hold one batch each ready has nothing in hand when one of them is late.

## What it does
Finds loaders that set `prefetch_factor=1`, also where the 1 comes from a default of the command line, a constant, a
dataclass field or a dict. Left alone are loaders without workers, and those that no training waits for.

## Why it is slow
A worker starts on its next batch only when the training has taken its last one. Batches are handed out in order: while one
that takes long is decoded, the other workers stand still, and the training waits.

## Example
```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=64, num_workers=4, prefetch_factor=1)
```

## Use instead
```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=64, num_workers=4, prefetch_factor=4)
```

## Fix safety
Exact: the same batches in the same order. Numeric where reading ahead may move the random stream: the sampler is the
project's own, the loader is given a generator or keeps its workers and a pass may be broken off, or batches may come out of
order. Where a 1 is set as a default, that default is edited, for every loader that uses it.

Four batches for each worker lie in the host's memory instead of one. Where that is what the 1 is for, keep it, or take 2,
torch's default. Needs torch 1.7.

## Sources
PyTorch documentation of `DataLoader`: `prefetch_factor`, 2 by default. That the batches stay the
same was run with torch 2.13; how much time it saves depends on how uneven they are to load.

- [PyTorch: torch.utils.data](https://docs.pytorch.org/docs/stable/data.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.cures.loader_arguments import set_at, set_where_set
from speedlint.facts import syntax
from speedlint.rule import Edit, Estimate, Finding, Fix, Level, Risk, Rule, Worth
from speedlint.shapes import worth
from speedlint.shapes.data.ahead import changes_ahead, changes_nothing
from speedlint.shapes.data.loader_settings import Setting
from speedlint.shapes.data.loaders import Loader, loader

_SINCE = (1, 7)
_ADVICE = "set `prefetch_factor=4`, which keeps four batches per worker in the host's memory"
_MESSAGE = "each worker of this loader prepares one batch and then waits until the training has taken it"


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    found = loader(script, call)
    if found is None or found.hides_arguments or found.setting("num_workers").is_off:
        return
    factor = found.setting("prefetch_factor")
    if factor.value is not None and type(factor.value.value) is int and factor.value.value == 1:
        matters = found.matters
        if matters is not None:
            yield _finding(found, factor, Level.WARNING if matters and not found.has_few_rows else Level.NOTE)


def _finding(found: Loader, factor: Setting, level: Level) -> Finding:
    related = set_at(found.script, factor, "`prefetch_factor` is set here")
    try:
        if (ahead := changes_ahead(found)) is not None:
            raise edits.CannotEdit(ahead)
        fix = Fix(set_where_set(found.script, factor, _four), _risk(found, factor), _SINCE)
        return Finding(found.call, _MESSAGE, fix, _ADVICE, level, related)
    except edits.CannotEdit as reason:
        return Finding(found.call, _MESSAGE, advice=f"{_ADVICE}; not written: {reason}", level=level, related=related)


def _risk(found: Loader, factor: Setting) -> Risk:
    """Exact only where no other loader can share the place that is edited."""
    is_alone = any(arg.value is factor.expression for arg in found.call.args) and isinstance(
        factor.expression, syntax.Integer
    )
    return Risk.EXACT if is_alone and changes_nothing(found) else Risk.NUMERIC


def _four(_: Script, __: syntax.Node) -> tuple[str, tuple[Edit, ...]]:
    return "4", ()


RULE = Rule(
    "SPD204",
    on=syntax.Call,
    check=check,
    triggers=(b"Loader",),
    worth=Estimate(Worth.LOW, "the GPU waits only where a batch takes longer than a step"),
    cause=worth.one_feed,
)
