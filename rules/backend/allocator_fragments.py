"""The lengths of sequences vary, and the allocator's segments cannot grow: memory falls to pieces.

## What it does
Finds where a program that trains on a GPU sets `PYTORCH_CUDA_ALLOC_CONF` (or `PYTORCH_ALLOC_CONF`) without
`expandable_segments:True`, and as a note where batches are padded to lengths that vary and the program never sets it. Off
unless it is selected: only how memory looks in a run tells whether it helps.

## Why it is slow
Each length asks for tensors of another size. Blocks that were cut for one size seldom fit the next, so the allocator asks
the driver for more, and when there is none left it waits for the GPU, gives all that is cached back, and begins again.
Expandable segments grow where they are, and need not be cut.

## Example
```python
import os

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:128"
```

## Use instead
```python
import os

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
```

## Fix safety
Never rewritten: it changes where tensors lie, not what they hold, but it needs torch 2.1, must be set before CUDA starts,
and the shell may set it already.

## Sources
PyTorch's notes on CUDA memory management: expandable segments are for jobs that change allocation sizes often.

- [PyTorch: CUDA semantics](https://docs.pytorch.org/docs/stable/notes/cuda.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Level, Rule, Worth
from speedlint.shapes import eras, evaluation
from speedlint.shapes.backend import environment, intent
from speedlint.shapes.backend.intent import Intent
from speedlint.shapes.sync import reads

_NAMES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
_PADS = ("torch.nn.utils.rnn.pad_sequence",)
_SINCE = (2, 1)
_WHY = "not rewritten, since only a run shows whether it helps; it needs torch 2.1, and to be set before CUDA starts"


def check(module: syntax.Module, script: Script) -> Iterator[Finding]:
    if script.is_test or not evaluation.trains(script) or not script.on_gpu or not eras.may_be_on(script, _SINCE):
        return
    for setting in environment.settings(script, *_NAMES):
        value = setting.value
        known = value is not None and not any(word in value for word in ("expandable_segments", "cudaMallocAsync"))
        if known and not environment.is_undone(setting) and intent.of(script, setting.node) is not Intent.NEVER:
            message = f"`{reads.shown(script, setting.node)}` leaves the allocator's segments as they are cut"
            advice = f"try `expandable_segments:True` in place of it; {_WHY}"
            yield Finding(setting.node, message, advice=advice, level=Level.WARNING)
    if not any(script.program.mentions(script, name.encode()) for name in _NAMES):
        yield from _unset(script)


def _unset(script: Script) -> Iterator[Finding]:
    for call in script.calls(*_PADS):
        message = f"`{reads.shown(script, call.func)}(...)` pads to lengths that vary, which leaves gaps in the GPU's memory"
        advice = f"where memory is short, try `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`; {_WHY}"
        yield Finding(call, message, advice=advice, level=Level.NOTE)
        return


RULE = Rule(
    "SPD410",
    on=syntax.Module,
    check=check,
    triggers=(b"ALLOC_CONF", b"pad_sequence"),
    worth=Estimate(Worth.LOW, "it costs time only where memory is nearly full"),
    off=True,
    since=_SINCE,
)
