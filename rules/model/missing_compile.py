"""The trained module is never compiled.

## What it does
Notes, at the line that puts a trained module on its device, that nothing in the program compiles it. A note, so its fix is
written only when the rule is selected.

## Why it is slow
Without compilation each operation is a kernel of its own that reads its inputs from memory and writes its output back.
`torch.compile` fuses chains of them, and saves the time Python takes to launch each.

## Example
```python
import torch

model = torch.nn.Linear(512, 512).to("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
```

## Use instead
```python
import torch

model = torch.nn.Linear(512, 512).to("cuda")
model.compile()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
```

## Fix safety
Numeric: fused operations round differently. `model.compile()` compiles in place (torch 2.1), so the names in the state
dict stay as they are; `torch.compile(model)` would put `_orig_mod.` in front of them. The first steps wait for the compiler
(a minute or more for large models), and again for every new shape: let `speedlint verify` say after how many steps it has
paid. Nothing is said of recurrent networks, whose kernels are cuDNN's already, of networks out of sight, where a second
derivative is taken, or where anything is compiled or scripted already, behind a switch too.

## Sources
PyTorch's documentation of `torch.compile`. The gain depends on the model and the GPU.

- [PyTorch: torch.compile](https://docs.pytorch.org/docs/stable/generated/torch.compile.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Fix, Level, Risk, Rule, Worth
from speedlint.shapes import evaluation, training
from speedlint.shapes.model import compilation
from speedlint.shapes.optimizer import optimizers

_SINCE = (2, 1)


def check(module: syntax.Module, script: Script) -> Iterator[Finding]:
    placed = training.model_placements(script)
    if not placed or not script.on_gpu or script.is_test or training.is_framework_driven(script):
        return
    if compilation.is_compiled(script) or not evaluation.trains(script):
        return
    for placement in placed:
        if compilation.may_gain(script, placement.module):
            yield _finding(placement, script)


def _finding(placement: training.Placement, script: Script) -> Finding:
    message = f"`{script.text(placement.module)}` is trained, but never compiled"
    advice = "call `model.compile()` (torch 2.1) once the model is on its device, and let `speedlint verify` time it"
    target, why = compilation.in_place(script, placement)
    if target is None:
        return Finding(placement.call, message, advice=f"{advice}; not written here, because {why}", level=Level.NOTE)
    try:
        line = edits.insert_after(script.source, placement.call, _lines(script, placement, target))
    except edits.CannotEdit as error:
        return Finding(placement.call, message, advice=f"{advice}; not written here, because {error}", level=Level.NOTE)
    return Finding(placement.call, message, Fix((line,), Risk.NUMERIC, _SINCE), advice, Level.NOTE)


def _lines(script: Script, placement: training.Placement, target: str) -> list[str]:
    """The call, behind the question for a GPU where there may be none: a CPU may lack the compiler it needs."""
    guard = optimizers.guard(script, placement.call, target)
    if guard is None:
        return [f"{target}.compile()"]
    return [f"if {guard}:", f"{script.source.default_indent}{target}.compile()"]


RULE = Rule(
    "SPD601",
    on=syntax.Module,
    check=check,
    triggers=(b".to(", b".cuda("),
    worth=Estimate(Worth.HIGH, "compiled kernels read and write memory less often"),
)
