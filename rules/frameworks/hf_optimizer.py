"""Hugging Face's `Trainer` updates the parameters with an AdamW that is not fused.

## What it does
Finds `TrainingArguments` with `optim="adamw_torch"` or `"adamw_hf"`, of a `Trainer` that trains on a GPU; and such without
`optim` where the target torch, or the transformers that the project requires, has another default than the fused form.

## Why it is slow
The unfused optimizer has a kernel over all parameters for each formula of the update. The fused form does the whole update
in one pass.

- `adamw_hf`: It updates one parameter after another in Python. The fused form does the whole update in one pass.

## Example
```python
from transformers import TrainingArguments

args = TrainingArguments(output_dir="out", fp16=True, optim="adamw_torch")
```

## Use instead
```python
from transformers import TrainingArguments

args = TrainingArguments(output_dir="out", fp16=True, optim="adamw_torch_fused")
```

## Fix safety
Numeric: the same formula, rounded in another order. Where torch may be older than 2.4, the first with a fused AdamW for the
CPU, the argument asks for a GPU. It is shown for `adamw_hf`, which places its epsilon elsewhere, and for sharded models.
Trainers that are handed an optimizer or make their own, and those of adapters such as LoRA, which have little to update,
are left alone. Without `optim` it is a note: what is installed may be newer than what is required. Needs torch 2.0.

## Sources
PyTorch pull request 96755 reports 9% for a whole training step; issue 121857 reports a slower step on one GPU, so let
`speedlint verify` decide. Read in the sources of transformers: the default is `adamw_hf` in 4.31, `adamw_torch` in 4.35,
4.46 and 4.53, and in 4.54 and later `adamw_torch_fused` with torch 2.8 or newer.

- [pytorch/pytorch, pull request 96755](https://github.com/pytorch/pytorch/pull/96755)
- [pytorch/pytorch, issue 121857](https://github.com/pytorch/pytorch/issues/121857)
- [Hugging Face: TrainingArguments](https://huggingface.co/docs/transformers/main_classes/trainer)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.cures import spelling
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Edit, Finding, Fix, Level, Risk, Rule
from speedlint.shapes import eras, worth
from speedlint.shapes.frameworks import huggingface, releases
from speedlint.shapes.frameworks.huggingface import Training

_SINCE = (2, 0)
_ON_CPU = (2, 4)
_DEFAULT_WITH_TORCH = (2, 8)
_DEFAULT_SINCE = (4, 54)


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    one = huggingface.training(script, call)
    if one is None or not one.is_on_gpu or script.is_test or not eras.can_run_on(script, _SINCE):
        return
    if one.is_set("deepspeed") or one.is_set("adafactor") or huggingface.makes_optimizer(one) or huggingface.is_adapter(one):
        return
    told = one.known("optim")
    if told in ("adamw_torch", "adamw_hf"):
        yield _finding(one, f'`optim="{told}"` is not fused', Level.WARNING)
    elif one.option("optim") is None and _is_old(script):
        yield _finding(one, "the optimizer that the `Trainer` makes is not fused", Level.NOTE)


def _is_old(script: Script) -> bool:
    """Whether the default is not the fused form, for the target torch or what is required of transformers."""
    return not eras.allows(script, _DEFAULT_WITH_TORCH) or releases.allowed(script, "transformers").is_before(_DEFAULT_SINCE)


def _finding(one: Training, what: str, level: Level) -> Finding:
    message = f"{what}: it takes several kernels to update the parameters, where the fused form takes one or two"
    advice = 'pass `optim="adamw_torch_fused"`'
    try:
        if one.known("optim") == "adamw_hf":
            raise CannotEdit("`adamw_hf` places its epsilon elsewhere")
        if one.is_set("fsdp") or one.is_set("parallelism_config"):
            raise CannotEdit("the model is sharded")
        fix = Fix(_edits(one), Risk.NUMERIC, _SINCE)
        return Finding(one.arguments, message, fix, advice, level)
    except CannotEdit as reason:
        case = "adamw_hf" if one.known("optim") == "adamw_hf" else ""
        return Finding(one.arguments, message, advice=f"{advice}; not written, because {reason}", level=level, case=case)


def _edits(one: Training) -> tuple[Edit, ...]:
    script, given = one.script, one.option("optim")
    if given is not None and not (
        isinstance(given, syntax.SimpleString) and any(a.value is given for a in one.arguments.args)
    ):
        raise CannotEdit("it is set elsewhere")
    value, imports = '"adamw_torch_fused"', tuple[Edit, ...]()
    if (script.options.torch or _SINCE) < _ON_CPU:
        spelled, imports = spelling.spell(script, "torch.cuda.is_available")
        value = f'{value} if {spelled}() else "adamw_torch"'
    return (*imports, edits.set_argument(script.source, one.arguments, "optim", value))


RULE = Rule(
    "SPD803",
    on=syntax.Call,
    check=check,
    triggers=(b"TrainingArguments(", b"Config("),
    worth=worth.UPDATE,
)
