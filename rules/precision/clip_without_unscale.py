"""Gradients are clipped while they are still multiplied by the loss scale.

## What it does
Finds `clip_grad_norm_` and `clip_grad_value_` after `scaler.scale(loss).backward()` where nothing unscales the gradients
first.

## Why it is slow
The scale is 65536 at first, so the norm that is compared with the limit is tens of thousands of times too large: nearly
every step is clipped to a tiny one, and the training needs many more steps. A norm of 2.45 read 160530 in a run.

## Example
```python
scaler.scale(loss).backward()
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
scaler.step(optimizer)
scaler.update()
```

## Use instead
```python
scaler.scale(loss).backward()
scaler.unscale_(optimizer)
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
scaler.step(optimizer)
scaler.update()
```

## Fix safety
behavior: the gradients are clipped as the limit says, so the steps taken change. Shown, not written, where several
optimizers step or the clipping runs more often than the step.

## Sources
PyTorch AMP examples, "Gradient clipping"; the two norms were measured with torch 2.13.

- [PyTorch: Automatic Mixed Precision examples](https://docs.pytorch.org/docs/stable/notes/amp_examples.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.cures.scaling import scaled_clips, unscale_edits
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Fix, Level, Risk, Rule, Worth

_ADVICE = "unscale the gradients of the optimizer first: `scaler.unscale_(optimizer)`"


def check(backward: syntax.Call, script: Script) -> Iterator[Finding]:
    """Reports the clipping calls after a scaled backward pass that nothing unscales."""
    found = scaled_clips(backward, script)
    if found is None:
        return
    clip, scaler, steps = found
    message = f"`{script.text(clip.func)}` clips gradients that `{script.text(backward)}` left multiplied by the loss scale"
    try:
        if len(steps) != 1 or not steps[0].args:
            raise CannotEdit("it is not certain which optimizer's gradients are clipped")
        optimizer = script.text(steps[0].args[0].value)
        edits = unscale_edits(script, backward, [clip], scaler, steps[0], optimizer)
    except CannotEdit as why:
        yield Finding(clip, message, advice=f"{_ADVICE}; not written because {why}", level=Level.WARNING)
        return
    yield Finding(clip, message, fix=Fix(edits, Risk.BEHAVIOR), advice=_ADVICE, level=Level.WARNING)


RULE = Rule(
    "SPD103",
    on=syntax.Call,
    check=check,
    triggers=(b"clip_grad",),
    worth=Estimate(Worth.UNKNOWN, "it changes the training, not its speed"),
)
