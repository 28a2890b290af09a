"""Metrics are computed on the host in every step, or over all pairs of samples in every epoch.

## What it does
Finds calls in the training loop that reach `sklearn.metrics`, `scipy.stats` and the like in each step, itself or through the
functions of the project, and calls in the epoch loop that compare all samples with all others: silhouettes, pairwise
distances, t-SNE, clustering, `x @ x.T` of an array, a Python loop over all samples. In the steps of an evaluation it finds
confusion matrices of pixels that numpy counts, and edit distances in loops of Python. One score over an epoch's predictions
is cheap and left alone, as is what a condition runs every few epochs.

## Why it is slow
The GPU waits while the host computes.

In a step the predictions have to come to the host first. numpy counts the pixels of one image in milliseconds, as long as a
good part of its forward pass takes; a GPU counts them in microseconds. Loops of Python take a millisecond for a few words.
Over all pairs the time grows with the square of the samples: ten thousand of them are a hundred million distances, and few
read the result each time.

## Example
```python
from sklearn.metrics import silhouette_score


def train(model, loader, optimizer, validate, epochs):
    for epoch in range(epochs):
        for batch in loader:
            model(batch).mean().backward()
            optimizer.step()
        embeddings, labels = validate(model)
        print(silhouette_score(embeddings, labels))
```

## Use instead
```python
from sklearn.metrics import silhouette_score


def train(model, loader, optimizer, validate, epochs):
    for epoch in range(epochs):
        for batch in loader:
            model(batch).mean().backward()
            optimizer.step()
        embeddings, labels = validate(model)
        if epoch % 10 == 0 or epoch + 1 == epochs:
            print(silhouette_score(embeddings, labels))
```

## Fix safety
Behavior: the metric is missing for the epochs between. It is written only where the call is a statement of its own, so that
nothing reads its result; else it is shown. Early stopping or a best checkpoint that reads it has to follow the same epochs.

## Sources
scikit-learn's documentation: the silhouette coefficient needs the distances of all pairs. `speedlint verify` measures it.
Run with numpy on one thread of a shared CPU: a confusion matrix of 513 x 513 pixels by `bincount` takes 2.4 ms, an edit
distance of two texts of 100 letters 5.8 ms.

- [scikit-learn: silhouette_score](https://scikit-learn.org/stable/modules/generated/sklearn.metrics.silhouette_score.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.cures import thinning, throttling
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Fix, Level, Related, Risk, Rule, Worth
from speedlint.shapes import evaluation
from speedlint.shapes.schedule import costs, periods
from speedlint.shapes.schedule.costs import Kind
from speedlint.shapes.sync import displays, reads
from speedlint.solve.terms import Definition
from speedlint.torch.words import Frequency

_BY_HAND = (Kind.COUNTS, Kind.EDITS)
_FASTER = {
    Kind.COUNTS: "count with `torch.bincount` on the GPU, where the classes and the guesses are, and copy the matrix once, "
    "behind the loop; not written: what else reads it is for you to change",
    Kind.EDITS: "take a compiled one, as `rapidfuzz`, `editdistance` or `torchaudio.functional.edit_distance` have; not "
    "written: which is installed is not known",
}
_SHARES = {
    Kind.COUNTS: Estimate(Worth.LOW, "some milliseconds of the host for each image; in evaluation only"),
    Kind.EDITS: Estimate(Worth.LOW, "some milliseconds of the host for each sentence; in evaluation only"),
}


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    if script.is_test:
        return
    if _is_in_pass(call, script) and script.frequency(call) is Frequency.EVAL_STEP:
        yield from _of_evaluation(call, script)
        return
    one = periods.scheduled(script, call)
    if one is None:
        return
    in_steps = script.loops.kind(one.loop) is Frequency.STEP
    wanted = (Kind.METRIC, Kind.PAIRS, *_BY_HAND) if in_steps else (Kind.PAIRS,)
    if script.frequency(call) is not (Frequency.STEP if in_steps else Frequency.EPOCH):
        return
    cost = next((cost for cost in costs.of_call(script, call) if cost.kind in wanted), None)
    if cost is not None and not periods.is_conditional(script, one):
        yield _finding(call, script, one, cost, in_steps=in_steps)


def _of_evaluation(call: syntax.Call, script: Script) -> Iterator[Finding]:
    """A metric that each step of an evaluation during training computes on the host, though there is a faster way."""
    cost = _by_hand(call, script)
    if cost is None or not script.on_gpu or evaluation.runs_once(script, call) or not evaluation.trains(script):
        return
    if _is_told_before(call, script, cost.kind):
        return
    message = f"`{reads.shown(script, call.func)}(...)` computes {cost.kind.value} in every evaluation step"
    related = () if cost.node is call else (Related(cost.script.source, cost.node, f"computes {cost.kind.value}"),)
    yield Finding(call, message, advice=_FASTER[cost.kind], level=Level.WARNING, related=related, worth=_SHARES[cost.kind])


def _is_told_before(call: syntax.Call, script: Script, kind: Kind) -> bool:
    """Whether the function of a call computes the same kind of metric further up."""
    function = script.function(call)
    for other in script.source.inside(function.body if function is not None else script.source.module, syntax.Call):
        if other is call:
            return False
        found = _by_hand(other, script) if script.frequency(other) is Frequency.EVAL_STEP else None
        if found is not None and found.kind is kind:
            return True
    return False


def _by_hand(call: syntax.Call, script: Script) -> costs.Cost | None:
    """What a call in the loop of an evaluation, or in a method that a framework calls in its steps, computes by hand."""
    if not _is_in_pass(call, script):
        return None
    return next((cost for cost in costs.of_call(script, call) if cost.kind in _BY_HAND), None)


def _is_in_pass(call: syntax.Call, script: Script) -> bool:
    """Whether a call stands in a loop over steps, or in a method that a framework calls in its own."""
    if script.loops.driving_loop(call) is not None:
        return True
    function = script.function(call)
    owner = script.names.owner(function) if function is not None else None
    if function is None or owner is None:
        return False
    return script.roles.calls.hook(Definition(script, owner), function.name.value) is not None


def _finding(call: syntax.Call, script: Script, one: periods.Scheduled, cost: costs.Cost, *, in_steps: bool) -> Finding:
    often = "training step" if in_steps else "epoch"
    period = f"{displays.PERIOD} steps" if in_steps else f"{periods.EPOCHS} epochs"
    message = f"`{reads.shown(script, call.func)}(...)` computes {cost.kind.value} in every {often}"
    advice = f"compute it every {period}, and after the last"
    related = () if cost.node is call else (Related(cost.script.source, cost.node, f"computes {cost.kind.value}"),)
    try:
        if cost.node is not call:
            raise CannotEdit(f"what else `{reads.shown(script, call.func)}` does is not followed")
        if in_steps:
            edits = throttling.every_few_steps(script, thinning.alone(script, call))
        else:
            edits = thinning.every_few_epochs(script, one)
    except CannotEdit as reason:
        return Finding(
            call, message, advice=f"{advice}; not rewritten, since {reason}", level=Level.WARNING, related=related
        )
    return Finding(call, message, Fix(edits, Risk.BEHAVIOR), advice, Level.WARNING, related)


RULE = Rule(
    "SPD702",
    on=syntax.Call,
    check=check,
    triggers=(b"for ", b"while "),
    worth=Estimate(Worth.MEDIUM, "the GPU waits while the host computes"),
)
