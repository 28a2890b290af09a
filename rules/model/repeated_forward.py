"""A network runs again on the same, in each turn of a loop or twice in one.

## What it does
Finds calls of a network within a loop of a training or evaluation step, or around the steps, that take the same in each
turn: no argument is set or changed there, no optimizer and no line of the loop changes the network, it is in evaluation mode
or has nothing that hangs on chance. So each turn gets the same result, as where an attack of several steps computes the
prediction for the clean images in each of them.

It finds a layer too that a network, called in a loop of another one's `forward`, runs on what that loop hands it unchanged:
the keys of attention, projected again for each word.

Calls that are written the same are found as well, where the second one runs on the same in the same turn, and no update, no
change of mode and no backward pass stands between: the network gives the same for the same, or the first result only gives a
shape.

Loops that read the clock, and results that nothing uses, are left alone: they measure.

## Why it is slow
All forward passes but the first are for nothing. A turn that runs a network on two inputs, and back through one of them,
takes a fourth to a third less without the other.

## Example
```python
import torch
import torch.nn.functional as F


def perturb(model, images, steps=10, size=2 / 255):
    model.eval()
    nearby = images + 0.001 * torch.randn_like(images)
    for _ in range(steps):
        nearby.requires_grad_()
        loss = F.kl_div(F.log_softmax(model(nearby), 1), F.softmax(model(images), 1), reduction="sum")
        gradient = torch.autograd.grad(loss, [nearby])[0]
        nearby = nearby.detach() + size * gradient.sign()
    return nearby
```

## Use instead
```python
import torch
import torch.nn.functional as F


def perturb(model, images, steps=10, size=2 / 255):
    model.eval()
    with torch.no_grad():
        wanted = F.softmax(model(images), 1)
    nearby = images + 0.001 * torch.randn_like(images)
    for _ in range(steps):
        nearby.requires_grad_()
        loss = F.kl_div(F.log_softmax(model(nearby), 1), wanted, reduction="sum")
        gradient = torch.autograd.grad(loss, [nearby])[0]
        nearby = nearby.detach() + size * gradient.sign()
    return nearby
```

## Fix safety
Shown, never written: whether anything differentiates the result, and so whether it may be computed under `no_grad`, or once
for several backward passes, is for the script to say.

## Sources
Run with torch 2.13 on one thread of a shared CPU: ten turns of the example on a network of three convolutions took 170 ms,
124 with one pass over the images. PyTorch's tutorial on distillation asks the teacher under `no_grad`, once for each batch.

- [PyTorch: Knowledge Distillation Tutorial](https://docs.pytorch.org/tutorials/beginner/knowledge_distillation_tutorial.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Level, Related, Rule, Worth
from speedlint.shapes.model import repeated
from speedlint.shapes.sync import reads

_PART = Estimate(Worth.LOW, "one layer of each turn is enough once")


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    if script.is_test:
        return
    if (loop := repeated.same_in_each_turn(script, call)) is not None:
        line = script.source.line(loop)
        message = f"`{reads.shown(script, call)}` computes the same in each turn of the loop on line {line}"
        advice = "run it once before the loop, under `torch.no_grad()` where nothing differentiates it"
        advice = f"{advice}; not written, since that is for the script to say"
        yield Finding(call, message, advice=advice, related=(Related(script.source, loop, "the loop"),))
    elif (again := repeated.same_as_before(script, call)) is not None:
        line = script.source.line(again.first)
        message = f"`{reads.shown(script, call)}` runs a second time on the same as on line {line}"
        message += ", whose result only gives a shape" if again.only_shape else ", whose result it could take"
        advice = "run it once, and use its result in both places; not written, since it may count what it sees, as batch "
        advice = f"{advice}normalisation does"
        yield Finding(call, message, advice=advice, related=(Related(script.source, again.first, "the first time"),))
    elif (part := repeated.part_in_each_turn(script, call)) is not None:
        layer = reads.shown(part.script, part.call)
        line = script.source.line(part.loop)
        message = f"`{reads.shown(script, call)}` runs `{layer}` on the same in each turn of the loop on line {line}"
        advice = "run that layer once before the loop, and hand its result in; not written, since `forward` takes another "
        advice = f"{advice}argument then"
        related = (
            Related(part.script.source, part.call, "computes the same"),
            Related(script.source, part.loop, "the loop"),
        )
        yield Finding(call, message, advice=advice, level=Level.WARNING, related=related, worth=_PART)


RULE = Rule(
    "SPD613",
    on=syntax.Call,
    check=check,
    triggers=(b"for ", b"while "),
    worth=Estimate(Worth.HIGH, "a forward pass in each turn, of which one is enough"),
)
