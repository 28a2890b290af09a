"""Gradient checkpointing computes the forward pass a second time, whether or not the memory it frees is needed.

## What it does
Finds models for which gradient checkpointing is switched on in every training: `gradient_checkpointing_enable()` and its
like, or an argument such as `use_checkpoint=True`. A published model, which may be large, is a note, and so is a module that
always puts a part of itself through `torch.utils.checkpoint`. Checkpointing that an option, a check of the memory or an
error asks for is left alone, and so are programs that quantise or shard their model, spread it or train adapters.

## Why it is slow
A checkpointed block throws its activations away and computes them again in the backward pass: one more forward pass for
each step, a fifth to a third of its time. It trades time for memory. Where the step fits into memory anyhow nothing is
gained. Often it is listed among measures for speed, which it is not.

## Example
```python
def build(model):
    model.gradient_checkpointing_enable()
    return model
```

## Use instead
```python
def build(model, low_memory=False):
    if low_memory:
        model.gradient_checkpointing_enable()
    return model
```

## Fix safety
Shown, never written: whether the step fits without it depends on the GPU and the batch. `speedlint verify` measures the peak
of the memory and the time of both.

## Sources
Hugging Face's performance documentation: it trades time for memory. Measured on a CPU with torch 2.13, a transformer encoder
of six layers, each checkpointed: 1.5 times the time for a step.

- [Hugging Face: training on one GPU](https://huggingface.co/docs/transformers/perf_train_gpu_one)
- [PyTorch: torch.utils.checkpoint](https://docs.pytorch.org/docs/stable/checkpoint.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Level, Rule, Worth
from speedlint.shapes import entry, evaluation
from speedlint.shapes.optimizer import recomputation

_WHY = "not written here, because whether the memory suffices without it is not seen; `speedlint verify` measures both"


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    if recomputation.switch(script, call):
        if recomputation.is_unasked(script, call) and _matters(call, script):
            message = f"`{_shown(call, script)}` makes every step compute its forward pass twice"
            advice = f"switch it on only where training runs out of memory without; {_WHY}"
            level = Level.NOTE if recomputation.is_pretrained(script, call) else Level.WARNING
            yield Finding(call, message, advice=advice, level=level)
    elif recomputation.recomputed(script, call) and _matters(call, script):
        message = f"`{script.text(call.func)}` computes this part of the forward pass twice in every step"
        advice = f"put it behind an option for small memories; {_WHY}"
        yield Finding(call, message, advice=advice, level=Level.NOTE)


def _matters(call: syntax.Call, script: Script) -> bool:
    if script.is_test or not evaluation.trains(script) or not script.on_gpu:
        return False
    return not recomputation.is_scarce(script) and not entry.is_never_called(script, call)


def _shown(call: syntax.Call, script: Script) -> str:
    text = script.text(call)
    return text if "\n" not in text and len(text) < 60 else f"{script.text(call.func)}(...)"


RULE = Rule(
    "SPD507",
    on=syntax.Call,
    check=check,
    triggers=(b"checkpoint", b"with_cp"),
    worth=Estimate(Worth.HIGH, "the forward pass is run a second time"),
)
