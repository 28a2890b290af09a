"""Lightning's `Trainer` and `Fabric` compute in float32 unless they are told a precision.

## What it does
Finds a `Trainer` that fits a module on a GPU and is given no `precision`. A `Fabric` whose loop runs backward passes is a
note, since `fabric run --precision` may give it one.

## Why it is slow
Tensor cores multiply half-precision matrices several times faster than float32 ones, and half the bytes have to be moved.
Lightning's default is full precision; told otherwise it does the autocast, the loss scaling and the unscaling before
clipping by itself.

## Example
```python
import lightning as L

trainer = L.Trainer(max_epochs=10, accelerator="gpu")
trainer.fit(module, loader)
```

## Use instead
```python
import lightning as L

trainer = L.Trainer(max_epochs=10, accelerator="gpu", precision="16-mixed")
trainer.fit(module, loader)
```

## Fix safety
Numeric: rounding changes. It is written where the code of the module is seen whole and holds nothing that float16 breaks,
such as `BCELoss`; else bfloat16, which has the range of float32, is shown. `pytorch_lightning` gets `precision=16`, which
its releases before and after 2.0 understand; with `amp = "bf16"` it is bfloat16.

## Sources
Lightning's documentation, "N-Bit Precision": up to 3 times faster on tensor cores; Hugging Face performance documentation.

- [Lightning: N-Bit Precision](https://lightning.ai/docs/pytorch/stable/common/precision_basic.html)
- [Hugging Face: training on one GPU](https://huggingface.co/docs/transformers/perf_train_gpu_one)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.cures import trainers
from speedlint.cures.halves import refuse_module_hazards
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Finding, Fix, Level, Risk, Rule
from speedlint.shapes import worth
from speedlint.shapes.frameworks import lightning
from speedlint.shapes.model.networks import is_small_linear, network
from speedlint.shapes.steps import is_reinforcement
from speedlint.torch import library

_DECIDES = ("precision", "plugins", "amp_backend")
_FABRIC = 'pass `precision="{}-mixed"`, or run it by `fabric run --precision={}-mixed`'


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    is_fabric = script.is_call_to(call, *library.FABRICS)
    if not is_fabric and not any(call is each for each in lightning.trainers(script)):
        return
    if script.hides_arguments(call) or script.is_test:
        return
    if any(script.argument(call, name) is not None for name in _DECIDES) or lightning.is_elsewhere(script, call):
        return
    if is_fabric:
        decided = lightning.is_fabric_decided(script, call) or is_reinforcement(script)
        if not decided and any(True for _ in script.calls_on(call, "backward")):
            yield _of_fabric(call, script)
        return
    fits = lightning.fits(script, call)
    if fits and not lightning.decides_precision(script, call) and not all(_is_small(*each) for each in fits):
        yield _finding(call, script, fits)


def _of_fabric(call: syntax.Call, script: Script) -> Finding:
    half = "bf16" if script.options.amp == "bf16" else "16"
    message = "the `Fabric` is given no `precision`: it computes in float32 unless it is run with one"
    advice = f"{_FABRIC.format(half, half)}; not written, since gradients may be clipped or read by hand"
    return Finding(call, message, advice=advice, level=Level.NOTE)


def _is_small(script: Script, fit: syntax.Call) -> bool:
    module = script.argument(fit, "model", 0)
    return module is not None and is_small_linear(script, module) and network(script, module).linears > 0


def _finding(call: syntax.Call, script: Script, fits: list[tuple[Script, syntax.Call]]) -> Finding:
    half = "bf16" if script.options.amp == "bf16" else "16"
    message = "the `Trainer` is given no `precision`, so that it trains in float32"
    try:
        for place, fit in fits:
            module = place.argument(fit, "model", 0)
            if module is None:
                raise CannotEdit("the module that it fits is not seen")
            refuse_module_hazards(place, module, half=half == "16")
            trainers.refuse_manual(place, module)
    except CannotEdit as reason:
        is_new = lightning.is_new(script, call)  # older ones may run on a torch without autocast for bfloat16
        advice = f"give it `precision={_spelled(call, script, 'bf16' if is_new else half)}`"
        if is_new and half == "16":
            advice += " on GPUs that have bfloat16 (Ampere and newer)"
        return Finding(call, message, advice=f"{advice}; not written because {reason}", level=Level.WARNING)
    value = _spelled(call, script, half)
    advice = f"give it `precision={value}`"
    fix = Fix((edits.add_argument(script.source, call, f"precision={value}"),), Risk.NUMERIC)
    return Finding(call, message, fix, advice, Level.WARNING)


def _spelled(call: syntax.Call, script: Script, half: str) -> str:
    """A precision as the trainer's release takes it."""
    if lightning.is_new(script, call):
        return f'"{half}-mixed"'
    return '"bf16"' if half == "bf16" else "16"


RULE = Rule(
    "SPD811",
    on=syntax.Call,
    check=check,
    triggers=(b"Trainer(", b"Fabric("),
    worth=worth.HALF_PRECISION,
)
