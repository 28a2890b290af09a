"""An evaluation pass records a graph for a backward pass that never comes.

## What it does
Finds loops that run a module over data, evaluate and never call `backward`, where gradients are on: no `torch.no_grad()`,
`inference_mode()` or `set_grad_enabled` around them, on their function, or where it is called. Also single forward passes
whose output is only argmaxed, those in evaluation mode over all of a set at once, those that choose an action in a loop over
an environment and are never differentiated, and those beside the network that is trained: a teacher's or a target network's,
whose output is only detached.
A pass in a file that is not checked is told at the call of its function. Networks whose parameters need no gradients record
no graph and are passed over.

## Why it is slow
With gradients on, each operation keeps its inputs for the backward pass. That takes time and most of the memory of a
training step, and it rules out the fused inference paths of attention and recurrent layers. `model.eval()` changes dropout
and normalisation only; it does not switch gradients off.

## Example
```python
def evaluate(model, loader):
    model.eval()
    correct = 0
    for images, labels in loader:
        correct += (model(images).argmax(1) == labels).sum()
    return correct
```

## Use instead
```python
import torch


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    correct = 0
    for images, labels in loader:
        correct += (model(images).argmax(1) == labels).sum()
    return correct
```

## Fix safety
Numeric: the fused paths round differently (LSTM 4e-8, TransformerEncoder 1e-6). A function that only evaluates is decorated;
elsewhere the loop alone is put under `with torch.no_grad():`. Both only where each result of the pass is followed to where
it becomes a number, is detached, compared or dropped; where it reaches something out of sight, or is printed or saved as a
tensor, which tells of its graph, the fix is shown, and where it reaches a backward pass, nothing is reported. One function
for training and evaluation is only shown, and code that works with gradients, such as an attack or a gradient penalty, is
left alone. So is a pass through `TransformerEncoder` and its like only shown where the program masks positions or has layers
or methods of its own in them: without gradients torch runs one fused operation in their place. The same holds where a
network keeps what it computes out of sight, in a cache, an object or a listener, or its weights are what the last pass has
made of them (`torch.nn.utils.weight_norm`, `parametrize.cached`), and for a pass within `autocast`, which keeps casts of
weights: what a later loss is made of would have no graph.

## Sources
PyTorch's Performance Tuning Guide: disable gradient calculation for validation or inference.

- [PyTorch: Performance Tuning Guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.cures import spelling
from speedlint.facts import syntax
from speedlint.rule import Edit, Estimate, Finding, Fix, Level, Related, Risk, Rule, Worth
from speedlint.shapes import acting, eras, evaluation
from speedlint.shapes.model.evaluating import is_evaluating
from speedlint.shapes.optimizer import differentiated, discarded
from speedlint.shapes.sync import reads
from speedlint.solve.gradients import gradients_off
from speedlint.solve.loops import Does
from speedlint.solve.terms import Definition
from speedlint.torch.words import Frequency, Role

_SINCE = (1, 0)
"""`torch.no_grad` came with torch 0.4, as a decorator with 0.4.1: what runs on nothing newer was written for older ones."""

_WHEN = {
    Frequency.STEP: "in each training step",
    Frequency.THROTTLED: "every so many training steps",
    Frequency.EPOCH: "beside each round of training steps",
}
_ADVICE = "put it under `with torch.no_grad():`"
_BETWEEN = (Frequency.EPOCH, Frequency.THROTTLED)
_WHOLE = Estimate(Worth.LOW, "one pass for each round of training steps; it keeps the activations of a whole set at once")
_ACTION = Estimate(Worth.LOW, "a seventh of the time that the choice of an action takes, or more")
"""Three layers of 128 units, on one thread of a CPU: 116 to 162 microseconds with gradients on, 100 to 109 with them off."""


def check(node: syntax.For | syntax.Call, script: Script) -> Iterator[Finding]:
    if isinstance(node, syntax.Call):
        found = list(_of_decision(node, script)) or list(_of_acting(node, script)) or list(_of_whole(node, script))
        yield from found or _of_dropped(node, script)
        yield from _behind(node, script)
    elif script.loops.kind(node) is Frequency.EVAL_STEP:
        yield from _of_pass(node, script)
    elif script.loops.kind(node) is Frequency.STEP:
        yield from _of_both(node, script)


def _of_pass(loop: syntax.For, script: Script) -> Iterator[Finding]:
    forward = evaluation.forward_of_pass(script, loop)
    if forward is None or not evaluation.is_evaluation(script, loop) or gradients_off(script, forward) is not False:
        return
    if evaluation.needs_grad(script, loop) or script.is_test or not _can_switch(script):
        return
    message = f"`{script.text(forward)}` records a graph on every evaluation step, and nothing calls backward"
    function = script.function(loop)
    advice = "put the pass under `torch.no_grad()`"
    try:
        is_whole = function is not None and evaluation.only_evaluates(script, function)
        differentiated.check_never(script, function.body if function is not None and is_whole else loop)
        if function is not None and is_whole and eras.can_run_on(script, _SINCE):
            name, imports = spelling.spell(script, "torch.no_grad")
            changes: tuple[Edit, ...] = (edits.insert_before(script.source, function, [f"@{name}()"]), *imports)
        else:
            changes = _wrapped(loop, script)
        yield Finding(forward, message, Fix(changes, Risk.NUMERIC), advice)
    except differentiated.NotProven as reason:
        if not reason.is_certain:
            yield Finding(forward, message, advice=f"{advice} if nothing differentiates its results; not written: {reason}")
    except edits.CannotEdit as error:
        yield Finding(forward, message, advice=f"{advice}; not written here, because {error}")


def _behind(call: syntax.Call, script: Script) -> Iterator[Finding]:
    """A pass that a function runs whose file is not asked for."""
    callee = script.callee(call) if script.loops.is_driven(call) else None
    if callee is None or not isinstance(callee.node, syntax.FunctionDef) or script.is_reported(callee.script):
        return
    if script.frequency(call) not in _BETWEEN or gradients_off(script, call) is not False:
        return
    if next(each for each in script.alike(call) if script.frequency(each) in _BETWEEN) is not call:
        return
    place = callee.script
    for loop in place.source.inside(callee.node.body, syntax.For):
        is_pass = place.function(loop) is callee.node and place.loops.kind(loop) is Frequency.EVAL_STEP
        for each in _of_pass(loop, place) if is_pass else ():
            where = f"{place.path.name}:{place.source.line(each.node)}"
            message = f"`{reads.shown(script, call.func)}(...)` evaluates with gradients on: {each.message} ({where})"
            advice = f"put the pass under `torch.no_grad()` in {place.path.name}; not written: that file is not checked"
            related = (Related(place.source, each.node, "the pass"),)
            level = Level.WARNING if script.frequency(call) is Frequency.EPOCH else Level.NOTE
            yield Finding(call, message, advice=advice, level=level, related=related)
            return


def _wrapped(node: syntax.Node, script: Script) -> tuple[Edit, ...]:
    name, imports = spelling.spell(script, "torch.no_grad")
    return (*edits.wrap(script.source, node, node, f"with {name}():"), *imports)


def _of_both(loop: syntax.For, script: Script) -> Iterator[Finding]:
    """One function trains and evaluates: the backward pass hangs on a parameter."""
    condition = evaluation.both_modes(script, loop)
    forward = evaluation.forward_of_pass(script, loop)
    if condition is None or forward is None or gradients_off(script, forward) is not False:
        return
    if not _can_switch(script):
        return
    test = script.text(condition)
    message = f"`{script.text(forward)}` records a graph even where `{test}` does not hold and nothing calls backward"
    advice = (
        f"run the pass under `torch.set_grad_enabled(...)` with the condition `{test}`, or the evaluating call under "
        "`torch.no_grad()`; not written here, because the function is used for training too"
    )
    yield Finding(forward, message, advice=advice)


def _of_decision(call: syntax.Call, script: Script) -> Iterator[Finding]:
    """A forward pass whose output only decides something, such as an action."""
    if not evaluation.is_only_decided(script, call) or script.frequency(call) < Frequency.THROTTLED:
        return
    if not evaluation.is_network(script, call) or not _can_do_without(script, call):
        return
    message = f"`{script.text(call)}` records a graph, but its output is only argmaxed"
    try:
        yield from _of_statement(call, script, message, Level.WARNING)
    except differentiated.NotProven as reason:
        if not reason.is_certain:
            advice = f"{_ADVICE} if nothing differentiates what it keeps; not written: {reason}"
            yield Finding(call, message, advice=advice, level=Level.WARNING)


def _of_acting(call: syntax.Call, script: Script) -> Iterator[Finding]:
    """A forward pass that chooses an action for an environment, and whose results are proven to reach no backward pass."""
    if not acting.is_asked(script, call) and not _is_in_action(script, call):
        return
    if not _can_do_without(script, call) or _is_told_within(script, call):
        return
    message = (
        f"`{reads.shown(script, call)}` records a graph in each step of the environment, and nothing calls backward on it"
    )
    level = Level.WARNING if evaluation.trains(script) else Level.NOTE
    with contextlib.suppress(differentiated.NotProven):
        yield from _of_statement(call, script, message, level, _ACTION)


def _is_in_action(script: Script, call: syntax.Call) -> bool:
    """Whether a forward pass, whose output is only detached, stands in a method that is asked for an action, by its name."""
    function = script.function(call)
    if function is None or not evaluation.is_only_detached(script, call) or not evaluation.is_network(script, call):
        return False
    return acting.is_asked_by_name(script, function)


def _of_whole(call: syntax.Call, script: Script) -> Iterator[Finding]:
    """A forward pass in evaluation mode over all of a set at once, beside training steps, whose results surely reach no
    backward pass."""
    if _is_within_module(script, call) or script.role(call.func) is not Role.MODULE:
        return
    if not is_evaluating(script, call.func, call):
        return
    often = script.frequency(call)
    if often not in _WHEN or not evaluation.is_network(script, call) or not _can_do_without(script, call):
        return
    if evaluation.is_frozen(script, call):
        return
    message = f"`{reads.shown(script, call)}` evaluates {_WHEN[often]} with gradients on, and nothing calls backward"
    level = Level.NOTE if often is Frequency.THROTTLED else Level.WARNING
    with contextlib.suppress(differentiated.NotProven):
        yield from _of_statement(call, script, message, level, _WHOLE if often is Frequency.EPOCH else None)


def _is_within_module(script: Script, call: syntax.Call) -> bool:
    """Whether a call stands in a method of a module, whose parts follow its mode, in a file that switches none."""
    function = script.function(call)
    owner = script.names.owner(function) if function is not None else None
    if owner is None or script.method_calls("eval", "train"):
        return False
    return script.roles.instance(Definition(script, owner)).role is Role.MODULE


def _can_do_without(script: Script, call: syntax.Call) -> bool:
    """Whether a forward pass by itself, in no evaluation's loop, runs with gradients on where they could be off."""
    if gradients_off(script, call) is not False or evaluation.needs_grad(script, call):
        return False
    return not evaluation.is_in_pass(script, call) and not script.is_test and _can_switch(script)


