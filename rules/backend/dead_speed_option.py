"""A command-line option that should make training faster is parsed, and nothing reads it.

## What it does
Finds `add_argument` calls for workers, prefetching, pinning, mixed precision, compilation or the interval of validation
whose value nothing in the program reads, except to print it. Programs that hand all their options on at once are left
alone.

## Why it is slow
Whoever sets the option believes that it helps, and it changes nothing. Its name in the printed configuration makes it worse.

With a `--num_workers` that nothing reads the loader keeps the number written in it; with such a `--use_amp` the step stays
in float32.

## Example
```python
import argparse

from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--num_workers", type=int, default=8)
args = parser.parse_args()
loader = DataLoader(dataset, batch_size=32, num_workers=0)
```

## Use instead
```python
import argparse

from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--num_workers", type=int, default=8)
args = parser.parse_args()
loader = DataLoader(dataset, batch_size=32, num_workers=args.num_workers)
```

## Fix safety
Never rewritten: what the option was meant to control, and whether its default is right there, is for the author to say.

## Sources
One real training project had three such options after it was tuned by a guide: workers, compilation and the interval of
validation were parsed, printed and never used.

- [Python: argparse](https://docs.python.org/3/library/argparse.html)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Level, Rule, Worth
from speedlint.solve import options

_SPEED = re.compile(
    r"^(?:num_|n_|dataloader_)?workers$|^num_worker$|prefetch|pin_?mem|persistent_workers|^(?:use_|no_)?(?:amp|fp16|bf16|tf32)$"
    r"|mixed_precision|compile|^(?:val|valid|validation|eval|test)\w*_(?:interval|freq|frequency|every|period)$"
    r"|(?:accum|accumulation)_(?:steps|iter)|channels_last|cudnn_benchmark"
)


def check(module: syntax.Module, script: Script) -> Iterator[Finding]:
    for place, call, name in options.unused(script, _SPEED):
        if place is script:
            message = f"the option `{name}` is parsed and nothing in the program reads it"
            advice = "use it where it belongs, or take it out; not rewritten, since only its author knows what it was to do"
            yield Finding(call, message, advice=advice, level=Level.WARNING)


RULE = Rule(
    "SPD411",
    on=syntax.Module,
    check=check,
    triggers=(b"add_argument",),
    worth=Estimate(Worth.UNKNOWN, "the option does nothing, whatever it is set to"),
)
