"""A tensor is made of a list of numpy arrays number by number.

## What it does
Finds `torch.tensor`, `torch.as_tensor`, `torch.FloatTensor` and the like of a list of numpy arrays: written out, as a
comprehension, filled with `append`, or one of `zip(*batch)`; in a collate function also of the entries of items, such as
`b[0]`, where the datasets of its loaders return arrays. It is a warning in training and evaluation steps, and in what reads
the items of a dataset and joins them to batches; elsewhere a note. Lists of numbers are left alone, and so are a few
small arrays.

## Why it is slow
torch takes a list apart down to single numbers, and makes a Python object of each. numpy copies the arrays as blocks of
memory, and torch takes its result as it is.

## Example
```python
import numpy as np
import torch


def collate(items):
    return torch.tensor([np.load(path) for path in items], dtype=torch.float32)
```

## Use instead
```python
import numpy as np
import torch


def collate(items):
    return torch.tensor(np.array([np.load(path) for path in items]), dtype=torch.float32)
```

## Fix safety
Exact: the list is wrapped in `np.array`. It is written where the tensor's type of number is given, or where the list is
not empty, such as one entry of each item of a batch, and all its arrays hold the same known type: of mixed or of no arrays
torch and numpy make different types.
Elsewhere it is shown.

## Sources
torch itself warns that this is "extremely slow". 32 arrays of 3x64x64 float32 took 136 ms as a list and 0.1 ms through
`np.array` (torch 2.13, CPU).

- [PyTorch: torch.tensor](https://docs.pytorch.org/docs/stable/generated/torch.tensor.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.cures import spelling
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Fix, Level, Risk, Rule, Worth
from speedlint.shapes.data.arrays import ArrayList, array_list, numbers_of
from speedlint.shapes.data.per_item import is_per_item
from speedlint.torch.words import FREQUENT

_TYPED = tuple(f"torch.{kind}Tensor" for kind in ("Float", "Double", "Half", "Long", "Int", "Short", "Byte", "Bool"))
_ANY = ("torch.tensor", "torch.as_tensor")
_PLAIN = "torch.Tensor"


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    name = script.name(call.func)
    if name not in (*_TYPED, *_ANY, _PLAIN):
        return
    data = script.argument(call, "data", 0)
    found = array_list(script, data) if data is not None else None
    if found is None or data is None:
        return
    often = script.frequency(call) in FREQUENT or is_per_item(script, call)
    message = f"`{_shown(script, call)}` takes a list of numpy arrays apart number by number"
    yield _finding(call, data, script, found, message, Level.WARNING if often else Level.NOTE)


def _finding(
    call: syntax.Call, data: syntax.BaseExpression, script: Script, found: ArrayList, message: str, level: Level
) -> Finding:
    advice = "make one array of the list first: `np.array(...)`, or `torch.from_numpy(np.stack(...))`"
    reason = _reason(call, script, found)
    if reason is None:
        try:
            array, imports = spelling.spell(script, "numpy.array")
            wrapped = edits.replace(script.source, data, f"{array}({script.text(data)})")
            return Finding(call, message, Fix((*imports, wrapped), Risk.EXACT), advice, level)
        except edits.CannotEdit as problem:
            reason = str(problem)
    return Finding(call, message, advice=f"{advice}; not written: {reason}", level=level)


def _reason(call: syntax.Call, script: Script, found: ArrayList) -> str | None:
    """Why numpy may choose another type of number than torch, or None."""
    if script.name(call.func) in (*_TYPED, _PLAIN) or script.argument(call, "dtype") is not None:
        return None
    kinds = set(numbers_of(found))
    if len(kinds) != 1 or None in kinds:
        return "of arrays of several types numpy makes another type than torch: give the tensor its `dtype`"
    return None if found.is_filled else "of an empty list numpy makes another type than torch: give the tensor its `dtype`"


def _shown(script: Script, call: syntax.Call) -> str:
    text = " ".join(script.text(call).split())
    return text if len(text) <= 60 else f"{script.text(call.func)}(...)"


RULE = Rule(
    "SPD208",
    on=syntax.Call,
    check=check,
    triggers=(b"tensor(", b"Tensor("),
    worth=Estimate(Worth.MEDIUM, "each number goes through a Python object"),
)
