"""Conditions on device tensors: to take a branch, Python has to know the value, and waits for it.

A tensor that a library's call hands back may be something else (``if outputs:``); only what is computed here, a comparison,
``.any()``, ``torch.isnan(...)``, is taken for one.
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.solve.names import Kind
from speedlint.solve.unpacking import all_written
from speedlint.source import last_statement
from speedlint.torch.words import FREQUENT, Role

CONDITIONAL = (syntax.If, syntax.While, syntax.Assert, syntax.IfExp, syntax.Call)
Conditional = syntax.If | syntax.While | syntax.Assert | syntax.IfExp | syntax.Call
_ASKS = frozenset({"torch.equal", "torch.allclose", "torch.is_nonzero", "math.isfinite", "math.isnan", "math.isinf"})
_ASKING_METHODS = frozenset({"equal", "allclose", "is_nonzero"})
_FINITE = frozenset("isfinite isnan isinf".split())
_EQUALS = (syntax.Equal, syntax.NotEqual, syntax.In, syntax.NotIn)
"""How texts are compared."""
_ASKS_KIND = frozenset({"isinstance", "hasattr", "type", "callable", "torch.is_tensor"})
_KINDS = frozenset({"is_cuda", "device", "is_cpu"})
_DEPTH = 3


def asked(script: Script, node: Conditional) -> Iterator[syntax.BaseExpression]:
    """The device tensors whose value decides how the script goes on at ``node``: in its test, or by its very call."""
    if not isinstance(node, syntax.Call):
        yield from _truths(script, node.test)
        return
    is_method = isinstance(node.func, syntax.Attribute) and node.func.attr.value in _ASKING_METHODS
    name = script.name(node.func)
    if name in _ASKS or (name is None and is_method):
        operands = [arg.value for arg in node.args]
        if name is None and isinstance(node.func, syntax.Attribute):
            operands.append(node.func.value)
        if any(script.is_shown_device_tensor(operand) for operand in operands):
            yield node


def within(script: Script, block: syntax.Node) -> Iterator[tuple[Conditional, syntax.BaseExpression]]:
    """All that ``asked`` finds in a block, each with the node that asks."""
    inside = script.source.inside
    nodes: list[Conditional] = [*inside(block, syntax.If), *inside(block, syntax.While), *inside(block, syntax.Assert)]
    nodes += [*inside(block, syntax.IfExp), *inside(block, syntax.Call)]
    for node in nodes:
        yield from ((node, test) for test in asked(script, node))


def _truths(script: Script, test: syntax.BaseExpression) -> Iterator[syntax.BaseExpression]:
    match test:
        case syntax.BooleanOperation(left=left, right=right):
            yield from _truths(script, left)
            yield from _truths(script, right)
        case syntax.UnaryOperation(operator=syntax.Not(), expression=inner) | syntax.NamedExpr(value=inner):
            yield from _truths(script, inner)
        case _ if _is_computed(script, test, _DEPTH):
            yield test


def _is_computed(script: Script, test: syntax.BaseExpression, depth: int) -> bool:
    """Whether the truth of an expression is that of a tensor made by an operation on a device tensor."""
    match test:
        case syntax.Comparison(left=left, comparisons=targets):
            sides = (left, *(target.comparator for target in targets))
            comparable = all(script.role(side) not in (Role.STRING, Role.NONE, Role.SEQUENCE) for side in sides)
            are_texts = all(isinstance(each.operator, _EQUALS) for each in targets) and _may_be_texts(script, sides)
            return comparable and not are_texts and script.is_shown_device_tensor(test)
        case (
            syntax.BinaryOperation(operator=syntax.BitAnd() | syntax.BitOr())
            | syntax.UnaryOperation(operator=syntax.BitInvert())
        ):
            return script.is_shown_device_tensor(test)
        case syntax.Call(func=func):
            of_torch = (script.name(func) or "").startswith("torch.")
            of_tensor = isinstance(func, syntax.Attribute) and script.role(func.value) is Role.TENSOR
            return (of_torch or of_tensor) and script.is_shown_device_tensor(test)
        case syntax.Name() if depth:
            values = all_written(script.names.reaching(test))
            return bool(values) and all(_is_computed(script, value, depth - 1) for value in values)
    return False


def _may_be_texts(script: Script, sides: tuple[syntax.BaseExpression, ...]) -> bool:
    """Whether an entry of a batch, where a loop goes over them one by one, is compared with something that is not known: the
    labels of a batch may be texts, and that its prediction."""
    if all(script.role(side) is not Role.UNKNOWN for side in sides):
        return False
    tensors = [side for side in sides if script.role(side) in (Role.TENSOR, Role.BATCH)]
    bound = [script.names.reaching(each) if isinstance(each, syntax.Name) else [] for each in tensors]
    return all(each and all(binding.kind is Kind.FOR for binding in each) for each in bound)


def decides_end(script: Script, node: Conditional) -> bool:
    """Whether the condition decides when a loop is over, as where each sequence has reached its end; no check for values
    that are not finite does, by which a training ends that has failed."""
    if isinstance(node, syntax.While):
        return True
    if not isinstance(node, syntax.If) or not isinstance(last_statement(node.body), syntax.Break):
        return False
    ended = script.source.enclosing(node, syntax.For, syntax.While)
    is_of_steps = isinstance(ended, syntax.For | syntax.While) and script.loops.kind(ended) in FREQUENT
    return not is_of_steps or not is_sanity_check(script, node.test)


def depends_on_data(script: Script, node: syntax.Node) -> bool:
    """Whether a line runs only for some data: under a condition, within its function, on a tensor or on its shape."""
    child: syntax.Node = node
    for up in script.source.ancestors(node):
        if isinstance(up, syntax.FunctionDef):
            return False
        if isinstance(up, (syntax.If, syntax.IfExp)) and child is not up.test and _is_of_tensors(script, up.test):
            return child is not up.body or not _asks_for_gpu(up.test) or depends_on_data(script, up)
        child = up
    return False


def _asks_for_gpu(test: syntax.BaseExpression) -> bool:
    """Whether a test asks whether a tensor lies on the GPU, which it does in each step: ``if x.is_cuda:``."""
    match test:
        case syntax.Attribute(value=syntax.Name(), attr=syntax.Name("is_cuda")):
            return True
    return False


def _is_of_tensors(script: Script, test: syntax.BaseExpression) -> bool:
    names = (each for each in script.source.inside(test, syntax.Name) if _is_looked_into(script, each))
    return any(script.role(each) in (Role.TENSOR, Role.BATCH) for each in names)


def _is_looked_into(script: Script, name: syntax.Name) -> bool:
    """Whether a name stands for a value that a test looks at: no attribute's, and not only to see whether it is None."""
    match script.source.parents[name]:
        case syntax.Attribute(attr=attr):
            return attr is not name
        case syntax.Comparison(comparisons=[syntax.ComparisonTarget(operator=syntax.Is() | syntax.IsNot())]):
            return False
    return True


