"""A network of image convolutions is trained with its channels first in memory.

## What it does
Finds, at the line that puts it on a GPU, a trained network of several two-dimensional convolutions, in programs that never
speak of `channels_last`. A warning where the program computes in half precision and the network attends nowhere, else a
note: the gain depends on the GPU then. Silent for networks that mostly attend, or recur, for reinforcement learning, and
where a group or instance normalization between the convolutions would change the layout back each time.

## Why it is slow
Tensor cores read the channels of one pixel side by side. With channels first, cuDNN has to reorder the input of each
convolution and its output back, in both passes. A model whose weights are channels last makes channels last of whatever it
is fed, from its first convolution on.

## Example
```python
import torch
import torchvision

model = torchvision.models.resnet50().to("cuda")
```

## Use instead
```python
import torch
import torchvision

model = torchvision.models.resnet50().to("cuda", memory_format=torch.channels_last)
```

## Fix safety
Numeric: other kernels add up in another order. Shapes, state dicts and checkpoints stay as they are. Written only where
nothing in the program could trip over the strides: shown beside `.view()`, which raises where it merges dimensions that are
not neighbours any more, dropout, whose mask is drawn in the order of memory, `LBFGS` and `parameters_to_vector`, which view
parameters as one vector, pruning, weights or gradients that the program takes as one row, which would be a copy, states of
optimizers that are loaded, whose moments lie otherwise, operations of the project's own, three-dimensional convolutions,
`DataParallel`, and Apple's GPU.

## Sources
PyTorch's channels-last tutorial: 8 to 35% on V100 under mixed precision. That converting the model is enough, and what
raises: run with torch 2.13.

- [PyTorch: Channels Last Memory Format](https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.cures import spelling
from speedlint.facts import syntax
from speedlint.rule import Edit, Estimate, Finding, Fix, Level, Risk, Rule, Worth
from speedlint.shapes import evaluation, steps, training
from speedlint.shapes.model import layout


def check(module: syntax.Module, script: Script) -> Iterator[Finding]:
    placed = training.model_placements(script)
    if not placed or not script.on_gpu or script.is_test or training.is_framework_driven(script):
        return
    if layout.is_decided(script) or not evaluation.trains(script):
        return
    if steps.is_reinforcement(script):
        return
    for placement in layout.in_branches(script, placed):
        if layout.may_gain(script, placement.module) and not layout.is_placed_before(script, placement):
            yield _finding(placement, script)


def _finding(placement: training.Placement, script: Script) -> Finding:
    half = layout.half(script, placement.module)
    code = " ".join(script.text(placement.module).split()).partition("(")[0]
    message = f"`{code}` convolves images with channels first in memory"
    message += ", in half precision too" if half is layout.Half.ALWAYS else "; tensor cores read them last"
    advice = (
        "put the model on its device with `.to(device, memory_format=torch.channels_last)`; let `speedlint verify` time it"
    )
    level = Level.WARNING if half is not layout.Half.NEVER else Level.NOTE
    why = layout.why_not(script, placement)
    if why is None:
        try:
            return Finding(placement.call, message, Fix(_edits(placement, script), Risk.NUMERIC), advice, level)
        except edits.CannotEdit as error:
            why = str(error)
    return Finding(placement.call, message, advice=f"{advice}; not written here, because {why}", level=level)


def _edits(placement: training.Placement, script: Script) -> tuple[Edit, ...]:
    """An argument of `.to(...)`; a line after `.cuda()`, which takes none."""
    name, imports = spelling.spell(script, "torch.channels_last")
    call = placement.call
    if isinstance(call.func, syntax.Attribute) and call.func.attr.value == "to":
        return (edits.add_argument(script.source, call, f"memory_format={name}"), *imports)
    match script.source.parents[call]:
        case syntax.Expr() if isinstance(placement.module, (syntax.Name, syntax.Attribute)):
            target = script.text(placement.module)
        case syntax.Assign(targets=[syntax.AssignTarget(target=(syntax.Name() | syntax.Attribute()) as bound)]):
            target = script.text(bound)
        case _:
            raise edits.CannotEdit("it has no name of its own there")
    return (edits.insert_after(script.source, call, [f"{target}.to(memory_format={name})"]), *imports)


RULE = Rule(
    "SPD604",
    on=syntax.Module,
    check=check,
    triggers=(b".to(", b".cuda("),
    worth=Estimate(Worth.MEDIUM, "half-precision convolutions turn their inputs around"),
)
