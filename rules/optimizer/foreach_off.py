"""`foreach=False` updates one parameter after the other, with several kernels for each.

## What it does
Finds optimizers of `torch.optim`, and `clip_grad_norm_`, that are told `foreach=False` in programs for a GPU. Where it goes
with `fused=True` or `differentiable=True`, or an option decides, it is left alone.

## Why it is slow
A model has hundreds of parameters, most of them small. The loop over them starts several kernels for each one, and the GPU
is done with each before the next has started. The default takes all parameters in a few kernels.

## Example
```python
import torch


def make_optimizer(model):
    return torch.optim.AdamW(model.cuda().parameters(), lr=1e-3, foreach=False)
```

## Use instead
```python
import torch


def make_optimizer(model):
    return torch.optim.AdamW(model.cuda().parameters(), lr=1e-3)
```

## Fix safety
Numeric: the same formula, rounded in another order. Temporary memory grows by the size of the parameters; where that is
the reason for `foreach=False`, `fused=True` needs none. Written for torch 2.0 and later, whose default is the fast form
on a GPU.

## Sources
PyTorch's documentation of `torch.optim`: the foreach implementation is typically faster than the single-tensor for-loop.

- [PyTorch: torch.optim](https://docs.pytorch.org/docs/stable/optim.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Fix, Level, Risk, Rule, Worth
from speedlint.shapes import eras, evaluation
from speedlint.shapes.optimizer import optimizers
from speedlint.source import is_name

_SINCE = (2, 0)
"""The release from which on ``foreach`` is the default on a GPU."""
_OPTIMIZERS = frozenset(
    f"torch.optim.{name}" for name in "Adadelta Adagrad Adam AdamW Adamax ASGD NAdam RAdam RMSprop Rprop SGD".split()
)
_CLIPS = ("torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_value_")
_OTHERS = ("fused", "differentiable")


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    given = next((arg for arg in call.args if is_name(arg.keyword, "foreach")), None)
    if given is None or not isinstance(given.value, syntax.Name) or given.value.value != "False":
        return
    name = script.name(call.func)
    if (name not in _OPTIMIZERS and name not in _CLIPS) or any(script.argument(call, other) for other in _OTHERS):
        return
    if script.hides_arguments(call) or not _matters(script):
        return
    what = "clips" if name in _CLIPS else "updates"
    message = f"`foreach=False` {what} the parameters one after the other"
    fix = Fix((edits.remove_argument(script.source, given),), Risk.NUMERIC, _SINCE)
    yield Finding(call, message, fix, "drop it: the default takes all parameters in a few kernels", Level.WARNING)


def _matters(script: Script) -> bool:
    if not script.on_gpu or not evaluation.trains(script) or script.is_test:
        return False
    return eras.can_run_on(script, _SINCE) and not optimizers.is_sharded(script)


RULE = Rule(
    "SPD503",
    on=syntax.Call,
    check=check,
    triggers=(b"foreach",),
    worth=Estimate(Worth.MEDIUM, "the update takes a kernel or more for each parameter"),
)
