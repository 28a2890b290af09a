"""How many rows a dataset holds, where the script writes that out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.shapes.data.datasets import Origin
from speedlint.solve.values import returned

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_FEW = 256
SIZED = frozenset(f"torch.{name}" for name in "rand randn zeros ones empty full".split())
SIZED |= frozenset(f"numpy.{name}" for name in "zeros ones empty full random.rand random.randn random.normal".split())
COPIES = frozenset({"torch.tensor", "torch.as_tensor", "torch.from_numpy", "torch.FloatTensor", "torch.LongTensor", "list"})
COPIES |= frozenset({"torch.Tensor", "numpy.array", "numpy.asarray", "tuple", "sorted", "enumerate"})
TENSOR_DATASETS = frozenset({"torch.utils.data.TensorDataset", "torch.utils.data.dataset.TensorDataset"})
_KEEP_LENGTH = COPIES | TENSOR_DATASETS | {"zip"}
_COUNTS = frozenset({"range", "torch.arange", "numpy.arange", "torch.randperm"})
KEEP_ROWS = frozenset("float long int double half to clone type astype requires_grad_ tolist numpy".split())
_ADDS = ("append", "extend", "insert", "appendleft")
_DEPTH = 8


def are_few(origin: Origin) -> bool:
    """Whether a dataset is known to hold a handful of rows at most."""
    count = _rows(origin.script, origin.node, 0) if origin.definition is None else _length(origin)
    return count is not None and count <= _FEW


def _length(origin: Origin) -> int | None:
    """What the ``__len__`` of a first-party dataset returns."""
    assert origin.definition is not None
    method = origin.definition.script.roles.calls.method(origin.definition, "__len__")
    values = list(returned(method)) if method is not None else []
    if method is None or len(values) != 1:
        return None
    script = method.script
    known = script.constant(values[0])
    if known is not None:
        return known.value if isinstance(known.value, int) else None
    held = _measured(values[0])
    match held:
        case syntax.Attribute(value=syntax.Name("self"), attr=syntax.Name(value=name)):
            assigned = list(script.roles.self_assignments(origin.definition, name))
            if len(assigned) == 1 and not _grows(assigned[0][0], held):
                return _rows_given(origin, *assigned[0])
    return None


def _measured(node: syntax.BaseExpression) -> syntax.BaseExpression | None:
    """``x`` of ``len(x)``, ``x.shape[0]`` and ``x.size(0)``."""
    match node:
        case syntax.Call(func=syntax.Name("len"), args=[syntax.Arg(value=value)]):
            return value
        case syntax.Call(
            func=syntax.Attribute(value=value, attr=syntax.Name("size")), args=[syntax.Arg(value=syntax.Integer("0"))]
        ):
            return value
        case syntax.Subscript(
            value=syntax.Attribute(value=value, attr=syntax.Name("shape")),
            slice=[syntax.SubscriptElement(slice=syntax.Index(value=syntax.Integer("0")))],
        ):
            return value
    return None


def _rows_given(origin: Origin, script: Script, value: syntax.BaseExpression) -> int | None:
    """The rows of what ``__init__`` keeps, its parameters bound as the construction binds them."""
    if not isinstance(value, syntax.Name):
        return _rows(script, value, 0)
    bindings = script.names.reaching(value)
    function = script.source.enclosing(value, syntax.FunctionDef)
    if len(bindings) != 1 or not isinstance(bindings[0].node, syntax.Param) or not isinstance(function, syntax.FunctionDef):
        return _rows(script, value, 0)
    names = [param.name.value for param in function.params.params]
    name = bindings[0].name
    if not isinstance(origin.node, syntax.Call) or name not in names:
        return None
    given = origin.script.argument(origin.node, name, names.index(name) - 1)
    return _rows(origin.script, given, 0) if given is not None else None


def _rows(script: Script, node: syntax.Node, depth: int) -> int | None:
    """The length of a list, or of a tensor's first dimension; None where it is not written out."""
    if depth > _DEPTH:
        return None
    match node:
        case syntax.List(elements=elements) | syntax.Tuple(elements=elements):
            return None if any(isinstance(each, syntax.StarredElement) for each in elements) else len(elements) or None
        case syntax.ListComp(for_in=syntax.CompFor(iter=iterated, inner_for_in=None)):
            return _rows(script, iterated, depth + 1)
        case syntax.BinaryOperation(left=syntax.List(elements=elements), operator=syntax.Multiply(), right=right):
            count = _number(script, right)
            return None if count is None else len(elements) * count
        case syntax.Call():
            return _made(script, node, depth)
        case syntax.Name():
            bindings = script.names.reaching(node)
            if len(bindings) != 1 or bindings[0].path or bindings[0].value is None or _grows(script, node):
                return None
            return _rows(script, bindings[0].value, depth + 1)
    return None


def _grows(script: Script, held: syntax.BaseExpression) -> bool:
    """Whether anything is added to a list after it is made."""
    text = script.text(held)
    methods = (call.func for call in script.method_calls(*_ADDS))
    added = any(isinstance(method, syntax.Attribute) and script.text(method.value) == text for method in methods)
    return added or any(script.text(each.target) == text for each in script.source.of(syntax.AugAssign))


def _made(script: Script, call: syntax.Call, depth: int) -> int | None:
    name = script.name(call.func)
    if name is None and isinstance(call.func, syntax.Attribute) and call.func.attr.value in KEEP_ROWS:
        return _rows(script, call.func.value, depth + 1)
    if not call.args or any(arg.star for arg in call.args):
        return None
    if name in _KEEP_LENGTH:
        return _rows(script, call.args[0].value, depth + 1)
    if name in _COUNTS:
        return _number(script, call.args[0].value) if len(call.args) == 1 else None
    if name in ("torch.randint", "numpy.random.randint"):
        sizes = [arg.value for arg in call.args if isinstance(arg.value, (syntax.Tuple, syntax.List))]
        return _first(script, sizes[0]) if sizes else None
    size = script.argument(call, "size", None if name == "numpy.random.normal" else 0) if name in SIZED else None
    return _first(script, size) if size is not None else None


def _first(script: Script, size: syntax.BaseExpression) -> int | None:
    if isinstance(size, (syntax.Tuple, syntax.List)):
        return _number(script, size.elements[0].value) if size.elements else None
    return _number(script, size)


def _number(script: Script, expression: syntax.BaseExpression) -> int | None:
    known = script.constant(expression)
    return known.value if known is not None and isinstance(known.value, int) else None
