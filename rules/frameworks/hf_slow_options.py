"""Options of Hugging Face's `Trainer` make it slower.

## What it does
Finds `TrainingArguments` of a `Trainer` that trains with `skip_memory_metrics=False`, `debug="underflow_overflow"`,
`full_determinism=True`, an `empty_cache()` every few steps, a full evaluation or a checkpoint every few steps, a log line
each step, or gradient checkpointing.

## Why it is slow
The option has work done in every step, or every few, that the training does not need.

- `skip_memory_metrics`: Without it a thread of Python reads the process's memory without a pause.
- `debug`: The search for overflows looks at the inputs and outputs of every module.
- `torch_empty_cache_steps`: What the emptied cache held has to be allocated again, which waits for the GPU.
- `eval_steps`: An evaluation reads the whole evaluation set.
- `save_steps`: A checkpoint copies the model and the optimizer's state to the host and writes them.
- `full_determinism`: The deterministic algorithms are the slower ones.
- `logging_steps`: A log line makes the host wait for the GPU.
- `gradient_checkpointing`: The forward pass is computed twice to save memory.
- `activation_checkpointing`: The forward pass is computed twice to save memory.

## Example
```python
from transformers import TrainingArguments

args = TrainingArguments(output_dir="out", skip_memory_metrics=False, eval_strategy="steps", eval_steps=5)
```

## Use instead
```python
from transformers import TrainingArguments

args = TrainingArguments(output_dir="out", eval_strategy="steps", eval_steps=500)
```

## Fix safety
Never written: what is measured, logged and saved, and how much memory there is, is for you to say. Determinism, logging
each step and gradient checkpointing are notes: they cost less, or are often needed. A training that stops after a few
steps, or so soon that it is evaluated or saved only a few times, is left alone; so are options that are decided at run
time.

## Sources
Hugging Face, "GPU" training guide: gradient checkpointing slows training by about 20%, calling `empty_cache()` by about
10%; its reference of `TrainingArguments`: memory metrics are skipped by default because they slow down training and
evaluation. Read in the sources of transformers 4.28 to 5.23: `skip_memory_metrics` is True, `logging_steps`, `eval_steps`
and `save_steps` are 500 by default.

- [Hugging Face: training on one GPU](https://huggingface.co/docs/transformers/perf_train_gpu_one)
- [Hugging Face: TrainingArguments](https://huggingface.co/docs/transformers/main_classes/trainer)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Level, Rule, Worth
from speedlint.shapes.frameworks import huggingface
from speedlint.shapes.frameworks.huggingface import Training
from speedlint.source import is_name

_OFTEN = 20
"""Steps between two evaluations or checkpoints up to which they are called frequent."""
_A_FEW_TIMES = 10
_SOON = 10
"""Steps between two calls of ``empty_cache`` up to which they are called frequent."""


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    one = huggingface.training(script, call)
    if one is None or not one.is_on_gpu or script.is_test:
        return
    if one.known("skip_memory_metrics") is False:
        yield _finding(one, "skip_memory_metrics", "has a thread read the process's memory all the time", "leave it out")
    if "underflow_overflow" in str(one.known("debug")):
        yield _finding(one, "debug", "looks at the inputs and outputs of every module", "leave it out of the real run")
    if type(steps := one.known("torch_empty_cache_steps")) is int and steps <= _SOON:
        what = "gives the GPU's memory back, to allocate it again, every few steps"
        yield _finding(one, "torch_empty_cache_steps", what, "leave it out, or make it rare")
    yield from _frequent(one)
    if one.known("full_determinism") is True:
        what = "makes torch take slower, deterministic algorithms"
        yield _finding(one, "full_determinism", what, "leave it out where runs need not be repeatable", Level.NOTE)
    if one.known("logging_steps") == 1 and one.known("logging_strategy") in (None, "steps"):
        what = "waits for the GPU in each step to log"
        yield _finding(one, "logging_steps", what, "log every 10 steps or less", Level.NOTE)
    for name in ("gradient_checkpointing", "activation_checkpointing"):
        if one.known(name) is True:
            what = "computes the forward pass twice, to save memory"
            yield _finding(one, name, what, "leave it out where the memory is enough without", Level.NOTE)


def _frequent(one: Training) -> Iterator[Finding]:
    asked = next((given for given in ("eval_strategy", "evaluation_strategy") if one.option(given) is not None), "")
    if _is_often(one, "eval_steps") and one.known(asked) == "steps":
        yield _finding(one, "eval_steps", "evaluates on the whole evaluation set every few steps", "evaluate less often")
    if _is_often(one, "save_steps") and one.known("save_strategy") in (None, "steps"):
        yield _finding(one, "save_steps", "writes a checkpoint every few steps", "save less often")


def _is_often(one: Training, name: str) -> bool:
    """Whether a number of steps is small, and not because the training ends soon."""
    steps, most = one.known(name), one.known("max_steps")
    if type(steps) is not int or not 1 <= steps <= _OFTEN:
        return False
    return not (type(most) is int and 0 < most <= steps * _A_FEW_TIMES)


def _finding(one: Training, name: str, what: str, instead: str, level: Level = Level.WARNING) -> Finding:
    arg = next((arg for arg in one.arguments.args if is_name(arg.keyword, name)), None)
    told = one.script.text(arg.value) if arg is not None else "..."
    advice = f"{instead}; not rewritten, since it is not known what the run is for"
    return Finding(arg or one.arguments, f"`{name}={told}` {what}", advice=advice, level=level, case=name)


RULE = Rule(
    "SPD804",
    on=syntax.Call,
    check=check,
    triggers=(b"TrainingArguments(", b"Config("),
    worth=Estimate(Worth.MEDIUM, "it is done in each step"),
)
