"""Mixed precision is built in, and its switch is off unless somebody asks for it.

## What it does
Follows what decides whether autocast takes effect, `enabled=...` or the condition around it, through parameters,
configuration classes and command-line options of the whole program, to the default that is written down; reports defaults
that are off, are named for mixed precision, and leave no autocast on. Switches of apex, and of what an `Accelerator` is
given as `mixed_precision`, are shown.

## Why it is slow
All that mixed precision needs is there, tried by the author, and runs only when somebody knows the switch. Without it the
step runs in float32, without tensor cores, at twice the memory.

## Example
```python
import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--use_amp", action="store_true")
args = parser.parse_args()
scaler = torch.amp.GradScaler("cuda", enabled=args.use_amp)
```

## Use instead
```python
import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--use_amp", action=argparse.BooleanOptionalAction, default=True)
args = parser.parse_args()
scaler = torch.amp.GradScaler("cuda", enabled=args.use_amp)
```

## Fix safety
The training is the one that the author gets with the switch on. The default is edited where it is written: numeric, or
behavior for an option of the command line, whose default others may rely on. A `store_true` option becomes a
`BooleanOptionalAction` (Python 3.9), so that `--use_amp` goes on to work and `--no-use_amp` turns it off. Nothing is written
where gradients are read or clipped while a loss scaler's factor is in them, nor where the switch decides more: an error that
is raised, or the name of a folder. Scripts that pass the option by themselves do not change.

## Sources
PyTorch's automatic mixed precision documentation and Hugging Face's performance guide: 1.3 to 3 times faster on tensor
cores.

- [PyTorch: torch.amp](https://docs.pytorch.org/docs/stable/amp.html)
- [Hugging Face: training on one GPU](https://huggingface.co/docs/transformers/perf_train_gpu_one)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.cures import switching
from speedlint.cures.halves import refuse_known_hazards
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Finding, Fix, Level, Related, Risk, Rule
from speedlint.shapes import worth
from speedlint.shapes.optimizer import optimizers
from speedlint.shapes.precision import switches
from speedlint.shapes.sync import reads
from speedlint.solve.values import option_of


def check(module: syntax.Module, script: Script) -> Iterator[Finding]:
    for switch in switches.amp_off(script):
        if switch.setting.script is script and script.on_gpu:
            yield _finding(switch)


def _finding(switch: switches.Switch) -> Finding:
    setting = switch.setting
    message = f"mixed precision is built in (`{reads.shown(switch.script, switch.call.func)}`) and off by default"
    related = (Related(switch.script.source, switch.call, "what it turns on"),)
    advice = "make it the default"
    try:
        refuse_known_hazards(setting.script, half=True)
        _refuse_scaled_gradients(switch.script)
        is_option = option_of(setting.script, setting.node) is not None
        fix = Fix(switching.turned_on(switch), Risk.BEHAVIOR if is_option else Risk.NUMERIC)
    except CannotEdit as reason:
        advice = f"{advice}; not rewritten, since {reason}"
        return Finding(setting.node, message, advice=advice, level=Level.WARNING, related=related)
    return Finding(setting.node, message, fix, advice, Level.WARNING, related)


def _refuse_scaled_gradients(script: Script) -> None:
    """Raises CannotEdit where the program reads or clips gradients and nothing takes a loss scaler's factor out of them."""
    mentions = script.program.mentions
    if mentions(script, b"GradScaler") and not mentions(script, b"unscale_"):
        if mentions(script, b"clip_grad"):
            raise CannotEdit("gradients are clipped while the loss scaler's factor is in them")
        if optimizers.reads_gradients(script):
            raise CannotEdit("gradients are read while the loss scaler's factor is in them")


RULE = Rule(
    "SPD108",
    on=syntax.Module,
    check=check,
    triggers=(b"False", b"store_true", b"0", b'"no"', b"'no'"),
    worth=worth.HALF_PRECISION,
)
