"""`torch.profiler` watches all of training: each operation is written down, in every step.

## What it does
Finds `torch.profiler.profile(...)` without a schedule, `torch.autograd.profiler.profile()`, `emit_nvtx()` and `emit_itt()`
around a whole training loop, or started before one, or entered in each step. A loop that ends after a few steps is a
measurement, and fine. Where a condition, an option or the name of the function asks for it, it is a note.

## Why it is slow
For each operation and each kernel an event is recorded and kept until the profiler stops: time in each step, and memory that
grows until the trace is written, with stacks and shapes more so. A few steps show the same.

## Example
```python
import torch

with torch.profiler.profile() as prof:
    for images, labels in loader:
        step(images, labels)
```

## Use instead
```python
import torch

few = torch.profiler.schedule(wait=5, warmup=2, active=3, repeat=1)
with torch.profiler.profile(schedule=few) as prof:
    for images, labels in loader:
        step(images, labels)
        prof.step()
```

## Fix safety
Never rewritten: what is done with the trace, and which steps it should show, is for the author to say. Training itself is
the same bit for bit without a profiler.

## Sources
PyTorch's profiler recipe: use a schedule for long-running jobs. Measured with torch 2.13 on a CPU: 2.9 times as slow.

- [PyTorch: Profiler recipe](https://docs.pytorch.org/tutorials/recipes/recipes/profiler_recipe.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Level, Rule, Worth
from speedlint.shapes import evaluation
from speedlint.shapes.backend import debugging, intent
from speedlint.shapes.backend.intent import Intent
from speedlint.shapes.sync import reads

_ADVICE = "profile a few steps, with `schedule=torch.profiler.schedule(...)` and `prof.step()`, or only when asked"


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    if not script.is_call_to(call, *debugging.PROFILERS) or script.is_test or not evaluation.trains(script):
        return
    if script.hides_arguments(call) or script.argument(call, "schedule") is not None:
        return
    enabled = script.argument(call, "enabled", 0) if script.name(call.func) in debugging.SWITCHED else None
    known = script.constant(enabled) if enabled is not None else None
    asked = intent.of(script, call)
    if (known is not None and not known.value) or asked is Intent.NEVER or not debugging.is_around_training(script, call):
        return
    level = Level.WARNING if asked is Intent.ALWAYS and (enabled is None or known is not None) else Level.NOTE
    message = f"`{reads.shown(script, call.func)}(...)` records every operation of the whole training"
    yield Finding(
        call, message, advice=f"{_ADVICE}; not rewritten, since only the author knows what to look at", level=level
    )


RULE = Rule(
    "SPD407",
    on=syntax.Call,
    check=check,
    triggers=(b"profile", b"emit_nvtx", b"emit_itt"),
    worth=Estimate(Worth.HIGH, "each operation is recorded"),
)
