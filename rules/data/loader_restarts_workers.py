"""A `DataLoader` without persistent workers starts all of them again each time it is iterated over.

## What it does
Finds loaders that have workers, are read from the start more than once, and do not set `persistent_workers`. It is a note
where a pass takes minutes, as over ImageNet by its name or of a library's transformer, or comes only once in hundreds of
steps, or where the loop leaves it early by its own count of turns. What a function of the project makes in a file that is
not checked is told where it is called.

## Why it is slow
At the end of each pass the workers end. The next pass starts new processes, copies or imports the dataset into them, and
waits for their first batches. On short epochs that takes longer than the batches.

## Example
```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=64, num_workers=8)
for epoch in range(100):
    for batch in loader:
        train(batch)
```

## Use instead
```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=64, num_workers=8, persistent_workers=True)
for epoch in range(100):
    for batch in loader:
        train(batch)
```

## Fix safety
Numeric: the workers' seed is drawn once instead of once for each pass, so that random transforms and the order of shuffled
items differ from the original's. `persistent_workers=True` raises an error without workers: where their number is not
written at the call, `args.workers > 0` or the like is written.

It is written only where it is proven that nothing changes between passes which living workers hold a copy of, that the code
of the items keeps nothing from one to the next, and that random items are not seeded for each pass. It is shown where the
loader may be read anew while a loop over it still runs, also by a callback, a property or what else is called out of sight,
and where each of many loaders would keep its workers. Loaders that are read once are left alone, and those whose dataset
the training changes between passes, by `dataset.level = 2` or a method. Needs torch 1.7.

## Sources
PyTorch's data-loading tutorial measures 1.3 times the throughput on short epochs.

- [PyTorch: Data Loading Optimization](https://docs.pytorch.org/tutorials/intermediate/intermediate_data_loading_tutorial.html)
- [PyTorch: torch.utils.data](https://docs.pytorch.org/docs/stable/data.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.cures.loaders_told import told
from speedlint.facts import syntax
from speedlint.rule import Edit, Estimate, Finding, Fix, Level, Risk, Rule, Worth
from speedlint.shapes import eras, negligible, worth
from speedlint.shapes.data.loader_settings import Setting, is_surely_positive
from speedlint.shapes.data.loaders import Loader
from speedlint.source import is_name

_SINCE = (1, 7)
_ADVICE = "pass `persistent_workers=True`"
_PLAIN = (syntax.Name, syntax.Attribute, syntax.Subscript, syntax.Call, syntax.BinaryOperation)
_SAME_TWICE = frozenset(
    "min max int len abs bool os.cpu_count multiprocessing.cpu_count torch.multiprocessing.cpu_count os.sched_getaffinity "
    "os.getenv os.environ.get torch.cuda.is_available torch.cuda.device_count torch.get_num_threads getattr".split()
)
"""Functions that may be asked a second time."""


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    return told(script, call, _of_loader, only_of_one_call=True)


def _of_loader(found: Loader) -> Iterator[Finding]:
    if found.hides_arguments:
        return
    workers = found.setting("num_workers")
    if not eras.may_be_on(found.script, _SINCE):
        return
    if workers.is_off or not found.setting("persistent_workers").is_off or not found.is_read_again or not found.matters:
        return
    if not found.is_changed_between_reads and not found.is_replaced_between_reads and not found.goes_on_by_itself:
        yield _finding(found, workers)


def _finding(found: Loader, workers: Setting) -> Finding:
    assert workers.expression is not None
    level, estimate = Level.WARNING, worth.WORKERS_START
    if (trifle := negligible.why_workers_start(found)) is not None:
        level, estimate = Level.NOTE, Estimate(Worth.LOW, trifle)
    message = f"this loader starts its `{found.script.text(workers.expression)}` workers again on every pass over the data"
    reason = found.changes_between_reads()
    if reason is None and found.is_read_within_itself:
        reason = "it may be read anew while a loop over it still runs, which ends that loop where workers persist"
    elif found.adds_up_in_workers:
        level, reason = Level.NOTE, f"{reason}, which would add up from pass to pass"
    if reason is None:
        try:
            fix = Fix((_edit(found, workers),), Risk.NUMERIC, _SINCE)
            return Finding(found.call, message, fix, _ADVICE, level, worth=estimate)
        except edits.CannotEdit as problem:
            reason = str(problem)
    return Finding(found.call, message, advice=f"{_ADVICE}; not written: {reason}", level=level, worth=estimate)


def _edit(found: Loader, workers: Setting) -> Edit:
    text = _condition(found.script, workers)
    persistent = found.setting("persistent_workers")
    if persistent.expression is None:
        return edits.set_argument(found.script.source, found.call, "persistent_workers", text)
    literal = is_name(persistent.expression, "False")
    if persistent.holder is not None or not literal:
        raise edits.CannotEdit("it is set to False elsewhere")
    return edits.replace(found.script.source, persistent.expression, text)


def _condition(script: Script, workers: Setting) -> str:
    """``True`` where there are workers for certain, else a comparison of the very expression that sets their number."""
    assert workers.expression is not None
    if workers.holder is not None and script.values.varies(workers.holder):
        return f'{_named(workers.holder).value}.get("num_workers", 0) > 0'
    if is_surely_positive(script, workers.expression):
        return "True"
    if workers.holder is not None:
        return f'{_named(workers.holder).value}["num_workers"] > 0'
    calls = [*script.source.inside(workers.expression, syntax.Call)]
    if any((script.name(call.func) or script.text(call.func)) not in _SAME_TWICE for call in calls):
        raise edits.CannotEdit("what the number of workers calls would be called twice")
    text = script.text(workers.expression)
    if "\n" in text:
        raise edits.CannotEdit("the number of workers is written over several lines")
    return f"{text} > 0" if isinstance(workers.expression, _PLAIN) else f"({text}) > 0"


def _named(holder: syntax.BaseExpression) -> syntax.Name:
    if not isinstance(holder, syntax.Name):
        raise edits.CannotEdit("the number of workers is set within an unnamed dict")
    return holder


RULE = Rule(
    "SPD203",
    on=syntax.Call,
    check=check,
    triggers=(b"Loader", b"loader", b"backward("),
    worth=worth.WORKERS_START,
    cause=worth.one_feed,
    since=_SINCE,
)
