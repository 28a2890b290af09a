"""`pin_memory_device` of a `DataLoader` does nothing since torch 2.9.

## What it does
Finds loaders that are given `pin_memory_device`, for torch 2.9 and later.

## Why it is slow
It costs no time: memory is pinned for the current accelerator, whatever the argument says, and each loader that pins warns
about it. It is told of since it reads as if it did something.

## Example
```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=64, pin_memory=True, pin_memory_device="cuda")
```

## Use instead
```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=64, pin_memory=True)
```

## Fix safety
Exact, and written only where the target is torch 2.9 or later: before, the argument chose the device. It is kept where its
value is a call, which may do something, and where it comes through `**kwargs`.

## Sources
Run with torch 2.13: `DataLoader(..., pin_memory_device="cuda")` warns that the argument is deprecated and ignored.

- [PyTorch: torch.utils.data](https://docs.pytorch.org/docs/stable/data.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Fix, Level, Risk, Rule, Worth
from speedlint.shapes import eras
from speedlint.shapes.data.loaders import loader
from speedlint.source import is_name

_IGNORED = (2, 9)
_NAME = "pin_memory_device"


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    found = loader(script, call)
    if found is None or not eras.allows(script, _IGNORED):
        return
    arg = next((arg for arg in call.args if is_name(arg.keyword, _NAME)), None)
    if arg is None:
        return
    message = f"`{_NAME}` does nothing since torch 2.9"
    if _does_something(script, arg.value):
        advice = "drop it; not written: its value is a call, which may do something"
        yield Finding(arg, message, advice=advice, level=Level.NOTE)
        return
    try:
        fix = Fix((edits.remove_argument(script.source, arg),), Risk.EXACT, _IGNORED)
        yield Finding(arg, message, fix, "drop it", Level.NOTE)
    except edits.CannotEdit as reason:
        yield Finding(arg, message, advice=f"drop it; not written: {reason}", level=Level.NOTE)


def _does_something(script: Script, value: syntax.BaseExpression) -> bool:
    return any(True for _ in script.source.inside(value, syntax.Call))


RULE = Rule(
    "SPD212",
    on=syntax.Call,
    check=check,
    triggers=(b"pin_memory_device",),
    worth=Estimate(Worth.LOW, "it costs no time"),
)
