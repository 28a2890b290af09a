"""The loss is computed in float16 and differentiated without a scaler, so that small gradients become zero.

## What it does
Finds a backward pass whose forward pass stands under a float16 autocast in a program that names no loss scaler.

## Why it is slow
Gradients below 6e-8 are zero in float16: layers stop learning, and the training needs more steps, or never arrives. Scaling
the loss by a large factor, and the gradients back before the step, keeps them. bfloat16 has float32's range and needs none.

## Example
```python
with torch.autocast("cuda", dtype=torch.float16):
    loss = criterion(model(images), labels)
loss.backward()
optimizer.step()
```

## Use instead
```python
with torch.autocast("cuda", dtype=torch.float16):
    loss = criterion(model(images), labels)
scaler.scale(loss).backward()
scaler.step(optimizer)
scaler.update()
```

## Fix safety
numeric: gradients that were lost are kept; a step whose gradients overflow is skipped and the scale lowered. The scaler is
made once, beside the optimizer. Shown, not written, where the optimizer is out of sight, steps several times, takes a
closure, or where gradients are used by hand. Silent where the dtype is decided at run time.

## Sources
PyTorch AMP documentation, "Gradient Scaling".

- [PyTorch: torch.amp](https://docs.pytorch.org/docs/stable/amp.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.cures.scaling import scaling, spelled_constructor
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Fix, Risk, Rule, Worth
from speedlint.shapes.precision.autocast import half_autocast, uses_scaler
from speedlint.shapes.steps import training_steps
from speedlint.shapes.training import is_framework_driven

_ADVICE = (
    "make `scaler = {made}` once beside the optimizer, then `scaler.scale(loss).backward()`, `scaler.step(optimizer)` and "
    "`scaler.update()`; bfloat16 needs none of it"
)


def check(backward: syntax.Call, script: Script) -> Iterator[Finding]:
    """Reports a plain backward pass of a loss that was computed under float16 autocast."""
    step = next((step for step in training_steps(script) if step.backward is backward), None)
    if step is None or step.scaler is not None or uses_scaler(step) or is_framework_driven(script):
        return
    autocast = half_autocast(step)
    if autocast is None:
        return
    message = f"`{script.text(backward)}` differentiates a float16 loss (`{script.text(autocast)}`) without a scaler"
    advice = _ADVICE.format(made=spelled_constructor(script))
    try:
        fix = Fix(scaling(step, autocast).edits, Risk.NUMERIC)
    except CannotEdit as why:
        yield Finding(backward, message, advice=f"{advice}; not written because {why}")
        return
    yield Finding(backward, message, fix=fix, advice=advice)


RULE = Rule(
    "SPD102",
    on=syntax.Call,
    check=check,
    triggers=(b"autocast",),
    worth=Estimate(Worth.UNKNOWN, "it costs accuracy, not time"),
)
