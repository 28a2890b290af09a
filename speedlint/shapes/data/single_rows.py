"""Tensors in memory whose rows a loader takes one by one, and puts together to batches that one index would have given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.shapes.data.loaders import Loader, Start
from speedlint.shapes.data.rows import TENSOR_DATASETS
from speedlint.solve.terms import Definition
from speedlint.source import is_name
from speedlint.torch.methods import CASTS
from speedlint.torch.words import Frequency, Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_OWN_WAYS = ("collate_fn", "batch_sampler", "worker_init_fn")
_CONVERSIONS = ("torch.tensor", "torch.as_tensor", "torch.from_numpy", "numpy.array", "numpy.asarray")
_FEW = 8
"""Rows up to which a batch is put together in a few microseconds."""


def passes(found: Loader) -> list[Start]:
    """The training loops that read, again and again, batches which a loader puts together of single rows of tensors."""
    if not found.is_torch or found.hides_arguments or found.is_on_gpu or found.has_few_rows or found.script.is_test:
        return []
    if not found.setting("num_workers").is_off or any(found.parameter(name) is not None for name in _OWN_WAYS):
        return []
    if not _makes_batches(found) or not _is_of_tensors(found) or not found.matters or not found.is_read_again:
        return []
    return [
        start
        for start in found.starts
        if isinstance(start.node, syntax.For) and start.script.loops.kind(start.node) is Frequency.STEP
    ]


def _makes_batches(found: Loader) -> bool:
    size = found.parameter("batch_size")
    if size is None:
        return False
    known = found.script.constant(size)
    return known is None or (isinstance(known.value, int) and known.value > _FEW)


def _is_of_tensors(found: Loader) -> bool:
    """Whether a loader's dataset certainly is a ``TensorDataset``, a part of one, or one of the project's own that does the
    same."""
    return bool(found.origins) and all(
        origin.name in TENSOR_DATASETS if origin.definition is None else _only_takes_rows(origin.definition)
        for origin in found.origins
    )


def _only_takes_rows(definition: Definition) -> bool:
    """Whether ``__getitem__`` of a class only takes a row of some tensors or arrays: it takes many at once as well."""
    method = definition.script.roles.calls.method(definition, "__getitem__")
    if method is None or not isinstance(method.node, syntax.FunctionDef) or method.node.decorators:
        return False
    params, statements = method.node.params.params, method.node.body.body
    lines = [each for line in statements if isinstance(line, syntax.SimpleStatementLine) for each in line.body]
    if len(params) != 2 or not all(isinstance(line, syntax.SimpleStatementLine) for line in statements):
        return False
    last = lines[-1]
    if not isinstance(last, syntax.Return) or last.value is None or not all(map(_is_plain, lines[:-1])):
        return False
    return _is_of_rows(definition, method.script, last.value, params[1].name.value)


def _is_plain(line: syntax.Node) -> bool:
    """Whether a line binds one name, or is a string that documents."""
    match line:
        case syntax.Assign(targets=[syntax.AssignTarget(target=syntax.Name())]):
            return True
        case syntax.Expr(value=syntax.SimpleString() | syntax.ConcatenatedString()):
            return True
    return False


def _is_of_rows(definition: Definition, script: Script, value: syntax.Node, index: str) -> bool:
    match value:
        case syntax.Name():
            bound = [binding.value for binding in script.names.reaching(value)]
            is_one = len(bound) == 1 and bound[0] is not None and not isinstance(bound[0], syntax.Name)
            return is_one and bound[0] is not None and _is_of_rows(definition, script, bound[0], index)
        case syntax.Tuple(elements=parts) | syntax.List(elements=parts) | syntax.Dict(elements=parts):
            return bool(parts) and all(_is_of_rows(definition, script, part.value, index) for part in parts)
        case syntax.Call(func=syntax.Attribute(value=row, attr=syntax.Name(value=cast))) if cast in CASTS | {"astype"}:
            return _is_of_rows(definition, script, row, index)
        case syntax.Call(func=func, args=[syntax.Arg(value=row), *_]) if script.name(func) in _CONVERSIONS:
            return _is_of_rows(definition, script, row, index)
        case syntax.Subscript(
            value=syntax.Attribute(value=owner, attr=syntax.Name(value=name)),
            slice=[syntax.SubscriptElement(slice=syntax.Index(value=syntax.Name(value=row)))],
        ):
            held = list(script.roles.self_assignments(definition, name))
            return row == index and is_name(owner, "self") and bool(held) and all(_takes_numbers(*each) for each in held)
    return False


def _takes_numbers(script: Script, held: syntax.BaseExpression) -> bool:
    """Whether a value is a tensor or an array of numpy's, which take many row numbers at once: no list or table of another
    library."""
    names = [place.name(made.func) if isinstance(made, syntax.Call) else None for place, made in script.roles.origins(held)]
    if script.role(held) is Role.TENSOR:
        return not any(name in ("list", "tuple", "sorted") for name in names)
    return script.role(held) is Role.ARRAY and bool(names) and all((name or "").startswith("numpy.") for name in names)
