"""`x[mask]`, `nonzero` and `unique` wait for the GPU to learn how large their result is.

## What it does
Finds operations whose result is as large as the values on the GPU say, `x[mask]` with a boolean mask, `nonzero`,
`masked_select`, `argwhere`, `unique` and `torch.where` of one argument, in loops of training steps and in the functions they
call. A warning where the selection is only averaged, summed up or compared by a loss, since a mask as weight gives the same,
and where it is given a shape at once, as in `similarity[~diagonal].view(n, -1)`, since its number is known then; a note
where the selected elements themselves are needed, as for boxes and points, and in evaluation. `x[mask] += 1` takes the
elements out and puts them back, and `x[mask] = y[mask]` takes them from elsewhere, which counts twice; so does
`x[mask] = network(rows)` count, of a network that is run for as many rows; `x[mask] = 0` fills without counting, and is left
alone.

## Why it is slow
Memory for the result can only be taken when its size is known. Python stops until the GPU has done all that was queued
before and has counted; the queue runs dry. Under `torch.compile` the varying size breaks the graph or compiles it again.

## Example
```python
import torch
import torch.nn.functional as F


def train(model, loader, optimizer):
    for images, target in loader:
        images, target = images.cuda(), target.cuda()
        error = F.mse_loss(model(images), target, reduction="none")
        loss = error[target > 0].mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
```

## Use instead
```python
import torch
import torch.nn.functional as F


def train(model, loader, optimizer):
    for images, target in loader:
        images, target = images.cuda(), target.cuda()
        error = F.mse_loss(model(images), target, reduction="none")
        mask = target > 0
        loss = (error * mask).sum() / mask.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
```

## Fix safety
Never rewritten: a product with the mask keeps a `nan` or `inf` that the selection would leave out, an empty selection
behaves otherwise, and shapes further down change. `torch.where(mask, x, 0)` keeps them out; `ignore_index` and `reduction`
of the losses often say the same.

## Sources
PyTorch's performance tuning guide: avoid unnecessary CPU-GPU synchronisation; it names `nonzero`.

- [PyTorch: Performance Tuning Guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Finding, Level, Rule
from speedlint.shapes import worth
from speedlint.shapes.sync import reads, shapes
from speedlint.torch.words import Frequency

_WEIGHT = "weigh with the mask: `(x * mask).sum() / mask.sum()`, or let the loss ignore what is masked"
_CHANGED = "change all of it: `x = torch.where(mask, x + 1, x)`, or add the mask itself, which keeps the shape"
_CHOSEN = "choose among all of both: `x = torch.where(mask, y, x)`, the mask unsqueezed where it has fewer dimensions"
_FILLED = (
    "run the network for all rows, with zeros where there is nothing to run it for, and choose: "
    "`x = torch.where(mask, y, x)`"
)
_NEEDED = "keep it if the elements themselves are needed; `torch.where(mask, x, other)` keeps the shape where they are not"

_INDEXED = (
    "as many are taken from each row: take them by index, with `torch.gather` and indices that are made once, or fill the "
    "rest with `float('-inf')` where a softmax follows"
)
_ONCE = "the mask is the same each time: take its indices once, `index = mask.nonzero().squeeze(1)`, and select with them"
_AVOIDED = (
    (shapes.is_of_kept_mask, _ONCE),
    (shapes.is_changed, _CHANGED),
    (shapes.is_filled, _FILLED),
    (shapes.is_only_reduced, _WEIGHT),
    (shapes.is_put_back, _CHOSEN),
    (shapes.is_regular, _INDEXED),
)
"""Selections that need no count, with what does without."""


def check(node: syntax.Call | syntax.Subscript, script: Script) -> Iterator[Finding]:
    tensor = shapes.sized_by_values(script, node)
    if tensor is None or (often := reads.often(script, node)) is None:
        return
    message = f"the size of `{reads.shown(script, node)}` depends on values: it waits for the GPU {often}"
    cure = next((cure for holds, cure in _AVOIDED if holds(script, node)), _NEEDED)
    is_avoidable = cure is not _NEEDED and reads.how_often(script, node) is Frequency.STEP
    why = "other code may need the mask" if cure is _ONCE else "values that the selection leaves out may be `nan`"
    advice = f"{cure}; not rewritten, since {why}"
    yield Finding(node, message, advice=advice, level=None if is_avoidable else Level.NOTE)


RULE = Rule(
    "SPD305",
    on=(syntax.Call, syntax.Subscript),
    check=check,
    triggers=(b"[", b"nonzero", b"masked_select", b"unique", b"argwhere", b"where("),
    worth=worth.WAIT,
    cause=worth.one_wait,
    often=True,
    on_gpu=True,
)
