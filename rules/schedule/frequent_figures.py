"""Figures are drawn and histograms made in every step or epoch, while the GPU waits.

## What it does
Finds calls in the training loop that save a figure or image, or make a histogram of every parameter, in each step or several
times an epoch; and calls in the epoch loop that draw one point for every sample. A curve of a few numbers in each
epoch is a note. What a condition draws every few epochs, and what an evaluation writes as its result, is left alone.

## Why it is slow
The GPU waits while they are made, and few look at each of them.

- `figures`: Drawing and compressing a picture takes a tenth of a second to several seconds of one core.
- `histograms`: A histogram of every parameter copies the whole model to the host, and its gradients as well.

## Example
```python
def train(model, loader, optimizer, writer):
    for step, batch in enumerate(loader):
        model(batch).mean().backward()
        optimizer.step()
        for name, value in model.named_parameters():
            writer.add_histogram(name, value, step)
```

## Use instead
```python
def train(model, loader, optimizer, writer):
    for step, batch in enumerate(loader):
        model(batch).mean().backward()
        optimizer.step()
        if step % 1000 == 0:
            for name, value in model.named_parameters():
                writer.add_histogram(name, value, step)
```

## Fix safety
Behavior: the figures of the epochs between are missing. It is written only where the call is a statement of its own in a
loop that counts, and where a function of the project that draws them does nothing else: it runs no network, draws no random
numbers, and changes nothing but what it has made itself. Where the program makes a film of its pictures it is shown.

## Sources
PyTorch's documentation of `SummaryWriter`: histograms and images are written by the calling process. `speedlint verify`
measures it.

- [PyTorch: torch.utils.tensorboard](https://docs.pytorch.org/docs/stable/tensorboard.html)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.cures import thinning, throttling
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Edit, Estimate, Finding, Fix, Level, Related, Risk, Rule, Worth
from speedlint.shapes.schedule import costs, periods
from speedlint.shapes.schedule.costs import Kind
from speedlint.shapes.sync import reads
from speedlint.torch.words import Frequency

_FILMS = re.compile(rb"mimsave|mimwrite|\.gif|VideoWriter|FuncAnimation")
_DRAWN = (Kind.HISTOGRAMS, Kind.CLOUD, Kind.FIGURE)


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    one = periods.scheduled(script, call)
    if one is None or script.is_test:
        return
    drawn = next((cost for kind in _DRAWN for cost in costs.of_call(script, call) if cost.kind is kind), None)
    if drawn is None or (drawn.kind is Kind.HISTOGRAMS and costs.is_repeated(script, call)):
        return
    if script.loops.kind(one.loop) is Frequency.STEP:
        often = _often_in_steps(call, script, one, drawn)
        if often:
            yield _finding(call, script, one, drawn, often, Level.WARNING)
    elif script.frequency(call) is Frequency.EPOCH and not periods.is_conditional(script, one):
        yield _finding(call, script, one, drawn, "every epoch", Level.WARNING if drawn.kind is Kind.CLOUD else Level.NOTE)


def _often_in_steps(call: syntax.Call, script: Script, one: periods.Scheduled, drawn: costs.Cost) -> str:
    if script.frequency(call) is Frequency.STEP:
        return "" if periods.is_conditional(script, one) else "every training step"
    if drawn.kind is not Kind.HISTOGRAMS or script.frequency(call) is not Frequency.THROTTLED:
        return ""
    steps = periods.period(script, one)
    if steps is not None and periods.is_often(steps):
        return f"every {steps.value} steps"
    return "several times an epoch" if steps is None and periods.is_part_of_epoch(script, one) else ""


def _finding(
    call: syntax.Call, script: Script, one: periods.Scheduled, drawn: costs.Cost, often: str, level: Level
) -> Finding:
    message = f"`{reads.shown(script, call.func)}(...)` makes {drawn.kind.value} {often}"
    advice = f"make it every {periods.EPOCHS} epochs" if often == "every epoch" else "make it once an epoch or less"
    related = () if drawn.node is call else (Related(drawn.script.source, drawn.node, f"makes {drawn.kind.value}"),)
    case = "histograms" if drawn.kind is Kind.HISTOGRAMS else "figures"
    try:
        if script.program.mentions(script, _FILMS):
            raise CannotEdit("the program may put the pictures together as a film")
        if often == "every epoch":
            edits = thinning.every_few_epochs(script, one)
        elif often == "every training step":
            edits = _throttled(call, script, drawn)
        else:
            raise CannotEdit("it already has a condition of its own")
    except CannotEdit as reason:
        advice = f"{advice}; not rewritten, since {reason}"
        return Finding(call, message, advice=advice, level=level, related=related, case=case)
    return Finding(call, message, Fix(edits, Risk.BEHAVIOR), advice, level, related, case=case)


def _throttled(call: syntax.Call, script: Script, drawn: costs.Cost) -> tuple[Edit, ...]:
    loop = costs.parameter_loop(script, call) if drawn.kind is Kind.HISTOGRAMS else None
    if loop is None:
        return throttling.every_few_steps(script, thinning.alone(script, call))
    if not costs.only_makes_histograms(script, loop):
        raise CannotEdit("the loop over the parameters does other things too")
    return throttling.every_few_steps(script, loop)


RULE = Rule(
    "SPD704",
    on=syntax.Call,
    check=check,
    triggers=(b"for ", b"while "),
    worth=Estimate(Worth.MEDIUM, "the GPU waits while the figure is drawn"),
)
