"""A condition on a device tensor waits for the GPU in every step.

## What it does
Finds `if`, `while`, `assert` and conditional expressions that ask for the truth of a tensor on the GPU, `if loss > 10`,
`if torch.isnan(loss).any()`, `assert (labels >= 0).all()`, and `torch.equal` or `math.isfinite` of one, in loops of training
or evaluation steps and in the functions they call. What ends a loop, as where all sequences are complete, is left alone,
unless it asks for values that are not finite; so are shapes, numbers and tensors that never left the host. torch's
distributions ask for the truth of a tensor too: `Categorical(logits=logits)` checks its arguments where it is made, and
again in `log_prob`, unless told otherwise, as by `torch.compile`.

## Why it is slow
Python can only take a branch when it knows the value. It stops until the GPU has done all that was queued before; the queue
runs dry, and the GPU idles while the next step is prepared. Under `torch.compile` such a branch breaks the graph.

## Example
```python
import torch


def masked_loss(logits, target, mask):
    if mask.sum() == 0:
        return logits.new_zeros(())
    return (torch.nn.functional.mse_loss(logits, target, reduction="none") * mask).sum() / mask.sum()


def train(model, loader, optimizer):
    for images, target in loader:
        images, target = images.cuda(), target.cuda()
        loss = masked_loss(model(images), target, target > 0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
```

## Use instead
```python
import torch


def masked_loss(logits, target, mask):
    return (torch.nn.functional.mse_loss(logits, target, reduction="none") * mask).sum() / mask.sum().clamp(min=1)


def train(model, loader, optimizer):
    for images, target in loader:
        images, target = images.cuda(), target.cuda()
        loss = masked_loss(model(images), target, target > 0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
```

## Fix safety
Never rewritten: what the branch decides has to be said without one, `torch.where`, a product with the mask, a `clamp` of the
divisor, which only the author can judge. A check for values that are not finite can be made every so many steps; with loss
scaling `GradScaler.step` already skips such steps.

## Sources
PyTorch's performance tuning guide: avoid unnecessary CPU-GPU synchronisation; it names Python control flow that depends on
the results of CUDA operations.

- [PyTorch: Performance Tuning Guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Finding, Level, Rule
from speedlint.shapes import worth
from speedlint.shapes.sync import conditions, displays, reads, validated
from speedlint.shapes.sync.companions import awaited_anyway
from speedlint.torch.words import Frequency

_WITHOUT_BRANCH = "compute both sides on the GPU with `torch.where`, a product with the mask or a `clamp` of the divisor"
_NOW_AND_THEN = f"check it every {displays.PERIOD} steps, or add up `~torch.isfinite(...)` on the GPU and look later"

_UNCHECKED = (
    "pass `validate_args=False`, which spares the check in `log_prob` too; not written, since values that are not finite "
    "are then no longer reported"
)


def check(node: conditions.Conditional, script: Script) -> Iterator[Finding]:
    if isinstance(node, syntax.Call) and validated.waits(script, node):
        yield from _of_distribution(node, script)
        return
    asked = ((tensor, reads.often(script, tensor)) for tensor in conditions.asked(script, node))
    tensor, often = next(((tensor, often) for tensor, often in asked if often is not None), (None, None))
    if tensor is None or conditions.decides_end(script, node):
        return
    message = f"the condition `{reads.shown(script, tensor)}` waits for the GPU {often}"
    advice = _NOW_AND_THEN if conditions.is_sanity_check(script, tensor) else _WITHOUT_BRANCH
    level = Level.NOTE if reads.how_often(script, tensor) is Frequency.THROTTLED else None
    if (in_vain := awaited_anyway(script, tensor)) is not None:
        yield Finding(tensor, message, advice=in_vain, level=Level.NOTE, worth=worth.NOTHING)
        return
    yield Finding(
        tensor, message, advice=f"{advice}; not rewritten, since only its author knows what may replace it", level=level
    )


def _of_distribution(call: syntax.Call, script: Script) -> Iterator[Finding]:
    """A distribution whose constructor asks whether its arguments are valid."""
    if (often := reads.often(script, call)) is None:
        return
    message = f"`{reads.shown(script, call)}` checks its arguments and waits for the GPU {often}"
    if (in_vain := awaited_anyway(script, call)) is not None:
        yield Finding(call, message, advice=in_vain, level=Level.NOTE, worth=worth.NOTHING)
        return
    level = Level.NOTE if reads.how_often(script, call) is Frequency.THROTTLED else None
    yield Finding(call, message, advice=_UNCHECKED, level=level)


RULE = Rule(
    "SPD304",
    on=conditions.CONDITIONAL,
    check=check,
    triggers=(
        b"if ",
        b"if(",
        b"while ",
        b"while(",
        b"assert",
        b"equal(",
        b"allclose(",
        b"is_nonzero(",
        b"isfinite(",
        b"distributions",
    ),
    worth=worth.WAIT,
    cause=worth.one_wait,
    often=True,
    on_gpu=True,
)
