"""A `DataLoader` without workers reads every batch while the training step waits.

## What it does
Finds loaders whose `num_workers` is absent or 0, also where the 0 comes from a default of the command line, a constant, a
dataclass field or a dict. What a function of the project makes in a file that is not checked is told where it is called.

## Why it is slow
With `num_workers=0` the training process decodes, transforms and collates each batch itself, between two steps. Workers do
it in other processes while the step runs.

## Example
```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=64, shuffle=True)
```

## Use instead
```python
import os

from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=64, shuffle=True, num_workers=min(8, os.cpu_count() or 1))
```

## Fix safety
Numeric: the same items in the same order, but random transforms draw from each worker's own stream. Where a 0 is set as a
default, that default is edited, for every loader that uses it. The number is a start: measure with half and twice as many.

It is written only where workers are proven to read the same: what the dataset, its transforms, its collate function and its
sampler read is set before the training and not changed by it; their code writes nothing that outlives an item, also no file
and no view of what the dataset holds, tells nothing as it goes, draws from no generator of its own, runs no network and
raises no exception of the project's; all of it can be sent to a spawned process, and the batches back; the script has the
`if __name__ == "__main__":` that spawned workers need, and what stands outside of it may run again, and registers nothing
for the end of the process. Else it is shown, with what is not known. So are iterable datasets. A dataset that only takes
items out of tensors in memory is a note: for it workers may cost more than they bring. So are loaders that read few items in
a pass: public sets of some images, by the name that the dataset is given, loops that are left after some batches, and the
shares of clients that are drawn anew in each round. A loader whose collate function copies to the GPU can have no workers;
it is shown, since they pay once the copies stand in the loop.

## Sources
PyTorch's data-loading tutorial measures 2.7 times the throughput. The Performance Tuning Guide asks for `num_workers > 0`.

- [PyTorch: Data Loading Optimization](https://docs.pytorch.org/tutorials/intermediate/intermediate_data_loading_tutorial.html)
- [PyTorch: Performance Tuning Guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.cures import spelling
from speedlint.cures.loader_arguments import set_at, set_where_set
from speedlint.cures.loaders_told import told
from speedlint.facts import syntax
from speedlint.rule import Edit, Estimate, Finding, Fix, Level, Related, Risk, Rule, Worth
from speedlint.shapes import hosted, worth
from speedlint.shapes.data import scale
from speedlint.shapes.data.loader_settings import Setting
from speedlint.shapes.data.loaders import Loader, is_unguarded, loader
from speedlint.solve.names import last_name

_FEW = Estimate(Worth.LOW, "it reads few items in a pass, which take no longer than the start of workers")
_WRITE = "pass `num_workers=min(8, os.cpu_count() or 1)`"


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    return told(script, call, _of_loader)


def _of_loader(found: Loader) -> Iterator[Finding]:
    if found.hides_arguments:
        return
    workers = found.setting("num_workers")
    if workers.is_off and found.matters is not None:
        if not found.is_on_gpu:
            yield _finding(found, workers)
        elif moves := found.moves_in_collate:
            yield _moving(found, moves)


def _moving(found: Loader, moves: list[tuple[Script, syntax.Call]]) -> Finding:
    """What is said of a loader that can have no workers, since its collate function works on the GPU."""
    message = "the `collate_fn` of this loader copies to the GPU, which keeps it from workers: each step waits for its batch"
    advice = f"let it return host tensors, copy them in the loop, and {_WRITE} and `pin_memory=True`"
    place, move = moves[0]
    is_worth_it = found.needs_workers and not scale.reads_few(found)
    return Finding(
        found.call,
        message,
        advice=f"{advice}; not written: who else reads its batches on the GPU is not followed",
        level=Level.WARNING if is_worth_it else Level.NOTE,
        related=(Related(place.source, move, "it is copied here"),),
        worth=_FEW if scale.reads_few(found) else None,
    )


def _finding(found: Loader, workers: Setting) -> Finding:
    related = _related(found, workers)
    if workers.expression is None:
        message = "this loader has no workers: each batch is read while the training waits"
    else:
        text = found.script.text(workers.expression)
        how = "`num_workers` is 0" if text == "0" else f"`num_workers={text}` is 0"
        message = f"{how}: each batch is read while the training waits"
    if found.is_in_memory:
        advice = f"{_WRITE} if reading a batch takes long; not written: items taken out of memory may be faster without"
        return Finding(found.call, message, advice=advice, level=Level.NOTE, related=related)
    if scale.reads_few(found):
        advice = f"{_WRITE} if it comes to read more; not written: the start of workers takes longer than what it reads"
        return Finding(found.call, message, advice=advice, level=Level.NOTE, related=related, worth=_FEW)
    level, estimate = Level.WARNING if found.needs_workers else Level.NOTE, None
    hazard = found.worker_hazard()
    if hazard is not None:
        advice = f"{_WRITE}; not written: {hazard}"
        if (windows := hosted.why_windows(found.script, is_unguarded(found.script, found.call))) is not None:
            level, estimate = Level.NOTE, Estimate(Worth.LOW, f"{windows}: each worker is a new process, and {hazard}")
        return Finding(found.call, message, advice=advice, level=level, related=related, worth=estimate)
    try:
        fix = Fix(_edits(found, workers), Risk.NUMERIC)
    except edits.CannotEdit as reason:
        advice = f"{_WRITE}; not written: {reason}"
        return Finding(found.call, message, advice=advice, level=level, related=related, worth=estimate)
    advice = f"{_WRITE}, and measure with half and twice as many"
    return Finding(found.call, message, fix, advice, level, related, worth=estimate)


def _edits(found: Loader, workers: Setting) -> tuple[Edit, ...]:
    if workers.expression is not None:
        _check_readers(found.script, workers.expression)
        return set_where_set(found.script, workers, _number)
    text, imports = _number(found.script, found.call)
    return (*imports, edits.set_argument(found.script.source, found.call, "num_workers", text))


def _check_readers(script: Script, expression: syntax.BaseExpression) -> None:
    """Raises CannotEdit where a setting that is changed where it is set is more than a number of workers."""
    name, known = last_name(expression), script.constant(expression)
    if name is None or known is None:
        return
    for other in script.everywhere(name.encode()):
        for reader in other.source.of(type(expression)):
            if not isinstance(reader, (syntax.Name, syntax.Attribute)):
                continue
            if last_name(reader) != name or _is_of_workers(other, reader):
                continue
            same = other.constant(reader)
            if same is not None and same.node is known.node:
                raise edits.CannotEdit(f"`{name}` is also read on line {other.source.line(reader)} of {other.path.name}")


def _is_of_workers(script: Script, reader: syntax.Name | syntax.Attribute) -> bool:
    """Whether a setting is read to make a loader, is handed on under the same name, compared or shown; or is not read."""
    node: syntax.Node = reader
    for up in script.source.ancestors(reader):
        match up:
            case syntax.Arg():
                if up.keyword is node or (up.keyword is not None and "workers" in up.keyword.value):
                    return True
                call = script.source.parents[up]
                is_handed_on = isinstance(call, syntax.Call) and script.callee(call) is not None
                return is_handed_on or (isinstance(call, syntax.Call) and loader(script, call) is not None)
            case syntax.Comparison() | syntax.FormattedString() | syntax.Param() | syntax.Parameters():
                return True
            case syntax.AssignTarget() | syntax.AnnAssign() | syntax.ImportAlias() | syntax.FunctionDef() | syntax.Expr():
                return True
            case syntax.Attribute() if up.attr is node:
                return True
            case syntax.Attribute() | syntax.BooleanOperation() | syntax.IfExp() | syntax.DictElement():
                node = up
            case syntax.Assign():
                return any("workers" in (last_name(target.target) or "") for target in up.targets)
            case _:
                return False
    return True


def _number(script: Script, at: syntax.Node) -> tuple[str, tuple[Edit, ...]]:
    """The number of workers, as it is written in a script."""
    spelled, imports = spelling.spell(script, "os.cpu_count")
    return f"{spelling.builtin(script, 'min', at)}(8, {spelled}() or 1)", imports


def _related(found: Loader, workers: Setting) -> tuple[Related, ...]:
    return set_at(found.script, workers, "the number of workers is set here")


RULE = Rule(
    "SPD201",
    on=syntax.Call,
    check=check,
    triggers=(b"Loader", b"loader", b"backward("),
    worth=Estimate(Worth.MEDIUM, "each step waits until its batch is put together"),
    cause=worth.one_feed,
)
