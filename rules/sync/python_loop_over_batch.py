"""A Python loop over the rows of a batch runs one small operation after the other.

## What it does
Finds loops over the rows of a tensor or array, `for i in range(x.shape[0])` with `x[i]`, or `for row in x`, that run a
network once for each row, in training or evaluation and in the functions they call; such a loop in a file that is not
checked is reported at the call. Rows that are gathered one by one, `torch.stack([x[i] for i in rows])`, are found too, what
is picked from each row by places of its own, `torch.stack([x[i][places[i]] for i in range(n)])`, what is computed from each,
`torch.cat([reward + 0.9 * value for reward, value in zip(rewards, values)])`, and loops that only read the rows of a tensor
on the GPU, each by itself: `for row in x` with `row.tolist()`, or compare them in a condition, `if row == 0`, or count by
them, as for a confusion matrix: `matrix[row.long(), guess.long()] += 1`. Other loops over the rows of a tensor on the GPU
that run no network are notes: boxes and ragged data need them. Loops over time whose turns hang on the one before are left
alone.

## Why it is slow
Each turn launches its own kernels on a batch of one, which leaves most of the GPU idle; the launches cost more than the
work. One call on all rows does the same in one go. An index that is a single number on the GPU is read by the host besides:
`x[i]` waits for it. Rows that are read one by one are one copy and one wait each, some 15 microseconds, where all of them
take no longer.

## Example
```python
import torch


@torch.no_grad()
def predict(model, volume):
    out = torch.zeros_like(volume)
    for i in range(volume.shape[0]):
        out[i] = model(volume[i].unsqueeze(0).cuda())[0]
    return out
```

## Use instead
```python
import torch


@torch.no_grad()
def predict(model, volume):
    return torch.cat([model(part.cuda()) for part in volume.split(32)])
```

## Fix safety
Numeric: products of 32 rows add up in another order than those of one. It is written only where all the loop does is to
append what the network gives for a row to a list that is joined along the rows, and where the network is in sight and made
of layers that map each row by itself: no batch normalisation and no dropout, unless the module is in evaluation mode by a
call in the same function, nothing that looks across rows, and nothing in the program that may change a network once it is
made. 32 rows take 32 times the memory of one, which a batch of training takes as well. Exact where the rows are only read:
the same numbers are copied, all at once. Anything else is shown: whether the code around takes rows together is for the
author to say.

## Sources
PyTorch's performance tuning guide; measured with torch 2.13 on a CPU: 181 times faster for a toy loop of 512 rows. On one
thread, a training step of 64 rows in CPU time: 5.9 ms row by row and 0.49 in parts of 32 for two Linear layers, 17.6 and
10.8 for a convolution of 32 by 32 pixels.

- [PyTorch: Performance Tuning Guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.cures import whole_batches
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Fix, Level, Related, Risk, Rule, Worth
from speedlint.shapes import worth
from speedlint.shapes.sync import batchwise, hidden, reads
from speedlint.torch.words import Frequency

_WHY = "not rewritten, since memory and the code around decide how many rows may go together"

_WAITS = Estimate(Worth.MEDIUM, "one copy and one wait for each row, where one copy brings all of them")
_ON_CPU = Estimate(Worth.HIGH, "many small operations run in place of few large ones")


def check(node: syntax.For | syntax.Call, script: Script) -> Iterator[Finding]:
    if isinstance(node, syntax.Call):
        yield from _gathered(node, script)
        yield from _computed(node, script)
        yield from _picked(node, script)
        yield from _hidden(node, script)
        return
    found = batchwise.row_loop(script, node)
    if (apart := batchwise.read_apart(script, node)) is not None:
        yield _read_apart(node, script, apart)
        return
    if found is None:
        return
    rows = reads.shown(script, found.rows)
    if found.network is not None:
        ran = reads.shown(script, found.network.func)
        message = f"the loop runs `{ran}(...)` on one row of `{rows}` at a time, {reads.often(script, node)}"
        try:
            fix = Fix(whole_batches.together(script, found), Risk.NUMERIC)
        except CannotEdit as reason:
            advice = f"run it on many rows at once; not rewritten, since {reason}"
            yield Finding(node.iter, message, advice=advice, worth=None if script.on_gpu else _ON_CPU)
            return
        yield Finding(node.iter, message, fix, "run it on many rows at once", worth=None if script.on_gpu else _ON_CPU)
    elif found.is_sized and script.frequency(node) is Frequency.STEP and script.is_device_tensor(found.rows):
        message = f"the loop goes over the rows of `{rows}` one by one in every training step"
        advice = f"use operations on all rows, with a mask where they differ; {_WHY}"
        yield Finding(node.iter, message, advice=advice, level=Level.NOTE)


def _read_apart(loop: syntax.For, script: Script, apart: batchwise.ReadApart) -> Finding:
    rows, read = reads.shown(script, apart.rows[0]), reads.shown(script, apart.first)
    message = f"`{read}` waits for each row of `{rows}` by itself, {reads.often(script, loop)}"
    advice = f"copy all rows once, before the loop: `{rows}.cpu()`"
    share = worth.at(_WAITS, script.frequency(loop))
    if not all(isinstance(each, syntax.Name | syntax.Attribute | syntax.Subscript | syntax.Call) for each in apart.rows):
        return Finding(apart.rows[0], message, advice=advice, worth=share)
    if apart.beside is not None:
        advice = f"{advice}; not rewritten, since `{script.text(apart.beside)}` may lie on the GPU"
        return Finding(apart.rows[0], message, advice=advice, worth=share)
    names = {name.value for each in apart.rows for name in script.source.inside(each, syntax.Name)}
    if any(name.value in names for name in script.source.inside(loop.body, syntax.Name)):
        advice = f"{advice}; not rewritten, since the loop may change it"
        return Finding(apart.rows[0], message, advice=advice, worth=share)
    copies = (edits.replace(script.source, each, f"{script.text(each)}.cpu()") for each in apart.rows)
    return Finding(apart.rows[0], message, Fix(tuple(copies), Risk.EXACT), advice, worth=share)


def _gathered(call: syntax.Call, script: Script) -> Iterator[Finding]:
    found = batchwise.row_gather(script, call)
    often = reads.often(script, call) if found is not None else None
    if found is not None and often is not None:
        taken, rows = (reads.shown(script, each) for each in found)
        message = f"the list takes the rows of `{taken}` one by one {often}"
        advice = f"`{taken}[{rows}]` takes them all at once, with no wait for an index"
        advice = f"{advice}; not rewritten, since it means something else where `{rows}` is a mask"
        yield Finding(call, message, advice=advice)


def _computed(call: syntax.Call, script: Script) -> Iterator[Finding]:
    """Arithmetic on one row after the other, whose results are put together."""
    rows = batchwise.row_arithmetic(script, call)
    if rows is not None and script.frequency(call) is Frequency.STEP:
        message = f"the rows of `{reads.shown(script, rows)}` are computed with one by one in every training step"
        advice = (
            "compute with whole tensors, and choose with `torch.where` where rows differ; not rewritten, since the shapes "
        )
        yield Finding(call, message, advice=f"{advice}are not seen")


def _picked(call: syntax.Call, script: Script) -> Iterator[Finding]:
    """A list of what is picked from each row; or one behind a call, in a file that is not checked."""
    often = reads.often(script, call)
    found = batchwise.paired_gather(script, call) if often is not None else None
    if found is not None:
        taken, places = reads.shown(script, found.taken), reads.shown(script, found.places)
        message = f"the list picks from one row of `{taken}` at a time, by `{places}`, {often}"
        yield Finding(call, message, advice=f"{_at_once(found)}; not rewritten, since the shapes are not seen")
    elif often is not None and reads.how_often(script, call) is not Frequency.THROTTLED:
        for each in hidden.behind(script, call, batchwise.paired_gathers):
            if hidden.is_told_at_call(script, each):
                taken, where = reads.shown(each.what.script, each.what.taken), hidden.place(script, each.what)
                message = (
                    f"`{reads.shown(script, call.func)}(...)` picks from one row of `{taken}` at a time ({where}), {often}"
                )
                related = (Related(each.what.script.source, each.what.node, "one row at a time"),)
                advice = f"{_at_once(each.what)}; not rewritten, since that file is not checked"
                yield Finding(call, message, advice=advice, related=related)
                return


def _at_once(found: batchwise.PairedGather) -> str:
    taken, places = (reads.shown(found.script, each) for each in (found.taken, found.places))
    return f"pick from all at once, with a column of row numbers: `{taken}[torch.arange(len({places}))[:, None], {places}]`"


def _hidden(call: syntax.Call, script: Script) -> Iterator[Finding]:
    often = reads.often(script, call)
    if often is None or reads.how_often(script, call) is Frequency.THROTTLED:
        return
    for each in hidden.behind(script, call, batchwise.within):
        if hidden.is_told_at_call(script, each):
            loop = each.what
            rows = reads.shown(loop.script, loop.rows)
            where = hidden.place(script, loop)
            message = f"`{reads.shown(script, call.func)}(...)` runs a network on one row of `{rows}` at a time ({where})"
            related = (Related(loop.script.source, loop.node.iter, "one row at a time"),)
            yield Finding(call, f"{message}, {often}", advice=f"run it on many rows at once; {_WHY}", related=related)
            return


RULE = Rule(
    "SPD310",
    on=(syntax.For, syntax.Call),
    check=check,
    triggers=(b"torch", b"import"),
    worth=Estimate(Worth.HIGH, "the GPU runs many small kernels in place of few large ones"),
    often=True,
)
