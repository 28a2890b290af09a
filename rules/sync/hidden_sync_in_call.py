"""A call in the step waits for the GPU inside another function, often many times.

## What it does
Follows the calls of the training or evaluation step into the functions, methods and modules of the project, through files,
and reports those in which the host waits for the GPU: numbers read, copies to the host, tensors printed, conditions on
tensors, sizes that depend on values; also into a pass over a loader, in a file that is not checked, which each epoch calls.
Where the numbers of turns of the loops between are known, they are multiplied: a loss that reads one number for each of 10
classes, called for 15 outputs, waits 150 times in a step. Several calls of one function in the same step are one finding, at
the first. A wait in a file that is checked too is reported at its own line; at the call only if calls multiply it, or if the
function takes numbers of other callers, as a meter does with `math.isnan(value)`, and this one hands it a tensor.

## Why it is slow
The GPU works through a queue while Python runs ahead and fills it. Each wait lets the queue run dry. In a helper it is out
of sight, and a helper is called more often than one thinks.

## Example
```python
import torch


def accuracy(logits, labels):
    return (logits.argmax(1) == labels).float().mean().item()


def train(model, loader, optimizer, criterion):
    total = 0.0
    for images, labels in loader:
        images, labels = images.cuda(), labels.cuda()
        logits = model(images)
        loss = criterion(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for part in logits.chunk(4):
            total += accuracy(part, labels[: len(part)])
    print(total)
```

## Use instead
```python
import torch


def accuracy(logits, labels):
    return (logits.argmax(1) == labels).float().mean()


def train(model, loader, optimizer, criterion):
    total = 0.0
    for images, labels in loader:
        images, labels = images.cuda(), labels.cuda()
        logits = model(images)
        loss = criterion(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for part in logits.chunk(4):
            total += accuracy(part, labels[: len(part)]).detach()
    print(float(total))
```

## Fix safety
Numeric, as for `item-in-loop`: the number stays on the GPU where every place that reads it is seen. The helper is edited, in
its own file, and the callers that convert what it returns in theirs. Anything else is shown: what the helper returns is for
its callers to agree on.

## Sources
PyTorch's performance tuning guide: avoid unnecessary CPU-GPU synchronisation.

- [PyTorch: Performance Tuning Guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.cures.deferral import keep_on_device
from speedlint.cures.gains import check_gain
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Edit, Finding, Fix, Level, Related, Risk, Rule
from speedlint.shapes import worth
from speedlint.shapes.sync import handed, hidden, reads, waits
from speedlint.shapes.sync.companions import awaited_anyway
from speedlint.shapes.sync.hidden import Hidden
from speedlint.shapes.sync.waits import Wait
from speedlint.solve import counts
from speedlint.solve.flow import once
from speedlint.torch.words import FREQUENT, Frequency


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    if script.frequency(call) is Frequency.EPOCH:
        yield from _of_pass(call, script)
        return
    told = _told(script, call)
    if not told:
        yield from _of_tensors(call, script)
        return
    loop = script.loops.driving_loop(call)
    if loop is None:
        yield _finding(call, script, told, [], 1)
        return
    others = [other for other in _alike(call, script, loop) if _told(script, other)]
    if all(script.source.order[call] < script.source.order[other] for other in others):
        times = [counts.times(script, each, loop.body) for each in (call, *others)]
        yield _finding(call, script, told, others, None if None in times else sum(filter(None, times)))


def _of_tensors(call: syntax.Call, script: Script) -> Iterator[Finding]:
    """A call that hands a tensor to what takes numbers too, and reads it on the host."""
    if reads.how_often(script, call) not in FREQUENT or (often := reads.often(script, call)) is None:
        return
    found = handed.behind(script, call)
    if not found:
        return
    first = found[0]
    read, where = reads.shown(first.script, first.node), hidden.place(script, first)
    what = "a tensor" if isinstance(first.node, syntax.Call) else "each element of a tensor"
    message = f"`{reads.shown(script, call.func)}(...)` waits for the GPU {often}: `{read}` ({where}) reads {what}"
    related = tuple(Related(each.script.source, each.node, "it waits here") for each in found)
    if (in_vain := awaited_anyway(script, call)) is not None:
        yield Finding(call, message, advice=in_vain, level=Level.NOTE, related=related, worth=worth.NOTHING)
        return
    name = first.parameter.name.value
    advice = (
        f"let it keep tensors as they are, and read them now and then; not rewritten, since `{name}` may be a number too"
        if isinstance(first.node, syntax.Call)
        else f"hand it `.tolist()` of the tensor, one copy for all elements; not rewritten, since `{name}` may be a list too"
    )
    yield Finding(call, message, advice=advice, related=related)


def _of_pass(call: syntax.Call, script: Script) -> Iterator[Finding]:
    """A pass over a loader in a file that is not asked for, in whose own loop the host waits."""
    callee = script.callee(call)
    if callee is None or not isinstance(callee.node, syntax.FunctionDef) or script.is_reported(callee.script):
        return
    if next(each for each in script.alike(call) if script.frequency(each) is Frequency.EPOCH) is not call:
        return
    place = callee.script
    found = [
        each
        for each in waits.within(place, callee.node)
        if place.loops.driving_loop(each.node) is not None
        and awaited_anyway(place, each.node) is None
        and not hidden.is_left_out(callee, each.node, script, call)
    ]
    if not found:
        return
    first = max(found, key=lambda each: place.frequency(each.node))
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    message = (
        f"`{reads.shown(script, call.func)}(...)` waits for the GPU {reads.often(place, first.node)}: "
        f"`{reads.shown(place, first.node)}` ({hidden.place(script, first)}){more}"
    )
    share = worth.at(worth.WAIT, place.frequency(first.node))
    related = _related([Hidden(each, ((script, call),), None) for each in found])
    advice = "what to write instead is told where the file is checked"
    yield Finding(call, message, advice=advice, level=Level.WARNING, related=tuple(related), worth=share)


@once([])
def _told(script: Script, call: syntax.Call) -> list[Hidden[Wait]]:
    """The waits behind a call that are told of at the call."""
    if reads.how_often(script, call) not in FREQUENT or reads.often(script, call) is None:
        return []
    loop = script.loops.driving_loop(call)
    is_multiplied = loop is not None and counts.is_in_loop(script, call, loop.body)
    behind = hidden.behind(script, call, waits.within)
    return [each for each in behind if _waits(each) and (is_multiplied or hidden.is_told_at_call(script, each))]


def _alike(call: syntax.Call, script: Script, loop: syntax.For | syntax.While) -> list[syntax.Call]:
    """The other calls of the same function in the same step."""
    callee = script.callee(call)
    return [
        other
        for other in script.source.inside(loop.body, syntax.Call)
        if other is not call and script.callee(other) == callee and script.loops.driving_loop(other) is loop
    ]


def _waits(each: Hidden[Wait]) -> bool:
    """Whether a wait is reached in the mode that its module is in, on a branch that is taken, for a tensor on the GPU."""
    (outer, first), (script, call) = each.chain[0], each.chain[-1]
    in_training = reads.how_often(outer, first) is Frequency.STEP
    in_mode = hidden.runs_in_mode(each, training=in_training)
    return each.count != 0 and in_mode and not hidden.is_off(each) and not each.what.is_of_host(script, call)


def _finding(
    call: syntax.Call, script: Script, behind: list[Hidden[Wait]], others: list[syntax.Call], times: int | None
) -> Finding:
    """The finding at the first call of a function in a step, which the ``others`` follow; all run ``times`` times."""
    first = behind[0]
    is_known = times is not None and all(each.count is not None for each in behind)
    total = sum(each.count or 0 for each in behind) * (times or 0) if is_known else None
    often = f"{total} times " if total is not None and total > 1 else ""
    called = f", called at {len(others) + 1} places," if others else ""
    more = f" and {len(behind) - 1} more" if len(behind) > 1 else ""
    message = (
        f"`{reads.shown(script, call.func)}(...)`{called} waits for the GPU {often}{reads.often(script, call)}: "
        f"`{reads.shown(first.what.script, first.what.node)}` ({hidden.place(script, first.what)}){more}"
    )
    again = (Related(script.source, other, "called again in the same step") for other in others)
    related = (*_related(behind), *again)
    share = worth.at(worth.waits(total), script.frequency(call))
    in_vain = [awaited_anyway(each.what.script, each.what.node) for each in behind]
    if None not in in_vain:
        advice = f"{in_vain[0]}; {hidden.place(script, first.what)}"
        return Finding(call, message, advice=advice, level=Level.NOTE, related=related, worth=worth.NOTHING)
    try:
        fix = Fix(_kept_on_device(script, behind), Risk.NUMERIC)
    except CannotEdit as reason:
        function = first.what.script.function(first.what.node)
        name = f"`{function.name.value}`" if function is not None else "the function"
        advice = f"let {name} keep its values on the GPU, and read them now and then; not rewritten, since {reason}"
        return Finding(call, message, advice=advice, related=related, worth=share)
    return Finding(
        call, message, fix, "keep the values on the GPU with `.detach()` in the function", related=related, worth=share
    )


def _related(behind: list[Hidden[Wait]]) -> Iterator[Related]:
    for each in behind:
        for where, inner in each.chain[1:]:
            yield Related(where.source, inner, f"calls `{reads.shown(where, inner.func)}`")
        wait = each.what
        yield Related(wait.script.source, wait.node, f"`{reads.shown(wait.script, wait.node)}` waits for the GPU")


def _kept_on_device(script: Script, behind: list[Hidden[Wait]]) -> tuple[Edit, ...]:
    """The edits of the helpers that take all waits away. Raises CannotEdit."""
    found: list[Edit] = []
    for each in behind:
        wait = each.what
        if not hidden.is_told_at_call(script, each):
            raise CannotEdit("its own line has a finding of its own")
        if not isinstance(wait.node, syntax.Call) or reads.scalar(wait.script, wait.node) is None:
            raise CannotEdit(f"`{reads.shown(wait.script, wait.node)}` is no number that could be read later")
        found += keep_on_device(wait.script, wait.node, wait.tensor)
        check_gain(wait.script, wait.node, wait.tensor)
    return tuple(found)


RULE = Rule(
    "SPD311",
    on=syntax.Call,
    check=check,
    triggers=(b"import", b"def "),
    worth=worth.WAIT,
    cause=worth.one_wait,
    often=True,
    on_gpu=True,
)
