"""A device tensor that is printed or logged in every step waits for the GPU each time.

## What it does
Finds tensors on the GPU that `print`, an f-string, `.format`, logging, `tqdm.set_postfix`, `add_scalar` or `wandb.log` turns
into text or a number, in loops of training or evaluation steps. Lines under `if step % n == 0` are fine.

## Why it is slow
To show a tensor its value must come to the host: Python stops until the GPU has done all that was queued before. The call
does it out of sight, and few read a line for every step.

## Example
```python
import torch


def train(model, loader, optimizer, criterion, writer):
    for step, (images, labels) in enumerate(loader):
        loss = criterion(model(images.cuda()), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        writer.add_scalar("loss", loss, step)
```

## Use instead
```python
import torch


def train(model, loader, optimizer, criterion, writer):
    for step, (images, labels) in enumerate(loader):
        loss = criterion(model(images.cuda()), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            writer.add_scalar("loss", loss, step)
```

## Fix safety
Behavior: the training is the same bit for bit; what is shown or logged becomes every 50th step of it, the first one
included. It is written only where the display is a statement of its own and the loop counts its steps.

## Sources
PyTorch's performance tuning guide: avoid unnecessary CPU-GPU synchronisation; it names printing a CUDA tensor.

- [PyTorch: Performance Tuning Guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.cures.gains import check_gain_of_display, throttled
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Finding, Fix, Level, Risk, Rule
from speedlint.shapes import worth
from speedlint.shapes.sync import displays, reads
from speedlint.shapes.sync.companions import awaited_anyway
from speedlint.torch.words import Frequency

_ADVICE = f"show it every {displays.PERIOD} steps"


def check(node: syntax.Call | syntax.FormattedString | syntax.BinaryOperation, script: Script) -> Iterator[Finding]:
    is_display = isinstance(node, syntax.Call) and displays.is_display(script, node)
    if isinstance(node, syntax.Call) and not is_display and not displays.is_text(script, node):
        return
    often = reads.often(script, node)
    if often is None or not script.on_gpu or reads.how_often(script, node) is Frequency.THROTTLED:
        return
    if isinstance(node, syntax.Call) and is_display:
        tensor = next(displays.shown_tensors(script, node), None)
        if tensor is not None:
            shown = f"`{reads.shown(script, node.func)}(...)` reads the tensor `{reads.shown(script, tensor)}`"
            yield _finding(tensor, node, script, f"{shown} from the GPU {often}")
        return
    tensor = next(displays.formatted_tensors(script, node), None)
    if tensor is not None:
        message = f"the text formats the tensor `{reads.shown(script, tensor)}`, which is read from the GPU {often}"
        display = displays.display_around(script, node)
        if display is not None:
            yield _finding(tensor, display, script, message)
            return
        yield Finding(tensor, message, advice=f"{_ADVICE}; not rewritten, since what the text is used for is not followed")


def _finding(tensor: syntax.BaseExpression, display: syntax.Call | syntax.Assign, script: Script, message: str) -> Finding:
    if (in_vain := awaited_anyway(script, tensor)) is not None:
        return Finding(tensor, message, advice=in_vain, level=Level.NOTE, worth=worth.NOTHING)
    try:
        check_gain_of_display(script, display, tensor)
        return Finding(tensor, message, Fix(throttled(script, display, _read_by), Risk.BEHAVIOR), _ADVICE)
    except CannotEdit as reason:
        return Finding(tensor, message, advice=f"{_ADVICE}; not rewritten, since {reason}")


def _read_by(script: Script, display: syntax.Call | syntax.Assign) -> Iterator[syntax.BaseExpression]:
    """The tensors that a display turns into text."""
    if isinstance(display, syntax.Call):
        yield from displays.shown_tensors(script, display)
    else:
        yield from displays.formatted_tensors(script, display.value)


RULE = Rule(
    "SPD303",
    on=(syntax.Call, syntax.FormattedString, syntax.BinaryOperation),
    check=check,
    triggers=(
        b"print(",
        b"logg",
        b"set_postfix",
        b"set_description",
        b"add_scalar",
        b"log(",
        b"log_metric",
        b"format(",
        b'f"',
        b"f'",
    ),
    worth=worth.WAIT,
    cause=worth.one_wait,
    often=True,
    on_gpu=True,
)
