"""Autograd's anomaly detection is on: each operation keeps a stack trace, and each gradient is searched for NaN.

## What it does
Finds `torch.autograd.set_detect_anomaly(True)` in programs that train, and the context managers `set_detect_anomaly(True)`
and `detect_anomaly()` around training or in each step. Behind a condition, or set by an option, it is a note.

## Why it is slow
In the forward pass Python's stack is written down for each operation. In the backward pass each gradient is checked for NaN,
and to read the answer the host waits for the GPU, once for each operation of the model.

## Example
```python
import torch

torch.autograd.set_detect_anomaly(True)
```

## Use instead
```python
import torch

torch.autograd.set_detect_anomaly(False)
```

## Fix safety
Exact: the gradients are the same bit for bit. The call is taken out, and a context manager is switched off. A NaN in a
gradient then no longer ends the run; where the program goes on after an error of its training, by a `try`, a context manager
or a decorator, deals with errors elsewhere (`sys.excepthook`, `atexit`, a future, a thread), or asks whether it is on
(`torch.is_anomaly_enabled()`), it is only shown.

## Sources
PyTorch's documentation of anomaly detection: for debugging only, since it slows down the program. Measured with torch 2.13
on a CPU: 14.6 times as slow.

- [PyTorch: anomaly detection](https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.cures import spelling
from speedlint.facts import syntax
from speedlint.rule import Edit, Estimate, Finding, Fix, Level, Related, Risk, Rule, Worth
from speedlint.shapes import evaluation
from speedlint.shapes.backend import debugging, intent
from speedlint.shapes.backend.intent import Intent
from speedlint.shapes.frameworks import lightning
from speedlint.shapes.sync import reads, streams

_SET = "torch.autograd.set_detect_anomaly"
_ASKS = re.compile(rb"is_anomaly_(?:check_nan_)?enabled")
_ADVICE = "switch it on only while looking for a NaN"


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    if not script.is_call_to(call, *debugging.ANOMALY) or script.is_test or not evaluation.trains(script):
        return
    mode = script.argument(call, "mode", 0) if script.name(call.func) in debugging.SETTERS else None
    value = script.constant(mode) if mode is not None else None
    if not debugging.is_on(script, call) or debugging.is_undone(script, call):
        return
    around = debugging.context(script, call)
    asked = intent.of(script, call)
    if asked is Intent.NEVER or (around is not None and not debugging.slows_training(script, around)):
        return
    function = script.function(call)
    if (function is None or script.names.owner(function) is None) and lightning.runs_all_training(script):
        return
    message = f"`{reads.shown(script, call)}` slows each backward pass: stack traces, and a search for NaN that waits"
    if value is not None and mode is not value.node:
        related = (Related(value.script.source, value.node, "the default is set here"),)
        why = "not rewritten, since the option is there to choose"
        yield Finding(call, message, advice=f"{_ADVICE}; {why}", level=Level.NOTE, related=related)
    elif asked is Intent.CHOSEN:
        why = "not rewritten, since a condition asks for it"
        yield Finding(call, message, advice=f"{_ADVICE}; {why}", level=Level.NOTE)
    else:
        yield _finding(call, around, script, message)


def _finding(call: syntax.Call, around: syntax.With | None, script: Script, message: str) -> Finding:
    try:
        if debugging.is_caught(script):
            raise edits.CannotEdit("the program goes on after an error in training, which may be the one that this raises")
        if script.program.mentions(script, _ASKS):
            raise edits.CannotEdit("the program asks whether it is on")
        fix = Fix(_edits(call, around, script), Risk.EXACT)
    except edits.CannotEdit as reason:
        return Finding(call, message, advice=f"{_ADVICE}; not rewritten, since {reason}", level=Level.WARNING)
    return Finding(call, message, fix, _ADVICE, Level.WARNING)


def _edits(call: syntax.Call, around: syntax.With | None, script: Script) -> tuple[Edit, ...]:
    if around is not None:
        if script.name(call.func) in debugging.SETTERS:
            mode = script.argument(call, "mode", 0)
            if mode is None or not script.source.contains(call, mode):
                raise edits.CannotEdit("its arguments are out of sight")
            return (edits.replace(script.source, mode, "False"),)
        name, imports = spelling.spell(script, _SET)
        return (*imports, edits.replace(script.source, call, f"{name}(False)"))
    statement = script.source.parents[call]
    if not isinstance(statement, syntax.Expr):
        raise edits.CannotEdit("its result is used")
    return edits.delete_statement(script.source, streams.whole_branch(script, statement))


RULE = Rule(
    "SPD406",
    on=syntax.Call,
    check=check,
    triggers=(b"detect_anomaly",),
    worth=Estimate(Worth.HIGH, "each operation keeps a stack trace, and each gradient is searched for NaN"),
)