def rules_out_tensor(script: Script, expression: syntax.BaseExpression) -> bool:
    """Whether an expression runs only where it is no tensor, as in ``b if torch.is_tensor(b) else float(b)``."""
    child: syntax.Node = expression
    for up in script.source.ancestors(expression):
        if not isinstance(up, syntax.BaseExpression | syntax.Arg):
            return False
        match up:
            case syntax.IfExp(test=syntax.Call(args=[syntax.Arg(value=asked), *_]) as test, orelse=orelse) if (
                orelse is child
            ):
                if script.text(asked) == script.text(expression) and _asks_for_tensor(script, test):
                    return True
        child = up
    return False


def is_asked_what_it_is(script: Script, expression: syntax.BaseExpression) -> bool:
    """Whether code asks somewhere of what kind a variable is, or a part of it, or where it lies, or expects that it has not
    what is read of it: then a read may be for the other kind."""
    root = expression
    while isinstance(root, syntax.Attribute | syntax.Subscript | syntax.Call):
        root = root.func if isinstance(root, syntax.Call) else root.value
    if not isinstance(root, syntax.Name):
        return False
    for use in script.names.uses(root):
        up: syntax.Node = use
        while isinstance(above := script.source.parents[up], syntax.Attribute | syntax.Subscript) and above.value is up:
            is_kind = isinstance(above, syntax.Attribute) and above.attr.value in _KINDS
            if is_kind and any(script.source.contains(each, use) for each in _tests(script, use)):
                return True
            up = above
        call = script.source.parents[above] if isinstance(above, syntax.Arg) else None
        if isinstance(call, syntax.Call) and script.name(call.func) in _ASKS_KIND:
            return True
    return any("AttributeError" in each for each in _expected(script, expression))


def _tests(script: Script, node: syntax.Node) -> Iterator[syntax.Node]:
    for up in script.source.ancestors(node):
        if isinstance(up, syntax.If | syntax.IfExp | syntax.While | syntax.Assert):
            yield up.test


def _expected(script: Script, node: syntax.Node) -> Iterator[str]:
    """What the handlers around a node name."""
    child = node
    for up in script.source.ancestors(node):
        if isinstance(up, syntax.Try) and child is up.body:
            yield from (script.text(each.type) for each in up.handlers if each.type is not None)
        child = up


def _asks_for_tensor(script: Script, test: syntax.Call) -> bool:
    kind = script.name(test.args[1].value) if len(test.args) > 1 and script.is_call_to(test, "isinstance") else None
    return script.is_call_to(test, "torch.is_tensor") or kind == "torch.Tensor"


def is_sanity_check(script: Script, test: syntax.Node) -> bool:
    """Whether a condition asks for values that are not finite."""
    return any(
        (script.name(call.func) or "").rpartition(".")[2] in _FINITE
        or (isinstance(call.func, syntax.Attribute) and call.func.attr.value in _FINITE)
        for call in script.source.inside(test, syntax.Call)
    )
