"""A backward pass computes gradients that no optimizer ever uses.

## What it does
Finds what the backward pass of a training step computes for nobody:

- A network is fed with what another one has just computed, as a discriminator with a generator's pictures, and the other
  network's gradients are always zeroed before its optimizer steps. Without `.detach()` the pass runs through both.
- A network passes gradients on to the one that is trained, as the discriminator in the generator's step, and those of its
  own weights are zeroed before its optimizer steps.
- No optimizer holds a network's parameters, and its input needs no gradient, as with the target network of Q-learning: the
  pass through it leads nowhere.
- No optimizer holds a network's parameters, but its input needs a gradient, as with the features that a picture is compared
  by: those of its weights are computed for nothing.

Nothing is said where an optimizer is out of sight, where the project switches `requires_grad` of the network, where the
output is differentiated a second time for other gradients, or where gradients are read by hand.

## Why it is slow
The backward pass through a network takes about twice as long as its forward pass: half of that for the gradients of its
weights, half for those of its input.

## Example
```python
import torch


def train(generator, discriminator, g_optimizer, d_optimizer, loader, criterion, zeros, ones):
    for real in loader:
        fake = generator(torch.randn(64, 100, device="cuda"))
        d_loss = criterion(discriminator(real), ones) + criterion(discriminator(fake), zeros)
        d_optimizer.zero_grad()
        d_loss.backward()
        d_optimizer.step()
        g_loss = criterion(discriminator(generator(torch.randn(64, 100, device="cuda"))), ones)
        g_optimizer.zero_grad()
        g_loss.backward()
        g_optimizer.step()
```

## Use instead
```python
import torch


def train(generator, discriminator, g_optimizer, d_optimizer, loader, criterion, zeros, ones):
    for real in loader:
        fake = generator(torch.randn(64, 100, device="cuda"))
        d_loss = criterion(discriminator(real), ones) + criterion(discriminator(fake.detach()), zeros)
        d_optimizer.zero_grad()
        d_loss.backward()
        d_optimizer.step()
        g_loss = criterion(discriminator(generator(torch.randn(64, 100, device="cuda"))), ones)
        g_optimizer.zero_grad()
        g_loss.backward()
        g_optimizer.step()
```

## Fix safety
Exact where it is written: `.detach()` changes no value, and the gradients that it spares are zeroed before anything reads
them. Shown only where the loss takes the tensor in other ways too, where hooks, clipping or `.grad` may see those gradients,
where the networks may share parts, where what they are given may take gradients too, and where the program wraps networks
for several processes or checkpoints activations. What no optimizer holds is only shown: `torch.no_grad()` would have to go
around parts of lines, and which weights are frozen when is for the script to say.

## Sources
Run with torch 2.13 on one thread of a shared CPU, medians of 40 steps taken in turns: a GAN of Linear layers (MNIST's sizes,
100 pictures) took 15.2 ms a step, 12.9 with `.detach()`, 12.5 with the discriminator's weights frozen in the generator's
pass as well; a DCGAN of 32 x 32 pixels 84.8, 76.2 and 69.9 ms. The parameters stayed the same bit for bit. Four
convolutions between a picture and its loss took 135 instead of 191 ms without the gradients of their weights.
PyTorch's DCGAN tutorial detaches, its DQN tutorial computes the targets under `no_grad`.

- [PyTorch: DCGAN tutorial](https://docs.pytorch.org/tutorials/beginner/dcgan_faces_tutorial.html)
- [PyTorch: Reinforcement Learning (DQN) tutorial](https://docs.pytorch.org/tutorials/intermediate/reinforcement_q_learning.html)
- [PyTorch: Autograd mechanics](https://docs.pytorch.org/docs/stable/notes/autograd.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Fix, Related, Risk, Rule, Worth
from speedlint.shapes import worth
from speedlint.shapes.optimizer import discarded
from speedlint.shapes.optimizer.discarded import Discarded, Kind
from speedlint.shapes.sync import reads

_WEIGHTS = Estimate(Worth.MEDIUM, "a quarter of the time that the network takes in each step")
"""Four convolutions on one thread of a CPU: 191 ms with the gradients of their weights, 135 without."""

_OTHER = Estimate(Worth.MEDIUM, "a twelfth of the step where both networks take as long")
"""A DCGAN on one thread of a CPU: 76.2 ms a step with the gradients of the discriminator's weights, 69.9 without."""


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    match call:
        case syntax.Call(func=syntax.Attribute(attr=syntax.Name("backward"))):
            if not script.is_test:
                for found in discarded.discarded(script, call):
                    yield _finding(found, call, script)


def _finding(found: Discarded, backward: syntax.Call, script: Script) -> Finding:
    related = (Related(script.source, backward, "the backward pass"),)
    if found.kind is Kind.BEYOND:
        return _of_beyond(found, backward, script, related)
    shown = reads.shown(script, backward)
    network, forward = script.text(found.forward.func), reads.shown(script, found.forward)
    if found.kind is Kind.ALL:
        message = f"`{shown}` goes back through `{forward}`, though no optimizer updates `{network}`"
        advice = "compute it under `torch.no_grad()`; not written: the rest of its line may need gradients"
        return Finding(found.forward, message, advice=advice, related=related)
    if found.kind is Kind.OTHER:
        message = f"`{shown}` computes gradients for the weights of `{network}`, which are zeroed before its optimizer steps"
        advice = (
            f"put `{network}.requires_grad_(False)` before this call and `{network}.requires_grad_(True)` after the pass"
        )
        if (own := discarded.passes_between(script, found.forward, backward)) is not None:
            advice = f"take the pass of line {script.source.line(own)} and its step before this call, and {advice}"
        return Finding(found.forward, message, advice=advice, related=related, worth=_OTHER)
    message = f"`{shown}` computes gradients for the weights of `{network}`, which no optimizer updates"
    advice = f"write `{network}.requires_grad_(False)` where it is made: gradients still pass through it to its input"
    return Finding(found.forward, message, advice=advice, related=related, worth=_WEIGHTS)


def _of_beyond(found: Discarded, backward: syntax.Call, script: Script, related: tuple[Related, ...]) -> Finding:
    given, inner = script.text(found.given), script.text(found.beyond[0].func)
    shown = reads.shown(script, backward)
    message = f"`{shown}` goes back through `{given}` into `{inner}`, whose gradients from it are zeroed unused"
    if not discarded.is_only_way(script, backward, found):
        advice = f"detach `{given}` wherever this loss takes it; not written: the loss takes it in other ways too"
        return Finding(found.given, message, advice=advice, related=related)
    advice = f"give `{script.text(found.forward.func)}` the tensor without its graph: `{given}.detach()`"
    reason = discarded.why_not(script, found)
    if reason is not None:
        return Finding(found.given, message, advice=f"{advice}; not written: {reason}", related=related)
    is_simple = isinstance(found.given, syntax.Name | syntax.Attribute | syntax.Call | syntax.Subscript)
    edit = edits.replace(script.source, found.given, f"{given}.detach()" if is_simple else f"({given}).detach()")
    return Finding(found.given, message, Fix((edit,), Risk.EXACT), advice, related=related)


RULE = Rule(
    "SPD511",
    on=syntax.Call,
    check=check,
    triggers=(b"backward(",),
    worth=Estimate(
        Worth.HIGH, "a network's backward pass in each step: a tenth of the step or more where both take as long"
    ),
    cause=worth.one_step("SPD511"),
)
