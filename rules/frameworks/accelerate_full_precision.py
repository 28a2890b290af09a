"""Accelerate's `Accelerator` computes in float32 unless it is told a `mixed_precision`.

## What it does
Finds an `Accelerator` that runs a training loop's backward passes, is given no `mixed_precision`, and is in no file of the
project launched with one. A note, since `accelerate config` may have chosen one on your machine, but where a command of the
project's launches the script with all options in sight.

## Why it is slow
Tensor cores multiply half-precision matrices several times faster than float32 ones, and half the bytes have to be moved.
Told so, Accelerate does the autocast and the loss scaling by itself.

## Example
```python
from accelerate import Accelerator

accelerator = Accelerator()
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for images, labels in loader:
    accelerator.backward(criterion(model(images), labels))
    optimizer.step()
    optimizer.zero_grad()
```

## Use instead
```python
import torch
from accelerate import Accelerator

accelerator = Accelerator(mixed_precision="fp16" if torch.cuda.is_available() else "no")
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for images, labels in loader:
    accelerator.backward(criterion(model(images), labels))
    optimizer.step()
    optimizer.zero_grad()
```

## Fix safety
Numeric: rounding changes. The argument goes before what `accelerate launch` says. It is written where the code of the
module is seen whole and holds nothing that float16 breaks, every optimizer of the program is prepared, and no gradients are
clipped or read by hand; else it is shown. On Apple's GPU `fp16` raises an error below torch 2.5, and bfloat16 is used on a
CPU too, so the argument asks for CUDA; with `amp = "bf16"` it is bfloat16.

## Sources
Hugging Face, "GPU" training guide: mixed precision; up to 3 times faster on tensor cores (NVIDIA). Read in the sources of
accelerate 0.20 and 1.15: `mixed_precision=None` takes what the launcher's configuration says, which is `"no"` without one;
`fp16` is left out on a CPU.

- [Hugging Face: training on one GPU](https://huggingface.co/docs/transformers/perf_train_gpu_one)
- [Accelerate: Accelerator](https://huggingface.co/docs/accelerate/package_reference/accelerator)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.cures import spelling, trainers
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Edit, Finding, Fix, Level, Risk, Rule
from speedlint.shapes import worth
from speedlint.shapes.frameworks import accelerated, launch
from speedlint.shapes.model.networks import is_small_linear, network
from speedlint.torch import library

_DECIDES = ("cpu", "deepspeed_plugin", "deepspeed_plugins", "fsdp_plugin", "fp16", "megatron_lm_plugin")


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    if not script.is_call_to(call, *library.ACCELERATORS) or script.hides_arguments(call) or script.is_test:
        return
    decides = [accelerated.asked_for(script, call), *(script.argument(call, name) for name in _DECIDES)]
    if any(_is_set(script, each) for each in decides) or launch.chooses_precision(script):
        return
    if any(True for _ in script.calls_on(call, "backward")):
        yield _finding(call, script)


def _is_set(script: Script, given: syntax.BaseExpression | None) -> bool:
    known = script.constant(given) if given is not None else None
    return given is not None and (known is None or known.value not in (None, False))


def _finding(call: syntax.Call, script: Script) -> Finding:
    half = script.options.amp
    prepared = list(accelerated.placements(script))
    is_small = bool(prepared) and all(_is_small(script, each.module) for each in prepared)
    level = Level.WARNING if launch.is_launched_plainly(script) and not is_small else Level.NOTE
    message = "the `Accelerator` is given no `mixed_precision`: it computes in float32 unless it is launched with one"
    advice = f'pass `mixed_precision="{half}"`, or launch with `--mixed_precision {half}`'
    try:
        trainers.refuse_scaling(script, call, half=half == "fp16")
        fix = Fix(_edits(call, script, half), Risk.NUMERIC)
    except CannotEdit as reason:
        return Finding(call, message, advice=f"{advice}; not written because {reason}", level=level)
    return Finding(call, message, fix, advice, level)


def _is_small(script: Script, module: syntax.BaseExpression) -> bool:
    return is_small_linear(script, module) and network(script, module).linears > 0


def _edits(call: syntax.Call, script: Script, half: str) -> tuple[Edit, ...]:
    spelled, imports = spelling.spell(script, "torch.cuda.is_available")
    value = f'"{half}" if {spelled}() else "no"'
    return (*imports, edits.set_argument(script.source, call, "mixed_precision", value))


RULE = Rule(
    "SPD821",
    on=syntax.Call,
    check=check,
    triggers=(b"Accelerator(",),
    worth=worth.HALF_PRECISION,
)
