"""A `DataLoader` without pinned memory makes each copy of a batch to the GPU slow and blocking.

## What it does
Finds loaders of scripts that train on a GPU whose `pin_memory` is absent or False, also where the False comes from a default
of the command line, a constant, a dataclass field or a dict. What a function of the project makes in a file that is not
checked is told where it is called.

## Why it is slow
The GPU can read a batch by itself only from page-locked memory. From ordinary memory the driver first copies it through a
buffer of its own, and the host waits; `non_blocking=True` has no effect.

## Example
```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=64, num_workers=8)
images = next(iter(loader)).to("cuda")
```

## Use instead
```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=64, num_workers=8, pin_memory=True)
images = next(iter(loader)).to("cuda", non_blocking=True)
```

## Fix safety
Exact. Where the device is chosen at run time, the question whether the script's own device variable is a GPU is written
instead of `True`, or `torch.cuda.is_available()` where none is in sight, since pinning without a GPU warns. It takes memory
of the host that cannot be swapped out: two batches per worker. Loaders whose dataset or collate function already makes GPU
tensors are left alone, since those cannot be pinned; where the program makes sparse tensors, which older releases cannot
pin either, it is shown. Loaders of a handful of rows, those of batches that are known to be below 100 kilobytes, those of
public sets of texts or of recordings, whose batches are small beside their steps, and those whose batches do not go to a
GPU as far as is seen, are a note. It is shown where pinning would make another batch: objects of the project's own without
a `pin_memory`, a tuple that is told from a list, and, of an own collate function, attributes of tensors, leaves that ask for
gradients, and batches that the loop changes while something else shares their memory.

## Sources
PyTorch's tutorial on pinned memory and `non_blocking`; the Performance Tuning Guide asks for `pin_memory=True`.

- [PyTorch: pin_memory() and non_blocking](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
- [PyTorch: Performance Tuning Guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.cures import spelling
from speedlint.cures.loader_arguments import set_at, set_where_set
from speedlint.cures.loaders_told import told
from speedlint.facts import syntax
from speedlint.rule import Edit, Estimate, Finding, Fix, Level, Risk, Rule, Worth
from speedlint.shapes import hosted, worth
from speedlint.shapes.data import pace, pinned, scale
from speedlint.shapes.data.batches import is_copied
from speedlint.shapes.data.loader_settings import Setting
from speedlint.shapes.data.loaders import Loader
from speedlint.shapes.devices import gpu_condition, gpu_is_certain
from speedlint.shapes.training import is_framework_driven


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    return told(script, call, _of_loader) if script.on_gpu else iter(())


def _of_loader(found: Loader) -> Iterator[Finding]:
    if found.hides_arguments or not found.script.on_gpu:
        return
    setting = found.setting("pin_memory")
    if setting.expression is not None and hosted.asks_for_gpu(setting.expression):
        return
    if setting.is_off and (matters := found.matters) is not None and not found.is_on_gpu:
        costs = matters and not found.has_few_rows and is_copied(found) and not found.pins_for_nothing
        costs = (
            costs
            and not pace.waits_for_texts(found.script)
            and not scale.has_light_batches(found)
            and not found.has_small_batches
        )
        yield _finding(found, setting, Level.WARNING if costs else Level.NOTE)


def _finding(found: Loader, setting: Setting, level: Level) -> Finding:
    message = "this loader does not pin its batches, so that each copy to the GPU makes the host wait"
    related = set_at(found.script, setting, "`pin_memory` is set here")
    advice = "pass `pin_memory=True` where there is a GPU"
    if not is_framework_driven(found.script):
        advice += ", and copy with `non_blocking=True`"
    try:
        if (clause := pinned.changed(found)) is not None:
            raise edits.CannotEdit(clause)
        return Finding(found.call, message, Fix(_edits(found, setting), Risk.EXACT), advice, level, related)
    except edits.CannotEdit as reason:
        return Finding(found.call, message, advice=f"{advice}; not written: {reason}", level=level, related=related)


def _edits(found: Loader, setting: Setting) -> tuple[Edit, ...]:
    if setting.expression is not None:
        return set_where_set(found.script, setting, _condition)
    text, imports = _condition(found.script, found.call)
    return (*imports, edits.set_argument(found.script.source, found.call, "pin_memory", text))


def _condition(script: Script, node: syntax.Node) -> tuple[str, tuple[Edit, ...]]:
    """What says, where ``node`` stands, whether there is a GPU to copy to."""
    chosen = "True" if gpu_is_certain(script) else gpu_condition(script, node)
    if chosen is not None:
        return chosen, ()
    spelled, imports = spelling.spell(script, "torch.cuda.is_available")
    return f"{spelled}()", imports


RULE = Rule(
    "SPD202",
    on=syntax.Call,
    check=check,
    triggers=(b"Loader", b"loader", b"backward("),
    worth=Estimate(Worth.LOW, "each batch is copied to pinned memory first, while the host waits"),
    cause=worth.one_feed,
    on_gpu=True,
)
