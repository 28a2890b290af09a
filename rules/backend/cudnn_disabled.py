"""`cudnn.enabled = False` makes convolutions and recurrent layers run in slower kernels.

## What it does
Finds `torch.backends.cudnn.enabled = False` in programs that train convolutional or recurrent networks on a GPU, and
training within `torch.backends.cudnn.flags(...)` where it says `enabled=False`, or says nothing: its default is False.
Beside the seeds, behind a condition or an option it is a note.

## Why it is slow
cuDNN holds NVIDIA's own kernels for convolutions, recurrent layers and normalisation. Without it PyTorch unfolds images
into matrices, and an LSTM runs as many small kernels in each time step.

## Example
```python
import torch

torch.backends.cudnn.enabled = False
```

## Use instead
```python
import torch

torch.backends.cudnn.enabled = True
```

## Fix safety
Numeric: the same mathematics in other kernels. It is shown where the program has recurrent layers, which cuDNN can neither
differentiate twice nor run backward in evaluation mode, and where a condition or an option decides.

## Sources
PyTorch's documentation of `torch.backends.cudnn`. The gain depends on the model.

- [PyTorch: torch.backends](https://docs.pytorch.org/docs/stable/backends.html)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Edit, Estimate, Finding, Fix, Level, Related, Risk, Rule, Worth
from speedlint.shapes import evaluation
from speedlint.shapes.backend import cudnn, debugging, intent
from speedlint.shapes.backend.intent import Intent
from speedlint.shapes.sync import reads

_FLAGS = "torch.backends.cudnn.flags"
_RECURRENT = re.compile(rb"\b(?:LSTM|GRU|RNN)\(")
_WORK = re.compile(rb"[Cc]onv(?:Transpose)?[123]d|\b(?:LSTM|GRU|RNN)\(|torchvision|timm|segmentation_models")
_ADVICE = "leave cuDNN on"


def check(module: syntax.Module, script: Script) -> Iterator[Finding]:
    found = [*_assigned(script), *_within_flags(script)]
    if not found or script.is_test or not evaluation.trains(script) or not script.on_gpu:
        return
    if script.program.mentions(script, _WORK):
        for node, edit, related in found:
            yield from _finding(node, edit, related, script)


_Found = tuple[syntax.Assign | syntax.Call, Edit | None, tuple[Related, ...]]


def _assigned(script: Script) -> Iterator[_Found]:
    for setting in cudnn.settings(script, "enabled"):
        assign = setting.assign
        if setting.value is False and not cudnn.is_undone(script, assign, "enabled"):
            yield assign, *_turned(script, assign.value)


def _within_flags(script: Script) -> Iterator[_Found]:
    """Training within ``with torch.backends.cudnn.flags(...)`` that does not say ``enabled=True``."""
    for call in script.calls(_FLAGS):
        around = debugging.context(script, call)
        if around is None or script.hides_arguments(call) or not debugging.slows_training(script, around):
            continue
        enabled = script.argument(call, "enabled", 0)
        if enabled is None:
            yield call, edits.add_argument(script.source, call, "enabled=True"), ()
        elif (known := script.constant(enabled)) is not None and known.value is False:
            yield call, *_turned(script, enabled)


def _turned(script: Script, value: syntax.BaseExpression) -> tuple[Edit | None, tuple[Related, ...]]:
    """The edit that writes True where False is written; where an option holds it, where that is set."""
    known = script.constant(value)
    if known is not None and known.node is value and known.script is script:
        return edits.replace(script.source, value, "True"), ()
    return None, (Related(known.script.source, known.node, "the default is set here"),) if known is not None else ()


def _finding(
    node: syntax.Assign | syntax.Call, edit: Edit | None, related: tuple[Related, ...], script: Script
) -> Iterator[Finding]:
    asked = intent.of(script, node)
    if asked is Intent.NEVER:
        return
    meant = isinstance(node, syntax.Assign) and cudnn.is_for_reproducibility(script, node)
    message = f"`{reads.shown(script, node)}` keeps convolutions and recurrent layers from cuDNN's kernels"
    level = Level.NOTE if meant or edit is None or asked is Intent.CHOSEN else Level.WARNING
    if edit is None or (asked is Intent.CHOSEN and not meant):
        why = "not rewritten, since a condition or an option decides"
        yield Finding(node, message, advice=f"{_ADVICE}; {why}", level=level, related=related)
    elif script.program.mentions(script, _RECURRENT):
        why = "recurrent layers may be differentiated twice, or in evaluation mode, which cuDNN cannot do"
        yield Finding(node, message, advice=f"{_ADVICE}; not rewritten, since {why}", level=level)
    else:
        yield Finding(node, message, Fix((edit,), Risk.NUMERIC), _ADVICE, level)


RULE = Rule(
    "SPD403",
    on=syntax.Module,
    check=check,
    triggers=(b"cudnn",),
    worth=Estimate(Worth.HIGH, "convolutions run without cuDNN"),
)
