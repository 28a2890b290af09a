"""Whether a tensor certainly carries no graph of the operations that made it, so that it can be kept without `.detach()`."""

from __future__ import annotations

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.solve.dtypes import is_integral
from speedlint.solve.gradients import told
from speedlint.solve.names import Kind
from speedlint.torch.methods import FLOATS, RESHAPES

_DERIVED = RESHAPES | FLOATS | frozenset("mean sum abs norm max min clone".split())
_TURNS_ON = (b"enable_grad", b"set_grad_enabled", b"requires_grad_")


def is_graphless(script: Script, tensor: syntax.BaseExpression) -> bool:
    """Whether a tensor is detached, counts something, or is made where gradients are off."""
    return is_integral(script, tensor) or _is_detached(tensor) or _is_made_without_grad(script, tensor)


def _is_detached(tensor: syntax.BaseExpression) -> bool:
    match tensor:
        case syntax.Call(func=syntax.Attribute(attr=syntax.Name(value="detach")), args=[]):
            return True
        case syntax.Call(func=syntax.Attribute(value=inner, attr=syntax.Name(value=method)), args=args) if (
            method in _DERIVED
        ):
            return all(isinstance(arg.value, syntax.Integer) for arg in args) and _is_detached(inner)
        case syntax.Attribute(attr=syntax.Name(value="data")):
            return True
        case syntax.Subscript(value=inner):
            return _is_detached(inner)
    return False


def _is_made_without_grad(script: Script, tensor: syntax.BaseExpression) -> bool:
    if any(mark in script.source.data for mark in _TURNS_ON) or told(script, tensor) is not True:
        return False
    root = tensor
    while isinstance(root, syntax.Attribute | syntax.Subscript):
        root = root.value
    if not isinstance(root, syntax.Name):
        return isinstance(root, syntax.Call | syntax.BinaryOperation)
    bindings = script.names.reaching(root)
    return bool(bindings) and all(
        binding.kind is Kind.ASSIGN
        and isinstance(binding.value, syntax.Call | syntax.BinaryOperation)
        and told(script, binding.value) is True
        for binding in bindings
    )
