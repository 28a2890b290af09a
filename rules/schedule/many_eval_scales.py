"""Each validation during training runs the network at several scales, where one would tell as much.

## What it does
Finds validation passes, run from a training loop, that put every batch through the network once for each of several scales.
It is off unless it is selected: what the passes cost beside the training depends on how often they run.

## Why it is slow
Each scale is a forward pass more, and the larger ones cost several times the plain one: at 0.5, 1, 1.5 and 2 together
7.5 times, and mirrored as well, 15 times.

## Example
```python
import torch


@torch.no_grad()
def evaluate(model, loader, scales):
    for images, labels in loader:
        scores = 0
        for scale in scales:
            scores = scores + model(torch.nn.functional.interpolate(images, scale_factor=scale)).softmax(1).mean((2, 3))


def train(model, loader, optimizer):
    for epoch in range(100):
        for images, labels in loader:
            model(images).mean().backward()
            optimizer.step()
        evaluate(model, loader, (0.5, 1.0, 1.5, 2.0))
```

## Use instead
```python
import torch


@torch.no_grad()
def evaluate(model, loader, scales):
    for images, labels in loader:
        scores = 0
        for scale in scales:
            scores = scores + model(torch.nn.functional.interpolate(images, scale_factor=scale)).softmax(1).mean((2, 3))


def train(model, loader, optimizer):
    for epoch in range(100):
        for images, labels in loader:
            model(images).mean().backward()
            optimizer.step()
        evaluate(model, loader, (1.0,))
    evaluate(model, loader, (0.5, 1.0, 1.5, 2.0))
```

## Fix safety
Shown, never written: the results of the epochs are other numbers then, and the best of them may be another epoch.

## Sources
Counting: the area of the images at each scale. `speedlint verify` measures it.

- [PyTorch: Conv2d](https://docs.pytorch.org/docs/stable/generated/torch.nn.Conv2d.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Level, Related, Rule, Worth
from speedlint.shapes.schedule import periods
from speedlint.solve.terms import Definition
from speedlint.torch.words import Frequency

_ADVICE = (
    "evaluate at one scale while training, and at all of them when it is done; not written here, because the results of the "
    "epochs change"
)


def check(loop: syntax.For, script: Script) -> Iterator[Finding]:
    function = script.function(loop)
    if function is None or script.loops.kind(loop) is Frequency.STEP or script.is_test:
        return
    if periods.scales(Definition(script, function)) is not loop:
        return
    run = periods.during_training(script, function)
    if run is not None:
        message = f"each validation during training runs the network {_count(loop, script)} times on every batch"
        related = (Related(run[0].source, run[1], "run here"),)
        yield Finding(loop, message, advice=_ADVICE, level=Level.WARNING, related=related)


def _count(loop: syntax.For, script: Script) -> str:
    known = script.constant(loop.iter)
    if known is not None and isinstance(known.value, list | tuple) and len(known.value) > 1:
        return str(len(known.value))
    return "several"


RULE = Rule(
    "SPD706",
    on=syntax.For,
    check=check,
    triggers=(b"scale",),
    worth=Estimate(Worth.MEDIUM, "each scale is one more pass over the data"),
    off=True,
)
