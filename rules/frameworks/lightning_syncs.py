"""`self.log(..., loss.item())` waits for the GPU in every step, where Lightning takes the tensor itself.

## What it does
Finds reads of one number from a tensor on the GPU, `x.item()`, `float(x)`, that are handed to `self.log` or `self.log_dict`
in the steps of a `LightningModule`. All other reads in its steps are `item-in-loop`.

## Why it is slow
The GPU works through a queue while Python runs ahead and fills it. To hand over a number, Python stops until the GPU has
done all that was queued before. `self.log` detaches a tensor, adds it up on the GPU, and reads it when it is written: every
50 steps by default, or at the end of the epoch.

## Example
```python
import lightning as L
from torch import nn


class Classifier(L.LightningModule):
    def training_step(self, batch, index):
        x, y = batch
        loss = nn.functional.cross_entropy(self.net(x), y)
        self.log("loss", loss.item())
        return loss
```

## Use instead
```python
import lightning as L
from torch import nn


class Classifier(L.LightningModule):
    def training_step(self, batch, index):
        x, y = batch
        loss = nn.functional.cross_entropy(self.net(x), y)
        self.log("loss", loss)
        return loss
```

## Fix safety
Never written: a tensor in half precision is logged in half precision, a number is not, and with several GPUs `sync_dist`
treats both alike only since they are tensors. A value with `prog_bar=True` is a note, since the progress bar reads it
anyway.

## Sources
Lightning's documentation, "Speed up model training": avoid `.item()` and `.cpu()`, which wait for the GPU. Read in the
sources of lightning 2.6: `self.log` detaches tensors and keeps them where they are.

- [Lightning: speed up model training](https://lightning.ai/docs/pytorch/stable/advanced/speed.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Finding, Level, Rule
from speedlint.shapes import worth
from speedlint.shapes.frameworks import lightning
from speedlint.shapes.sync import reads


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    log = lightning.log_around(script, call)
    tensor = reads.avoidable_scalar(script, call) if log is not None else None
    if log is None or tensor is None:
        return
    message = f"`{reads.shown(script, call)}` waits for the GPU {reads.often(script, call)}, only to be logged"
    advice = f"pass `{reads.shown(script, tensor)}` itself; not rewritten, since it may be logged in half precision then"
    is_shown = lightning.option(script, log, "prog_bar") is True
    yield Finding(call, message, advice=advice, level=Level.NOTE if is_shown else None)


RULE = Rule(
    "SPD814",
    on=syntax.Call,
    check=check,
    triggers=(b"self.log",),
    worth=worth.WAIT,
    cause=worth.one_wait,
)
