"""One or two workers decode every item of a batch, while the GPU waits.

## What it does
Finds loaders of a training on a GPU whose `num_workers` is 1 or 2, by default and in the project's commands, and whose
items are images, recordings or compressed files that are decoded when they are read. Left alone: loaders that training
reads once, or that give one item at a time, data that is tiny or lies in memory, and steps that are known to be long.

## Why it is slow
A worker decodes, crops and normalizes one photo after the other, in two to ten milliseconds each, so two of them hand over
some hundred images a second up to a thousand. A GPU trains a ResNet-50 with as many, and smaller networks several times as
fast. Each worker more adds as much, as long as the machine has cores.

## Example
```python
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder

loader = DataLoader(ImageFolder("photos"), batch_size=64, shuffle=True, num_workers=2)
```

## Use instead
```python
import os

from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder

loader = DataLoader(ImageFolder("photos"), batch_size=64, shuffle=True, num_workers=min(8, os.cpu_count() or 1))
```

## Fix safety
Never written: the number was chosen, perhaps for the cores or the memory of a machine that the script does not name.

## Sources
Run with Pillow 13 on one core: 2 ms to decode a JPEG of 500 by 375 pixels and 40 kB, crop and resize it to 224 by 224, and
normalize it with NumPy. PyTorch's performance tuning guide asks for as many workers as loading takes.

- [PyTorch: Performance Tuning Guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.cures.loader_arguments import set_at
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Level, Rule, Worth
from speedlint.shapes import durations, worth
from speedlint.shapes.data import scale
from speedlint.shapes.data.loader_settings import Setting
from speedlint.shapes.data.loaders import Loader, loader
from speedlint.solve import off

_FEW = (1, 2)


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    found = loader(script, call)
    if found is None or not found.matters or found.is_on_gpu or script.is_test:
        return
    workers = found.setting("num_workers")
    counts = off.values(script, workers.expression) if workers.expression is not None else None
    if not counts or not all(count in _FEW for count in counts):
        return
    if not found.origins or not all(map(scale.decodes_media, found.origins)) or any(map(scale.remembers, found.origins)):
        return
    size = found.setting("batch_size")
    if scale.reads_few(found) or (size.value is not None and size.value.value == 1):
        return
    if durations.why_tenths_are_nothing(script) is None:
        yield _finding(found, workers, max(count for count in counts if isinstance(count, int)))


def _finding(found: Loader, workers: Setting, count: int) -> Finding:
    many = "one worker decodes" if count == 1 else "two workers decode"
    message = f"{many} the items of this loader, one after the other, while the training waits"
    advice = "pass `num_workers=min(8, os.cpu_count() or 1)`, and measure with half and twice as many; not written: why the "
    related = set_at(found.script, workers, "the number of workers is set here")
    return Finding(
        found.call, message, advice=f"{advice}number was chosen is not in the script", level=Level.WARNING, related=related
    )


RULE = Rule(
    "SPD219",
    on=syntax.Call,
    check=check,
    triggers=(b"Loader",),
    worth=Estimate(Worth.MEDIUM, "two workers decode some hundred images a second, a GPU trains with more"),
    cause=worth.one_feed,
    on_gpu=True,
)
