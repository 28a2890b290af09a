"""Numbers, lists of constants and parts of a loader's batch that are made into a tensor on the GPU, each with a copy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes.data import batches
from speedlint.shapes.data.loaders import Loader
from speedlint.shapes.sync import creation, hidden
from speedlint.solve.flow import listed_once, once
from speedlint.solve.names import Kind
from speedlint.solve.terms import Definition, Value
from speedlint.solve.unpacking import written
from speedlint.source import is_name
from speedlint.torch.words import Frequency, Place, Role

_FROM_DATA = ("torch.tensor", "torch.as_tensor")
_NUMBERS = (syntax.Integer, syntax.Float, syntax.UnaryOperation)
_FROM_ARRAY = "torch.from_numpy"
_ARRAYS = ("numpy.array", "numpy.asarray")
_OF_ONE_KIND = frozenset(f"numpy.{name}" for name in "zeros ones eye identity".split())
"""What makes the same entries whatever its sizes are."""
_MAKERS = frozenset(f"numpy.{name}" for name in "full linspace arange".split())
_REPEATS = ("numpy.repeat", "numpy.tile")
_OF_ARRAYS = frozenset("reshape astype transpose copy repeat".split())
_DEPTH = 4
"""Variables and entries between a batch and what is taken out of it, or a number and what it is computed of."""
_READS = ("item", "tolist")
_DTYPES = {
    "float": "torch.float32",
    "double": "torch.float64",
    "half": "torch.float16",
    "long": "torch.int64",
    "int": "torch.int32",
    "byte": "torch.uint8",
    "bool": "torch.bool",
}
Path: TypeAlias = "tuple[int | str | None, ...]"
_FROM_LISTS = tuple(f"torch.{name}" for name in "Tensor FloatTensor LongTensor IntTensor DoubleTensor BoolTensor".split())


class Copied(NamedTuple):
    """A number, or a list of constants or of numbers that are counted, or an array that NumPy makes of such, that a call
    makes into a tensor on the GPU; ``is_listed`` where the number is the one element of a list, ``dtype`` where it becomes
    what the call's name says."""

    data: syntax.BaseExpression
    is_number: bool = False
    is_listed: bool = False
    dtype: str | None = None
    is_counted: bool = False
    is_array: bool = False


class Listed(NamedTuple):
    """A part of a batch, ``data``, that comes as a list or an array and is made a tensor by ``made`` in each step."""

    made: syntax.Call
    data: syntax.BaseExpression
    loader: Loader


def constant(script: Script, call: syntax.Call) -> Copied | None:
    """What a call copies to the GPU, if that is a number or constants: ``.to(...)`` of a new tensor, or ``device=``."""
    made = of_data(script, call)
    if made is None or not made.args or any(arg.star or _asks_for_gradient(arg) for arg in made.args):
        return None
    data = made.args[0].value
    if isinstance(data, syntax.ListComp):
        return Copied(data, is_counted=True) if _is_counted(script, data) else None
    if _is_array(script, data):
        return Copied(data, is_array=True)
    is_list = isinstance(data, (syntax.List, syntax.Tuple))
    if not is_list and script.name(made.func) not in _FROM_DATA:
        return None
    if not is_list and _is_number(script, data):
        return Copied(data, is_number=True)
    if _is_constant(script, data):
        return Copied(data)
    match data:
        case syntax.List(elements=[syntax.Element(value=only)]) | syntax.Tuple(elements=[syntax.Element(value=only)]):
            dtype = _dtype(script, made)
            return Copied(only, is_number=True, is_listed=True, dtype=dtype) if _is_number(script, only) else None
    return None


@listed_once
def within(script: Script, function: syntax.FunctionDef) -> Iterator[hidden.SlowCall]:
    """The calls by which a function itself copies a constant to the GPU in every step, in source order."""
    for call in hidden.in_steps(script, function, syntax.Call):
        if constant(script, call) is not None or is_held(script, call):
            yield hidden.SlowCall(script, call)


def of_batch(script: Script, call: syntax.Call) -> Listed | None:
    """What the training makes a tensor of and ``call`` copies to the GPU, if it is a part of a loader's batch that the
    collate function leaves as a list or an array."""
    made = of_data(script, call)
    if made is None or not made.args or any(arg.star or _asks_for_gradient(arg) for arg in made.args):
        return None
    data = made.args[0].value
    value = script.value(data)
    if value.role is not Role.BATCH or value.place is not Place.HOST or value.assumed:
        return None
    found, path = batches.source_loader(script, data), _path(script, data, _DEPTH)
    if found is None or path is None:
        return None
    given = [_at(_collated(place, node), path) for place, node in found.collate]
    is_left = bool(given) and all(each is not None and each.role in (Role.SEQUENCE, Role.ARRAY) for each in given)
    return Listed(made, data, found) if is_left else None


