"""A constant is made into a tensor and copied to the GPU in every step.

## What it does
Finds `torch.tensor(0.5).to(device)`, `torch.tensor([1.0, 2.0], device=device)`, `torch.FloatTensor([...]).cuda()`,
`torch.cuda.FloatTensor([...])` and the like in training and evaluation steps, where what is copied is a number, a list
of constants or of what is computed of a `range`, or an array that NumPy makes of constants, as of a fixed filter; and
`self.table.to(x.device)` of a tensor that an object holds on the host since it was made. Data that is new in each step
has to be copied and is left alone, as is what is made once and kept. What stands in a file that is not checked is told
at the call that reaches it, as a note where that copies less than three times. In programs that never train it is a
note.

## Why it is slow
Also with `device=`, `torch.tensor` first makes the tensor on the host. The copy is taken from ordinary memory, so the host
waits until it has ended, and with it all that the GPU has queued.

## Example
```python
for images, labels in loader:
    scale = torch.tensor([0.1, 0.1, 0.2, 0.2]).to(device)
    loss = criterion(model(images) / scale, labels)
```

## Use instead
```python
scale = torch.tensor([0.1, 0.1, 0.2, 0.2]).to(device)
for images, labels in loader:
    loss = criterion(model(images) / scale, labels)
```

## Fix safety
Never rewritten: where the tensor should live, as a buffer of the module or a variable before the loop, is for the author to
say. A number needs no tensor in most operations; `torch.full((), value, device=device)` makes one without a copy.

## Sources
PyTorch's performance tuning guide: avoid unnecessary CPU-GPU synchronisation, create tensors on the target device.

- [PyTorch: Performance Tuning Guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Finding, Level, Related, Rule
from speedlint.shapes import evaluation, worth
from speedlint.shapes.data.batches import one_way
from speedlint.shapes.sync import conditions, creation, hidden, reads, uploads
from speedlint.shapes.sync.companions import awaited_anyway
from speedlint.torch.words import FREQUENT, Frequency

_MANY = 3
"""Copies a step, of some 50 microseconds each, that are half a percent of one of 30 milliseconds."""


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    if uploads.constant(script, call) is not None or uploads.is_held(script, call):
        yield from _of_copy(call, script)
    else:
        yield from _hidden(call, script)


def _hidden(call: syntax.Call, script: Script) -> Iterator[Finding]:
    """The constants that the code behind a call copies, in files that are not asked for."""
    behind = hidden.told(script, call, uploads.within) if script.on_gpu and not script.is_test else []
    behind = [each for each in behind if awaited_anyway(each.what.script, each.what.node) is None]
    told = [(each.what, found) for each in behind for found in _of_copy(each.what.node, each.what.script)]
    if not told or _is_told_before(call, script):
        return
    copies = sum(1 if each.count is None else each.count for each in behind)
    first, found = next((each for each in told if each[1].level is not Level.NOTE), told[0])
    more = f" and {len(told) - 1} more" if len(told) > 1 else ""
    where = f"`{reads.shown(first.script, first.node)}` ({hidden.place(script, first)}){more}"
    message = f"`{reads.shown(script, call.func)}(...)` copies constants to the GPU {reads.often(script, call)}: {where}"
    places = hidden.by_line(what for what, _ in told)
    related = tuple(Related(each.script.source, each.node, "it is copied here") for each in places)
    advice = "make them once; not rewritten, since their file is not checked"
    level = found.level if copies >= _MANY else Level.NOTE
    yield Finding(call, message, advice=advice, level=level, related=related)


def _is_told_before(call: syntax.Call, script: Script) -> bool:
    """Whether a call further up runs the same function as often: it tells of what is copied there."""
    called, often = script.roles.calls.called(call), script.frequency(call)
    others = (each for each in script.source.of(syntax.Call) if script.source.order[each] < script.source.order[call])
    return any(script.roles.calls.called(each) == called and script.frequency(each) is often for each in others)


def _of_copy(call: syntax.Call, script: Script) -> Iterator[Finding]:
    found = uploads.constant(script, call)
    if script.frequency(call) not in FREQUENT or not script.on_gpu or script.is_test:
        return
    often = reads.often(script, call)
    if often is None or conditions.depends_on_data(script, call) or creation.is_kept(script, call):
        return
    message = f"`{reads.shown(script, call)}` copies a constant to the GPU {often}"
    if found is not None and found.is_counted:
        message = f"`{reads.shown(script, call)}` copies numbers that the host counts to the GPU {often}"
        cure = "compute them there of `torch.arange(..., device=...)`, or make them once"
    elif found is not None and found.is_array:
        message = f"`{reads.shown(script, call)}` copies what NumPy makes of constants to the GPU {often}"
        cure = "make it once, before the loop or as a buffer of the module"
    elif found is None:
        holder = "its object" if isinstance(call.func, syntax.Attribute) and _is_attribute(call.func.value) else "a function"
        message = f"`{reads.shown(script, call)}` copies what {holder} holds on the host to the GPU {often}"
        cure = "move it once, where the device is known, or make it a buffer of a module"
    elif found.is_number:
        message = f"`{reads.shown(script, call)}` copies a number to the GPU {often}"
        shape = "(1,)" if found.is_listed else "()"
        kind = "" if found.dtype is None else f"dtype={found.dtype}, "
        full = f"`torch.full({shape}, {reads.shown(script, found.data)}, {kind}device=...)`"
        cure = f"use the number as it is, or {full}, which copies nothing"
    else:
        cure = "make it once, before the loop or as a buffer of the module"
    is_seldom = reads.how_often(script, call) is Frequency.THROTTLED or not evaluation.trains(script)
    level = Level.NOTE if is_seldom else None
    yield Finding(call, message, advice=f"{cure}; not rewritten, since its place is for the author to say", level=level)


def _is_attribute(node: syntax.Node) -> bool:
    return isinstance(node, syntax.Attribute)


RULE = Rule(
    "SPD309",
    on=syntax.Call,
    check=check,
    triggers=(b"ensor(", b".to(", b".cuda(", b".type_as(", b"import"),
    worth=worth.COPY,
    cause=one_way,
    often=True,
    on_gpu=True,
)
