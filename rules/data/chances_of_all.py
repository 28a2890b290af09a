"""A replay memory works out the chances of all that it holds for each batch that it draws.

## What it does
Finds methods that run in every training step and draw by `np.random.choice(..., p=probs)`, where `probs` are all priorities
that the object holds, raised to a power on the spot: prioritized replay as its shortest form writes it. Memories known to
hold fewer than 20,000 are left alone: a tree written in Python takes as long for them.

## Why it is slow
Each step goes over the whole memory several times, to raise, to sum, to divide and to add up, for a batch of some dozens: a
millisecond for 100,000 transitions, as long as a small network takes, and 18 for a million. A sum tree finds each of a
batch in some twenty comparisons, and is told a new priority in as many.

## Example
```python
import numpy as np
import torch


class Memory:
    def __init__(self, capacity):
        self.rows = torch.zeros(capacity, 8)
        self.priorities = np.zeros(capacity)

    def sample(self, size):
        probs = self.priorities**0.6
        probs /= probs.sum()
        index = np.random.choice(len(self.rows), size, p=probs)
        return self.rows[index].cuda(), index


def train(net, optimizer, memory, steps):
    for _ in range(steps):
        rows, index = memory.sample(64)
        loss = net(rows).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
```

## Use instead
```python
import torch
from torchrl.data import LazyTensorStorage, TensorDictPrioritizedReplayBuffer


def train(net, optimizer, capacity, steps):
    memory = TensorDictPrioritizedReplayBuffer(alpha=0.6, beta=0.4, storage=LazyTensorStorage(capacity), batch_size=64)
    for _ in range(steps):
        batch = memory.sample()
        error = net(batch["rows"].cuda()).squeeze(1)
        optimizer.zero_grad()
        error.mean().backward()
        optimizer.step()
        batch["td_error"] = error.detach().abs().cpu()
        memory.update_tensordict_priority(batch)
```

Or keep the priorities raised, and their sums in a tree of your own.

## Fix safety
Never fixed: a tree draws other samples, and takes the place of the memory's own methods.

## Sources
Prioritized Experience Replay (Schaul and others, 2016) describes the sum tree, in its appendix B.2.1. Run with numpy on one
thread of a shared CPU: 0.08 milliseconds for a draw of 64 from 10,000 priorities, 0.6 from 50,000, 1.1 from 100,000, 18
from a million.

- [Schaul and others: Prioritized Experience Replay](https://arxiv.org/abs/1511.05952)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Level, Related, Rule, Worth
from speedlint.shapes.data import replay
from speedlint.shapes.sync import hidden, reads
from speedlint.torch.words import Frequency

_WITH_UPDATES = (Frequency.STEP, Frequency.THROTTLED)
"""An update every few steps of an environment draws a batch as well."""
_ADVICE = "keep the priorities in a sum tree; not written, since that draws other samples"


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    if script.is_test or script.frequency(call) not in _WITH_UPDATES:
        return
    found = replay.weighed(script, call)
    if found is not None:
        message = f"`{script.text(found.priorities)}` is raised and summed up as a whole for each batch that is drawn"
        yield Finding(call, message, advice=_ADVICE, level=Level.WARNING)
        return
    may_hide = script.program.mentions(script, b"choice(") and _is_first(call, script)
    for each in hidden.behind(script, call, replay.within) if may_hide else ():
        if hidden.is_told_at_call(script, each):
            place = each.what
            text = place.script.text(place.priorities)
            message = (
                f"`{reads.shown(script, call.func)}(...)` raises and sums up all of `{text}` for each batch that it draws"
            )
            related = (Related(place.script.source, place.node, "draws with the chances of all"),)
            yield Finding(call, message, advice=_ADVICE, level=Level.WARNING, related=related)
            return


def _is_first(call: syntax.Call, script: Script) -> bool:
    """Whether no call above, of the same function, stands in the function of a call: another branch draws otherwise."""
    function = script.function(call)
    first = next(each for each in script.alike(call) if script.function(each) is function)
    return script.callee(call) is not None and first is call


RULE = Rule(
    "SPD218",
    on=syntax.Call,
    check=check,
    triggers=(b"choice", b"sampl"),
    often=True,
    worth=Estimate(Worth.MEDIUM, "a millisecond for each 100,000 transitions that the memory holds"),
)