def _path(script: Script, node: syntax.BaseExpression, depth: int) -> Path | None:
    """The keys by which a part of a batch is taken out of it; None where that is not seen."""
    match node:
        case syntax.Subscript(value=inner, slice=[syntax.SubscriptElement(slice=syntax.Index(value=index))]) if depth:
            known, path = script.constant(index), _path(script, inner, depth - 1)
            key = known.value if known is not None else None
            return (*path, key) if path is not None and isinstance(key, (int, str)) else None
        case syntax.Name() if depth and len(bindings := script.names.reaching(node)) == 1:
            binding = bindings[0]
            if binding.value is None or binding.kind not in (Kind.FOR, Kind.ASSIGN) or None in binding.path:
                return None
            if binding.kind is Kind.ASSIGN:
                path = _path(script, binding.value, depth - 1)
                return (*path, *binding.path) if path is not None else None
            turn = script.roles.element(script.value(binding.value))
            if turn.role is Role.BATCH:
                return binding.path
            counted = turn.items[1] if len(turn.items) == len(("number", "batch")) else None
            is_counted = counted is not None and counted.role is Role.BATCH and binding.path[:1] == (1,)
            return binding.path[1:] if is_counted else None
    return None


def _collated(script: Script, node: syntax.Node) -> Value | None:
    """What a collate function, or an object that is called as one, gives."""
    match node:
        case syntax.Lambda(body=body):
            return script.roles.evaluate(body)
        case syntax.FunctionDef():
            return script.roles.calls.result(Definition(script, node))
        case syntax.ClassDef():
            method = script.roles.calls.method(Definition(script, node), "__call__")
            return method.script.roles.calls.result(method) if method is not None else None
    return None


def _at(value: Value | None, path: Path) -> Value | None:
    """The part of a value that some keys lead to; None where that is not known."""
    for key in path:
        if value is None:
            return None
        is_item = isinstance(key, int) and -len(value.items) <= key < len(value.items)
        value = value.items[key] if isinstance(key, int) and is_item else dict(value.keys).get(str(key))
    return value


def is_held(script: Script, call: syntax.Call) -> bool:
    """Whether a call copies to the GPU what an object holds on the host since it was made, ``self.betas.to(x.device)``, or
    what a function around its own has made there: ``betas.to(x.device)``."""
    if not isinstance(call.func, syntax.Attribute) or call.func.attr.value not in ("to", "cuda"):
        return False
    held = call.func.value
    if not isinstance(held, syntax.Attribute | syntax.Name) or script.name(held) is not None:
        return False
    value = script.value(held)
    if value.role is not Role.TENSOR or value.place is not Place.HOST or creation.target(script, call) is None:
        return False
    if isinstance(held, syntax.Name):
        return not value.assumed and _is_made_around(script, held)
    owner = script.value(held.value).definition
    if owner is None or not isinstance(owner.node, syntax.ClassDef):
        return False
    given = list(script.roles.assigned_on_self(owner, held.attr.value))
    return bool(given) and all(_is_made_at_once(place, node) for place, node, _ in given)


def _is_made_around(script: Script, held: syntax.Name) -> bool:
    """Whether a variable of a function around the one that reads it is made once."""
    function, bindings = script.function(held), script.names.reaching(held)
    return bool(bindings) and all(
        binding.kind is Kind.ASSIGN
        and script.function(binding.node) not in (None, function)
        and script.frequency(binding.node) < Frequency.EPOCH
        for binding in bindings
    )


def _is_made_at_once(script: Script, given: syntax.BaseExpression) -> bool:
    """Whether an attribute's value is made where its object is, not in each step."""
    function = script.function(given)
    return function is not None and function.name.value == "__init__" and script.frequency(given) < Frequency.EPOCH


def of_data(script: Script, call: syntax.Call) -> syntax.Call | None:
    """The call that makes the tensor of data, where ``call`` is the one that puts it on the GPU."""
    if creation.is_made_on_gpu(script, call):
        return call
    if not isinstance(call.func, syntax.Attribute) or call.func.attr.value not in creation.MOVES:
        return None
    made = _before_same(script, call.func.value)
    if isinstance(made, syntax.Name) and (bound := creation.bound(script, made)) is not None:
        made = _before_same(script, bound)
    if not isinstance(made, syntax.Call) or script.name(made.func) not in (*_FROM_DATA, *_FROM_LISTS, _FROM_ARRAY):
        return None
    on_host = script.argument(made, "device") is None
    return made if on_host and creation.target(script, call) is not None else None


