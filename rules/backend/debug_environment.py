"""A variable that is there to find faults is set in every run.

## What it does
Finds where a program that trains sets one of these for itself: `TORCH_DISTRIBUTED_DEBUG=DETAIL` (`INFO` is a note),
`PYTORCH_NO_CUDA_MEMORY_CACHING=1`; and, as notes, `NCCL_DEBUG=INFO` or `TRACE`, `TORCH_SHOW_CPP_STACKTRACES=1`, and
`TORCH_CUDNN_V8_API_ENABLED`, which does nothing since torch 2.0. Behind a condition all are notes.

## Why it is slow
The variable is for finding faults, and what it asks for is done while training.

- `TORCH_DISTRIBUTED_DEBUG`: With `DETAIL` all ranks compare notes before each collective operation; with `INFO` figures are
  collected and logged.
- `PYTORCH_NO_CUDA_MEMORY_CACHING`: Without the caching allocator each tensor is allocated by the driver, and freeing it
  waits for the GPU.
- `NCCL_DEBUG`: NCCL writes what it does to the output of every rank.
- `TORCH_SHOW_CPP_STACKTRACES`: A C++ stack trace is put together for each error that torch raises, also for those that are
  caught.
- `TORCH_CUDNN_V8_API_ENABLED`: It costs nothing and does nothing: since torch 2.0 that is the default.

## Example
```python
import os

os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"
```

## Use instead
```python
# In the shell, while looking for a fault: TORCH_DISTRIBUTED_DEBUG=DETAIL torchrun train.py
```

## Fix safety
Exact: the line is taken out, and the same training runs. What is lost is what was logged, and the checks. It is shown where
the program names the variable elsewhere, and where it is one entry of a dict.

## Sources
PyTorch's documentation of torch.distributed: `DETAIL` may impact the application's performance and is for debugging only;
its list of CUDA environment variables: disabled caching can be useful for debugging.

- [PyTorch: torch.distributed](https://docs.pytorch.org/docs/stable/distributed.html)
- [PyTorch: CUDA environment variables](https://docs.pytorch.org/docs/stable/cuda_environment_variables.html)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from speedlint.ask.script import Script
from speedlint.cures import unsetting
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Fix, Level, Risk, Rule, Worth
from speedlint.shapes import eras, evaluation
from speedlint.shapes.backend import environment
from speedlint.shapes.backend.intent import Intent
from speedlint.shapes.sync import reads


class _Switch(NamedTuple):
    values: tuple[str, ...]
    effect: str
    level: Level = Level.NOTE


_DETAIL = _Switch(("DETAIL",), "makes all ranks compare notes before each collective operation", Level.WARNING)
_SWITCHES = {
    "TORCH_DISTRIBUTED_DEBUG": (_DETAIL, _Switch(("INFO",), "collects and logs figures while training")),
    "PYTORCH_NO_CUDA_MEMORY_CACHING": (
        _Switch(("1",), "has the driver allocate each tensor, and wait for the GPU to free it", Level.WARNING),
    ),
    "NCCL_DEBUG": (_Switch(("INFO", "TRACE"), "has NCCL write what it does to the output of every rank"),),
    "TORCH_SHOW_CPP_STACKTRACES": (
        _Switch(("1",), "puts together a C++ stack trace for each error, also for those that are caught"),
    ),
    "TORCH_CUDNN_V8_API_ENABLED": (_Switch(("1",), "does nothing since torch 2.0, where that is the default"),),
}
_ON_GPU = ("PYTORCH_NO_CUDA_MEMORY_CACHING", "TORCH_CUDNN_V8_API_ENABLED")
_ADVICE = "set it in the shell while looking for a fault, not in the script"


def check(module: syntax.Module, script: Script) -> Iterator[Finding]:
    found = [one for one in environment.settings(script, *_SWITCHES) if not environment.is_undone(one)]
    if not found or script.is_test or not evaluation.trains(script):
        return
    for setting in found:
        value = (setting.value or "").upper()
        switch = next((each for each in _SWITCHES[setting.name] if value in each.values), None)
        if switch is not None and _matters(setting, script):
            yield from _finding(setting, switch, script)


def _matters(setting: environment.Setting, script: Script) -> bool:
    if setting.name == "TORCH_CUDNN_V8_API_ENABLED" and not (script.options.torch and eras.is_for(script, (2, 0))):
        return False
    return setting.name not in _ON_GPU or script.on_gpu


def _finding(setting: environment.Setting, switch: _Switch, script: Script) -> Iterator[Finding]:
    asked = environment.intent_of(setting)
    message = f"`{reads.shown(script, setting.node)}` {switch.effect}"
    advice = "drop it" if setting.name == "TORCH_CUDNN_V8_API_ENABLED" else _ADVICE
    if asked is Intent.CHOSEN:
        why = "not rewritten, since a condition or an option asks for it"
        yield Finding(setting.node, message, advice=f"{advice}; {why}", level=Level.NOTE, case=setting.name)
    elif asked is Intent.ALWAYS:
        try:
            fix = Fix(unsetting.dropped(setting), Risk.EXACT)
            yield Finding(setting.node, message, fix, advice, switch.level, case=setting.name)
        except CannotEdit as reason:
            advice = f"{advice}; not rewritten, since {reason}"
            yield Finding(setting.node, message, advice=advice, level=switch.level, case=setting.name)


RULE = Rule(
    "SPD408",
    on=syntax.Module,
    check=check,
    triggers=(
        b"TORCH_DISTRIBUTED_DEBUG",
        b"PYTORCH_NO_CUDA_MEMORY_CACHING",
        b"NCCL_DEBUG",
        b"TORCH_SHOW_CPP_STACKTRACES",
        b"TORCH_CUDNN_V8_API_ENABLED",
    ),
    worth=Estimate(Worth.HIGH, "it makes each operation slower"),
)
