"""Hugging Face's `Trainer` reads every batch itself unless it is told to use workers.

## What it does
Finds `TrainingArguments` whose `dataloader_num_workers` is absent or 0, of a `Trainer` that trains on a dataset whose items
are made as they are read; and such with workers, several epochs and no `dataloader_persistent_workers`.

## Why it is slow
With 0 workers, the default, the training process takes the items out of the dataset, transforms and collates them between
two steps. Workers do it in other processes while the step runs. Workers that do not persist are started again for each
epoch.

## Example
```python
from transformers import Trainer, TrainingArguments

args = TrainingArguments(output_dir="out", per_device_train_batch_size=32)
Trainer(model=model, args=args, train_dataset=images).train()
```

## Use instead
```python
import os

from transformers import Trainer, TrainingArguments

args = TrainingArguments(
    output_dir="out", per_device_train_batch_size=32, dataloader_num_workers=min(8, os.cpu_count() or 1)
)
Trainer(model=model, args=args, train_dataset=images).train()
```

## Fix safety
Numeric: the same items in the same order, but random transforms draw from each worker's own stream. It is written where the
class of the dataset is in sight and sound in another process, and the script has a `__main__` guard, which spawned workers
need; else it is shown. Classes that decode or transform as they are read are a warning, as are datasets with
`set_transform` or `with_transform`; a class that only takes items out of memory is a note. Text that is tokenized already
is left alone: there is little to do between the steps.

`dataloader_persistent_workers=True` is written where the project requires transformers 4.36, the first release that has it.
Workers that stay alive do not see what is changed in the dataset between the epochs: set in callbacks, it is not seen here,
so that this fix is written only for classes in sight that do not speak of epochs.

## Sources
PyTorch's data-loading tutorial measures 2.7 times the throughput with workers, 1.3 times with persistent ones on short
epochs. Read in the sources of transformers 4.28 to 5.23: 0 workers by default; `dataloader_persistent_workers`, False by
default, is in 4.36 and not in 4.35; pinning is on by default.

- [PyTorch: Data Loading Optimization](https://docs.pytorch.org/tutorials/intermediate/intermediate_data_loading_tutorial.html)
- [Hugging Face: TrainingArguments](https://huggingface.co/docs/transformers/main_classes/trainer)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.cures import spelling
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Edit, Estimate, Finding, Fix, Level, Risk, Rule, Worth
from speedlint.shapes.frameworks import huggingface, releases
from speedlint.shapes.frameworks.huggingface import Training

_WORKERS = "dataloader_num_workers"
_PERSIST = "dataloader_persistent_workers"
_PERSIST_SINCE = (4, 36)


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    one = huggingface.training(script, call)
    if one is None or not one.is_on_gpu or script.is_test or one.part("train_dataset") is None:
        return
    slow = huggingface.reads_slowly(one)
    if slow is None:
        return
    level = Level.WARNING if slow else Level.NOTE
    given = one.option(_WORKERS)
    if given is None or one.known(_WORKERS) == 0:
        yield _without(one, level)
    elif one.option(_PERSIST) is None and one.passes > 1 and isinstance(one.known(_WORKERS), int):
        yield _restarted(one, level)


def _without(one: Training, level: Level) -> Finding:
    message = "this `Trainer` has no workers for its data: each batch is read while the training waits"
    advice = f"pass `{_WORKERS}=min(8, os.cpu_count() or 1)`, and measure with half and twice as many"
    hazard = huggingface.worker_hazard(one)
    try:
        if hazard is not None:
            raise CannotEdit(hazard)
        spelled, imports = spelling.spell(one.script, "os.cpu_count")
        fix = Fix((*imports, _set(one, _WORKERS, f"min(8, {spelled}() or 1)")), Risk.NUMERIC)
        return Finding(one.arguments, message, fix, advice, level)
    except CannotEdit as reason:
        return Finding(one.arguments, message, advice=f"{advice}; not written: {reason}", level=level)


def _set(one: Training, name: str, value: str) -> Edit:
    given = one.option(name)
    literal = isinstance(given, syntax.Integer) and any(arg.value is given for arg in one.arguments.args)
    if given is not None and not literal:
        raise CannotEdit("the number of workers is set elsewhere")
    return edits.set_argument(one.script.source, one.arguments, name, value)


def _restarted(one: Training, level: Level) -> Finding:
    message = f"this `Trainer` starts its {one.known(_WORKERS)} workers again for each epoch"
    advice = f"pass `{_PERSIST}=True`"
    try:
        if not releases.allowed(one.script, "transformers").is_since(_PERSIST_SINCE):
            raise CannotEdit("it needs transformers 4.36, which the project is not seen to require")
        if (reason := huggingface.worker_hazard(one) or huggingface.changes_between_epochs(one)) is not None:
            raise CannotEdit(reason)
        fix = Fix((edits.add_argument(one.script.source, one.arguments, f"{_PERSIST}=True"),), Risk.NUMERIC)
        return Finding(one.arguments, message, fix, advice, level)
    except CannotEdit as reason:
        return Finding(one.arguments, message, advice=f"{advice}; not written: {reason}", level=level)


RULE = Rule(
    "SPD802",
    on=syntax.Call,
    check=check,
    triggers=(b"TrainingArguments(", b"Config("),
    worth=Estimate(Worth.LOW, "each step waits for its batch only where that takes longer than the step"),
)
