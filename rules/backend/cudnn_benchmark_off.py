"""`cudnn.benchmark` is off, so cuDNN guesses the algorithm for each convolution.

## What it does
Finds training of convolutional networks on a GPU, with inputs of one shape, in programs that never set
`torch.backends.cudnn.benchmark = True`; and the line that sets it to False. It is a note where the step waits for items that
are decoded without workers, and where recurrent layers or attention take it.

## Why it is slow
cuDNN has several algorithms for each convolution. By default it chooses by a rule of thumb; in benchmark mode it times them
once for each shape and keeps the fastest. With shapes that stay the same that costs the first steps only.

## Example
```python
import torch

torch.backends.cudnn.benchmark = False
```

## Use instead
```python
import torch

torch.backends.cudnn.benchmark = True
```

## Fix safety
Numeric: another algorithm adds up in another order. The line is put in front of the one that puts the model on its device.
Nothing is reported where the program asks for determinism or switches cuDNN off, or where the shapes vary: a collate
function that does more than stack pictures as they are, several scales, padded sequences of what are no pictures, boxes
where no loader stacks any items with any others. Each new shape would be timed again. A False that belongs to a seeded
branch is not turned; what is missing there is a True in the other branch. It is a note where convolutions do not take the
step: behind a loader that decodes without workers, beside recurrent layers or attention, on batches of 64 images of 32 by 32
pixels and less.

## Sources
PyTorch's Performance Tuning Guide.

- [PyTorch: Performance Tuning Guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
- [PyTorch: torch.backends](https://docs.pytorch.org/docs/stable/backends.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.cures import spelling
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Fix, Level, Risk, Rule, Worth
from speedlint.shapes import evaluation, negligible, training, worth
from speedlint.shapes.backend import cudnn
from speedlint.shapes.data.loaders import reads_digits, reads_digits_by_default
from speedlint.shapes.frameworks import accelerated
from speedlint.shapes.model import networks


def check(module: syntax.Module, script: Script) -> Iterator[Finding]:
    if not script.on_gpu or script.is_test:
        return
    all_placed = [*training.model_placements(script), *accelerated.placements(script)]
    placed = [one for one in all_placed if networks.is_convolutional(script, one.module)]
    if not placed:
        placed = [one for one in training.placed_by_helpers(script) if networks.is_convolutional(script, one.module)]
    off = [one for one in cudnn.settings(script, "benchmark") if one.value is False and not _is_meant(one, script)]
    if not (placed or off) or not _matters(script):
        return
    if off and (placed or evaluation.trains(script)):
        yield from (_turned(one, script) for one in off)
    elif placed:
        yield _missing(placed[0], script)


def _is_meant(setting: cudnn.Setting, script: Script) -> bool:
    return cudnn.is_for_reproducibility(script, setting.assign) or cudnn.is_conditional(script, setting.assign)


def _matters(script: Script) -> bool:
    if cudnn.is_on_in_program(script, "benchmark") or cudnn.is_settled(script) or training.is_loop_of_framework(script):
        return False
    if cudnn.is_off_in_program(script):
        return False
    return cudnn.is_planar(script) and cudnn.shapes_are_fixed(script)


def _turned(setting: cudnn.Setting, script: Script) -> Finding:
    message = f"`{script.text(setting.assign)}` makes cuDNN guess the algorithm for each convolution"
    fix = Fix((edits.replace(script.source, setting.assign.value, "True"),), Risk.NUMERIC)
    return Finding(setting.assign, message, fix, "set it to True: the input shapes stay the same", Level.WARNING)


def _missing(placement: training.Placement, script: Script) -> Finding:
    is_trifle = cudnn.is_shallow(script, placement.module) or reads_digits(script) or reads_digits_by_default(script)
    why_trifle = negligible.why_convolutions(script, placement.module)
    level = Level.NOTE if is_trifle or why_trifle is not None else Level.WARNING
    estimate = Estimate(Worth.LOW, why_trifle) if why_trifle is not None else worth.CONVOLUTIONS
    code = (
        script.text(placement.module)
        if isinstance(placement.module, syntax.Name)
        else script.text(placement.module).partition("(")[0]
    )
    message = f"`{code}` is convolutional and its inputs take few shapes, but `cudnn.benchmark` is never set"
    advice = "set `torch.backends.cudnn.benchmark = True` once, before training"
    if any(True for one in script.everywhere(b"benchmark") for _ in cudnn.settings(one, "benchmark")):
        why = "not written here, because a branch for reproducible runs sets it to False; put it in the other branch"
        return Finding(placement.call, message, advice=f"{advice}; {why}", level=level, worth=estimate)
    try:
        name, imports = spelling.spell(script, "torch.backends.cudnn.benchmark")
        above = cudnn.outermost(script, placement.call)
        line = edits.insert_before(script.source, above, [f"{name} = True"], above_comments=True)
    except edits.CannotEdit as error:
        return Finding(
            placement.call, message, advice=f"{advice}; not written here, because {error}", level=level, worth=estimate
        )
    return Finding(placement.call, message, Fix((line, *imports), Risk.NUMERIC), advice, level, worth=estimate)


RULE = Rule(
    "SPD402",
    on=syntax.Module,
    check=check,
    triggers=(b".to(", b".cuda(", b"benchmark", b".setup", b".prepare"),
    worth=worth.CONVOLUTIONS,
    on_gpu=True,
)