def _of_statement(
    call: syntax.Call, script: Script, message: str, level: Level, worth: Estimate | None = None
) -> Iterator[Finding]:
    """A forward pass whose statement is put under ``no_grad``. Raises NotProven where something may differentiate it."""
    differentiated.check_alone(script, call)
    differentiated.check_never(script, script.source.statement(call))
    try:
        yield Finding(call, message, Fix(_wrapped(call, script), Risk.NUMERIC), _ADVICE, level, worth=worth)
    except edits.CannotEdit as error:
        advice = f"{_ADVICE}; not written here, because {error}"
        yield Finding(call, message, advice=advice, level=level, worth=worth)


def _of_dropped(call: syntax.Call, script: Script) -> Iterator[Finding]:
    """A forward pass beside the one that is trained, whose output nothing differentiates: a teacher's, which is detached."""
    if not evaluation.is_only_detached(script, call) or not evaluation.is_network(script, call):
        return
    if not _is_in_training(script, call) or evaluation.is_in_pass(script, call):
        return
    if gradients_off(script, call) is not False or evaluation.needs_grad(script, call) or script.is_test:
        return
    if not _can_switch(script) or not discarded.may_take_gradients(script, call.func):
        return
    if evaluation.switches_off(script, call):
        return
    try:
        differentiated.check_never(script, call)
    except differentiated.NotProven as reason:
        if reason.is_certain:
            return
    often = script.frequency(call)
    message = f"`{reads.shown(script, call)}` records a graph {_WHEN[often]}, and its output is only detached"
    advice = f"{_ADVICE}, not written: whether it keeps, or changes in place, what others differentiate"
    level = Level.WARNING if often is Frequency.STEP else Level.NOTE
    yield Finding(call, message, advice=f"{advice} is not known", level=level)


def _is_in_training(script: Script, call: syntax.Call) -> bool:
    """Whether a line runs in training steps, or once before those of its function, as over what an agent has collected."""
    often, function = script.frequency(call), script.function(call)
    if often is Frequency.EPOCH and function is not None:
        return bool(script.loops.function_does(function, Does.STEPS | Does.TRAINS))
    return often in (Frequency.STEP, Frequency.THROTTLED) and evaluation.trains(script)


def _can_switch(script: Script) -> bool:
    """Whether the program's code can run on a release that has ``torch.no_grad``."""
    return eras.can_run_on(script, _SINCE) or script.program.mentions(script, b"no_grad")


def _is_told_within(script: Script, call: syntax.Call) -> bool:
    """Whether ``_of_decision`` tells of the pass in the function that a call runs."""
    callee = script.callee(call)
    return callee is not None and any(
        True for inner in callee.script.source.inside(callee.node, syntax.Call) for _ in _of_decision(inner, callee.script)
    )


RULE = Rule(
    "SPD505",
    on=(syntax.For, syntax.Call),
    check=check,
    triggers=(b"torch",),
    worth=Estimate(Worth.MEDIUM, "the pass keeps all activations for gradients that nobody asks for"),
)
