"""The forward pass and the loss run in float32 on a GPU that is several times faster in half precision.

## What it does
Finds training steps on a GPU that no autocast reaches: not in the step, its callers, what it calls, nor the model.

## Why it is slow
Tensor cores multiply matrices in float16 or bfloat16 several times as fast as in float32, and half as many bytes are moved.
The gain is 1.3 to 3 times where convolutions, attention, recurrent or wide Linear layers do the work. Models of narrow
Linear layers gain nothing and are left alone; so are probes, which try batch sizes on random data with a model of their own.

## Example
```python
for images, labels in loader:
    logits = model(images.cuda())
    loss = criterion(logits, labels.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Use instead
```python
scaler = torch.amp.GradScaler("cuda")
for images, labels in loader:
    with torch.autocast(device_type="cuda", dtype=torch.float16):
        logits = model(images.cuda())
        loss = criterion(logits, labels.cuda())
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
```
With `amp = "bf16"` there is no scaler.

## Fix safety
numeric: results differ by rounding. Where the device is chosen at run time both parts get `enabled=`, so that a run on the
CPU computes what it did. The scaler is made once, beside the optimizer, unscales before clipping, and is saved and loaded
with the optimizer's state. Shown, not written: several losses or optimizers in a step, closures, gradients used by hand,
double precision, `BCELoss`, fill values, factors and sums beyond float16, amounts of any size, also as inputs that nothing
scales, `log(1 - p)`, outputs that a float32 layer or buffer takes in afterwards, comparisons of dtypes that raise,
`numpy.linalg`, turns that are left before the optimizer's step, models or losses out of sight, optimizers made elsewhere or
made anew in a loop of a caller.
Where a matrix is multiplied by its own transpose, which float16 may not hold the sums of, bfloat16 is advised. Reinforcement
learning, where the environment takes the time, is a note; so are steps that wait for loaders that parse text or analyse
recordings item by item, and networks whose kernels take less time than their launch: recurrent cells, narrow recurrent
layers, mixtures of small operations, narrow attention, narrow convolutions of small inputs, torchvision's networks for large
images on small batches of small ones, networks that shrink the images of a batch of a few, and what options choose by
default where that is images of digits or narrow Linear layers; and networks that are made, or handed to a function, out of
sight, where neither the packages that are imported nor the data nor the networks that the program defines say that they are
large. Models of narrow Linear and recurrent layers are left alone, and those that a sharding wrapper already computes in
half precision, or that are loaded in it.

## Sources
PyTorch Performance Tuning Guide and PyTorch AMP recipe (1.5 to 3 times); Hugging Face performance documentation (1.3 to 3).

- [PyTorch: Performance Tuning Guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
- [PyTorch: Automatic Mixed Precision recipe](https://docs.pytorch.org/tutorials/recipes/recipes/amp_recipe.html)
- [Hugging Face: training on one GPU](https://huggingface.co/docs/transformers/perf_train_gpu_one)
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.cures import spelling
from speedlint.cures.halves import autocast_edits, cuda_condition_of_step, refuse_hazards
from speedlint.cures.scaling import scaling, spelled_constructor
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Edit, Estimate, Finding, Fix, Level, Risk, Rule, Worth
from speedlint.shapes import durations, eras, worth
from speedlint.shapes.model import launches
from speedlint.shapes.precision import hazards
from speedlint.shapes.precision.autocast import is_loaded_in_half, is_sharded_in_half, uses_autocast
from speedlint.shapes.precision.doubles import computes_in_double
from speedlint.shapes.probes import is_probe
from speedlint.shapes.steps import Step, is_reinforcement, training_steps, updates
from speedlint.shapes.training import is_framework_driven
from speedlint.torch.words import Place

_SINCE = (1, 6)
_SPELLED_SINCE = (1, 10)


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    """Reports the first forward call of each step without autocast."""
    step = _first_of_its_turn(call, script)
    if step is None or step.scaler is not None or not script.on_gpu or is_framework_driven(script):
        return
    if not eras.can_run_on(script, _SINCE) or is_sharded_in_half(script) or computes_in_double(script):
        return
    if (
        uses_autocast(step)
        or is_loaded_in_half(step)
        or not updates(step)
        or is_probe(step)
        or script.value(step.forward).place is Place.HOST
    ):
        return
    small = launches.bound_by(step)
    if small is not None and small.is_toy:
        return
    kind = "bfloat16" if script.options.amp == "bf16" else "float16"
    forward = " ".join(script.text(step.shown).split())
    refused = hazards.refused_loss(step)
    message = _message(forward, kind, with_loss=not refused)
    is_old = (script.options.torch or _SPELLED_SINCE) < _SPELLED_SINCE
    context = "torch.cuda.amp.autocast()" if is_old else f'torch.autocast(device_type="cuda", dtype=torch.{kind})'
    advice = f"put it and the loss under `with {context}:`"
    if refused:
        advice = (
            f"put it under `with {context}:`, leave `{refused}` outside, which raises there, and hand it `.float()` outputs"
        )
    elif unseen := hazards.refused_out_of_sight(step):
        advice = f"{advice}, leave {unseen}, which raises there, and hand it `.float()` outputs"
    if kind == "float16":
        advice += (
            f", and add `scaler = {spelled_constructor(script)}` beside the optimizer, `scaler.scale(loss).backward()`, "
            "`scaler.unscale_(optimizer)` before clipping, `scaler.step(optimizer)` and `scaler.update()`"
        )
    nothing = small.because if small is not None else durations.why_paced_by_workers(script)
    if nothing:
        gain = Estimate(Worth.LOW, nothing)
        yield Finding(step.shown, message, advice=f"{advice}, which may gain nothing", level=Level.NOTE, worth=gain)
        return
    if is_reinforcement(script):
        why = "the policy acts in float32, and its probabilities would no longer be those it is trained on; cover both"
        yield Finding(step.shown, message, advice=f"{advice}; not written because {why}", level=Level.NOTE)
        return
    if is_old:
        is_too_old = not eras.allows(script, _SINCE)
        why = "; mind ".join(
            (f"the target release is older than torch {_dotted(_SPELLED_SINCE)}", *_first_hazard(step, kind))
        )
        yield Finding(
            step.shown,
            message,
            advice=f"{advice}; not written because {why}",
            level=Level.NOTE if is_too_old else None,
            worth=worth.TOO_NEW if is_too_old else None,
        )
        return
    against = _why_bfloat(step) if kind == "float16" else ""
    if against:
        advice = (
            'put it and the loss under `with torch.autocast(device_type="cuda", dtype=torch.bfloat16):` on GPUs that have '
            f"it (Ampere and newer), without a scaler; not written because {against}"
        )
        yield Finding(step.shown, _message(forward, "bfloat16"), advice=advice)
        return
    try:
        fix = Fix(_bfloat(step) if kind == "bfloat16" else _half(step), Risk.NUMERIC, _SPELLED_SINCE)
    except CannotEdit as reason:
        why = "; mind ".join(dict.fromkeys((str(reason), *_first_hazard(step, kind))))
        yield Finding(step.shown, message, advice=f"{advice}; not written because {why}")
        return
    yield Finding(step.shown, message, fix=fix, advice=advice)


def _why_bfloat(step: Step) -> str:
    """Why a step is told to compute in bfloat16, which needs no scaler; empty where float16 may do."""
    overflow = next((each for each in hazards.of_step(step) if each.overflows), None)
    return f"of float16, {overflow.told(step.script)}" if overflow is not None else hazards.why_unscalable(step)


def _message(forward: str, kind: str, with_loss: bool = True) -> str:
    what, they = (f"`{forward}` and its loss run", "they run") if with_loss else (f"`{forward}` runs", "it runs")
    return f"{what} in float32 on every training step; under autocast {they} in {kind} on tensor cores"


def _first_hazard(step: Step, kind: str) -> Iterator[str]:
    """What half precision would break, where the release already stands in the way of writing it."""
    found = (each for each in hazards.of_step(step) if kind == "float16" or not each.half_only)
    first = itertools.chain(itertools.islice(found, 1), itertools.islice(hazards.of_uses(step), 1))
    yield from (each.told(step.script) for each in first)


def _dotted(release: tuple[int, int]) -> str:
    return ".".join(map(str, release))


def _first_of_its_turn(call: syntax.Call, script: Script) -> Step | None:
    """The step that a backward pass belongs to, where it stands for all of its turn: the first that may gain."""
    if not isinstance(call.func, syntax.Attribute) or call.func.attr.value != "backward":
        return None
    steps = training_steps(script)
    step = next((step for step in steps if step.backward is call), None)
    if step is None:
        return None
    others = [other for other in steps if other.turn is step.turn]
    first = next((other for other in others if launches.bound_by(other) is None), others[0])
    return step if first is step else None


def _header(step: Step, kind: str, condition: str) -> tuple[str, tuple[Edit, ...]]:
    autocast, imports = spelling.spell(step.script, "torch.autocast")
    dtype, _ = spelling.spell(step.script, f"torch.{kind}")
    enabled = f", enabled={condition}" if condition else ""
    return f'with {autocast}(device_type="cuda", dtype={dtype}{enabled}):', imports


def _half(step: Step) -> tuple[Edit, ...]:
    refuse_hazards(step, half=True)
    scaled = scaling(step)
    try:
        condition = cuda_condition_of_step(step, step.forward)
    except CannotEdit:
        condition = f"{scaled.scaler}.is_enabled()"
    header, imports = _header(step, "float16", condition)
    return (*imports, *autocast_edits(step, header), *scaled.edits)


def _bfloat(step: Step) -> tuple[Edit, ...]:
    refuse_hazards(step, half=False)
    header, imports = _header(step, "bfloat16", cuda_condition_of_step(step, step.forward))
    return (*imports, *autocast_edits(step, header))


RULE = Rule(
    "SPD101",
    on=syntax.Call,
    check=check,
    triggers=(b".backward(",),
    worth=worth.HALF_PRECISION,
    on_gpu=True,
    since=_SINCE,
)
