"""Where a program makes its networks compute in float64, and what it may need that for."""

from __future__ import annotations

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes import evaluation
from speedlint.shapes.training import roots, trained_modules
from speedlint.solve.flow import once
from speedlint.torch.words import Role

_NAMES = frozenset({"torch.float64", "torch.double", "torch.DoubleTensor", "torch.cuda.DoubleTensor"})
_MARKS = (b"double", b"float64", b"DoubleTensor")
_SETTERS = ("torch.set_default_dtype", "torch.set_default_tensor_type")
_NEEDS = frozenset("gpytorch botorch deepxde torchdiffeq torchsde pyro".split())
_CHECKS = (
    "torch.autograd.gradcheck",
    "torch.autograd.gradgradcheck",
    "torch.autograd.gradcheck.gradcheck",
    "torch.autograd.functional.hessian",
    "torch.func.hessian",
    "torch.optim.LBFGS",
)


def makes_default_double(script: Script, call: syntax.Call) -> bool:
    """Whether a call makes float64 the default of the program's training, and nothing sets it back."""
    if script.name(call.func) not in _SETTERS or not call.args or not _is_double(script, call.args[0].value):
        return False
    again = (other for other in script.calls(*_SETTERS) if script.function(other) is script.function(call))
    return not any(script.order.runs_again(call, other) for other in again if other is not call) and evaluation.trains(
        script
    )


def makes_module_double(script: Script, call: syntax.Call) -> bool:
    """Whether a call is ``model.double()`` or ``model.to(torch.float64)`` of a module that the program trains."""
    if not isinstance(call.func, syntax.Attribute) or script.name(call.func) is not None:
        return False
    base, method = call.func.value, call.func.attr.value
    if method == "double":
        turns = not call.args
    else:
        dtype = script.argument(call, "dtype", 1)
        given = [arg.value for arg in call.args if arg.keyword is None]
        turns = method in ("to", "type") and any(_is_double(script, each) for each in (*given, *([dtype] if dtype else [])))
    if not turns or script.role(base) is not Role.MODULE:
        return False
    trained = {id(node) for _, node in trained_modules(script)}
    return any(id(node) in trained for _, node in roots(script, base))


@once(False)
def computes_in_double(script: Script) -> bool:
    """Whether the program makes the networks that it trains compute in float64, which neither autocast nor TF32 changes."""
    return any(
        makes_default_double(place, call) or makes_module_double(place, call)
        for place in script.everywhere(*_MARKS)
        if any(mark in place.source.data for mark in _MARKS)
        for call in place.source.of(syntax.Call)
    )


def _is_double(script: Script, expression: syntax.BaseExpression) -> bool:
    if script.name(expression) in _NAMES:
        return True
    known = script.constant(expression)
    return known is not None and known.value in _NAMES


def may_be_needed(script: Script) -> bool:
    """Whether the program does what float32 is too coarse for: second derivatives, LBFGS, Gaussian processes, physics."""
    if next(script.calls_everywhere(*_CHECKS), None) is not None:
        return True
    gradients = script.calls_everywhere("torch.autograd.grad")
    if any(place.argument(call, "create_graph") is not None for place, call in gradients):
        return True
    marks = tuple(name.encode() for name in _NEEDS)
    return any(_imports(place) for place in script.everywhere(*marks))


def _imports(script: Script) -> bool:
    packages = {dotted.partition(".")[0] for _, dotted in script.names.imports}
    return not packages.isdisjoint(_NEEDS)
