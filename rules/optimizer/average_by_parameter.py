"""A moving average of the weights that is taken parameter by parameter launches small kernels for each of them.

## What it does
Finds loops over the parameters of two modules side by side that mix one into the other in each training step: the teacher
of a self-supervised training, the target network of an agent, the average that is evaluated. Copies without a mean are
left alone, as are averages that are taken now and then.

## Why it is slow
Each parameter costs from one to four kernels of a few microseconds, and as many calls from Python: several hundred a step
for an ordinary network. While the host launches them the GPU has nothing else to do. One call on all parameters takes a
handful of kernels.

## Example
```python
import torch


@torch.no_grad()
def update(target, model, tau):
    for averaged, parameter in zip(target.parameters(), model.parameters()):
        averaged.data.mul_(1 - tau).add_(parameter.data, alpha=tau)
```

## Use instead
```python
import torch


@torch.no_grad()
def update(target, model, tau):
    torch._foreach_lerp_(list(target.parameters()), list(model.parameters()), tau)
```

## Fix safety
Never rewritten: the functions on lists of tensors are not public in torch, and whether all parameters are floating-point
numbers on one device is not always seen.

## Sources
torch's own `torch.optim.swa_utils.get_ema_multi_avg_fn` is written so. Measured with torch 2.13 on one core of a CPU: 109
microseconds became 26 for three linear layers, and 3.3 milliseconds 0.8 for sixty convolutions.

- [PyTorch: torch.optim](https://docs.pytorch.org/docs/stable/optim.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Finding, Rule
from speedlint.shapes import eras, worth
from speedlint.shapes.optimizer import averages
from speedlint.shapes.sync import reads
from speedlint.torch.words import Frequency

_SINCE = (2, 0)
"""The release from which on `torch._foreach_lerp_` takes one number for all tensors."""


def check(loop: syntax.For, script: Script) -> Iterator[Finding]:
    if script.is_test or not eras.may_be_on(script, _SINCE):
        return
    if script.frequency(loop) is not Frequency.STEP or not averages.is_average(script, loop):
        return
    message = f"the average is taken parameter by parameter {reads.often(script, loop)}"
    advice = "`torch._foreach_lerp_(averaged, parameters, weight)`, on lists of both, does it in a few kernels"
    yield Finding(loop.target, message, advice=f"{advice}; not written, because the function is not public in torch")


RULE = Rule(
    "SPD510",
    on=syntax.For,
    check=check,
    triggers=(b"parameters", b"params"),
    worth=worth.AVERAGES,
    often=True,
    since=_SINCE,
)
