"""`zero_grad(set_to_none=False)` writes zeros into every gradient, and the backward pass then adds to them.

## What it does
Finds `zero_grad(set_to_none=False)`; `zero_grad()` where the target release is older than 2.0, whose default that was, and
the project's requirement does not allow a newer one; and loops that call `p.grad.zero_()` on the parameters of a module.
For an optimizer or a module of one or two tensors, such as a temperature that is learned or a last layer alone, it is a
note, and so it is where the target release is older than 1.7, which brought `set_to_none`: a loop over the parameters that
sets `p.grad = None` does the same. A network that is made anew each time has no gradients yet, and is passed over.
It is one as well where the program's defaults run it on the CPU.

## Why it is slow
Every step fills all gradients with zeros, then reads and adds where a plain write would do. With `None` both the fill and
the read are gone, and the memory is free until the backward pass needs it.

## Example
```python
def step(model, optimizer, images):
    optimizer.zero_grad(set_to_none=False)
    model(images).mean().backward()
    optimizer.step()
```

## Use instead
```python
def step(model, optimizer, images):
    optimizer.zero_grad()  # set_to_none=True before torch 2.0
    model(images).mean().backward()
    optimizer.step()
```

## Fix safety
Exact for SGD without momentum and weight decay, which nothing gives it later, such as a state that it loads: a zero gradient
then changes nothing. Else behavior: an optimizer skips parameters whose gradient is None, but a zero gradient still decays
them and moves them by momentum, so parameters that took no part in a step differ (by 0.06 after 20 steps of AdamW in a model
with a branch that is skipped now and then).
Where a gradient is read elsewhere, or the optimizer is the project's own, nothing is written: None may not be expected.

## Sources
PyTorch's Performance Tuning Guide. Measured on a CPU with torch 2.13: steps 1.29x faster.

- [PyTorch: Performance Tuning Guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Edit, Estimate, Finding, Fix, Level, Risk, Rule, Worth
from speedlint.shapes import eras, worth
from speedlint.shapes.optimizer import optimizers
from speedlint.torch.words import Frequency, Role

_SINCE = (1, 7)
"""The release that brought ``set_to_none``."""
_DROPS_SINCE = (2, 0)
_READ = "; not written here, because the program reads or keeps `.grad` elsewhere and may not expect None"
_SCALED = (
    "; not written here, because a `GradScaler` refuses to step an optimizer that has no gradient, as one of several may"
)
_OF_FEW = Estimate(Worth.LOW, "one or two small fills: the optimizer holds no more tensors")
_OWN = "; not written here, because it is not seen whether the optimizer, the project's own, expects None"


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    match call:
        case syntax.Call(func=syntax.Attribute(attr=syntax.Name("zero_grad"))):
            if script.callee(call) is None and script.name(call.func) is None:
                yield from _of_call(call, script)
        case syntax.Call(func=syntax.Attribute(value=gradient, attr=syntax.Name("zero_")), args=[]):
            yield from _of_loop(call, gradient, script)


def _of_call(call: syntax.Call, script: Script) -> Iterator[Finding]:
    assert isinstance(call.func, syntax.Attribute)
    given = script.argument(call, "set_to_none", 0)
    old = _keeps_by_default(script)
    if given is None:
        kept = old and not script.hides_arguments(call) and script.role(call.func.value) in (Role.OPTIMIZER, Role.MODULE)
    else:
        constant = script.constant(given)
        kept = constant is not None and constant.value is False
    if not kept or script.frequency(call) < Frequency.THROTTLED or script.is_test:
        return
    if optimizers.is_of_new_network(script, call, call.func.value):
        return
    message = f"`{script.text(call)}` fills every gradient with zeros instead of dropping it"
    if given is None:
        message += ", as it does by default before torch 2.0"
    torch = script.options.torch
    if torch is not None and torch < _SINCE:
        yield _by_hand(call, message, torch, script)
        return
    yield _finding(call, call.func.value, message, script, _default(call, given, script))


def _by_hand(call: syntax.Call, message: str, torch: tuple[int, int], script: Script) -> Finding:
    """A release without ``set_to_none`` is left with a loop: much for two small kernels a parameter, so it is a note."""
    release = ".".join(map(str, torch))
    advice = f"set each gradient to None instead, `p.grad = None`, in a loop: torch {release} has no `set_to_none`"
    why = _READ if optimizers.reads_gradients(script, call) else "; not written: the loop is for you to place"
    return Finding(call, message, advice=advice + why, level=Level.NOTE)


def _keeps_by_default(script: Script) -> bool:
    """Whether the release that the project runs on keeps the gradients: not where its requirement is open above, since what
    is installed today then drops them."""
    return not eras.allows(script, _DROPS_SINCE)


def _default(call: syntax.Call, given: syntax.BaseExpression | None, script: Script) -> Edit | None:
    """The edit that makes the call drop gradients: by default where that is sure, else in words."""
    arg = next((arg for arg in call.args if arg.value is given), None)
    if given is not None and arg is None:
        return None
    if arg is not None and script.options.torch is not None and script.options.torch >= (2, 0):
        return edits.remove_argument(script.source, arg)
    if arg is not None and arg.keyword is None:
        return edits.replace(script.source, arg.value, "True")
    return edits.set_argument(script.source, call, "set_to_none", "True")


def _finding(node: syntax.Call, owner: syntax.Node, message: str, script: Script, edit: Edit | None) -> Finding:
    found = _cured(node, owner, message, script, edit)
    if optimizers.holds_few(script, owner):
        return found._replace(level=Level.NOTE, worth=_OF_FEW)
    return found


def _cured(node: syntax.Call, owner: syntax.Node, message: str, script: Script, edit: Edit | None) -> Finding:
    advice = "drop the gradients: `optimizer.zero_grad()`, with `set_to_none=True` before torch 2.0"
    made = optimizers.made(script, owner)
    if edit is None or optimizers.reads_gradients(script, node):
        return Finding(node, message, advice=advice + _READ)
    if script.role(owner) is Role.OPTIMIZER and script.value(owner).definition is not None:
        return Finding(node, message, advice=advice + _OWN)
    if script.program.mentions(script, b"GradScaler") and len({script.text(each) for each in _owners(script)}) > 1:
        return Finding(node, message, advice=advice + _SCALED)
    is_exact = optimizers.is_plain_sgd(made) and not optimizers.may_gain_momentum(script)
    risk = Risk.EXACT if is_exact else Risk.BEHAVIOR
    return Finding(node, message, Fix((edit,), risk, _SINCE), advice)


def _owners(script: Script) -> Iterator[syntax.BaseExpression]:
    """What ``zero_grad`` is called on in a file."""
    for call in script.method_calls("zero_grad"):
        assert isinstance(call.func, syntax.Attribute)
        yield call.func.value


def _of_loop(call: syntax.Call, gradient: syntax.BaseExpression, script: Script) -> Iterator[Finding]:
    if isinstance(gradient, syntax.Attribute) and gradient.attr.value == "data":
        gradient = gradient.value
    if (
        not isinstance(gradient, syntax.Attribute)
        or gradient.attr.value != "grad"
        or not isinstance(gradient.value, syntax.Name)
    ):
        return
    loop = optimizers.parameter_loop(script, gradient.value)
    if loop is None or script.frequency(call) < Frequency.THROTTLED:
        return
    statement = script.source.parents[call]
    message = f"`{script.text(call)}` fills each gradient with zeros, one kernel a parameter, instead of dropping it"
    if isinstance(statement, syntax.Expr) and not optimizers.reads_gradients(script, loop) and _is_last(call, loop, script):
        edit = edits.replace(script.source, call, f"{script.text(gradient)} = None")
        advice = "set the gradient to None, or call `optimizer.zero_grad()`"
        yield Finding(call, message, Fix((edit,), Risk.BEHAVIOR), advice)
    else:
        yield Finding(call, message, advice="set the gradients to None with `zero_grad(set_to_none=True)`" + _READ)


def _is_last(call: syntax.Call, loop: syntax.For, script: Script) -> bool:
    """Whether nothing in the loop follows the call, so that nothing there can miss the gradient."""
    return script.source.last(loop.body) == script.source.last(call)


RULE = Rule(
    "SPD501",
    on=syntax.Call,
    check=check,
    triggers=(b"zero_grad", b".zero_("),
    worth=worth.ZEROS,
    cause=worth.one_step("SPD501"),
    on_gpu=True,
)
