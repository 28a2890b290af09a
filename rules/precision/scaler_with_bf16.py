"""A loss scaler is enabled although autocast computes in bfloat16, which needs none.

## What it does
Finds a `GradScaler` in a program all of whose autocasts compute in bfloat16. Where they may also compute in float16, as an
option decides, a scaler that is enabled all the same is a note; it is a warning where the GPU decides, by
`torch.cuda.is_bf16_supported()`: GPUs since 2020 compute in bfloat16.

## Why it is slow
float16 ends at 65504 and loses gradients below 6e-8; bfloat16 has the range of float32, and there is nothing to scale. The
scaler still multiplies all gradients in each step, looks for infinite ones, and makes the host wait for the answer before
the optimizer may step.

## Example
```python
import torch

scaler = torch.amp.GradScaler("cuda")
for images, labels in loader:
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = criterion(model(images), labels)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
```

## Use instead
```python
import torch

scaler = torch.amp.GradScaler("cuda", enabled=False)
for images, labels in loader:
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = criterion(model(images), labels)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
```

## Fix safety
Behavior: the factor is a power of two, so finite gradients come out the same. But a scaler skips each step whose gradients
are infinite or no numbers, and disabled it does not: a training that lives by that ends in NaN. A disabled scaler hands
everything through, saves an empty state and ignores one that is loaded; to take it out altogether is as good. Where the
dtype is decided at run time it is shown: `enabled=dtype == torch.float16`; so it is where gradients are clipped while they
are scaled, until they are unscaled first (SPD103): the limit would be another.

## Sources
PyTorch's AMP documentation: gradient scaling is for float16 gradients that underflow. That finite gradients stay the same
bit for bit was run with torch 2.13 on a CPU.

- [PyTorch: torch.amp](https://docs.pytorch.org/docs/stable/amp.html)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.cures.scaling import scaled_clips
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Fix, Level, Risk, Rule, Worth
from speedlint.shapes.precision.amp_dtypes import BFLOAT16, FLOAT16, asks_for_dtype, enabled, may_be_on, of_program
from speedlint.shapes.sync import reads
from speedlint.torch import library

_READS_STATE = re.compile(rb"get_scale\(|\._scale\b|\[\s*[\"'](?:scale|growth_factor|_growth_tracker)[\"']\s*\]")
_BY_GPU = re.compile(rb"is_bf16_supported\(")
_WHEN_BOTH = "enable it only where it is needed: `enabled=dtype == torch.float16`"


def check(scaler: syntax.Call, script: Script) -> Iterator[Finding]:
    if script.name(scaler.func) not in library.SCALERS or not may_be_on(script, scaler) or asks_for_dtype(script, scaler):
        return
    if not any(place.method_calls("scale") for place in script.everywhere(b".scale(")):
        return
    found = of_program(script)
    made = reads.shown(script, scaler)
    if found is None or not all(BFLOAT16 in each and each <= {BFLOAT16, FLOAT16} for each in found):
        return
    if all(each == {BFLOAT16} for each in found):
        yield _finding(scaler, script, f"`{made}` scales the loss although autocast computes in bfloat16, which needs none")
    else:
        message = f"`{made}` scales the loss also where autocast computes in bfloat16, which needs none"
        reason = "the dtype is decided at run time"
        level = Level.WARNING if script.program.mentions(script, _BY_GPU) else Level.NOTE
        yield Finding(scaler, message, advice=f"{_WHEN_BOTH}; not written: {reason}", level=level)


def _finding(scaler: syntax.Call, script: Script, message: str) -> Finding:
    advice = "pass `enabled=False`, or take the scaler out"
    given = enabled(script, scaler)
    written = [arg for arg in scaler.args if arg.value is given]
    if script.program.mentions(script, _READS_STATE):
        why = "the program reads the scaler's state, which it has none of when it is not enabled"
        return Finding(scaler, message, advice=f"{advice}; not written: {why}", level=Level.WARNING)
    steps = ((place, call) for place in script.everywhere(b"clip_grad") for call in place.method_calls("backward"))
    if any(scaled_clips(call, place) is not None for place, call in steps):
        why = "gradients are clipped while they are scaled, and without the scale the limit is another"
        return Finding(scaler, message, advice=f"{advice}; not written: {why}", level=Level.WARNING)
    if given is not None and not written:
        return Finding(scaler, message, advice=f"{advice}; not written: it is enabled elsewhere", level=Level.WARNING)
    if given is None:
        edit = edits.set_argument(script.source, scaler, "enabled", "False")
    else:
        edit = edits.replace(script.source, given, "False")
    return Finding(scaler, message, Fix((edit,), Risk.BEHAVIOR), advice, Level.WARNING)


RULE = Rule(
    "SPD107",
    on=syntax.Call,
    check=check,
    triggers=(b"GradScaler",),
    worth=Estimate(Worth.LOW, "each step reads all gradients once more"),
)
