"""Hugging Face's `Trainer` computes in float32 unless it is told `fp16` or `bf16`.

## What it does
Finds `TrainingArguments` without `fp16` and `bf16` that a `Trainer` trains with on a GPU.

## Why it is slow
Tensor cores multiply half-precision matrices several times faster than float32 ones, and half the bytes have to be moved.
The default is full precision; told otherwise the `Trainer` does the autocast, the loss scaling and the unscaling before
clipping by itself.

## Example
```python
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments

model = AutoModelForSequenceClassification.from_pretrained("bert-base-uncased")
args = TrainingArguments(output_dir="out", per_device_train_batch_size=32)
Trainer(model=model, args=args, train_dataset=data).train()
```

## Use instead
```python
import torch
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments

model = AutoModelForSequenceClassification.from_pretrained("bert-base-uncased")
args = TrainingArguments(output_dir="out", per_device_train_batch_size=32, fp16=torch.cuda.is_available())
Trainer(model=model, args=args, train_dataset=data).train()
```

## Fix safety
Numeric: rounding changes. Some releases raise an error for `fp16=True` or `bf16=True` where there is no GPU, so the
argument asks for one; with `amp = "bf16"` it is `bf16`, which needs an Ampere GPU.

A model whose weights are half already must not be trained with `fp16`: unscaling fails. Up to release 4 `from_pretrained`
makes them float32, since 5 they are what the checkpoint holds. So it is written where the project requires a release below
5, where the checkpoint is one published in float32 such as BERT's, or where the model is made from its configuration; else
it is a note. It is shown for T5 and Pegasus, which leave the range of float16, and for losses that half precision breaks.
Where the program speaks of `torch_dtype`, quantization or DeepSpeed, or is launched with `mixed_precision`, nothing is
reported.

## Sources
Hugging Face, "GPU" training guide: mixed precision; up to 3 times faster on tensor cores (NVIDIA). Read in the sources of
transformers 4.28 to 5.23: `fp16` and `bf16` are False by default and exclude each other; `fp16=True` without a GPU raises a
ValueError in 4.28 to 4.36, `bf16=True` in 5.23.

- [Hugging Face: training on one GPU](https://huggingface.co/docs/transformers/perf_train_gpu_one)
- [Hugging Face: TrainingArguments](https://huggingface.co/docs/transformers/main_classes/trainer)
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
from speedlint.shapes.devices import gpu_is_certain
from speedlint.shapes.frameworks import huggingface, launch
from speedlint.shapes.frameworks.huggingface import Training

_DECIDES = ("fp16", "bf16", "half_precision_backend", "fp16_backend", "mixed_precision")
_MESSAGE = "these `TrainingArguments` say neither `fp16` nor `bf16`, so that the `Trainer` computes in float32"


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    one = huggingface.training(script, call)
    if one is None or huggingface.is_of_trl(script, call) or not one.is_on_gpu or script.is_test:
        return
    if any(one.option(name) is not None for name in _DECIDES) or one.is_set("deepspeed"):
        return
    if not launch.chooses_precision(script) and not huggingface.is_small(one):
        yield _finding(one)


def _finding(one: Training) -> Finding:
    half = "fp16" if one.script.options.amp == "fp16" else "bf16"
    advice = f"pass `{half}=True`" + (", or `bf16=True` on an Ampere GPU or newer" if half == "fp16" else "")
    if not huggingface.is_in_full(one):
        why = "not written, because it is not seen whether the weights are float32"
        level = Level.WARNING if huggingface.is_likely_in_full(one) else Level.NOTE
        return Finding(one.arguments, _MESSAGE, advice=f"{advice}; {why}", level=level)
    try:
        trainers.refuse_half(one, half=half == "fp16")
        fix = Fix(_edits(one, half), Risk.NUMERIC)
    except CannotEdit as reason:
        return Finding(one.arguments, _MESSAGE, advice=f"{advice}; not written: {reason}", level=Level.WARNING)
    return Finding(one.arguments, _MESSAGE, fix, advice, Level.WARNING)


def _edits(one: Training, half: str) -> tuple[Edit, ...]:
    value, imports = "True", tuple[Edit, ...]()
    if not gpu_is_certain(one.script):
        spelled, imports = spelling.spell(one.script, "torch.cuda.is_available")
        value = f"{spelled}()"
    return (*imports, edits.add_argument(one.script.source, one.arguments, f"{half}={value}"))


RULE = Rule(
    "SPD801",
    on=syntax.Call,
    check=check,
    triggers=(b"TrainingArguments(",),
    worth=worth.HALF_PRECISION,
)
