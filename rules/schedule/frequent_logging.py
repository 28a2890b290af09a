"""A line is printed in every step; nobody reads thousands of them.

## What it does
Finds `print` and logging calls, and progress bars written by hand, that every training or evaluation step reaches, and that
show nothing that is read from the GPU just then; of several in a loop, the first. It is off unless it is selected: a line
costs little beside a long step. Loops of a thousand steps in all, bars of `tqdm`, and boards that collect numbers, are left
alone.

## Why it is slow
The process waits until a terminal or a notebook has taken the line. With steps of a few milliseconds that is a good part.

A bar drawn by hand is dozens of writes and a flush.

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

- [Python: sys.stdout](https://docs.python.org/3/library/sys.html#sys.stdout)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Related, Rule, Worth
from speedlint.shapes.schedule import telling
from speedlint.shapes.sync import displays, reads
from speedlint.torch.words import FREQUENT


def check(loop: syntax.For | syntax.While, script: Script) -> Iterator[Finding]:
    if script.loops.kind(loop) not in FREQUENT or script.is_test:
        return
    for call in script.source.inside(loop.body, syntax.Call):
        writer = telling.writer(script, call) if telling.in_every_step(script, call, loop) else None
        if writer is not None and not telling.waits(script, call):
            yield _finding(call, script, *writer)
            return


def _finding(call: syntax.Call, script: Script, place: Script, inner: syntax.Call) -> Finding:
    message = f"`{reads.shown(script, call.func)}(...)` writes a line {reads.often(script, call)}"
    advice = f"write it every {displays.PERIOD} steps; not written here, because who reads the lines is not seen"
    related = () if inner is call else (Related(place.source, inner, "writes it"),)
    return Finding(call, message, advice=advice, related=related)


RULE = Rule(
    "SPD705",
    on=(syntax.For, syntax.While),
    check=check,
    triggers=(b"for ", b"while "),
    worth=Estimate(Worth.LOW, "the line is printed while the GPU works"),
    off=True,
)
