"""Metrics are computed on the host in every step, or over all pairs of samples in every epoch.

## What it does
Finds calls in the training loop that reach `sklearn.metrics`, `scipy.stats` and the like in each step, itself or through the
functions of the project, and calls in the epoch loop that compare all samples with all others: silhouettes, pairwise
distances, t-SNE, clustering, `x @ x.T` of an array, a Python loop over all samples. One score over an epoch's predictions is
cheap and left alone, as is what a condition runs every few epochs.

## Why it is slow
The GPU waits while the host computes.

In a step the predictions have to come to the host first. Over all pairs the time
grows with the square of the samples: ten thousand of them are a hundred million distances, and few read the result each
time.

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

- [scikit-learn: silhouette_score](https://scikit-learn.org/stable/modules/generated/sklearn.metrics.silhouette_score.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.cures import thinning, throttling
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Fix, Level, Related, Risk, Rule, Worth
from speedlint.shapes.schedule import costs, periods
from speedlint.shapes.schedule.costs import Kind
from speedlint.shapes.sync import displays, reads
from speedlint.torch.words import Frequency


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    one = periods.scheduled(script, call)
    if one is None or script.is_test:
        return
    in_steps = script.loops.kind(one.loop) is Frequency.STEP
    wanted = (Kind.METRIC, Kind.PAIRS) if in_steps else (Kind.PAIRS,)
    if script.frequency(call) is not (Frequency.STEP if in_steps else Frequency.EPOCH):
        return
    cost = next((cost for cost in costs.of_call(script, call) if cost.kind in wanted), None)
    if cost is not None and not periods.is_conditional(script, one):
        yield _finding(call, script, one, cost, in_steps=in_steps)


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
