"""A recurrent cell in a Python loop over time runs a handful of small kernels for each step of the sequence.

## What it does
Finds `nn.LSTMCell`, `nn.GRUCell` and `nn.RNNCell` in a `for` loop over time whose input does not hang on what the cell has
given: an encoder, a decoder that is always fed the targets, cells on top of each other. The state goes from turn to turn as
it is. Left alone are loops that feed an output, a sample or attention back, mask or replace the state, skip a step, leave
the loop early or run a few turns; programs that take second derivatives, which cuDNN's recurrent layers lack; programs that
are compiled; and those that compute in float64 on a CPU, where the layer gains nothing.

## Why it is slow
Each turn launches the products and the gates of one time step, from Python, and autograd records each. `nn.LSTM`, `nn.GRU`
and `nn.RNN` take the whole sequence in one call: the products with the inputs of all time steps are one large product, and
the loop over time is in C++ or, on a GPU, in cuDNN.

## Example
```python
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(32, 128)

    def forward(self, x):
        h = c = torch.zeros(x.size(0), 128, device=x.device)
        outputs = []
        for t in range(x.size(1)):
            h, c = self.cell(x[:, t], (h, c))
            outputs.append(h)
        return torch.stack(outputs, 1)
```

## Use instead
```python
from torch import nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(32, 128, batch_first=True)

    def forward(self, x):
        outputs, (h, c) = self.lstm(x)
        return outputs
```

## Fix safety
Shown, never written: the weights of the layer have other names (`weight_ih_l0` for `weight_ih`), so that checkpoints written
before could not be read, and code that speaks of the cell would have to change with it. The layer draws the same first
weights as the cell from the same seed, and gives the same numbers but for rounding. To read an old checkpoint, add `_l0` to
the four names; a step at a time, where a sequence is continued, is a sequence of one.

## Sources
PyTorch's documentation of both: the same equations. Run with torch 2.13 on one thread of a shared CPU, a training step in
CPU time: 100 time steps of 32 rows, 32 inputs and 128 units, took 45.0 ms by cells, 15.1 by the layer; 100 of 16 rows, 64
inputs and 512 units, 310 and 94; 200 of 97 rows, one input and 51 units, 77 and 51, but 111 and 110 in float64.

- [PyTorch: LSTMCell](https://docs.pytorch.org/docs/stable/generated/torch.nn.LSTMCell.html)
- [PyTorch: LSTM](https://docs.pytorch.org/docs/stable/generated/torch.nn.LSTM.html)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Level, Related, Rule, Worth
from speedlint.shapes.model import attention, compilation, recurrence
from speedlint.shapes.sync import reads

_DOUBLES = re.compile(rb"\bdouble\b|float64")


def check(loop: syntax.For, script: Script) -> Iterator[Finding]:
    found = recurrence.unrolled(script, loop)
    if found is None or script.is_test or compilation.is_compiled(script) or attention.differentiates_twice(script):
        return
    if not script.on_gpu and script.program.mentions(script, _DOUBLES):
        return
    first, *others = found.cells
    message = f"`{reads.shown(script, first.func)}(...)` runs once for each time step, and no input hangs on the step before"
    advice = (
        f"run an `nn.{found.layer}` over the whole sequence; not written here, because its weights have other names "
        "(`weight_ih_l0` for `weight_ih`), by which no older checkpoint is read"
    )
    related = tuple(Related(script.source, each, "the same on top of it") for each in others)
    yield Finding(first, message, advice=advice, level=Level.WARNING, related=related)


RULE = Rule(
    "SPD614",
    on=syntax.For,
    check=check,
    triggers=(b"Cell",),
    worth=Estimate(Worth.HIGH, "one call takes the place of several kernels for each time step"),
)
