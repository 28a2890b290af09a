"""A tensor is made on the host in every step, only to be copied to the GPU.

## What it does
Finds `torch.zeros(...).to(device)`, `torch.ones(...).type_as(images)` and the like in training and evaluation steps:
`zeros`, `ones`, `full`, `eye`, `arange`, `linspace`, `rand`, `randn` and others that make a tensor of sizes and numbers
alone, also with a few operations between, and where a variable that nothing else uses holds it before the copy;
`x[range(n), labels]` and `x[torch.arange(n), labels]`, whose index is made on the host, and a tensor on the GPU that is
indexed by an array, a list or a tensor of the host, `observations[drawn]`; random numbers that NumPy draws;
and `torch.tensor(words).to(device)` of what a loader's own collate function leaves as a list or an array. What is made
once, as in `__init__`, or kept for the next step, and what is filled on the host first, is left alone. In programs that
never train it is a note. A function of the project that only copies what it is handed, `to_var(torch.zeros(n))`, is such
a copy too, and one that makes a tensor of numbers alone, `causal_mask(n).to(device)`, such a factory. What stands in a
file that is not checked is told at the call that reaches it.

## Why it is slow
The copy is taken from ordinary memory, so the host waits until it has ended, and with it all that the GPU has queued: one
stop in every step, to move zeros that the GPU writes by itself in no time, or an index that one copy would have brought.

## Example
```python
for images, labels in loader:
    mask = torch.zeros(len(labels), 10).to(device)
```

## Use instead
```python
for images, labels in loader:
    mask = torch.zeros(len(labels), 10, device=device)
```

## Fix safety
Exact for zeros, ones, full, eye, and whole numbers of `arange`: the same values bit for bit. Numeric for fractions, which
the GPU may round otherwise, and for random numbers, which come from the GPU's stream. It is shown where the tensor asks for
its gradient, where the device given to `.cuda()` may be None, and where the tensor is copied on another line. Where the copy
takes another tensor's dtype too, it is left as the cast that remains.

## Sources
PyTorch's performance tuning guide: create tensors directly on the target device.

- [PyTorch: Performance Tuning Guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.cures import creating
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Fix, Level, Related, Risk, Rule, Worth
from speedlint.shapes import evaluation, probes, worth
from speedlint.shapes.data.batches import one_way
from speedlint.shapes.sync import conditions, creation, hidden, reads, uploads
from speedlint.shapes.sync.companions import awaited_anyway
from speedlint.solve.loops import Does
from speedlint.torch.words import FREQUENT

_VOLUMES = Estimate(Worth.MEDIUM, "the host fills megabytes and copies them out of ordinary memory")


def check(node: syntax.Call | syntax.Subscript, script: Script) -> Iterator[Finding]:
    if isinstance(node, syntax.Subscript):
        yield from _of_index(node, script)
    else:
        yield from _of_copy(node, script)
        yield from _hidden(node, script)


def _often(script: Script, node: syntax.Node) -> str | None:
    """How often it is made, in words; None where that does not matter."""
    if script.frequency(node) not in FREQUENT or not script.on_gpu or script.is_test:
        return None
    often = reads.often(script, node)
    if often is None or conditions.depends_on_data(script, node) or probes.is_in_benchmark(script, node):
        return None
    return often


def _cure(script: Script, factory: syntax.Call) -> str:
    """What makes the same tensor on the GPU."""
    if creation.is_type(script, factory):
        return "make it with `torch.full`, or draw it with `torch.rand`, `randn` or `randint`, and `device=`"
    made = reads.shown(script, factory.func)
    is_of_project = script.callee(factory) is not None
    return f"let `{made}` take the device and make it there" if is_of_project else f"pass `device=` to `{made}`"


def _hidden(call: syntax.Call, script: Script) -> Iterator[Finding]:
    """Tensors that the code behind a call makes and copies, in files that are not asked for."""
    if reads.how_often(script, call) not in FREQUENT or (often := _often(script, call)) is None:
        return
    for each in hidden.told(script, call, creation.within):
        upload = each.what
        place = upload.script
        if not evaluation.trains(place):
            continue
        if _often(place, upload.node) is None or awaited_anyway(place, upload.node) is not None:
            continue
        message = f"`{reads.shown(script, call.func)}(...)` makes a tensor on the host and copies it {often}"
        if isinstance(upload.factory, syntax.Call) and not isinstance(upload.node, syntax.Subscript):
            made, cure = reads.shown(place, upload.factory.func), _cure(place, upload.factory)
        else:
            made, cure = reads.shown(place, upload.node), "make the index on the GPU"
            message = f"`{reads.shown(script, call.func)}(...)` copies an index from the host to the GPU {often}"
        message = f"{message}: `{made}` ({hidden.place(script, upload)})"
        advice = f"{cure}; not rewritten, since its file is not checked"
        related = (Related(place.source, upload.node, "it is copied here"),)
        level = Level.NOTE if _goes_step_by_step(place, upload.node) else None
        yield Finding(call, message, advice=advice, level=level, related=related)
        return


def _goes_step_by_step(script: Script, node: syntax.Node) -> bool:
    """Whether the function around a copy runs modules position by position: one copy is little beside that."""
    function = script.function(node)
    return function is not None and any(
        script.is_call_to(loop.iter, "range") and bool(script.loops.does(loop.body, Does.FORWARD))
        for loop in script.source.inside(function.body, syntax.For)
    )


def _of_index(subscript: syntax.Subscript, script: Script) -> Iterator[Finding]:
    """An index that counts, made on the host: ``x[range(n), labels]``, ``x[torch.arange(n)]``."""
    index = creation.ranged_index(script, subscript)
    if index is None:
        yield from _of_host_index(subscript, script)
        return
    if (often := _often(script, subscript)) is None:
        return
    message = f"`{reads.shown(script, subscript)}` makes the index `{script.text(index)}` on the host and copies it {often}"
    advice = "count with `torch.arange(..., device=...)`, or take the entries with `gather`"
    level = None if evaluation.trains(script) else Level.NOTE
    try:
        fix = Fix(creating.ranged_on_device(script, subscript, index), Risk.EXACT)
    except CannotEdit as reason:
        yield Finding(subscript, message, advice=f"{advice}; not rewritten, since {reason}", level=level)
    else:
        yield Finding(subscript, message, fix, advice, level)


def _of_host_index(subscript: syntax.Subscript, script: Script) -> Iterator[Finding]:
    """An index that the host holds: ``observations[drawn]``, of an array of places."""
    index = creation.host_index(script, subscript)
    if index is None or (often := _often(script, subscript)) is None:
        return
    shown = reads.shown(script, index)
    message = f"`{reads.shown(script, subscript)}` copies the index `{shown}` from the host to the GPU {often}"
    if (in_vain := awaited_anyway(script, subscript)) is not None:
        yield Finding(subscript, message, advice=in_vain, level=Level.NOTE, worth=worth.NOTHING)
        return
    if isinstance(index, syntax.List):
        advice = "take slices, or make the index on the GPU once"
    else:
        advice = f"copy it once for all that it indexes, `torch.as_tensor({shown}, device=...)`, or draw it there"
    level = None if evaluation.trains(script) else Level.NOTE
    yield Finding(subscript, message, advice=f"{advice}; not rewritten, since other code may need it as it is", level=level)


def _of_numbers(call: syntax.Call, numbers: syntax.Call, script: Script) -> Iterator[Finding]:
    """Random numbers that NumPy draws, made into a tensor on the GPU."""
    often = _often(script, call)
    if often is not None and not creation.is_kept(script, call):
        drawn = reads.shown(script, numbers.func)
        name = script.name(numbers.func) or ""
        scaled = ", scaled as there" if name.endswith((".normal", ".uniform")) else ""
        yield Finding(
            call,
            f"`{drawn}(...)` draws on the host, and the numbers are copied to the GPU {often}",
            advice=f"draw on the GPU, with `torch.{creation.DRAWS[name]}(..., device=...)`{scaled}; not rewritten, since "
            "these are other numbers",
            level=None if evaluation.trains(script) else Level.NOTE,
        )


def _of_parts(call: syntax.Call, part: syntax.Call, script: Script) -> Iterator[Finding]:
    """A tensor that is put together of others which the host makes."""
    often = _often(script, call)
    if often is None or creation.is_kept(script, call):
        return
    made = reads.shown(script, part.func)
    message = f"`{reads.shown(script, call)}` copies what is put together on the host of `{made}(...)` to the GPU {often}"
    if (in_vain := awaited_anyway(script, call)) is not None:
        yield Finding(call, message, advice=in_vain, level=Level.NOTE, worth=worth.NOTHING)
        return
    advice = f"pass `device=` to `{made}`, so that it is put together there, or make it once before the loop; not written, "
    related = (Related(script.source, part, "it is made here"),)
    level = None if evaluation.trains(script) else Level.NOTE
    yield Finding(call, message, advice=f"{advice}since other code may need it on the host", level=level, related=related)


def _of_function(call: syntax.Call, given: syntax.Call, script: Script) -> Iterator[Finding]:
    """A tensor that a function of the project makes on the host."""
    often = _often(script, call)
    if often is None or creation.is_kept(script, call):
        return
    message = f"`{reads.shown(script, given)}` makes a tensor on the host, which is copied to the GPU {often}"
    if (in_vain := awaited_anyway(script, call)) is not None:
        yield Finding(call, message, advice=in_vain, level=Level.NOTE, worth=worth.NOTHING)
        return
    name = reads.shown(script, given.func)
    advice = f"let `{name}` take the device and make it there; not written, since others may call it for the host"
    yield Finding(call, message, advice=advice, level=None if evaluation.trains(script) else Level.NOTE)


def _of_batch(call: syntax.Call, listed: uploads.Listed, script: Script) -> Iterator[Finding]:
    """A part of a batch that the collate function leaves as a list or an array."""
    if (often := _often(script, call)) is None:
        return
    loader = listed.loader
    message = f"`{reads.shown(script, listed.made)}` makes a tensor of what the loader gives, and copies it {often}"
    if (in_vain := awaited_anyway(script, call)) is not None and loader.setting("num_workers").is_off:
        yield Finding(call, message, advice=in_vain, level=Level.NOTE, worth=worth.NOTHING)
        return
    advice = "make the tensor in the collate function, where workers do it, and copy it from pinned memory with "
    advice += "`non_blocking=True`; not rewritten, since other code may need it as it is"
    related = (Related(loader.script.source, loader.call, "the loader, whose collate function leaves it as it is"),)
    level = None if evaluation.trains(script) else Level.NOTE
    yield Finding(call, message, advice=advice, level=level, related=related)


def _of_copy(call: syntax.Call, script: Script) -> Iterator[Finding]:
    found = creation.created(script, call)
    if found is None and (numbers := creation.drawn(script, call)) is not None:
        yield from _of_numbers(call, numbers, script)
    elif found is None and (part := creation.put_together(script, call)) is not None:
        yield from _of_parts(call, part, script)
    elif found is None and (given := creation.made_by_function(script, call)) is not None:
        yield from _of_function(call, given, script)
    elif found is None and (listed := uploads.of_batch(script, call)) is not None:
        yield from _of_batch(call, listed, script)
    if found is None or (often := _often(script, call)) is None or creation.is_kept(script, call):
        return
    made = reads.shown(script, found.factory.func)
    message = f"`{made}(...)` is made on the host and copied to the GPU {often}"
    if not creation.is_map(found) and (in_vain := awaited_anyway(script, call)) is not None:
        yield Finding(call, message, advice=in_vain, level=Level.NOTE, worth=worth.NOTHING)
        return
    advice = _cure(script, found.factory)
    level = None if evaluation.trains(script) else Level.NOTE
    related = (Related(script.source, found.factory, "it is made here"),) if found.held is not None else ()
    share = worth.at(_VOLUMES, script.frequency(call)) if creation.is_of_volumes(found) else None
    try:
        fix = Fix(creating.on_device(script, found), Risk.EXACT if found.is_exact else Risk.NUMERIC)
    except CannotEdit as reason:
        told = f"{advice}; not rewritten, since {reason}"
        yield Finding(call, message, advice=told, level=level, related=related, worth=share)
    else:
        yield Finding(call, message, fix, advice, level, worth=share)


def _cause(script: Script, node: syntax.Node) -> str:
    """The index, where one of the host is used for several tensors; else as for other copies."""
    index = creation.host_index(script, node) if isinstance(node, syntax.Subscript) else None
    bindings = script.names.reaching(index) if isinstance(index, syntax.Name) else []
    return f"index {script.source.span(bindings[0].node)[0]}" if bindings else one_way(script, node)


_SINCE = (0, 4)
"""What makes tensors takes `device=` since torch 0.4."""

RULE = Rule(
    "SPD308",
    on=(syntax.Call, syntax.Subscript),
    check=check,
    triggers=(b".to(", b".cuda(", b".type_as(", b"[range(", b"[list(range(", b"arange(", b"random.", b"import"),
    worth=worth.COPY,
    cause=_cause,
    often=True,
    on_gpu=True,
    since=_SINCE,
)
