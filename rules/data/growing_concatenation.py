"""What is gathered over the steps is joined anew in each of them, and so copied again and again.

## What it does
Finds `outputs = torch.cat((outputs, batch))` in the steps of a training or evaluation, the same with numpy's functions, and
`outputs = outputs + [...]` of lists, where nothing in the loop reads what is gathered so far. It is a note unless whole
outputs of a network are gathered on the host: labels and other single numbers, and tensors that stay on the GPU, are copied
in next to no time.

## Why it is slow
Each step copies all that was gathered before: after n steps, n / 2 times the whole. Labels of ten thousand images are
nothing; outputs of a thousand numbers for each of them are gigabytes that are copied, and twice the memory.

## Example
```python
import torch


@torch.no_grad()
def predict(model, loader):
    outputs = torch.empty(0)
    for images in loader:
        outputs = torch.cat((outputs, model(images)))
    return outputs
```

## Use instead
```python
import torch


@torch.no_grad()
def predict(model, loader):
    outputs = [torch.empty(0)]
    for images in loader:
        outputs.append(model(images).clone())
    outputs = torch.cat(outputs)
    return outputs
```

## Fix safety
Exact: the same numbers in the same order and of the same type. The list begins with the array that was there before, so that
the type is the same, and so is a loop without turns. It is written only where the variable starts as an empty array or list
in the same function, nothing reads it before the loop is over, and it grows along the first dimension. What may be a view,
or memory that the next step writes again, is copied into the list (`.clone()`, `np.array`), as it was copied before.

## Sources
Run with torch 2.13 on one thread of a shared CPU: 400 batches of 128 rows of 1000 numbers took 21 s, 0.1 s with a list; of
128 rows of one number 1.6 ms, 0.7 with a list.

- [PyTorch: torch.cat](https://docs.pytorch.org/docs/stable/generated/torch.cat.html)
- [NumPy: numpy.append](https://numpy.org/doc/stable/reference/generated/numpy.append.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.cures import joining
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Fix, Level, Risk, Rule, Worth
from speedlint.shapes.data import growing
from speedlint.shapes.sync import reads


def check(assign: syntax.Assign, script: Script) -> Iterator[Finding]:
    found = growing.grown(script, assign)
    if found is None or script.is_test:
        return
    store = script.text(found.store)
    often = reads.often(script, assign)
    message = f"`{store}` is joined anew by `{found.by}` {often}: all that it holds is copied each time"
    join = "np.concatenate" if found.how is growing.How.APPENDED else found.by
    behind = "" if found.how is growing.How.ADDED else f", and call `{join}` on that once behind the loop"
    advice = f"append to a list{behind}"
    level = Level.WARNING if growing.is_wide(script, found) else Level.NOTE
    try:
        fix = Fix(joining.gathered(script, found), Risk.EXACT)
    except CannotEdit as reason:
        yield Finding(assign, message, advice=f"{advice}; not written, since {reason}", level=level)
        return
    yield Finding(assign, message, fix, advice, level)


RULE = Rule(
    "SPD215",
    on=syntax.Assign,
    check=check,
    triggers=(b"cat", b"stack", b"append", b"+"),
    worth=Estimate(Worth.UNKNOWN, "half of what is gathered is copied in each step"),
    often=True,
)
