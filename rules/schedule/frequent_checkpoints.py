"""A checkpoint is written every few steps, and the training waits until it is on disk.

## What it does
Finds calls in a loop of training steps that write a model's state in each step, or every 50 steps and less, themselves or
in a function of the project that they call. What is written for a new best result, once an epoch or more rarely is left
alone.

## Why it is slow
`torch.save` copies every parameter to the host, waits for the GPU to get there, and writes the file; with the optimizer's
state it is three times the model. For a model of 100 million parameters that is over a gigabyte, and seconds, while a step
takes a tenth of one.

## Example
```python
import torch


def train(model, loader, optimizer):
    for images in loader:
        model(images).mean().backward()
        optimizer.step()
        torch.save(model.state_dict(), "last.pt")
```

## Use instead
```python
import torch


def train(model, loader, optimizer):
    for step, images in enumerate(loader):
        model(images).mean().backward()
        optimizer.step()
        if step % 1000 == 0 or step + 1 == len(loader):
            torch.save(model.state_dict(), "last.pt")
```

## Fix safety
Behavior: a run that breaks off may lose up to a thousand steps. It is written where the call is in each step of a loop that
counts them and whose end is known, so that the last step is saved as before, and where a function of the project that
writes it does nothing else. It is shown where the loop may end early, where the call has a condition of its own, and where
each step writes a file of another name in a program that also reads checkpoints. Loops that play whole episodes in each turn
are left alone.

## Sources
Counting: the size of the state against the bandwidth of a disk. `speedlint verify` measures it. Run with torch 2.13 on one
thread of a shared CPU: 939 steps of two Linear layers with Adam's state took 4.8 CPU seconds with a checkpoint in each step,
2.5 with the fix, and ended with the same weights.

- [PyTorch: torch.save](https://docs.pytorch.org/docs/stable/generated/torch.save.html)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.cures import thinning
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Edit, Estimate, Finding, Fix, Level, Related, Risk, Rule, Worth
from speedlint.shapes import acting
from speedlint.shapes.schedule import costs, periods
from speedlint.shapes.schedule.costs import Kind
from speedlint.shapes.sync import reads
from speedlint.torch.words import Frequency

_OFTEN = 50
_ADVICE = "write it every thousand steps, or once an epoch"
_AFTER = "move it behind the loop over batches, so that it is written once in such an epoch; not written here, since its "
_AFTER += "condition may be meant so"
_LOADS = re.compile(rb"torch\.load\(|from_pretrained\(|load_state\(|load_model\(")


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    one = periods.scheduled(script, call)
    if one is None or script.loops.kind(one.loop) is not Frequency.STEP or script.is_test:
        return
    if acting.plays_first(script, call):
        return
    written = next((cost for cost in costs.of_call(script, call) if _is_certain(cost, call, script)), None)
    often = _often(call, script, one) if written is not None else ""
    if written is not None and often:
        related = () if written.node is call else (Related(written.script.source, written.node, "writes it"),)
        message = f"`{reads.shown(script, call.func)}(...)` writes a checkpoint {often}"
        try:
            fix = Fix(_rarely(call, script, one, written), Risk.BEHAVIOR)
        except CannotEdit as reason:
            is_of_epochs = periods.epochs(script, one) is not None
            advice = _AFTER if is_of_epochs else f"{_ADVICE}; not written here, since {reason}"
            yield Finding(call, message, advice=advice, level=Level.WARNING, related=related)
            return
        yield Finding(call, message, fix, _ADVICE, Level.WARNING, related)


def _rarely(call: syntax.Call, script: Script, one: periods.Scheduled, written: costs.Cost) -> tuple[Edit, ...]:
    """The edits that write it every thousand steps, and after the last one. Raises CannotEdit."""
    if script.frequency(call) is not Frequency.STEP:
        raise CannotEdit("it already has a condition of its own")
    path = written.script.argument(written.node, "f", 1) if isinstance(written.node, syntax.Call) else None
    is_one_file = path is not None and written.script.constant(path) is not None
    if not is_one_file and script.program.mentions(script, _LOADS):
        raise CannotEdit("the program may read the checkpoint of any step again")
    return thinning.every_thousand_steps(script, one)


def _is_certain(cost: costs.Cost, call: syntax.Call, script: Script) -> bool:
    """Whether a call writes a checkpoint whenever it is made: itself, or in the function called with no condition around."""
    if cost.kind is not Kind.CHECKPOINT or cost.node is call:
        return cost.kind is Kind.CHECKPOINT
    callee = script.callee(call)
    if callee is None or cost.script.function(cost.node) is not callee.node:
        return False
    inner = cost.script.source.enclosing(
        cost.node, syntax.If, syntax.IfExp, syntax.BooleanOperation, syntax.Try, syntax.FunctionDef
    )
    return inner is callee.node


def _often(call: syntax.Call, script: Script, one: periods.Scheduled) -> str:
    if script.frequency(call) is Frequency.STEP:
        return "" if periods.is_conditional(script, one) or periods.is_for_best(script, one) else "every training step"
    if (apart := periods.epochs(script, one)) is not None:
        return f"in every training step of one epoch in {apart.value}"
    steps = periods.period(script, one) if script.frequency(call) is Frequency.THROTTLED else None
    if steps is None or not isinstance(steps.value, int) or not 1 < steps.value <= _OFTEN:
        return ""
    return f"every {steps.value} steps"


RULE = Rule(
    "SPD703",
    on=syntax.Call,
    check=check,
    triggers=(b"save",),
    worth=Estimate(Worth.MEDIUM, "the GPU waits while the model is written"),
)
