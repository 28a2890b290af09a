"""Every batch of an accumulation exchanges its gradients between the GPUs, though the optimizer needs only their sum.

## What it does
Finds loops in programs with `DistributedDataParallel` that step the optimizer once for several backward passes, and nowhere
hold the exchange of gradients back. Where the number of passes is one unless an option says otherwise, it is a note.

## Why it is slow
`DistributedDataParallel` averages the gradients over all processes in each backward pass. With n batches to a step, n - 1 of
the exchanges are for nothing; over a network they can take longer than the pass itself.

## Example
```python
from torch.nn.parallel import DistributedDataParallel


def train(model, loader, optimizer):
    model = DistributedDataParallel(model)
    for step, images in enumerate(loader):
        loss = model(images.cuda()).mean() / 4
        loss.backward()
        if step % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
```

## Use instead
```python
from contextlib import nullcontext

from torch.nn.parallel import DistributedDataParallel


def train(model, loader, optimizer):
    model = DistributedDataParallel(model)
    for step, images in enumerate(loader):
        with nullcontext() if step % 4 == 3 else model.no_sync():
            loss = model(images.cuda()).mean() / 4
            loss.backward()
        if step % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
```

## Fix safety
Shown, never written: the forward pass belongs under `no_sync` too, the last batch before a step does not, and a model that
is not wrapped has no such method. The sum of the gradients is the same but for its rounding.

## Sources
Hugging Face Accelerate's documentation: 2.0 s a step over several machines, 0.91 s with `no_sync`.

- [Accelerate: gradient synchronization](https://huggingface.co/docs/accelerate/concept_guides/gradient_synchronization)
- [PyTorch: DistributedDataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Level, Rule, Worth
from speedlint.shapes.optimizer import exchanges
from speedlint.shapes.sync import reads

_ADVICE = (
    "run the forward and backward passes of all batches but the last before a step under `model.no_sync()`; not written "
    "here, because the model may not be wrapped in every run"
)


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    if not call.args and not isinstance(call.func, syntax.Attribute):
        return
    found = exchanges.gathering(script, call)
    if found is None or script.is_test or not exchanges.is_distributed(script):
        return
    if not exchanges.is_first(script, call):
        return
    count = exchanges.known(script, found)
    number = f"`{script.text(found.count)}`" if found.count is not None else "few"
    every = f"every {number} batches"
    if count is not None and count < 2:
        every += f", {count} if not told otherwise"
    message = f"`{reads.shown(script, call.func)}(...)` exchanges all gradients for each batch; the optimizer steps {every}"
    level = Level.WARNING if count is not None and count > 1 else Level.NOTE
    yield Finding(call, message, advice=_ADVICE, level=level)


RULE = Rule(
    "SPD509",
    on=syntax.Call,
    check=check,
    triggers=(b"backward", b"update_grad", b"% "),
    worth=Estimate(Worth.MEDIUM, "each micro-step waits for all GPUs"),
)
