"""`gradcheck` computes each derivative a second time, by small differences, in the training loop.

## What it does
Finds `torch.autograd.gradcheck` and `gradgradcheck` in loops of training or evaluation steps, and as a note where they run
once an epoch or where a condition asks for them. Once before training, or in a test, they are in their place.

## Why it is slow
For each number of each input the function is called twice, and each output needs its own backward pass, all in double
precision: thousands of passes for one check, whose answer is the same in every step.

## Example
```python
import torch

for images, labels in loader:
    assert torch.autograd.gradcheck(MyFunction.apply, (inputs.double(),))
    train_step(images, labels)
```

## Use instead
```python
import torch

assert torch.autograd.gradcheck(MyFunction.apply, (inputs.double(),))
for images, labels in loader:
    train_step(images, labels)
```

## Fix safety
Exact where an autograd function, or one of torch's own, is checked and the answer is not used: it has no effect but an
error. It is shown where a module or a function of the project is checked, which may draw random numbers or update
statistics as it runs, and where the answer is used.

## Sources
PyTorch's documentation of `gradcheck`: meant for double precision, compares with derivatives by finite differences.

- [PyTorch: gradcheck](https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.edits import CannotEdit, delete_statement
from speedlint.facts import syntax
from speedlint.rule import Edit, Estimate, Finding, Fix, Level, Risk, Rule, Worth
from speedlint.shapes.backend import intent
from speedlint.shapes.backend.intent import Intent
from speedlint.shapes.sync import reads
from speedlint.torch.words import FREQUENT, Frequency

_CHECKS = tuple(f"torch.autograd.{module}{name}" for module in ("", "gradcheck.") for name in ("gradcheck", "gradgradcheck"))
_ADVICE = "check it once before training, or in a test"


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    if not script.is_call_to(call, *_CHECKS) or script.is_test:
        return
    frequency, asked = script.frequency(call), intent.of(script, call)
    if frequency is Frequency.ONCE or asked is Intent.NEVER:
        return
    level = Level.WARNING if frequency in FREQUENT and asked is Intent.ALWAYS else Level.NOTE
    often = reads.often(script, call) or "in every epoch"
    message = f"`{reads.shown(script, call.func)}(...)` computes derivatives by finite differences {often}"
    try:
        fix = Fix(_dropped(call, script), Risk.EXACT)
    except CannotEdit as reason:
        yield Finding(call, message, advice=f"{_ADVICE}; not rewritten, since {reason}", level=level)
    else:
        yield Finding(call, message, fix, _ADVICE, level)


def _dropped(call: syntax.Call, script: Script) -> tuple[Edit, ...]:
    function = script.argument(call, "func", 0)
    is_pure = isinstance(function, syntax.Attribute) and function.attr.value == "apply"
    if function is None or not (is_pure or (script.name(function) or "").startswith("torch.nn.functional.")):
        raise CannotEdit("what it calls may draw random numbers or update statistics")
    statement = script.source.parents[call]
    if not (isinstance(statement, syntax.Expr) or (isinstance(statement, syntax.Assert) and statement.test is call)):
        raise CannotEdit("its answer is used")
    return delete_statement(script.source, statement)


RULE = Rule(
    "SPD409",
    on=syntax.Call,
    check=check,
    triggers=(b"gradcheck", b"gradgradcheck"),
    worth=Estimate(Worth.HIGH, "each gradient is computed again by differences, number by number"),
)
