"""What a collate function is handed: a list of a dataset's items, whose entries stand in what ``__getitem__`` returns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from speedlint.facts import syntax
from speedlint.shapes.data import loaders
from speedlint.solve.flow import listed_once
from speedlint.solve.names import Binding, Kind
from speedlint.solve.terms import Definition
from speedlint.solve.values import returned

if TYPE_CHECKING:
    from speedlint.ask.script import Script

Place: TypeAlias = "tuple[Script, syntax.BaseExpression]"
Key: TypeAlias = "int | str"
_WHOLE = ("list", "tuple")


@listed_once
def entries(script: Script, node: syntax.BaseExpression) -> Iterator[Place]:
    """What an entry of an item of a batch is in the datasets that its loaders read: ``b[0]``, or ``x`` of ``for x, y in
    batch``. None where it is no such entry, or where one of the datasets is out of sight."""
    function: syntax.Node | None = None
    key: Key | None = None
    match node:
        case syntax.Name():
            binding = _only(script, node)
            if binding is not None and binding.kind is Kind.FOR and len(binding.path) == 1 and binding.value is not None:
                function, key = _collate(script, binding.value), binding.path[0]
        case syntax.Subscript(value=syntax.Name() as item, slice=[syntax.SubscriptElement(slice=syntax.Index(value=index))]):
            binding, known = _only(script, item), script.constant(index)
            is_item = binding is not None and binding.kind is Kind.FOR and not binding.path and binding.value is not None
            if is_item and binding is not None and binding.value is not None and known is not None:
                function = _collate(script, binding.value)
                key = known.value if isinstance(known.value, (int, str)) else None
    if function is not None and key is not None:
        yield from _of_items(script, function, key)


def zipped(script: Script, name: syntax.Name) -> list[Place]:
    """The same for one of ``xs, ys = zip(*batch)``, which holds that entry of all items."""
    match _only(script, name):
        case Binding(kind=Kind.ASSIGN, path=(int(key),), value=syntax.Call() as call):
            items = unzipped(script, call)
            function = _collate(script, items) if items is not None else None
            return list(_of_items(script, function, key)) if function is not None else []
    return []


def unzipped(script: Script, call: syntax.Call) -> syntax.BaseExpression | None:
    """The items whose first entries a call puts together, and whose second, and so on: ``zip(*items)``, as a tuple too."""
    match call:
        case syntax.Call(func=func, args=[syntax.Arg(value=items, star="*")]) if script.name(func) == "zip":
            return items
        case syntax.Call(func=func, args=[syntax.Arg(value=syntax.Call() as inner, star="")]) if script.name(func) in _WHOLE:
            return unzipped(script, inner)
    return None


def is_batch(script: Script, node: syntax.BaseExpression) -> bool:
    """Whether an expression is the list of items that a loader hands to its collate function; such a list is never empty."""
    return _collate(script, node) is not None


def _only(script: Script, name: syntax.Name) -> Binding | None:
    bindings = script.names.reaching(name)
    return bindings[0] if len(bindings) == 1 else None


def _collate(script: Script, batch: syntax.BaseExpression) -> syntax.Node | None:
    """The collate function whose batch an expression is; None for anything else."""
    binding = _only(script, batch) if isinstance(batch, syntax.Name) else None
    if binding is None or binding.kind is not Kind.PARAMETER:
        return None
    function = script.source.enclosing(binding.node, syntax.FunctionDef, syntax.Lambda)
    if not isinstance(function, (syntax.FunctionDef, syntax.Lambda)):
        return None
    given = [*function.params.posonly_params, *function.params.params]
    own = isinstance(function, syntax.FunctionDef) and script.names.owner(function) is not None
    is_first = len(given) == 1 + own and given[own].name.value == binding.name
    return function if is_first and _loaders(script, function) else None


def _loaders(script: Script, function: syntax.Node) -> list[loaders.Loader]:
    """The loaders that are given a function as their ``collate_fn``."""
    return [found for found in loaders.near(script) if found.collates_by(script, function)]


def _of_items(script: Script, function: syntax.Node, key: Key) -> Iterator[Place]:
    """An entry of what the datasets of a collate function's loaders return; nothing where one of them is out of sight."""
    found: list[Place] = []
    for loader in _loaders(script, function):
        for origin in loader.origins or (None,):
            if origin is None or origin.definition is None:
                return
            method = origin.definition.script.roles.calls.method(origin.definition, "__getitem__")
            places = list(_of_method(method, key)) if method is not None else []
            if not places:
                return
            found += places
    yield from found


def _of_method(method: Definition, key: Key) -> Iterator[Place]:
    places = [_at(value, key) for value in returned(method)]
    if None not in places:
        yield from ((method.script, each) for each in places if each is not None)


def _at(value: syntax.BaseExpression, key: Key) -> syntax.BaseExpression | None:
    """An entry of a tuple or dict that is written out."""
    match value:
        case syntax.Tuple(elements=elements) | syntax.List(elements=elements) if isinstance(key, int):
            is_plain = not any(isinstance(each, syntax.StarredElement) for each in elements)
            return elements[key].value if is_plain and -len(elements) <= key < len(elements) else None
        case syntax.Dict(elements=elements):
            for each in elements:
                match each:
                    case syntax.DictElement(key=syntax.SimpleString() as name, value=entry) if name.evaluated_value == key:
                        return entry
    return None