def _asks_for_gradient(arg: syntax.Arg) -> bool:
    return is_name(arg.keyword, "requires_grad")


def _before_same(script: Script, node: syntax.BaseExpression) -> syntax.BaseExpression:
    """The expression below views and changes of the dtype: ``torch.tensor(1)`` for ``torch.tensor(1).float()``."""
    while isinstance(node, syntax.Call):
        if script.name(node.func) == "torch.autograd.Variable" and len(node.args) == 1:
            node = node.args[0].value
            continue
        if not isinstance(node.func, syntax.Attribute) or script.name(node.func) is not None:
            break
        if node.func.attr.value not in creation.SAME or not all(creation.is_plain(script, arg.value) for arg in node.args):
            break
        node = node.func.value
    return node


def _is_scalar(script: Script, data: syntax.BaseExpression) -> bool:
    """Whether an expression is a number that is written there, or the one that a variable is given."""
    if isinstance(data, syntax.Name) and data.value not in ("True", "False"):
        bindings = script.names.reaching(data)
        return len(bindings) == 1 and bindings[0].kind is Kind.ASSIGN and isinstance(bindings[0].value, _NUMBERS)
    known = script.constant(data) if not isinstance(data, syntax.Attribute) else None
    return known is not None and isinstance(known.value, (int, float))


def _dtype(script: Script, made: syntax.Call) -> str | None:
    """The dtype that a tensor's type has: ``torch.float32`` of ``torch.FloatTensor``; None where it goes by the data."""
    names = (script.name(made.func), *script.roles.calls.tensor_types(made.func))
    types = [name.rpartition(".")[2] for name in names if name is not None and name not in _FROM_DATA]
    found = {_DTYPES.get(each.removesuffix("Tensor").lower() or "float") for each in types}
    return found.pop() if len(found) == 1 else None


def _is_number(script: Script, data: syntax.BaseExpression) -> bool:
    """Whether an expression is a number that the host has, and has not just read from the GPU."""
    if _is_scalar(script, data):
        return True
    return script.role(data) is Role.NUMBER and _is_of_host(script, data, _DEPTH)


def _is_of_host(script: Script, data: syntax.BaseExpression, depth: int) -> bool:
    """Whether nothing that a number is computed of is handed in, or read from a tensor."""
    if not depth or any(part.attr.value in _READS for part in script.source.inside(data, syntax.Attribute)):
        return False
    if any(script.role(each) in (Role.TENSOR, Role.BATCH, Role.UNKNOWN) for each in _computed_of(script, data)):
        return False
    for name in script.source.inside(data, syntax.Name):
        for binding in script.names.reaching(name) if not is_name(name, "self") else ():
            made = written(binding)
            if binding.kind is Kind.PARAMETER or (made is not None and not _is_of_host(script, made, depth - 1)):
                return False
    return True


def _computed_of(script: Script, data: syntax.BaseExpression) -> Iterator[syntax.BaseExpression]:
    """The variables, attributes and arguments that a number is computed of."""
    yield from (arg.value for call in script.source.inside(data, syntax.Call) for arg in call.args)
    match data:
        case syntax.Name() | syntax.Attribute():
            yield data
    for node in (*script.source.inside(data, syntax.Name), *script.source.inside(data, syntax.Attribute)):
        up = script.source.parents[node]
        is_called = isinstance(up, syntax.Call) and up.func is node
        if not is_called and not isinstance(up, (syntax.Attribute, syntax.Subscript)):
            yield node


def _is_constant(script: Script, data: syntax.BaseExpression) -> bool:
    """Whether an expression is a list of constants, written there or bound once at the top of a file."""
    match data:
        case syntax.List(elements=elements) | syntax.Tuple(elements=elements):
            return bool(elements) and all(_is_constant(script, element.value) for element in elements)
        case syntax.Name():
            bound = [binding.value for binding in script.names.reaching(data) if binding.kind is Kind.ASSIGN]
            is_global = script.names.scope(data).lookup(data.value) is script.names.module
            alone = is_global and len(bound) == 1 == len(script.names.module.bindings.get(data.value, ()))
            uses = (script.source.parents[use] for use in script.names.uses(data))
            if not alone or any(isinstance(use, (syntax.Attribute, syntax.Subscript)) for use in uses):
                return False
            return isinstance(bound[0], (syntax.List, syntax.Tuple)) and _is_constant(script, bound[0])
    return _is_scalar(script, data)


