"""A progress bar is drawn anew in every step, each time that it is told a value.

## What it does
Finds `set_postfix`, `set_postfix_str` and `set_description` of a bar of `tqdm` in every step, without `refresh=False`. It
is a note unless the steps are known to be so short that launching their kernels takes longer than what these compute, and
left alone where they are known to be long. Several in one loop are one finding, at the first.

## Why it is slow
A bar draws itself ten times a second at most, but these methods draw it at once: text is put together, written and flushed,
in a notebook sent to the browser. With `refresh=False` the value is shown when the bar is drawn next.

## Example
```python
from tqdm import tqdm


def train(model, loader, optimizer):
    bar = tqdm(loader)
    for step, images in enumerate(bar):
        model(images).mean().backward()
        optimizer.step()
        bar.set_postfix(step=step)
```

## Use instead
```python
from tqdm import tqdm


def train(model, loader, optimizer):
    bar = tqdm(loader)
    for step, images in enumerate(bar):
        model(images).mean().backward()
        optimizer.step()
        bar.set_postfix(step=step, refresh=False)
```

## Fix safety
Behavior: the bar is drawn less often, so that less is written to the terminal, or to a log that takes its lines. What is
trained is the same.

## Sources
Run with tqdm 4 on one thread of a shared CPU, with its output thrown away: 20 microseconds of CPU time for a `set_postfix`
and an update, 2 with `refresh=False`; a terminal takes as long again or longer.

- [tqdm: set_postfix](https://tqdm.github.io/docs/tqdm/#set_postfix)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Fix, Level, Risk, Rule, Worth
from speedlint.shapes import durations
from speedlint.shapes.model import launches
from speedlint.shapes.schedule import telling
from speedlint.shapes.sync import reads
from speedlint.torch.words import FREQUENT, Frequency


def check(loop: syntax.For | syntax.While, script: Script) -> Iterator[Finding]:
    if script.loops.kind(loop) not in FREQUENT or script.is_test:
        return
    found = [
        call
        for call in script.source.inside(loop.body, syntax.Call)
        if telling.redraws(script, call) and telling.in_every_step(script, call, loop)
    ]
    if not found:
        return
    first = found[0]
    if reads.how_often(script, first) is Frequency.THROTTLED or durations.why_tenths_are_nothing(script) is not None:
        return
    message = f"`{reads.shown(script, first.func)}(...)` draws the bar anew {reads.often(script, first)}"
    is_short = (
        script.frequency(first) is Frequency.STEP
        and launches.why_launching_takes_longer(script) is not None
        and durations.why_long(script) is None
    )
    fix = Fix(tuple(edits.add_argument(script.source, call, "refresh=False") for call in found), Risk.BEHAVIOR)
    level = Level.WARNING if is_short else Level.NOTE
    yield Finding(first, message, fix, "pass `refresh=False`: the bar draws itself ten times a second", level)


RULE = Rule(
    "SPD707",
    on=(syntax.For, syntax.While),
    check=check,
    triggers=(b".set_postfix", b".set_description"),
    worth=Estimate(Worth.LOW, "some tens of microseconds of the host in each step"),
)
