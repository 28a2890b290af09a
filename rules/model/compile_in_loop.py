"""Each turn of a loop makes a module of another size and compiles it again.

## What it does
Finds, in programs that train, `torch.compile(model)` and `model.compile()` in a loop, or in a function called in one, where
the model is made in the same turn and the turns differ in size: the loop's variable is an argument of the model (its width,
its configuration), or the loop goes over lengths or sizes of the data.

## Why it is slow
Sizes are compiled in, and each compilation takes seconds to minutes, for which the short training of a turn may not pay.
What was compiled is used again for another module of the same class only while its sizes are the same. A parameter of
another size is compiled anew in each turn, and after eight of them torch gives up and runs the module uncompiled; inputs of
another length are compiled a second time, for any length then.

## Example
```python
import torch

for width in (64, 128, 256):
    model = torch.compile(torch.nn.Linear(32, width).cuda())
    train(model)
```

## Use instead
```python
import torch

for width in (64, 128, 256):
    train(torch.nn.Linear(32, width).cuda())
model = torch.compile(torch.nn.Linear(32, best_width(results)).cuda())
train(model)
```

## Fix safety
Shown, never written: whether the training of a turn is long enough to pay for its compilation only a measurement says.
Loops over folds or seeds are left alone, since from torch 2.5 on they compile once; so are layers compiled one by one, and
loops that try one compiler option after another.

## Sources
Run with torch 2.13 on one CPU thread, two Linear layers with a GELU between them: 4 to 12 s for each new width, 0 s for a
new module of the same width, 11 to 13 s for the first new length and 0 s for those after it.
`torch._dynamo.config.recompile_limit` is 8.

- [PyTorch: recompilation](https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/compile/programming_model.recompilation.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Level, Related, Rule, Worth
from speedlint.shapes import evaluation
from speedlint.shapes.model import recompilation, wrapping
from speedlint.source import is_name

_WIDTHS = (
    "compile only the one that is trained for long, and run the search uncompiled; not written here, because only a "
    "measurement says whether a turn pays for its compilation (torch gives up after eight: "
    "`torch._dynamo.config.recompile_limit`)"
)
_LENGTHS = (
    "pass `dynamic=True`, so that one compilation serves all sizes, and compile only where a turn trains for long; not "
    "written here, because only a measurement says whether that is as fast"
)


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    module = wrapping.operand(script, call)
    if module is None or script.is_test or not evaluation.trains(script):
        return
    found = recompilation.repeated(script, call, module)
    if found is None or (not found.sizes and _is_dynamic(script, call)):
        return
    if recompilation.begins_with_recurrence(script, module):
        return
    over = f"for {found.script.text(found.loop.target)} in {found.script.text(found.loop.iter)}"
    what = "makes a model of another size and compiles it anew"
    if not found.sizes:
        what = "compiles a model for another size of data"
    related = (Related(found.script.source, found.loop.iter, "the loop"),)
    yield Finding(
        call,
        f"`{script.text(call)}`: each turn of `{over}` {what}",
        advice=_WIDTHS if found.sizes else _LENGTHS,
        level=Level.WARNING,
        related=related,
    )


def _is_dynamic(script: Script, call: syntax.Call) -> bool:
    dynamic = script.argument(call, "dynamic")
    return dynamic is not None and not is_name(dynamic, "None", "False")


RULE = Rule(
    "SPD602",
    on=syntax.Call,
    check=check,
    triggers=(b"compile(",),
    worth=Estimate(Worth.HIGH, "each compilation takes seconds to minutes"),
)
