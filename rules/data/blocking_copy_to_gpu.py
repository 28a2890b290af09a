"""A batch is copied to the GPU with the host waiting for the copy.

## What it does
Finds `.to(device)`, `.cuda()` and `.type(torch.cuda.FloatTensor)` of what a loader yields, on each training or evaluation
step, without `non_blocking=True`. Copies of modules, changes of the dtype alone, and tensors that are already on the device
are something else. So is what a training takes by itself: rows of an array or of a tensor that the host holds,
`torch.from_numpy(images[order[i : i + 32]]).to(device)`. What a function does in a file that is not checked is told at the
call that reaches it.

## Why it is slow
The host stands still until the copy has ended, and cannot queue the next kernels meanwhile. From pinned memory (see
loader-without-pinned-memory) a `non_blocking` copy is only queued.

## Example
```python
for images, labels in loader:
    images = images.to(device)
    labels = labels.to(device)
```

## Use instead
```python
for images, labels in loader:
    images = images.to(device, non_blocking=True)
    labels = labels.to(device, non_blocking=True)
```

## Fix safety
Exact: later work on the GPU waits for the copy by itself, and without pinned memory the copy blocks as before. It is shown,
not written, where the device may be Apple's `mps`, where the tensor on the host is changed afterwards, where what is copied
is computed from the batch first, and where the batch may be an object with its own `to`. It is a note where
`torch.cuda.synchronize()` follows, which waits for the copy in any case, where the dataset is a handful of rows, where its
batches are known to be below 100 kilobytes, and where a loader without workers hands out what lies in memory: to pin that
takes as long as to copy it.

## Sources
PyTorch's tutorial on pinned memory and `non_blocking`; the Performance Tuning Guide's section on asynchronous copies.

- [PyTorch: pin_memory() and non_blocking](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
- [PyTorch: Performance Tuning Guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Fix, Level, Related, Risk, Rule, Worth
from speedlint.shapes import eras, evaluation, worth
from speedlint.shapes.data import gathered
from speedlint.shapes.data.batches import (
    are_few,
    are_small,
    hazard,
    is_awaited,
    is_graph,
    is_item,
    is_on_gpu_already,
    moved,
    one_way,
    refuses,
    unpinned,
)
from speedlint.shapes.schedule import periods
from speedlint.shapes.sync import hidden, reads
from speedlint.shapes.sync.companions import awaited_anyway
from speedlint.shapes.sync.streams import blocks
from speedlint.torch.words import FREQUENT, Frequency

_SINCE = (0, 4)
"""`non_blocking` came with torch 0.4, instead of `async`, which is a word of Python's own from 3.7 on."""
_OLD = "async"
_WHEN = {
    Frequency.STEP: "on each training step",
    Frequency.EVAL_STEP: "on each evaluation step",
    Frequency.THROTTLED: "now and then",
}


_OF_ITEM = (
    "take the items out of a DataLoader with `pin_memory=True`, and pass `non_blocking=True`; not written: where they are "
    "taken by their index nothing pins them"
)


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    if moved(script, call) is not None:
        yield from _of_copy(call, script)
    elif (rows := gathered.gathered(script, call)) is not None:
        yield from _of_rows(call, rows, script)
    else:
        yield from _hidden(call, script)


def _hidden(call: syntax.Call, script: Script) -> Iterator[Finding]:
    """The copies behind a call, in files that are not asked for."""
    behind = hidden.told(script, call, gathered.copied) if not script.is_test else []
    told = [(each.what, found) for each in behind for found in _of_either(each.what.node, each.what.script)]
    if not told:
        return
    worst, found = next((each for each in told if each[1].level is not Level.NOTE), told[0])
    more = f" and {len(told) - 1} more" if len(told) > 1 else ""
    where = f"`{reads.shown(worst.script, worst.node)}` ({hidden.place(script, worst)}){more}"
    message = f"`{reads.shown(script, call.func)}(...)` makes the host wait for the copy of a batch"
    message = f"{message} {_WHEN[script.frequency(call)]}: {where}"
    places = hidden.by_line(what for what, _ in told)
    related = tuple(Related(each.script.source, each.node, "it is copied here") for each in places)
    rows = gathered.gathered(worst.script, worst.node)
    cure = "pass `non_blocking=True` there" if rows is None else _cure(worst.script, rows)
    advice = f"{cure}; not rewritten, since its file is not checked"
    yield Finding(call, message, advice=advice, level=found.level, related=related, worth=found.worth)


def _of_either(call: syntax.Call, script: Script) -> Iterator[Finding]:
    rows = gathered.gathered(script, call)
    yield from _of_copy(call, script) if rows is None else _of_rows(call, rows, script)


