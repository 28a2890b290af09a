"""A line is printed in every step; nobody reads thousands of them.

## What it does
Finds `print` and logging calls, and progress bars written by hand, that every training or evaluation step reaches, and that
show nothing that is read from the GPU just then. It is off unless it is selected: a line costs little beside a long step.
Bars of `tqdm`, and boards that collect numbers, are left alone.

## Why it is slow
The process waits until a terminal or a notebook has taken the line; a bar drawn by hand is dozens of writes and a flush.
With steps of a few milliseconds that is a good part.

## Example
```python
def train(model, loader, optimizer):
    for step, images in enumerate(loader):
        model(images).mean().backward()
        optimizer.step()
        print("step", step)
```

## Use instead
```python
def train(model, loader, optimizer):
    for step, images in enumerate(loader):
        model(images).mean().backward()
        optimizer.step()
        if step % 50 == 0:
            print("step", step)
```

## Fix safety
Shown, never written: other programs may read the lines, and what they say may be worth its time.

## Sources
Counting: the writes of a step. `speedlint verify` measures it.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from speedlint.rule import Finding, Related, Rule
from speedlint.semantics import displays, evaluation, reads, telling
from speedlint.semantics.script import Script


def check(call: cst.Call, script: Script) -> Iterator[Finding]:
    if not telling.in_every_step(script, call) or evaluation.is_test(script) or telling.waits(script, call):
        return
    drawn = None if telling.writes_text(script, call) else telling.draws(script, call)
    if drawn is None and not telling.writes_text(script, call):
        return
    message = f"`{reads.shown(script, call.func)}(...)` writes a line {reads.often(script, call)}"
    advice = f"write it every {displays.PERIOD} steps; not written here, because who reads the lines is not seen"
    callee = script.callee(call) if drawn is not None else None
    related = (Related(callee.script.source, drawn, "writes it"),) if callee is not None and drawn is not None else ()
    yield Finding(call, message, advice=advice, related=related)


RULE = Rule("SPD705", on=cst.Call, check=check, triggers=(b"for ", b"while "), off=True)
