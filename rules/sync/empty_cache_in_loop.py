"""`torch.cuda.empty_cache()` in every step hands memory back to the driver that the next step asks for again.

## What it does
Finds `torch.cuda.empty_cache()` and its like for other devices, and `gc.collect()`, in loops of training or evaluation steps
and in the functions they call. Between training and evaluation, once an epoch, every so many steps and after an
out-of-memory error they are fine, and where a script tries out which batch fits. In programs that never train it is a note.

## Why it is slow
PyTorch keeps the memory that tensors leave, for the next ones. Emptying the cache waits until the GPU has nothing left to
do, gives the memory to the driver, and the next step allocates it anew, which waits again. `gc.collect()` walks all of
Python's objects. Neither makes room for a larger batch: what is in the cache was free already.

## Example
```python
for images, labels in loader:
    loss = criterion(model(images.cuda()), labels.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    torch.cuda.empty_cache()
```

## Use instead
```python
for images, labels in loader:
    loss = criterion(model(images.cuda()), labels.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix safety
Exact: the same training bit for bit; where memory is nearly full, it may be more fragmented (`expandable_segments:True`
helps). It is shown where the loop reads the clock or how much memory is in use, and where the loop over the steps is in
another function, which may have other callers.

## Sources
PyTorch's documentation of `empty_cache`: it does not increase the memory available to PyTorch. Hugging Face's performance
documentation: about 10% slower when called often.

- [PyTorch: CUDA semantics](https://docs.pytorch.org/docs/stable/notes/cuda.html)
- [Hugging Face: training on one GPU](https://huggingface.co/docs/transformers/perf_train_gpu_one)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.edits import CannotEdit, delete_statement
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Fix, Level, Risk, Rule, Worth
from speedlint.shapes import evaluation, probes
from speedlint.shapes.sync import clocks, memory, reads, streams
from speedlint.torch.words import FREQUENT

_ADVICE = "drop it, or call it once an epoch"


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    if not script.is_call_to(call, *memory.EMPTY_CACHE, *memory.COLLECT):
        return
    often, statement = reads.often(script, call), script.source.parents[call]
    if often is None or reads.how_often(script, call) not in FREQUENT or not isinstance(statement, syntax.Expr):
        return
    if script.is_test or memory.has_other_reason(script, call) or probes.is_in_benchmark(script, call):
        return
    what = "walks all objects" if script.is_call_to(call, *memory.COLLECT) else "gives the cached memory back"
    message = f"`{reads.shown(script, call)}` {what} {often}"
    yield _finding(call, statement, script, message, None if evaluation.trains(script) else Level.NOTE)


def _finding(call: syntax.Call, statement: syntax.Expr, script: Script, message: str, level: Level | None) -> Finding:
    loop = script.loops.driving_loop(call)
    try:
        if loop is None:
            raise CannotEdit("the loop over the steps is in another function")
        if clocks.reads_clock(script, loop.body) or memory.is_measured(script, loop):
            raise CannotEdit("something in the loop measures time or memory")
        fix = Fix(delete_statement(script.source, streams.whole_branch(script, statement)), Risk.EXACT)
    except CannotEdit as reason:
        return Finding(call, message, advice=f"{_ADVICE}; not rewritten, since {reason}", level=level)
    return Finding(call, message, fix, _ADVICE, level)


RULE = Rule(
    "SPD307",
    on=syntax.Call,
    check=check,
    triggers=(b"empty_cache", b"gc.collect", b"import gc", b"from gc"),
    worth=Estimate(Worth.HIGH, "all freed memory is handed back to the driver and asked for again"),
    on_gpu=True,
)
