"""A GPU works on a handful of samples at a time, and every step pays the full price of its kernels and of the optimizer.

## What it does
Finds loaders whose batches training goes over and whose batch size, as written, is below 16, in programs for a GPU that do
not gather gradients over several batches. A batch of one sample, which data of uneven shapes may need, is a note. It is off
unless it is selected: a small batch may be all that fits, or what the results were tuned with.

## Why it is slow
A kernel takes about as long to start for 8 samples as for 64, and the optimizer reads and writes every parameter once a
step. With few samples a step most of a large GPU idles.

## Example
```python
from torch.utils.data import DataLoader


def train(model, dataset, optimizer):
    for images in DataLoader(dataset, batch_size=8, shuffle=True):
        loss = model(images.cuda()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
```

## Use instead
```python
from torch.utils.data import DataLoader


def train(model, dataset, optimizer):
    for images in DataLoader(dataset, batch_size=64, shuffle=True):  # and eight times the learning rate, to begin with
        loss = model(images.cuda()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
```

## Fix safety
Shown, never written: another batch size is another training. The learning rate is scaled with it as a start, and its
schedule and the number of epochs are looked at again. Where the memory does not allow it, gradients are gathered over
several batches; that saves steps of the optimizer and, on several GPUs, exchanges of gradients.

## Sources
The guides that four of the five training projects behind speedlint were given begin with the batch size. `speedlint verify`
measures samples a second.

- [NVIDIA: GPU Performance Background](https://docs.nvidia.com/deeplearning/performance/dl-performance-gpu-background/index.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Level, Related, Rule, Worth
from speedlint.shapes import probes
from speedlint.shapes.data.loaders import loader
from speedlint.shapes.optimizer import batch_sizes

_SMALL = 16
_ADVICE = (
    "take as many samples as fit, and scale the learning rate with them; where no more fit, gather the gradients of several "
    "batches; not written here, because it is another training"
)


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    found = loader(script, call)
    size = batch_sizes.of_training(found) if found is not None else None
    if found is None or size is None or not isinstance(size.value, int) or not 0 < size.value < _SMALL:
        return
    if found.has_few_rows or not script.on_gpu or script.is_test or probes.serves_probe(script, call):
        return
    if batch_sizes.accumulates(script):
        return
    samples = "1 sample" if size.value == 1 else f"{size.value} samples"
    message = f"each training step takes {samples}, and no gradients are gathered"
    here = size.script is script and script.source.contains(call, size.node)
    related = () if here else (Related(size.script.source, size.node, "the batch size"),)
    yield Finding(call, message, advice=_ADVICE, level=Level.NOTE if size.value == 1 else Level.WARNING, related=related)


RULE = Rule(
    "SPD506",
    on=syntax.Call,
    check=check,
    triggers=(b"batch_size", b"DataLoader"),
    worth=Estimate(Worth.UNKNOWN, "it depends on how full the GPU is"),
    off=True,
)