def _of_rows(call: syntax.Call, rows: gathered.Gathered, script: Script) -> Iterator[Finding]:
    """A batch that the training itself takes out of what the host holds."""
    often = reads.often(script, call) if script.frequency(call) in FREQUENT else None
    if often is None or not script.on_gpu or script.is_test:
        return
    holder = reads.shown(script, rows.holder)
    held = f"a part of what `{holder}` holds" if rows.are_transitions else f"rows of `{holder}`"
    held = f"a batch of `{holder}`" if rows.are_given else held
    message = f"`{reads.shown(script, call)}` copies {held} to the GPU {often}, and the host waits for it"
    if (in_vain := awaited_anyway(script, call)) is not None:
        yield Finding(call, message, advice=in_vain, level=Level.NOTE, worth=worth.NOTHING)
        return
    advice = f"{_cure(script, rows)}; not written, since its size is not known"
    yield Finding(call, message, advice=advice)


def _cure(script: Script, rows: gathered.Gathered) -> str:
    pinned = "from pinned memory with `non_blocking=True`"
    if rows.are_given:
        return f"let a DataLoader with workers run what makes the batches and pin them, or copy them {pinned}"
    if gathered.is_filled(script, rows):
        return f"keep the parts of a row side by side in one array, so that one copy takes them all, {pinned}"
    held = reads.shown(script, rows.holder)
    return f"move `{held}` to the GPU once and take the rows there; where it is too large, copy them {pinned}"


def _of_copy(call: syntax.Call, script: Script) -> Iterator[Finding]:
    batch = moved(script, call)
    if batch is None or not script.on_gpu or not blocks(call):
        return
    when = _WHEN.get(script.frequency(call))
    if when is None or is_on_gpu_already(script, batch):
        return
    loader = unpinned(script, batch)
    message = f"`{script.text(call)}` makes the host wait for the copy {when}"
    if is_item(script, batch):
        yield Finding(call, message, advice=_OF_ITEM)
        return
    spelled = _spelled(script, call)
    advice = f"pass `{spelled}=True`"
    related: tuple[Related, ...] = ()
    if loader is not None:
        advice += "; it takes effect once the loader has `pin_memory=True`"
        related = (Related(loader.script.source, loader.call, "the loader, which does not pin its batches"),)
    if (waits := is_awaited(script, call)) is not None:
        why = f"`{script.text(waits)}` below waits for the copy all the same"
        yield Finding(call, message, advice=f"{advice}; not written: {why}", level=Level.NOTE, related=related)
        return
    if is_graph(script, batch):
        why = "nothing pins what a graph of DGL's is made of, so that its copy waits all the same"
        yield Finding(call, message, advice=f"{advice}; not written: {why}", level=Level.NOTE, related=related)
        return
    is_trifle = loader is not None and loader.pins_for_nothing
    is_trifle = is_trifle or are_few(script, batch) or are_small(script, batch) or _is_of_single_pass(call, script)
    level = Level.NOTE if is_trifle or refuses(script, batch) else None
    reason = hazard(script, call, batch)
    if reason is not None:
        advice = f"{advice}; not written: {reason}"
        yield Finding(call, message, advice=advice, level=level, related=related)
        return
    if spelled == _OLD and eras.line_of_older_python(script) is None:
        advice = f"{advice}; not written: torch calls it so up to 0.3, and Python from 3.7 on does not read it"
        yield Finding(call, message, advice=advice, level=level, related=related)
        return
    fix = Fix((edits.set_argument(script.source, call, spelled, "True"),), Risk.EXACT)
    yield Finding(call, message, fix, advice, level, related)


def _spelled(script: Script, call: syntax.Call) -> str:
    """What a copy's argument is called: as torch called it up to 0.3 in a script for Python 3.6 that calls it so itself, or
    one that is for such a release."""
    assert isinstance(call.func, syntax.Attribute)
    is_old = eras.line_of_older_python(script) is not None or not eras.is_for(script, _SINCE)
    is_old = is_old and call.func.attr.value == "cuda" and script.argument(call, "non_blocking") is None
    return _OLD if is_old else "non_blocking"


def _is_of_single_pass(call: syntax.Call, script: Script) -> bool:
    """Whether an evaluation that no training runs copies a batch, in a file that trains nothing."""
    function = script.function(call)
    if script.frequency(call) is not Frequency.EVAL_STEP or function is None or evaluation.trains_itself(script):
        return False
    return periods.during_training(script, function) is None


RULE = Rule(
    "SPD205",
    on=syntax.Call,
    check=check,
    triggers=(b".to(", b".cuda(", b".type(", b"ensor(", b"import"),
    worth=Estimate(Worth.LOW, "the host waits for the copy of each batch"),
    cause=one_way,
    often=True,
    on_gpu=True,
)
