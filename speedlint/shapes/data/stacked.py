"""Collate functions that lay entries of a batch's items upon each other as they are: these then all have one shape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.shapes.data import collated
from speedlint.shapes.data.loaders import Loader
from speedlint.solve.names import Kind
from speedlint.solve.terms import Definition
from speedlint.solve.values import returned

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_PICTURES = frozenset(
    "PIL.Image.open cv2.imread skimage.io.imread imageio.imread imageio.v2.imread imageio.v3.imread "
    "torchvision.io.read_image torchvision.io.decode_image".split()
)
_TABLES = frozenset({"torch.zeros", "torch.ones", "torch.full"})
_PADS = _TABLES | {"torch.nn.utils.rnn.pad_sequence"}
_COUNTS = frozenset("zip tuple list len max min sum sorted range enumerate int print isinstance".split())
_TENSORS = frozenset(
    "torch.stack torch.cat torch.tensor torch.as_tensor torch.Tensor torch.LongTensor torch.IntTensor torch.FloatTensor "
    "torch.BoolTensor torch.from_numpy numpy.array numpy.asarray".split()
)
_METHODS = frozenset("append sort long float int bool to contiguous size numel type unsqueeze items keys".split())
"""What changes no size, but by a new one of 1."""
_TABLE = 2
"""Sizes of a table of numbers, a row for each item of the batch."""
_DEPTH = 6


def keeps_shapes(loader: Loader) -> bool:
    """Whether a loader's own collate function stacks an entry of the items as it is and changes no size of what it is
    handed; where it pads another entry, it stacks a picture of each item, which is what a network convolves."""
    functions = _collates(loader)
    return bool(functions) and all(_stacks(*each) for each in functions)


def hands_out_pictures(loader: Loader) -> bool:
    """Whether each batch is known to hold a picture of each item, stacked as it is."""
    if loader.parameter("collate_fn") is None:
        return bool(loader.origins) and all(_has_picture(origin.definition) for origin in loader.origins)
    functions = _collates(loader)
    return bool(functions) and all(_is_plain(*each) and _stacks_pictures(*each) for each in functions)


def _collates(loader: Loader) -> list[tuple[Script, syntax.FunctionDef]]:
    """The project's functions that collate, or the ``__call__`` of objects that do; none where one is out of sight."""
    found: list[tuple[Script, syntax.FunctionDef]] = []
    for script, node in loader.collate:
        match node:
            case syntax.FunctionDef():
                found.append((script, node))
            case syntax.ClassDef():
                method = script.roles.calls.method(Definition(script, node), "__call__")
                if method is None or not isinstance(method.node, syntax.FunctionDef):
                    return []
                found.append((method.script, method.node))
            case syntax.Call() if (made := script.definition(node.func)) is not None and isinstance(
                made.node, syntax.ClassDef
            ):
                continue
            case _:
                return []
    return found


def _stacks(script: Script, function: syntax.FunctionDef) -> bool:
    if not _is_plain(script, function):
        return False
    if any(script.name(call.func) in _PADS for call in script.source.inside(function.body, syntax.Call)):
        return _stacks_pictures(script, function)
    return next(_all_stacked(script, function), None) is not None


def _stacks_pictures(script: Script, function: syntax.FunctionDef) -> bool:
    return any(all(_is_of_picture(script, each) for each in entries) for entries in _all_stacked(script, function))


def _all_stacked(script: Script, function: syntax.FunctionDef) -> Iterator[list[syntax.BaseExpression]]:
    for call in script.source.inside(function.body, syntax.Call):
        if entries := list(_stacked(script, function, call)):
            yield entries


def _is_plain(script: Script, function: syntax.FunctionDef) -> bool:
    """Whether all calls of a function count, gather or convert, or make a table to pad rows in."""
    return all(_changes_no_size(script, call) for call in script.source.inside(function.body, syntax.Call))


def _changes_no_size(script: Script, call: syntax.Call) -> bool:
    name = script.name(call.func)
    if name in _TABLES:
        return _makes_table(call)
    if name is not None:
        return name in _COUNTS | _TENSORS | _PADS
    is_own = script.callee(call) is not None
    return not is_own and isinstance(call.func, syntax.Attribute) and call.func.attr.value in _METHODS


