"""`CUDA_LAUNCH_BLOCKING=1` makes the host wait for every kernel on the GPU.

## What it does
Finds where a program that trains on a GPU sets `CUDA_LAUNCH_BLOCKING` to 1 for itself, through `os.environ` or `os.putenv`.
Behind a condition or in a function that speaks of debugging it is a note.

## Why it is slow
Python queues kernels and runs ahead while the GPU works through them. With this variable each launch waits until its kernel
has ended, so that an error is reported where it happens. The GPU then idles between any two kernels, and nothing overlaps:
neither the copies of batches nor the communication between GPUs.

## Example
```python
import os

os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
```

## Use instead
```python
# In the shell, while looking for a fault: CUDA_LAUNCH_BLOCKING=1 python train.py
```

## Fix safety
Exact: the line is taken out, and the same kernels run in the same order. Only where an error in a kernel is reported
changes. It is shown where the program names the variable elsewhere, as to read it, and where it is one entry of a dict.

## Sources
PyTorch's notes on CUDA semantics: asynchronous execution, and `CUDA_LAUNCH_BLOCKING` for debugging.

- [PyTorch: CUDA semantics](https://docs.pytorch.org/docs/stable/notes/cuda.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.cures import unsetting
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Fix, Level, Risk, Rule, Worth
from speedlint.shapes import evaluation
from speedlint.shapes.backend import environment
from speedlint.shapes.backend.intent import Intent
from speedlint.shapes.sync import reads

_NAME = "CUDA_LAUNCH_BLOCKING"
_ADVICE = "set it in the shell while looking for a fault, not in the script"


def check(module: syntax.Module, script: Script) -> Iterator[Finding]:
    on = [one for one in environment.settings(script, _NAME) if one.value == "1" and not environment.is_undone(one)]
    if not on or script.is_test or not evaluation.trains(script) or not script.on_gpu:
        return
    for setting in on:
        asked = environment.intent_of(setting)
        if asked is not Intent.NEVER:
            yield _finding(setting, script, Level.WARNING if asked is Intent.ALWAYS else Level.NOTE)


def _finding(setting: environment.Setting, script: Script, level: Level) -> Finding:
    message = f"`{reads.shown(script, setting.node)}` makes the host wait for every kernel on the GPU"
    if level is Level.NOTE:
        advice = f"{_ADVICE}; not rewritten, since a condition or an option asks for it"
        return Finding(setting.node, message, advice=advice, level=level)
    try:
        return Finding(setting.node, message, Fix(unsetting.dropped(setting), Risk.EXACT), _ADVICE, level)
    except CannotEdit as reason:
        return Finding(setting.node, message, advice=f"{_ADVICE}; not rewritten, since {reason}", level=level)


RULE = Rule(
    "SPD405",
    on=syntax.Module,
    check=check,
    triggers=(b"CUDA_LAUNCH_BLOCKING",),
    worth=Estimate(Worth.HIGH, "the host waits for each kernel"),
)
