"""Gradients are accumulated by hand beside Accelerate, so that several GPUs exchange them in every step.

## What it does
Finds loops that run `accelerator.backward(...)` in each step and step the optimizer only in every few, without
`accelerator.accumulate(...)` or `accelerator.no_sync(...)` anywhere in the program.

## Why it is slow
With several GPUs, each backward pass sums the gradients of all of them over the network. Only the sum before the
optimizer's step is needed. `accumulate` leaves the others out. On one GPU there is nothing to exchange, so this is a note.

## Example
```python
from accelerate import Accelerator

accelerator = Accelerator()
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for step, batch in enumerate(loader):
    accelerator.backward(model(**batch).loss / 4)
    if (step + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
```

## Use instead
```python
from accelerate import Accelerator

accelerator = Accelerator(gradient_accumulation_steps=4)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for batch in loader:
    with accelerator.accumulate(model):
        accelerator.backward(model(**batch).loss)
        optimizer.step()
        optimizer.zero_grad()
```

## Fix safety
Never written: `accumulate` divides the loss itself, also steps at the end of the data, and everything that counts steps,
such as the scheduler, has to agree with it.

## Sources
Accelerate's documentation of gradient synchronization: 2.0 seconds a batch with an exchange in every step, 0.91 without, on
two machines.

- [Accelerate: gradient synchronization](https://huggingface.co/docs/accelerate/concept_guides/gradient_synchronization)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Level, Rule, Worth
from speedlint.shapes.frameworks import accelerated
from speedlint.torch import library


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    if not script.is_call_to(call, *library.ACCELERATORS) or script.is_test:
        return
    if any(True for _ in script.calls_on(call, "accumulate", "no_sync")):
        return
    for place, backward in script.calls_on(call, "backward"):
        if place is script and accelerated.is_accumulated(place, backward):
            message = f"`{place.text(backward.func)}` exchanges gradients in each step, and the optimizer steps in every few"
            advice = "use `accelerator.accumulate(model)`; not rewritten, since what divides and counts must agree with it"
            yield Finding(backward, message, advice=advice, level=Level.NOTE)


RULE = Rule(
    "SPD822",
    on=syntax.Call,
    check=check,
    triggers=(b"Accelerator(",),
    worth=Estimate(Worth.UNKNOWN, "it changes the training, not its speed"),
)
