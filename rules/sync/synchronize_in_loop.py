"""`torch.cuda.synchronize()` stops the host in every step until the GPU has nothing left to do.

## What it does
Finds `torch.cuda.synchronize()` and its like for other devices in loops of training or evaluation steps and in the
functions they call. Where the host's clock is read it is there for the measurement: a note, but in a loop of training steps,
all of which it slows down; CUDA events are recorded in the queue itself, and need no wait in the step. Beside other streams,
or after a copy to the host that does not block, it may be needed, and is left alone.

## Why it is slow
The GPU works through a queue while Python runs ahead and fills it. After `synchronize` the queue is empty, and the GPU
idles while the next step is prepared. Nothing in training needs it: operations of one stream run in order, and reading a
value waits by itself.

## Example
```python
import torch


def train(model, loader, optimizer, criterion):
    for images, labels in loader:
        loss = criterion(model(images.cuda()), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.cuda.synchronize()
```

## Use instead
```python
import torch


def train(model, loader, optimizer, criterion):
    for images, labels in loader:
        loss = criterion(model(images.cuda()), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
```

## Fix safety
Exact: the same training bit for bit. It is only shown where the loop, or a meter it calls, reads the clock: what it prints
as the time of a step would become the time to queue its work. To time a step, record two `torch.cuda.Event`s and read them
later.

## Sources
PyTorch's performance tuning guide: avoid unnecessary CPU-GPU synchronisation; PyTorch's notes on CUDA semantics:
asynchronous execution.

- [PyTorch: Performance Tuning Guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
- [PyTorch: CUDA semantics](https://docs.pytorch.org/docs/stable/notes/cuda.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.edits import CannotEdit, delete_statement
from speedlint.facts import syntax
from speedlint.rule import Finding, Fix, Level, Risk, Rule
from speedlint.shapes import probes, worth
from speedlint.shapes.sync import clocks, reads, streams
from speedlint.shapes.sync.companions import awaited_anyway
from speedlint.torch.words import Frequency

_ADVICE = "drop it: operations on the GPU run in order, and what reads a value waits by itself"


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    if not script.is_call_to(call, *streams.SYNCHRONIZE) or streams.needs_to_wait(script):
        return
    often = reads.often(script, call)
    statement = script.source.parents[call]
    if often is None or not isinstance(statement, syntax.Expr):
        return
    timed = script.loops.driving_loop(call) or script.function(call)
    message = f"`{reads.shown(script, call)}` waits {often} until the GPU has nothing left to do"
    if timed is not None and clocks.reads_clock(script, timed.body):
        what = "function" if isinstance(timed, syntax.FunctionDef) else "loop"
        advice = "time every so many steps, or record two `torch.cuda.Event`s and read them later"
        trains = what == "loop" and reads.how_often(script, call) is Frequency.STEP
        is_alone = trains and not probes.is_in_benchmark(script, call) and awaited_anyway(script, call) is None
        level = None if is_alone else Level.NOTE
        yield Finding(call, message, advice=f"{advice}; not rewritten, since the {what} reads the clock", level=level)
    elif reads.how_often(script, call) is Frequency.THROTTLED:
        yield Finding(call, message, advice=_ADVICE, level=Level.NOTE)
    else:
        yield _finding(call, statement, script, message)


def _finding(call: syntax.Call, statement: syntax.Expr, script: Script, message: str) -> Finding:
    loop = script.loops.driving_loop(call)
    if loop is None or clocks.may_read_clock(script, loop):
        where = "the loop over the steps is in another function" if loop is None else "something in the loop reads the clock"
        return Finding(call, message, advice=f"{_ADVICE}; not rewritten, since {where}, and what it times may change")
    try:
        return Finding(
            call, message, Fix(delete_statement(script.source, streams.whole_branch(script, statement)), Risk.EXACT)
        )
    except CannotEdit as reason:
        return Finding(call, message, advice=f"{_ADVICE}; not rewritten, since {reason}")


RULE = Rule(
    "SPD306",
    on=syntax.Call,
    check=check,
    triggers=(b"synchronize",),
    worth=worth.WAIT,
    cause=worth.one_wait,
    on_gpu=True,
)
