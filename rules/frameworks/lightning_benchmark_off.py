"""Lightning's `Trainer` leaves `cudnn.benchmark` off, so cuDNN guesses the algorithm for each convolution.

## What it does
Finds a `Trainer` that fits a convolutional module on a GPU, with inputs of one shape, and is not told `benchmark=True`, in
programs that do not turn `torch.backends.cudnn.benchmark` on themselves.

## Why it is slow
cuDNN has several algorithms for each convolution. By default it chooses by a rule of thumb; in benchmark mode it times them
once for each shape and keeps the fastest. With shapes that stay the same that costs the first steps only.

## Example
```python
import lightning as L

trainer = L.Trainer(max_epochs=10, accelerator="gpu", precision="16-mixed")
trainer.fit(convolutional_module, loader)
```

## Use instead
```python
import lightning as L

trainer = L.Trainer(max_epochs=10, accelerator="gpu", precision="16-mixed", benchmark=True)
trainer.fit(convolutional_module, loader)
```

## Fix safety
Numeric: another algorithm adds up in another order. Nothing is reported where `benchmark` or `deterministic` is given,
where the program asks for determinism, or where the shapes vary: a collate function of its own, several scales, boxes,
padded sequences. A network of one or two convolutions is a note.

## Sources
PyTorch's Performance Tuning Guide; Lightning's documentation, "benchmark": it often increases speed where input sizes stay
the same. Read in the sources of pytorch_lightning 1.9 and lightning 2.6: without it the session's value is kept, False if
nobody has set one.

- [PyTorch: Performance Tuning Guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
- [Lightning: Trainer](https://lightning.ai/docs/pytorch/stable/common/trainer.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Fix, Level, Risk, Rule, Worth
from speedlint.shapes import negligible, worth
from speedlint.shapes.backend import cudnn
from speedlint.shapes.frameworks import lightning
from speedlint.shapes.model import networks

_DECIDES = ("benchmark", "deterministic")


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    if not any(call is each for each in lightning.trainers(script)) or script.hides_arguments(call):
        return
    if any(script.argument(call, name) is not None for name in _DECIDES) or lightning.is_elsewhere(script, call):
        return
    modules = [(place, place.argument(fit, "model", 0)) for place, fit in lightning.fits(script, call)]
    known = [(place, module) for place, module in modules if module is not None and networks.is_convolutional(place, module)]
    if known and len(known) == len(modules) and _matters(script):
        trifles = [negligible.why_convolutions(*each) for each in known]
        is_trifle = all(cudnn.is_shallow(*each) or why is not None for each, why in zip(known, trifles, strict=True))
        level = Level.NOTE if is_trifle else Level.WARNING
        estimate = Estimate(Worth.LOW, trifles[0]) if is_trifle and trifles[0] is not None else worth.CONVOLUTIONS
        message = (
            "the module is convolutional and its inputs take few shapes, but the `Trainer` is not told `benchmark=True`"
        )
        fix = Fix((edits.add_argument(script.source, call, "benchmark=True"),), Risk.NUMERIC)
        yield Finding(call, message, fix, "pass `benchmark=True`", level, worth=estimate)


def _matters(script: Script) -> bool:
    if script.is_test or cudnn.is_on_in_program(script, "benchmark") or cudnn.is_settled(script):
        return False
    return cudnn.is_planar(script) and cudnn.shapes_are_fixed(script)


RULE = Rule(
    "SPD813",
    on=syntax.Call,
    check=check,
    triggers=(b"Trainer(",),
    worth=worth.CONVOLUTIONS,
)
