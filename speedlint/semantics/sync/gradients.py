"""Whether a tensor certainly carries no graph of the operations that made it, so that it can be kept without `.detach()`."""

from __future__ import annotations

import libcst as cst

from speedlint.semantics import library
from speedlint.semantics.dtypes import is_integral
from speedlint.semantics.names import Kind
from speedlint.semantics.script import Script

_DERIVED = frozenset("mean sum float squeeze view reshape flatten abs norm max min clone".split())
_TURNS_ON = (b"enable_grad", b"set_grad_enabled", b"requires_grad_")


def is_graphless(script: Script, tensor: cst.BaseExpression) -> bool:
    """Whether a tensor is detached, counts something, or is made where gradients are off."""
    return is_integral(script, tensor) or _is_detached(tensor) or _is_made_without_grad(script, tensor)


def _is_detached(tensor: cst.BaseExpression) -> bool:
    match tensor:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="detach")), args=[]):
            return True
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value=method)), args=args) if method in _DERIVED:
            return all(isinstance(arg.value, cst.Integer) for arg in args) and _is_detached(inner)
        case cst.Attribute(attr=cst.Name(value="data")):
            return True
        case cst.Subscript(value=inner):
            return _is_detached(inner)
    return False


def _is_made_without_grad(script: Script, tensor: cst.BaseExpression) -> bool:
    if any(mark in script.source.data for mark in _TURNS_ON) or not _has_grad_off(script, tensor):
        return False
    root = tensor
    while isinstance(root, cst.Attribute | cst.Subscript):
        root = root.value
    if not isinstance(root, cst.Name):
        return isinstance(root, cst.Call | cst.BinaryOperation)
    bindings = script.names.reaching(root)
    return bool(bindings) and all(
        binding.kind is Kind.ASSIGN
        and isinstance(binding.value, cst.Call | cst.BinaryOperation)
        and _has_grad_off(script, binding.value)
        for binding in bindings
    )


def _has_grad_off(script: Script, node: cst.CSTNode) -> bool:
    """Whether the node's own function, or a block in it, is under ``no_grad``."""
    for up in script.source.ancestors(node):
        match up:
            case cst.With(items=items) if any(_is_off(script, item.item) for item in items):
                return True
            case cst.FunctionDef(decorators=decorators):
                return any(_is_off(script, each.decorator) for each in decorators)
            case cst.Lambda() | cst.ClassDef():
                return False
    return False


def _is_off(script: Script, expression: cst.BaseExpression) -> bool:
    func = expression.func if isinstance(expression, cst.Call) else expression
    name = script.name(func)
    plain = not isinstance(expression, cst.Call) or not expression.args
    return plain and name in library.NO_GRADS and not name.endswith("set_grad_enabled")
