"""A layer adds a bias that the batch normalization right after it subtracts again.

## What it does
Notes convolutions and Linear layers with a bias whose output goes straight into a batch normalization: neighbours in an
`nn.Sequential`, or `self.norm(self.conv(x))`. Off unless it is selected.

## Why it is slow
Batch normalization subtracts the mean of each channel, and with it any bias. The bias costs an addition to every output, a
sum over the whole gradient in the backward pass, and a parameter for the optimizer.

## Example
```python
from torch import nn

block = nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU())
```

## Use instead
```python
from torch import nn

block = nn.Sequential(nn.Conv2d(64, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU())
```

## Fix safety
Shown, never written: checkpoints hold the bias, and the random numbers that start all later layers change.

## Sources
PyTorch's Performance Tuning Guide.

- [PyTorch: Performance Tuning Guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Level, Rule, Worth
from speedlint.shapes.model import layers


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    layer = layers.before_norm(script, call)
    if layer is None or script.is_test:
        return
    place, made = layer
    if place is not script or not layers.has_bias(script, made) or layers.fills_biases(script):
        return
    yield Finding(
        made,
        f"`{script.text(made.func)}` adds a bias that the batch normalization after it subtracts again",
        advice="pass `bias=False`; not written here, because checkpoints hold the bias and later layers would start with "
        "other random numbers",
        level=Level.NOTE,
    )


RULE = Rule(
    "SPD609",
    on=syntax.Call,
    check=check,
    triggers=(b"BatchNorm",),
    worth=Estimate(Worth.LOW, "one more small kernel for each such layer"),
    off=True,
)
