"""`cudnn.deterministic = True` keeps cuDNN from its fastest convolution algorithms.

## What it does
Finds `torch.backends.cudnn.deterministic = True`, under any alias, in programs that train, also in the branch that is taken
by default where the other one turns `benchmark` on; as a note also what sets it to an option whose default is True.

## Why it is slow
cuDNN has several algorithms for each convolution, and the fastest backward ones add up in whatever order the GPU's threads
finish. Deterministic mode forbids them, and `benchmark = True` beside it can then only choose among the slow ones.

## Example
```python
import torch

torch.backends.cudnn.deterministic = True
```

## Use instead
```python
import torch

torch.backends.cudnn.deterministic = False
```

## Fix safety
Numeric: the same mathematics, but two runs with one seed no longer agree bit for bit. In a branch or function that exists
to make runs reproducible (`if args.seed is not None`, `def set_seed`), or beside the seeds, it is there on purpose and only
a note; so it is where any other condition asks for it. Tests and scripts that only evaluate are left alone, and programs all
of whose networks are known and neither convolve nor are recurrent, since cuDNN computes nothing else for them.

## Sources
PyTorch's notes on reproducibility say that deterministic operations are often slower. The gain depends on the model.

- [PyTorch: Reproducibility](https://docs.pytorch.org/docs/stable/notes/randomness.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Fix, Level, Related, Risk, Rule, Worth
from speedlint.shapes import evaluation
from speedlint.shapes.backend import cudnn, intent
from speedlint.shapes.backend.intent import Intent
from speedlint.solve.terms import Constant


def check(assign: syntax.Assign, script: Script) -> Iterator[Finding]:
    match assign:
        case syntax.Assign(targets=[syntax.AssignTarget(target=target)], value=value):
            if script.name(target) != "torch.backends.cudnn.deterministic" or not _matters(assign, script):
                return
            if isinstance(value, (syntax.Name, syntax.Integer)) and script.text(value) in ("True", "1"):
                yield _finding(assign, script)
            elif (default := script.constant(value)) is not None and default.value is True and cudnn.is_planar(script):
                yield _by_default(assign, default, script)


def _by_default(assign: syntax.Assign, default: Constant, script: Script) -> Finding:
    message = f"`{script.text(assign)}` is on by default: it makes runs reproducible and convolutions slower"
    related = (Related(default.script.source, default.node, "the default is set here"),)
    advice = "turn it off when runs need not repeat bit for bit; not rewritten, since the option is there to choose"
    return Finding(assign, message, advice=advice, level=Level.NOTE, related=related)


def _matters(assign: syntax.Assign, script: Script) -> bool:
    if script.is_test or cudnn.is_undone(script, assign, "deterministic"):
        return False
    return evaluation.trains(script) and not cudnn.is_unused(script)


def _finding(assign: syntax.Assign, script: Script) -> Finding:
    code = script.text(assign)
    fix = Fix((edits.replace(script.source, assign.value, "False"),), Risk.NUMERIC)
    if _contradicts(assign, script):
        message = f"`{code}` leaves `benchmark = True` beside it only the slower algorithms to choose from"
        return Finding(assign, message, fix, "set it to False; the seeds stay as they are", Level.WARNING)
    if (fast := cudnn.switched_off_beside(script, assign)) is not None:
        message = f"`{code}` makes convolutions slower in every run that does not ask for `{script.text(fast)}` beside it"
        advice = "let the option ask for speed by default; not rewritten, since both branches are there to choose"
        return Finding(assign, message, advice=advice, level=Level.WARNING)
    if cudnn.is_for_reproducibility(script, assign):
        message = f"`{code}` makes runs reproducible and convolutions slower"
        return Finding(assign, message, fix, "set it to False when runs need not repeat bit for bit", Level.NOTE)
    if intent.of(script, assign) is not Intent.ALWAYS:
        message = f"`{code}` makes convolutions slower in the runs that ask for it"
        return Finding(assign, message, advice="leave it out of runs that are there to train", level=Level.NOTE)
    return Finding(
        assign,
        f"`{code}` forbids cuDNN's fastest convolution algorithms in every run",
        fix,
        "set it to False, or only behind a switch for reproducible runs",
        Level.WARNING,
    )


def _contradicts(assign: syntax.Assign, script: Script) -> bool:
    """Whether the same block turns `benchmark` on, outside a function or branch made for reproducibility."""
    block = script.source.parents[script.source.statement(assign)]
    beside = any(
        setting.value and script.source.parents[script.source.statement(setting.assign)] is block
        for setting in cudnn.settings(script, "benchmark")
    )
    return beside and not cudnn.is_named_for_reproducibility(script, assign)


RULE = Rule(
    "SPD401",
    on=syntax.Assign,
    check=check,
    triggers=(b"deterministic",),
    worth=Estimate(Worth.MEDIUM, "cuDNN leaves out its fastest convolutions"),
    on_gpu=True,
)