def _makes_table(call: syntax.Call) -> bool:
    """Whether what is made has two sizes at most: ``torch.zeros(rows, longest)``, ``torch.full((rows, longest), 0)``."""
    match [arg.value for arg in call.args if arg.keyword is None and not arg.star]:
        case [syntax.Tuple(elements=sizes) | syntax.List(elements=sizes), *_]:
            return len(sizes) <= _TABLE and not any(isinstance(each, syntax.StarredElement) for each in sizes)
        case [syntax.Call() | syntax.Integer() | syntax.BinaryOperation()] | [_, _]:
            return True
    return False


def _stacked(script: Script, function: syntax.FunctionDef, call: syntax.Call) -> Iterator[syntax.BaseExpression]:
    """The entries of items that a call stacks: by ``torch.stack``, or by ``torch.cat`` of ``x.unsqueeze(0)``."""
    name = script.name(call.func)
    if name not in ("torch.stack", "torch.cat") or not call.args:
        return
    for entry in _gathered(script, function, call.args[0].value):
        match entry:
            case syntax.Call(func=syntax.Attribute(value=inner, attr=syntax.Name("unsqueeze"))) if name == "torch.cat":
                yield inner
            case syntax.Name() | syntax.Subscript() if name == "torch.stack" and not _is_cut(entry):
                yield entry


def _gathered(script: Script, function: syntax.FunctionDef, items: syntax.BaseExpression) -> Iterator[syntax.BaseExpression]:
    """What a list holds of each item: the result of a comprehension, what is appended, or the name that ``zip`` gives."""
    match items:
        case syntax.Call(func=func, args=[arg]) if script.name(func) in ("list", "tuple"):
            yield from _gathered(script, function, arg.value)
        case syntax.ListComp(elt=entry) | syntax.GeneratorExp(elt=entry):
            yield entry
        case syntax.Name():
            bindings = script.names.reaching(items)
            binding = bindings[0] if len(bindings) == 1 else None
            if binding is None or binding.kind is not Kind.ASSIGN or binding.value is None:
                return
            match binding.value:
                case syntax.ListComp(elt=entry) if not binding.path:
                    yield entry
                case syntax.List(elements=[]):
                    yield from _appended(script, function, items.value)
                case syntax.Tuple() | syntax.List() if binding.path:
                    yield from _appended(script, function, items.value)
                case syntax.Call() as call if binding.path and collated.unzipped(script, call) is not None:
                    yield items


def _appended(script: Script, function: syntax.FunctionDef, name: str) -> Iterator[syntax.BaseExpression]:
    for call in script.source.inside(function.body, syntax.Call):
        match call:
            case syntax.Call(func=syntax.Attribute(value=syntax.Name(holder), attr=syntax.Name("append")), args=[arg]):
                if holder == name:
                    yield arg.value


def _is_cut(entry: syntax.BaseExpression) -> bool:
    """Whether a subscript takes a part: ``image[:, :width]``."""
    return isinstance(entry, syntax.Subscript) and not all(isinstance(each.slice, syntax.Index) for each in entry.slice)


def _is_of_picture(script: Script, entry: syntax.BaseExpression) -> bool:
    places = collated.entries(script, entry)
    if not places and isinstance(entry, syntax.Name):
        places = collated.zipped(script, entry)
    return bool(places) and all(_is_picture(*place, _DEPTH) for place in places)


def _has_picture(dataset: Definition | None) -> bool:
    """Whether an entry of what a dataset's ``__getitem__`` returns is a picture."""
    method = dataset.script.roles.calls.method(dataset, "__getitem__") if dataset is not None else None
    if method is None:
        return False
    results, script = list(returned(method)), method.script
    return bool(results) and all(any(_is_picture(script, each, _DEPTH) for each in _parts(one)) for one in results)


def _parts(result: syntax.BaseExpression) -> Iterator[syntax.BaseExpression]:
    match result:
        case syntax.Tuple(elements=elements) | syntax.List(elements=elements) | syntax.Dict(elements=elements):
            yield from (each.value for each in elements)
        case _:
            yield result


def _is_picture(script: Script, node: syntax.BaseExpression, depth: int) -> bool:
    """Whether a value is a picture that was opened, or what calls make of it."""
    match node:
        case syntax.Name() if depth:
            values = [each.value for each in script.names.reaching(node) if not each.path and each.value is not None]
            return any(_is_picture(script, value, depth - 1) for value in values)
        case syntax.Call(func=func, args=args):
            if script.name(func) in _PICTURES:
                return True
            inner = [arg.value for arg in args[:1]]
            if isinstance(func, syntax.Attribute):
                inner.append(func.value)
            return any(_is_picture(script, each, depth) for each in inner)
    return False
