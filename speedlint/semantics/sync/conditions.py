"""Conditions on device tensors: to take a branch, Python has to know the value, and waits for it.

A tensor that a library's call hands back may be something else (``if outputs:``); only what is computed here, a comparison,
``.any()``, ``torch.isnan(...)``, is taken for one.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from speedlint.semantics.names import Kind
from speedlint.semantics.script import Script
from speedlint.semantics.terms import Role
from speedlint.source import last_statement

CONDITIONAL = (cst.If, cst.While, cst.Assert, cst.IfExp, cst.Call)
Conditional = cst.If | cst.While | cst.Assert | cst.IfExp | cst.Call
_ASKS = frozenset({"torch.equal", "torch.allclose", "torch.is_nonzero", "math.isfinite", "math.isnan", "math.isinf"})
_ASKING_METHODS = frozenset({"equal", "allclose", "is_nonzero"})
_FINITE = frozenset("isfinite isnan isinf".split())
_DEPTH = 3


def asked(script: Script, node: Conditional) -> Iterator[cst.BaseExpression]:
    """The device tensors whose value decides how the script goes on at ``node``: in its test, or by its very call."""
    if not isinstance(node, cst.Call):
        yield from _truths(script, node.test)
        return
    is_method = isinstance(node.func, cst.Attribute) and node.func.attr.value in _ASKING_METHODS
    name = script.name(node.func)
    if name in _ASKS or (name is None and is_method):
        operands = [arg.value for arg in node.args]
        if name is None and isinstance(node.func, cst.Attribute):
            operands.append(node.func.value)
        if any(_is_tensor(script, operand) for operand in operands):
            yield node


def within(script: Script, block: cst.CSTNode) -> Iterator[tuple[Conditional, cst.BaseExpression]]:
    """All that ``asked`` finds in a block, each with the node that asks."""
    inside = script.source.inside
    nodes: list[Conditional] = [*inside(block, cst.If), *inside(block, cst.While), *inside(block, cst.Assert)]
    nodes += [*inside(block, cst.IfExp), *inside(block, cst.Call)]
    for node in nodes:
        yield from ((node, test) for test in asked(script, node))


def _truths(script: Script, test: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    match test:
        case cst.BooleanOperation(left=left, right=right):
            yield from _truths(script, left)
            yield from _truths(script, right)
        case cst.UnaryOperation(operator=cst.Not(), expression=inner) | cst.NamedExpr(value=inner):
            yield from _truths(script, inner)
        case _ if _is_computed(script, test, _DEPTH):
            yield test


def _is_computed(script: Script, test: cst.BaseExpression, depth: int) -> bool:
    """Whether the truth of an expression is that of a tensor made by an operation on a device tensor."""
    match test:
        case cst.Comparison(left=left, comparisons=targets):
            sides = (left, *(target.comparator for target in targets))
            comparable = all(script.role(side) not in (Role.STRING, Role.NONE, Role.SEQUENCE) for side in sides)
            return comparable and _is_tensor(script, test)
        case cst.BinaryOperation(operator=cst.BitAnd() | cst.BitOr()) | cst.UnaryOperation(operator=cst.BitInvert()):
            return _is_tensor(script, test)
        case cst.Call(func=func):
            of_torch = (script.name(func) or "").startswith("torch.")
            of_tensor = isinstance(func, cst.Attribute) and script.role(func.value) is Role.TENSOR
            return (of_torch or of_tensor) and _is_tensor(script, test)
        case cst.Name() if depth:
            bindings = script.names.reaching(test)
            return bool(bindings) and all(
                binding.kind is Kind.ASSIGN
                and not binding.path
                and binding.value is not None
                and _is_computed(script, binding.value, depth - 1)
                for binding in bindings
            )
    return False


def _is_tensor(script: Script, expression: cst.BaseExpression) -> bool:
    return script.is_device_tensor(expression) and not script.value(expression).assumed


def ends_loop(node: Conditional) -> bool:
    """Whether the condition only decides when an inner loop is over, as where each sequence has reached its end."""
    if isinstance(node, cst.While):
        return True
    return isinstance(node, cst.If) and isinstance(last_statement(node.body), cst.Break)


def depends_on_data(script: Script, node: cst.CSTNode) -> bool:
    """Whether a line runs only for some data: under a condition, within its function, on a tensor or on its shape."""
    child: cst.CSTNode = node
    for up in script.source.ancestors(node):
        if isinstance(up, cst.FunctionDef):
            return False
        if isinstance(up, (cst.If, cst.IfExp)) and child is not up.test and _is_of_tensors(script, up.test):
            return True
        child = up
    return False


def _is_of_tensors(script: Script, test: cst.BaseExpression) -> bool:
    names = (each for each in script.source.inside(test, cst.Name) if _is_looked_into(script, each))
    return any(script.role(each) in (Role.TENSOR, Role.BATCH) for each in names)


def _is_looked_into(script: Script, name: cst.Name) -> bool:
    """Whether a name stands for a value that a test looks at: no attribute's, and not only to see whether it is None."""
    match script.source.parents[name]:
        case cst.Attribute(attr=attr):
            return attr is not name
        case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=cst.Is() | cst.IsNot())]):
            return False
    return True


def is_sanity_check(script: Script, test: cst.CSTNode) -> bool:
    """Whether a condition asks for values that are not finite."""
    return any(
        (script.name(call.func) or "").rpartition(".")[2] in _FINITE
        or (isinstance(call.func, cst.Attribute) and call.func.attr.value in _FINITE)
        for call in script.source.inside(test, cst.Call)
    )
