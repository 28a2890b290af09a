"""The precision of float32 products is set through two APIs that do not know each other's mind.

## What it does
Finds `fp32_precision` (torch 2.9) set for what `allow_tf32` or `torch.set_float32_matmul_precision` sets as well in the same
program: a note where both say the same, a warning where one allows TF32 and the other forbids it. Also finds the old
setting read after only the new one was set. Code that asks for the release is left alone.

## Why it is slow
The one that runs last holds: where it forbids TF32, matrix products are several times slower than the other line promises.
And torch refuses to answer `torch.get_float32_matmul_precision()` or `allow_tf32` where `fp32_precision` says what the old
setting does not know: it raises a RuntimeError.

## Example
```python
import torch

torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cuda.matmul.fp32_precision = "tf32"
```

## Use instead
```python
import torch

torch.backends.cuda.matmul.allow_tf32 = True
```

## Fix safety
Exact: where both stand in the same block and say the same, the newer line is dropped. What is left sets both, is understood
by every release, and lets the old setting be read. Settings that contradict each other are shown, as are the wider ones,
`torch.backends.fp32_precision` and `torch.backends.cudnn.fp32_precision`, which reach further.

## Sources
PyTorch documentation, "CUDA semantics": TensorFloat-32 on Ampere, which asks not to mix the two. What is set and what raises
was run with torch 2.13 on a CPU.

- [PyTorch: CUDA semantics](https://docs.pytorch.org/docs/stable/notes/cuda.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.edits import CannotEdit, delete_statement
from speedlint.facts import syntax
from speedlint.rule import Edit, Estimate, Finding, Fix, Level, Related, Risk, Rule, Worth
from speedlint.shapes.precision.tf32 import Setting, is_beside, may_exclude, new_setting, old_reads, old_settings
from speedlint.shapes.sync import reads

_ADVICE = "use one of the two: the older runs on every release, the newer needs 2.9"


def check(assign: syntax.Assign, script: Script) -> Iterator[Finding]:
    new = new_setting(script, assign)
    if new is None or not script.on_gpu:
        return
    olds = [old for old in old_settings(script) if old.covers & new.covers]
    meant = [old for old in olds if not may_exclude(new, old)]
    if meant:
        yield _finding(new, next((old for old in meant if _contradicts(new, old)), meant[0]))
    elif not olds and new.tf32 and "matmul" in new.covers and not may_exclude(new, new):
        for read in old_reads(script, new):
            message = f"`{reads.shown(script, read)}` raises a RuntimeError: only `fp32_precision` allows TF32"
            advice = 'read `torch.backends.cuda.matmul.fp32_precision` instead; not written, since it says "tf32", not True'
            yield Finding(read, message, advice=advice, level=Level.WARNING)


def _contradicts(new: Setting, old: Setting) -> bool:
    return new.tf32 is not None and old.tf32 is not None and new.tf32 is not old.tf32


def _finding(new: Setting, old: Setting) -> Finding:
    script = new.script
    texts = (reads.shown(script, new.node), reads.shown(old.script, old.node))
    related = (Related(old.script.source, old.node, "the same precision is set here"),)
    if _contradicts(new, old):
        message = f"`{texts[0]}` contradicts `{texts[1]}`: the one that runs last decides whether TF32 is used"
        advice = f"{_ADVICE}; not written, since they differ"
        return Finding(new.node, message, advice=advice, level=Level.WARNING, related=related)
    message = f"`{texts[0]}` sets what `{texts[1]}` sets: torch asks not to mix the two APIs"
    try:
        fix = Fix(_without(new, old), Risk.EXACT)
        return Finding(new.node, message, fix, _ADVICE, Level.NOTE, related)
    except CannotEdit as reason:
        advice = f"{_ADVICE}; not written, since {reason}"
        return Finding(new.node, message, advice=advice, level=Level.NOTE, related=related)


def _without(new: Setting, old: Setting) -> tuple[Edit, ...]:
    if new.tf32 is None or old.tf32 is None:
        raise CannotEdit("what they say is not known")
    if new.covers != old.covers:
        raise CannotEdit("one reaches further than the other")
    if not is_beside(new, old):
        raise CannotEdit("one may run without the other")
    return delete_statement(new.script.source, new.node)


RULE = Rule(
    "SPD106",
    on=syntax.Assign,
    check=check,
    triggers=(b"fp32_precision",),
    worth=Estimate(Worth.UNKNOWN, "it ends in an error, or in the precision of the other spelling"),
)
