"""The optimizer launches several kernels a step where its fused form launches one or two.

## What it does
Finds `torch.optim.Adam`, `AdamW`, `SGD` and `Adagrad` made for a module's parameters in a script that trains on a GPU,
without `fused`, `foreach`, `differentiable` or `capturable`; the adaptive ones in a script that trains on the CPU, where
the target is torch 2.4 or newer; and optimizers that update one parameter after another in Python, such as `BertAdam`.

It is a note where the update is next to nothing beside its step: SGD under convolutions, unless wide Linear layers hold most
parameters; a network that goes through time in Python; one behind a frozen network; items that are parsed, or decoded
or read from a file of arrays without workers; one update for many batches.

## Why it is slow
By default each formula of the update is a kernel over all parameters, which reads and writes them from memory every time.
The fused form does the whole update in one pass. Under a `GradScaler` it also checks for infinities on the GPU instead
of waiting for the answer. On the CPU the default goes from parameter to parameter, and for each from operation to
operation.

## Example
```python
import torch

model = torch.nn.Linear(512, 512).to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
```

## Use instead
```python
import torch

model = torch.nn.Linear(512, 512).to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
```

## Fix safety
Numeric: the same formula, rounded in another order. Since torch 2.4 the fused form runs on the CPU as well (Adagrad's on
both since 2.12), so that `fused=True` is written wherever the model lies. Where the target is older or unknown it raises for
parameters that are not on the GPU yet, and is written only where they are known to be; where the device is chosen at run
time the argument asks for it, and is None, the default, on any other: `False` would switch `foreach` off too. There nothing
is written where the model may be moved after the optimizer is made, by whatever name. Nothing is written either where the
model is sharded; nor for complex parameters, where it raises; nor for SGD with momentum
beside a loss scaler: where the first step overflows and is skipped, the fused form keeps a momentum that nobody has set
(torch 2.13). It also stops with an error where a parameter gets its first gradient in a later step than others, after a
layer is thawed or by a branch that is seldom taken: for SGD with momentum it is written only where one step runs one whole
network that chooses nothing. Beside a loss scaler nothing is written where hooks watch the optimizer's steps: the fused form
is handed gradients that are still scaled, and also the steps that are skipped; nor where a state is loaded, since one that
was saved without `fused` turns it off again, which the scaler is not told. The fused form goes through parameters and
gradients side by side in memory, whatever their strides: nothing is written where a program sets gradients itself, or makes
parameters of some columns of a tensor. Needs torch 2.0 for Adam and AdamW, 2.3 for
SGD, and 2.12 for Adagrad on a GPU (the fused form of 2.4 was for the CPU alone). Optimizers of a probe, which tries batch
sizes or times a layer on made-up data, are left alone; so are SGD with nothing but a learning rate, which is one kernel as
it is, optimizers with a group for each parameter, which stay a kernel a group, and those that step once.

## Sources
PyTorch pull request 96755 reports 9% for a whole training step; issue 121857 reports a slower step on one GPU, so let
`speedlint verify` decide. On the CPU (pull requests 123074, 123629 and 124905) an update of Adam takes a half to a fifth of
its time: measured with torch 2.13 on one core, steps of small networks became 1.06 to 2.2 times as fast under Adam, and
under SGD with momentum at most 1.07 times.

- [pytorch/pytorch, pull request 96755](https://github.com/pytorch/pytorch/pull/96755)
- [pytorch/pytorch, issue 121857](https://github.com/pytorch/pytorch/issues/121857)
- [pytorch/pytorch, pull request 123074](https://github.com/pytorch/pytorch/pull/123074)
- [pytorch/pytorch, pull request 123629](https://github.com/pytorch/pytorch/pull/123629)
- [pytorch/pytorch, pull request 124905](https://github.com/pytorch/pytorch/pull/124905)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.cures import spelling
from speedlint.facts import syntax
from speedlint.rule import Edit, Estimate, Finding, Fix, Level, Risk, Rule, Worth
from speedlint.shapes import devices, eras, evaluation, hosted, negligible, probes, training, worth
from speedlint.shapes.optimizer import first_gradients, listed, optimizers, strides
from speedlint.shapes.optimizer.optimizers import Where
from speedlint.solve import dtypes
from speedlint.solve.terms import Made
from speedlint.torch.words import Frequency

_SINCE = {"Adam": (2, 0), "AdamW": (2, 0), "SGD": (2, 3), "Adagrad": (2, 12)}
_ON_EACH_DEVICE = {"Adam": (2, 4), "AdamW": (2, 4), "SGD": (2, 4), "Adagrad": (2, 12)}
_ON_APPLE = (2, 5)
_ADAPTIVE = ("torch.optim.Adam", "torch.optim.AdamW", "torch.optim.Adagrad")
_FUSED = {f"torch.optim.{name}": since for name, since in _SINCE.items()}
_OTHER_DEVICES = re.compile(rb"(?i)torch_xla|torch_directml|ipex|torch_npu|\b[nx]pu\b")
_ON_HOST = Estimate(Worth.MEDIUM, "on the CPU an update of a small network is a twentieth to a half of its step")
_LEGACY = ("BertAdam", "OpenAIAdam")
_DIFFERS = "its schedule and correction of the bias may differ"
_UNSET_MOMENTUM = "its momentum starts unset where the scaler skips the first step"
_OLD_STATE = "a state that was saved without it turns it off, while a loss scaler takes it to be on, which raises"
_WATCHED = "hooks of its step would see scaled gradients, and the steps that the scaler skips"
_LATER_GRADIENTS = (
    "it stops where a parameter gets its first gradient in a later step than others, and whether one does is not known"
)
_TWICE = (
    "the modules that it is handed one after the other may share parameters, whose steps the fused form counts twice at once"
)
_MOVED_LATER = (
    "the model is moved to its device only after the optimizer is made",
    "the model may be moved to its device after the optimizer is made",
    "Accelerate moves the model to its device after the optimizer is made",
    "it is not seen whether the parameters are on the GPU when it is made",
)
"""Why the parameters may be on the CPU when the optimizer is made."""
_CLASHES = ("fused", "foreach", "differentiable", "capturable")


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    name = script.name(call.func)
    if name is None or not call.args:
        return
    if name in _FUSED and _is_worth_it(call, name, script):
        yield _finding(call, name, script)
    elif _is_legacy(name) and script.on_gpu and optimizers.parameters(script, call) and not script.is_test:
        message = f"`{script.text(call.func)}` updates one parameter after another in Python"
        advice = f"use {_successor(script)}; not written here, because {_DIFFERS}"
        yield Finding(call, message, advice=advice, level=Level.WARNING)


def _is_legacy(name: str) -> bool:
    return (name.startswith("transformers.") and name.endswith(".AdamW")) or name.rpartition(".")[2] in _LEGACY


def _successor(script: Script) -> str:
    """What updates all parameters at once on the releases that the script can run on."""
    if eras.may_be_on(script, _SINCE["AdamW"]):
        return "`torch.optim.AdamW(..., fused=True)`, which torch 2.0 brought"
    return "`apex.optimizers.FusedAdam`, as torch's own fused form came with torch 2.0"


def _is_worth_it(call: syntax.Call, name: str, script: Script) -> bool:
    if (
        not (script.on_gpu or (name in _ADAPTIVE and _runs_everywhere(script, name)))
        or not eras.can_run_on(script, _FUSED[name])
        or script.hides_arguments(call)
        or any(script.argument(call, clash) for clash in _CLASHES)
    ):
        return False
    if script.is_test or not evaluation.trains(script) or script.frequency(call) is Frequency.STEP:
        return False
    if not training.leaves_optimizer(script):
        return False
    if optimizers.has_sparse_gradients(script) or optimizers.is_remote(script) or probes.serves_probe(script, call):
        return False
    if optimizers.is_plain_sgd(Made(script, call)) or optimizers.has_group_a_parameter(script, call):
        return False
    return bool(optimizers.parameters(script, call)) and optimizers.steps_in_loop(script, call)


def _finding(call: syntax.Call, name: str, script: Script) -> Finding:
    last = name.rpartition(".")[2]
    does = "updates the parameters in several kernels a step; its fused form takes one or two"
    estimate = worth.UPDATE
    is_shipped_for_host = script.on_gpu and hosted.runs_on_host(script)
    is_on_host = not script.on_gpu and not devices.may_be_mps(script)
    if is_on_host or (is_shipped_for_host and name in _ADAPTIVE and _runs_everywhere(script, name)):
        does = "updates one parameter after another, each by several operations; its fused form takes one pass"
        estimate = _ON_HOST
    message = f"`{script.text(call.func)}` {does}"
    value, why = _value(call, name, script)
    level = Level.WARNING if eras.may_be_on(script, _FUSED[name]) else Level.NOTE
    if level is Level.WARNING and (trifle := negligible.why_update(script, call)) is not None:
        level, estimate = Level.NOTE, Estimate(Worth.LOW, trifle)
    elif is_shipped_for_host and estimate is not _ON_HOST:
        level, estimate = Level.NOTE, worth.ON_HOST
    if value is None:
        return Finding(call, message, advice=_by_hand(name, why), level=level, worth=estimate, since=_FUSED[name])
    try:
        imports: tuple[Edit, ...] = ()
        if value.startswith("next("):
            spelling.builtin(script, "next", call)
        if value.startswith("torch."):
            asked, _, rest = value.partition("()")
            spelled, imports = spelling.spell(script, asked)
            value = f"{spelled}(){rest}"
        edit = edits.set_argument(script.source, call, "fused", value)
    except edits.CannotEdit as error:
        advice = f"pass `fused=True`; not written here, because {error}"
        return Finding(call, message, advice=advice, level=level, worth=estimate, since=_FUSED[name])
    advice = f"pass `fused={value}`: one pass over the parameters of this {last}"
    return Finding(call, message, Fix((edit, *imports), Risk.NUMERIC, _FUSED[name]), advice, level, worth=estimate)


def _by_hand(name: str, why: str) -> str:
    """What to do where nothing is written: the model first, where the parameters may be on the CPU still."""
    release, on_each = (".".join(map(str, each)) for each in (_FUSED[name], _ON_EACH_DEVICE[name.rpartition(".")[2]]))
    does = f"pass `fused=True` (torch {release})"
    if why in _MOVED_LATER:
        first = "move the model to its device before the optimizer is made"
        does = f"{first}, and only then {does}: before torch {on_each} it raises for parameters on the CPU"
    elif why is _UNSET_MOMENTUM:
        does = f"{does} with bfloat16 alone, which needs no loss scaler"
    return f"{does}; not written here, because {why}"


def _runs_everywhere(script: Script, name: str) -> bool:
    """Whether the fused form runs on each device that the script may choose, by the target and what a README asks for."""
    target, since = script.options.torch, _ON_EACH_DEVICE[name.rpartition(".")[2]]
    if target is None or target < since or eras.is_told_older(script, since):
        return False
    if script.program.mentions(script, _OTHER_DEVICES):
        return False
    return not devices.may_be_mps(script) or (target >= _ON_APPLE and name != "torch.optim.Adagrad")


def _value(call: syntax.Call, name: str, script: Script) -> tuple[str | None, str]:
    """What to write for ``fused``; None and the reason where nothing is safe."""
    if optimizers.is_sharded(script):
        return None, "the model is sharded"
    if training.is_apex_driven(script):
        return None, "apex takes part in the optimizer's step"
    if dtypes.has_complex_parameters(script):
        return None, "it raises for complex parameters"
    if (unlike := strides.why_unlike(script)) is not None:
        return None, unlike
    if listed.may_be_twice(script, call):
        return None, _TWICE
    if optimizers.may_be_scaled(script) and optimizers.loads_state(script):
        return None, _OLD_STATE
    if optimizers.has_momentum(Made(script, call)) and optimizers.may_be_scaled(script):
        return None, _UNSET_MOMENTUM
    if optimizers.has_momentum(Made(script, call)) and not first_gradients.is_shared(script, call):
        return None, _LATER_GRADIENTS
    if optimizers.may_be_watched(script) and optimizers.may_be_scaled(script):
        return None, _WATCHED
    if _runs_everywhere(script, name):
        return "True", ""
    if training.is_framework_driven(script):
        return None, _MOVED_LATER[2]
    held = optimizers.parameters(script, call)
    found = list(dict.fromkeys(optimizers.whereabouts(one.script, one.module) for one in held))
    if any(one.where is Where.LATER for one in found):
        return None, _MOVED_LATER[0]
    if len(found) == 1 and found[0].where is Where.ON_GPU:
        return "True", ""
    if len(found) == 1 and found[0].where is Where.BY_CUDA:
        return "torch.cuda.is_available() or None", ""
    if len(found) == 1 and found[0].where is Where.BY_DEVICE and all(one.script is script for one in held):
        return f"{devices.is_of_cuda(found[0].device)} or None", ""
    return _asked(call, script, held)


def _asked(call: syntax.Call, script: Script, held: list[optimizers.Parameters]) -> tuple[str | None, str]:
    """The question to the parameters themselves, where one plain variable holds them."""
    module = held[0].module
    plain = isinstance(module, syntax.Name) or (
        isinstance(module, syntax.Attribute) and isinstance(module.value, syntax.Name)
    )
    here = held[0].script is script and script.function(module) is script.function(call)
    if len(held) == 1 and plain and here:
        if optimizers.may_be_moved_later(script, module):
            return None, _MOVED_LATER[1]
        return f"next({script.text(module)}.parameters()).is_cuda or None", ""
    return None, _MOVED_LATER[3]


RULE = Rule(
    "SPD502",
    on=syntax.Call,
    check=check,
    triggers=(b"Adam", b"SGD", b"Adagrad"),
    worth=worth.UPDATE,
    cause=worth.one_setup("SPD502"),
)