def _is_counted(script: Script, data: syntax.ListComp) -> bool:
    """Whether a list holds what is computed of numbers alone for each number of a range: ``[2**i for i in range(n)]``."""
    clause = data.for_in
    if clause.inner_for_in is not None or clause.ifs or not isinstance(clause.target, syntax.Name):
        return False
    return script.is_call_to(clause.iter, "range") and _is_of_numbers(script, data.elt, clause.target.value)


def _is_of_numbers(script: Script, node: syntax.BaseExpression, counter: str) -> bool:
    match node:
        case syntax.Name(value=name) if name == counter:
            return True
        case syntax.BinaryOperation(left=left, right=right):
            return _is_of_numbers(script, left, counter) and _is_of_numbers(script, right, counter)
        case syntax.UnaryOperation(expression=inner):
            return _is_of_numbers(script, inner, counter)
        case syntax.Name() | syntax.Attribute():
            return script.role(node) is Role.NUMBER or _is_scalar(script, node)
    return _is_scalar(script, node)


@once(False)
def _is_array(script: Script, node: syntax.BaseExpression) -> bool:
    """Whether an expression is an array that NumPy makes of constants and sizes alone."""
    match node:
        case syntax.Call(args=[syntax.Arg(value=listed, star=""), *_]) if script.is_call_to(node, *_ARRAYS):
            return not isinstance(listed, syntax.Name) and _is_constant(script, listed)
        case syntax.Call() if script.name(node.func) in _OF_ONE_KIND:
            return True
        case syntax.Call() if script.name(node.func) in _MAKERS:
            return all(_is_size(script, arg.value) for arg in node.args if arg.keyword is None and not arg.star)
        case syntax.Call(args=[syntax.Arg(value=repeated), syntax.Arg(value=count), *_]) if script.is_call_to(
            node, *_REPEATS
        ):
            return _is_size(script, count) and (_is_range(script, repeated) or _is_array(script, repeated))
        case syntax.Call(func=syntax.Attribute(value=inner, attr=syntax.Name(value=method))) if method in _OF_ARRAYS:
            return script.name(node.func) is None and _is_array(script, inner)
        case syntax.Attribute(value=inner, attr=syntax.Name("T")):
            return _is_array(script, inner)
        case syntax.BinaryOperation(left=left, right=right):
            sides = [_is_array(script, each) for each in (left, right)]
            return any(sides) and all(
                is_array or _is_scalar(script, each) for is_array, each in zip(sides, (left, right), strict=True)
            )
        case syntax.Name() if len(bindings := script.names.reaching(node)) == 1:
            made = written(bindings[0])
            return (
                made is not None and _is_array(script, made) and all(_leaves(script, each) for each in _uses(script, node))
            )
    return False


def _is_range(script: Script, node: syntax.BaseExpression) -> bool:
    """Whether an expression counts to a size: ``range(self.ways)``."""
    return (
        isinstance(node, syntax.Call)
        and script.is_call_to(node, "range")
        and all(_is_size(script, arg.value) for arg in node.args)
    )


def _is_size(script: Script, node: syntax.BaseExpression) -> bool:
    if isinstance(node, syntax.Tuple | syntax.List):
        return all(_is_size(script, each.value) for each in node.elements)
    return _is_scalar(script, node) or script.role(node) is Role.NUMBER


def _uses(script: Script, name: syntax.Name) -> Iterator[syntax.Name]:
    """The other places where a variable with the same value is written."""
    bindings = script.names.reaching(name)
    return (use for use in script.names.uses(name) if use is not name and script.names.reaching(use) == bindings)


def _leaves(script: Script, use: syntax.Name) -> bool:
    """Whether a use of an array leaves it made of constants alone: it reads it, or puts such an array or number in it."""
    up = script.source.parents[use]
    if isinstance(up, syntax.Subscript) and up.value is use:
        up = script.source.parents[up]
    match up:
        case syntax.AssignTarget(target=syntax.Subscript()):
            assign = script.source.parents[up]
            given = assign.value if isinstance(assign, syntax.Assign) else None
            return given is not None and (_is_scalar(script, given) or _is_array(script, given))
        case syntax.AssignTarget() | syntax.Attribute(attr=syntax.Name("shape" | "T" | "reshape" | "astype" | "transpose")):
            return True
        case syntax.Arg():
            call = script.source.parents[up]
            return isinstance(call, syntax.Call) and (script.name(call.func) or "").startswith(("torch.", "numpy."))
        case syntax.Assign():
            return True
    return isinstance(up, syntax.BinaryOperation | syntax.Comparison | syntax.ComparisonTarget)
