"""Matrix products run in full float32 although the GPU multiplies several times faster in TF32.

## What it does
Finds where a program puts a model of attention or wide Linear layers on a GPU to train it, and enables TF32 in none of its
files. The call is written into the script that starts the program.

## Why it is slow
Ampere and newer GPUs multiply float32 matrices on tensor cores when they may round the factors to TF32: up to 3
times faster.
torch allows that to convolutions and recurrent layers of cuDNN by default, not to matrix products. Models that only convolve
gain nothing and are left alone, like recurrent ones with narrow Linear layers; those that attend only where a name chooses
one of several parts are a note. Where autocast or apex covers the step only
what it leaves in float32 gains, which is a note. So is a model that Accelerate or Fabric prepares without being told a
precision: what launches it may say one.

## Example
```python
model = Transformer().to("cuda")
train(model)
```

## Use instead
```python
torch.set_float32_matmul_precision("high")
model = Transformer().to("cuda")
train(model)
```

## Fix safety
numeric: factors are rounded to 10 bits of mantissa, sums stay float32. Older GPUs and the CPU compute what they did.

## Sources
Hugging Face performance documentation (up to 3 times); PyTorch documentation of TF32 on Ampere.

- [Hugging Face: training on one GPU](https://huggingface.co/docs/transformers/perf_train_gpu_one)
- [PyTorch: CUDA semantics](https://docs.pytorch.org/docs/stable/notes/cuda.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.cures.beginnings import first_edit
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Fix, Level, Risk, Rule, Worth
from speedlint.shapes import eras
from speedlint.shapes.entry import starts
from speedlint.shapes.frameworks import accelerated
from speedlint.shapes.model import launches
from speedlint.shapes.model.networks import attends_by_choice, is_matmul_heavy
from speedlint.shapes.precision.autocast import names_autocast, sets_matmul_precision
from speedlint.shapes.precision.doubles import computes_in_double
from speedlint.shapes.training import Placement, model_placements

_SINCE = (1, 12)
"""Before it, matrix products used TF32 by default."""
_LINE = 'torch.set_float32_matmul_precision("high")'


def check(module: syntax.Module, script: Script) -> Iterator[Finding]:
    """Reports the first placement of a module whose work is matrix products."""
    if not script.on_gpu or sets_matmul_precision(script) or not eras.may_be_on(script, _SINCE):
        return
    if computes_in_double(script):
        return
    heavy = _first_heavy(script)
    entries = starts(script) if heavy is not None else []
    if heavy is None or not entries or any(_first_heavy(entry) for entry in entries if entry is not script):
        return
    moved = " ".join(script.text(heavy.call).split())
    level = Level.NOTE
    if heavy in accelerated.placements(script):
        message = f"TF32 is not enabled for what runs in float32 of the module that `{moved}` prepares"
    elif any(names_autocast(place) for place in script.everywhere(b"autocast", b"NativeScaler", b"use_amp")):
        message = f"TF32 is not enabled for what autocast leaves in float32 of `{moved}`"
    elif any(True for _ in script.calls_everywhere("apex.amp.initialize")):
        message = f"TF32 is not enabled for what apex leaves in float32 of `{moved}`"
    elif attends_by_choice(script, heavy.module):
        message = f"TF32 is not enabled for the variants of what `{moved}` trains that attend; convolutions have it already"
    else:
        message = f"`{moved}` trains a model whose matrix products run in full float32: TF32 is not enabled in the program"
        level = Level.WARNING
    estimate = None
    if (nothing := launches.why_of_module(script, heavy.module)) is not None:
        level, estimate = Level.NOTE, Estimate(Worth.LOW, nothing)
    try:
        fix = Fix(first_edit(script, "torch.set_float32_matmul_precision", '("high")', heavy.call), Risk.NUMERIC, _SINCE)
    except CannotEdit as why:
        yield Finding(
            heavy.call, message, advice=f"call `{_LINE}` first; not written because {why}", level=level, worth=estimate
        )
        return
    yield Finding(heavy.call, message, fix=fix, advice=f"call `{_LINE}` first", level=level, worth=estimate)


def _first_heavy(script: Script) -> Placement | None:
    placed = (*model_placements(script), *accelerated.placements(script))
    multiplying = [found for found in placed if _multiplies(script, found.module)]
    surely = (found for found in multiplying if not attends_by_choice(script, found.module))
    heavy = next(surely, next(iter(multiplying), None))
    return None if heavy is None or accelerated.is_told_precision(script) else heavy


def _multiplies(script: Script, module: syntax.BaseExpression) -> bool:
    if launches.has_narrow_products(script, module):
        return False
    return is_matmul_heavy(script, module) and not launches.goes_over_graphs(script, module)


RULE = Rule(
    "SPD105",
    on=syntax.Module,
    check=check,
    triggers=(b".to(", b".cuda(", b".setup", b".prepare"),
    worth=Estimate(Worth.MEDIUM, "the network's matrix products take up to twice the time"),
    on_gpu=True,
    since=_SINCE,
)
