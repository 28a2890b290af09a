"""Validation takes a good part of the training time, because it runs more often than its result is needed.

## What it does
Finds calls that run a full pass over a loader without training: every few steps or several times an epoch inside the
training loop; each epoch at several scales; each epoch although the program has an option for the interval that nothing
reads; and passes over the very loader that the epoch has trained on, for numbers alone. Also calls of the trained network in
each step over a loader, without gradients, on tensors that stay the same, of which the loss is not made: all of the
validation data, as a rule.

## Why it is slow
A validation step costs about a third of a training step, and the training waits for all of them.

A full pass every hundred steps can take as long as the steps between; a pass at four scales costs as much as several.

## Example
```python
def train(model, loader, optimizer, validate):
    for step, batch in enumerate(loader):
        model(batch).mean().backward()
        optimizer.step()
        if step % 50 == 0:
            validate(model)
```

## Use instead
```python
def train(model, loader, optimizer, validate):
    for step, batch in enumerate(loader):
        model(batch).mean().backward()
        optimizer.step()
        if step % 1000 == 0 or step + 1 == len(loader):
            validate(model)
```

## Fix safety
Behavior: what is told of the validation is told more rarely, and the random stream moves where its loader shuffles. It is
written only where nothing but a print or log reads the result, where the function does nothing but evaluate (it changes no
state, and leaves the network in training mode), and where the loop counts its turns and its end is known. It is shown where
the best checkpoint, early stopping or a scheduler reads the result, since they move with it, and where the call has a
condition of its own. A plain pass at one scale after each epoch is not reported: it is cheap beside the epoch, and keeping
the best model needs it.

## Sources
Counting: a forward pass is about a third of a training step. `speedlint verify` measures it. Run with torch 2.13 on one
thread of a shared CPU: 313 steps of 64 rows, with 2048 rows validated in each, took 5.5 CPU seconds, 1.9 with the fix, and
ended with the same weights.

- [Epoch AI: backward-forward FLOP ratio](https://epochai.org/blog/backward-forward-FLOP-ratio)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.cures import thinning
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Fix, Level, Related, Risk, Rule, Worth
from speedlint.shapes.data import pace
from speedlint.shapes.optimizer import differentiated
from speedlint.shapes.schedule import periods, same_data, seen_again
from speedlint.shapes.sync import reads
from speedlint.torch.words import Frequency

_WHY = "and after the last one"
_AGAIN = Estimate(Worth.HIGH, "a forward pass over all of the training data, a third of what training on it takes")


def check(call: syntax.Call | syntax.For, script: Script) -> Iterator[Finding]:
    if isinstance(call, syntax.For):
        yield from _of_trained(call, script)
        return
    if same_data.is_run_again(script, call) and not script.is_test:
        message = f"`{script.text(call)}` runs the network on the same data in every training step"
        advice = "evaluate once an epoch, or every few hundred steps; not written here, since what is told of it changes"
        yield Finding(call, message, advice=advice, level=Level.WARNING)
        return
    found = periods.validation(script, call)
    if found is None or script.frequency(call) < Frequency.EPOCH or script.is_test:
        return
    if script.loops.kind(found.loop) is Frequency.STEP:
        if not _is_differentiated(found):
            yield from _within_steps(found, script)
    elif script.frequency(call) is Frequency.EPOCH and not periods.is_thinned(script, found):
        yield from _each_epoch(found, script)


def _is_differentiated(found: periods.Validation) -> bool:
    """Whether what a pass computes is seen to be differentiated, as the means that a loss is taken to."""
    place = found.callee.script
    for loop in periods.full_passes(found.callee):
        try:
            differentiated.check_never(place, loop)
        except differentiated.NotProven as reason:
            if reason.is_certain:
                return True
    return False


def _within_steps(found: periods.Validation, script: Script) -> Iterator[Finding]:
    code = script.text(found.call.func)
    steps = periods.period(script, found)
    if steps is not None and isinstance(steps.value, int) and pace.is_epoch(script, steps.value):
        return
    if steps is not None and periods.is_often(steps):
        every = "every step" if steps.value == 1 else f"every {steps.value} steps"
        message = f"`{code}` runs a full validation pass {every}"
    elif steps is None and periods.is_part_of_epoch(script, found):
        message = f"`{code}` runs a full validation pass several times an epoch"
    else:
        return
    yield _finding(found, script, message, f"validate every few thousand steps, or once an epoch, {_WHY}")


def _each_epoch(found: periods.Validation, script: Script) -> Iterator[Finding]:
    code = script.text(found.call.func)
    if (loader := seen_again.by_call(script, found)) is not None:
        yield _of_loader(found.call, f"`{reads.shown(script, found.call)}`", loader, script, is_each=True)
        return
    inner = periods.scales(found.callee)
    option = periods.unused_interval(script)
    advice = f"validate every few epochs {_WHY}"
    if inner is not None:
        other = found.callee.script
        message = f"`{code}` validates each epoch and runs the network several times on every batch"
        related = (Related(other.source, inner, "once for each of these"),)
        yield _finding(found, script, message, advice, related)
    elif option is not None:
        place, node, name = option
        message = f"`{code}` validates each epoch, although the option `{name}` asks for an interval: nothing reads it"
        related = (Related(place.source, node, "the option"),)
        advice = f"validate every `{name}` epochs {_WHY}"
        yield _finding(found, script, message, advice, related)


def _of_trained(loop: syntax.For, script: Script) -> Iterator[Finding]:
    """A pass in the loop over epochs itself, over what the epoch trains on."""
    is_pass = script.loops.kind(loop) is Frequency.EVAL_STEP and not script.is_test
    if is_pass and (loader := seen_again.by_loop(script, loop)) is not None:
        around = script.source.enclosing(loop, syntax.For, syntax.While, syntax.If)
        is_each = isinstance(around, syntax.For | syntax.While)
        yield _of_loader(loop.iter, "this loop", loader, script, is_each=is_each)


def _of_loader(node: syntax.Node, shown: str, loader: syntax.BaseExpression, script: Script, *, is_each: bool) -> Finding:
    when = "in each epoch" if is_each else "now and then"
    return Finding(
        node,
        f"{shown} evaluates over all of `{script.text(loader)}` once more {when}, after the training has gone over it",
        advice="add the numbers up while it trains, or evaluate over a part of it; not written, since they would be those "
        "of a network that still changes",
        level=Level.WARNING if is_each else Level.NOTE,
        worth=_AGAIN,
    )


def _finding(
    found: periods.Validation, script: Script, message: str, advice: str, related: tuple[Related, ...] = ()
) -> Finding:
    try:
        if periods.is_conditional(script, found):
            raise CannotEdit("it already has a condition of its own")
        in_steps = script.loops.kind(found.loop) is Frequency.STEP
        edits = thinning.every_thousand_steps(script, found) if in_steps else thinning.every_few_epochs(script, found)
    except CannotEdit as reason:
        advice = f"{advice}; not written here, since {reason}"
        return Finding(found.call, message, advice=advice, level=Level.WARNING, related=related)
    return Finding(found.call, message, Fix(edits, Risk.BEHAVIOR), advice, Level.WARNING, related)


RULE = Rule(
    "SPD701",
    on=(syntax.Call, syntax.For),
    check=check,
    triggers=(b"torch",),
    worth=Estimate(Worth.HIGH, "the share of the epoch that evaluation takes"),
)
