"""`.cpu()` or `.tolist()` of a device tensor waits for the GPU in every step.

## What it does
Finds copies of tensors from the GPU to the host, `x.cpu()`, `x.cpu().numpy()`, `x.tolist()`, `x.to("cpu")`, in loops of
training or evaluation steps and in the functions they call; parts of a tensor on the host that are set to one on the GPU,
`results[i] = model(x)`, which copies as well; and lists of tensors on the GPU that `torch.tensor` reads one by one. Actions
for an environment, images that are saved and tokens that are decoded need the copy and are left alone, unless it is of what
the loader gave on the host: it can be taken there.

## Why it is slow
A copy to the host waits until the GPU has done all that was queued before; until it is over, no new work is queued. One
copy of everything after the loop waits once, and moves the same bytes faster than many small copies.

## Example
```python
import torch


@torch.no_grad()
def predict(model, loader):
    outputs = []
    for images in loader:
        outputs.append(model(images.cuda()).cpu())
    return torch.cat(outputs)
```

## Use instead
```python
import torch


@torch.no_grad()
def predict(model, loader):
    outputs = []
    for images in loader:
        outputs.append(model(images.cuda()))
    return torch.cat(outputs).cpu()
```

## Fix safety
Exact: the same values, copied once. It is written only where the copies go into a list that starts empty in the same
function and is joined with `torch.cat`, `torch.stack` or `np.concatenate` after the loop, or asked whether it is empty; and
where nothing else holds or may change a copied tensor, a network that it is handed to included. Arrays that NumPy would
join in another order of memory, that the program may resize, or whose lack it catches, are left. The outputs of the whole
loop then lie in the GPU's memory at once: keep the copies where they are too large for that. A part of a tensor, `out[:,
-1]`, is copied on the GPU (`.clone()`), as it would keep the memory of all of it. What a model returns that runs as a CUDA
graph is overwritten by its next call: copies of it are notes.

## Sources
PyTorch's performance tuning guide: avoid unnecessary CPU-GPU synchronisation; it names `.cpu()`.

- [PyTorch: Performance Tuning Guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.cures.gains import check_gain
from speedlint.cures.gathering import copy_once
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Fix, Level, Risk, Rule, Worth
from speedlint.shapes import worth
from speedlint.shapes.sync import reads, returned
from speedlint.shapes.sync.accumulators import may_be_overwritten
from speedlint.shapes.sync.companions import awaited_anyway
from speedlint.shapes.sync.gradients import is_graphless
from speedlint.solve.gradients import gradients_off
from speedlint.torch.words import Frequency

_EACH = Estimate(Worth.HIGH, "as many waits as the list is long")
_COUNTERS = ("numpy.bincount", "numpy.histogram2d")


def check(call: syntax.Call | syntax.Assign, script: Script) -> Iterator[Finding]:
    if isinstance(call, syntax.Assign):
        yield from _stored(call, script)
        return
    tensor = reads.avoidable_copy(script, call)
    if tensor is not None:
        whole = reads.chain(script, call)
        message = f"`{reads.shown(script, whole)}` copies to the host and waits for the GPU {reads.often(script, call)}"
        yield _finding(call, whole, script, tensor, message)
    elif (lain := returned.needed(script, call)) is not None and reads.copied(script, call) is not None:
        if awaited_anyway(script, call) is not None:
            return
        whole = reads.chain(script, call)
        message = (
            f"`{reads.shown(script, whole)}` waits for the GPU {reads.often(script, call)}, for what lay on the host before"
        )
        yield Finding(whole, message, advice=f"take it from {lain.shown(script)} before that is copied to the GPU")
    elif reads.are_read_one_by_one(script, call):
        yield from _one_by_one(call, script)


def _one_by_one(call: syntax.Call, script: Script) -> Iterator[Finding]:
    """``torch.tensor([p.grad.norm() for p in parameters])``: a wait for each of the list."""
    often = reads.often(script, call)
    if often is None:
        return
    message = f"`{reads.shown(script, call)}` reads each tensor of its list from the GPU by itself, {often}"
    advice = "`torch.stack(...)` puts them together on the GPU; not rewritten, since the result lies on the host now"
    level = Level.NOTE if reads.how_often(script, call) is Frequency.THROTTLED else None
    yield Finding(call, message, advice=advice, level=level, worth=_EACH)


def _stored(assign: syntax.Assign, script: Script) -> Iterator[Finding]:
    """``results[i] = model(x)``, where ``results`` was made on the host."""
    tensor = returned.stored(script, assign)
    target = assign.targets[0].target
    if tensor is None or not isinstance(target, syntax.Subscript):
        return
    message = f"`{reads.shown(script, target)} = ...` copies to the host and waits for the GPU {reads.often(script, assign)}"
    if (in_vain := awaited_anyway(script, target)) is not None:
        yield Finding(target, message, advice=in_vain, level=Level.NOTE, worth=worth.NOTHING)
        return
    advice = (
        f"make `{reads.shown(script, target.value)}` on the GPU, with `device=`, and copy it once if it is read on the host"
    )
    yield Finding(target, message, advice=f"{advice}; not rewritten, since together they take memory there")


def _finding(
    call: syntax.Call, whole: syntax.BaseExpression, script: Script, tensor: syntax.BaseExpression, message: str
) -> Finding:
    if reads.how_often(script, call) is Frequency.THROTTLED:
        advice = "copy less often if it shows in a profile; there is nothing to rewrite"
        return Finding(whole, message, advice=advice, level=Level.NOTE)
    if may_be_overwritten(script, tensor):
        advice = "a CUDA graph overwrites its outputs at the next step: `.clone()` what is kept on the GPU, and measure"
        return Finding(whole, message, advice=advice, level=Level.NOTE)
    if (in_vain := awaited_anyway(script, whole)) is not None:
        return Finding(whole, message, advice=in_vain, level=Level.NOTE, worth=worth.NOTHING)
    try:
        if (clause := reads.why_needed(script, whole)) is not None:
            raise CannotEdit(clause)
        fix = Fix(copy_once(script, call, tensor), Risk.EXACT)
        check_gain(script, call, tensor)
    except CannotEdit as reason:
        kept = reads.shown(script, tensor)
        if not gradients_off(script, call) and not is_graphless(script, tensor):
            kept += ".detach()"
        advice = f"keep `{kept}` on the GPU, gather it in a list and copy `torch.cat(...)` once after the loop"
        advice += ", or compute with it there"
        if _is_counted(script, whole):
            advice = f"count `{kept}` on the GPU with `torch.bincount`, and copy the counts once after the loop"
        advice += f"; not rewritten, since {reason}"
        return Finding(whole, message, advice=advice, level=Level.NOTE if _is_of_each_part(call, script) else None)
    advice = "gather the tensors on the GPU and copy them once after the loop; together they take memory there"
    return Finding(whole, message, fix, advice)


def _is_counted(script: Script, whole: syntax.BaseExpression) -> bool:
    """Whether what a copy gives is counted, as for a confusion matrix."""
    return any(
        isinstance(taker, syntax.Call) and where.name(taker.func) in _COUNTERS
        for where, _, taker in reads.uses(script, whole)
    )


def _is_of_each_part(call: syntax.Call, script: Script) -> bool:
    """Whether an evaluation copies each detection of each image, which differ in number and cannot be joined."""
    within = script.source.enclosing(call, syntax.DictComp, syntax.Dict, syntax.SimpleStatementLine)
    return isinstance(within, syntax.DictComp | syntax.Dict) and script.frequency(call) is Frequency.EVAL_STEP


RULE = Rule(
    "SPD302",
    on=(syntax.Call, syntax.Assign),
    check=check,
    triggers=(b".cpu", b".tolist", b".to(", b"ensor(", b"torch.zeros(", b"torch.empty(", b"torch.ones("),
    worth=worth.WAIT,
    cause=worth.one_wait,
    often=True,
    on_gpu=True,
)
