"""Tensors that are made on the host, of sizes and numbers alone, only to be copied to the GPU."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes.sync import hidden
from speedlint.solve.flow import listed_once, once
from speedlint.solve.names import Binding, Kind
from speedlint.solve.terms import Definition
from speedlint.solve.unpacking import all_written
from speedlint.source import is_name, is_none, is_target
from speedlint.torch import library
from speedlint.torch.words import FREQUENT, Place, Role

_HARMLESS = ("torch.cuda.is_available", "torch.autograd.Variable")
_EXACT = frozenset(f"torch.{name}" for name in "zeros ones full arange range eye empty tril_indices triu_indices".split())
_ROUNDED = frozenset(f"torch.{name}" for name in "linspace logspace".split())
_RANDOM = frozenset(f"torch.{name}" for name in "rand randn randint randperm".split())
SAME = frozenset(
    "view reshape unsqueeze squeeze repeat expand t transpose permute contiguous flatten flip tril triu clone detach float "
    "double half bfloat16 long int short bool byte fill_ zero_ unsqueeze_ squeeze_ fill_diagonal_ repeat_interleave".split()
)
DRAWS = {
    "numpy.random.normal": "randn",
    "numpy.random.randn": "randn",
    "numpy.random.standard_normal": "randn",
    "numpy.random.rand": "rand",
    "numpy.random.random": "rand",
    "numpy.random.uniform": "rand",
    "numpy.random.randint": "randint",
    "numpy.random.permutation": "randperm",
}
"""What draws the same distribution on the GPU as a function of NumPy's does, but for its scale."""
_MOST_PARTS = 8
"""Variables and slices between what is drawn and what is copied: a train loop has one or two."""
_FROM_ARRAYS = frozenset(
    f"torch.{name}" for name in "tensor as_tensor from_numpy Tensor FloatTensor LongTensor DoubleTensor".split()
)
_DATA = ("numpy.", "torch.load", "torch.Generator", "open")
_HOLDS_DATA = frozenset({Role.TENSOR, Role.BATCH, Role.ARRAY, Role.MAPPING, Role.SEQUENCE, Role.DATASET, Role.LOADER})
_BY_SIZE = frozenset(f"torch.{name}" for name in "empty LongTensor IntTensor FloatTensor Tensor".split())
_TYPES = frozenset(f"torch.{name}Tensor" for name in ["", *"Float Double Half Long Int Short Byte Bool".split()])
"""Types that are called with sizes, and leave what they make as it lies in memory."""
_FILLS = frozenset({"fill_", "zero_"})
_RANDOM_METHODS = frozenset("uniform_ normal_ random_ bernoulli_ exponential_ log_normal_ cauchy_ geometric_".split())
_READS = frozenset("to cuda type shape size dim ndim dtype device T sum mean any all item".split())
_JOINS = ("torch.cat", "torch.concat", "torch.stack", "torch.hstack", "torch.vstack")
_WRAPPERS = ("torch.triu", "torch.tril", "torch.autograd.Variable", "torch.flip", "torch.unsqueeze", "torch.squeeze")
_KEPT_OPERATORS = (syntax.Multiply, syntax.Add, syntax.Subtract)
_ARRAYS_OF_PLACES = frozenset(
    f"numpy.{name}"
    for name in "arange argsort argwhere array asarray concatenate flatnonzero hstack repeat stack tile unique where".split()
) | {"numpy.random.permutation", "permutation", "argsort", "nonzero"}
_SAME_PLACES = frozenset({"astype", "copy", "flatten", "ravel", "reshape"})
_DRAWN_PLACES = {"numpy.random.choice": 2, "choice": 2, "numpy.random.randint": 3, "integers": 3}
"""From how many arguments on NumPy, or a generator of it, draws an array, and not one number."""
MOVES = ("to", "cuda", "type_as")
_ELSEWHERE = ("torch.set_default_tensor_type", "torch.set_default_device")
_WIDE = ("int", "int32", "int64", "long", "float", "float32", "float64", "double")
_NAMED = re.compile(r"dev|gpu|cuda|rank", re.IGNORECASE)
_EXPORT = re.compile(r"tracing|onnx|export|scripting", re.IGNORECASE)
_WITHIN_DEVICE = re.compile(rb"with torch\.device\(|DeviceContext\(")
_MODES = (b"set_default_tensor_type", b"set_default_device")


_MAP = 4
"""Dimensions of a batch of maps."""


class Created(NamedTuple):
    """A tensor made by ``factory`` and copied by ``move``.

    Attributes:
        is_exact: whether the GPU makes the same values bit for bit.
        is_random: whether it draws from the host's random stream.
        held: the binding's name where a variable holds the tensor before it is copied.
    """

    factory: syntax.Call
    move: syntax.Call
    is_exact: bool
    is_random: bool
    held: syntax.Name | None = None


class Upload(NamedTuple):
    """A tensor that a function makes on the host, by ``factory``, and copies: ``node`` is the copy, or what is indexed by
    what the host holds."""

    script: Script
    node: syntax.Call | syntax.Subscript
    factory: syntax.BaseExpression


@listed_once
def within(script: Script, function: syntax.FunctionDef) -> Iterator[Upload]:
    """The tensors that a function itself makes on the host and copies in every step, the indices last."""
    for call in hidden.in_steps(script, function, syntax.Call):
        made = created(script, call)
        factory = made.factory if made is not None else made_by_function(script, call)
        if factory is not None and not is_kept(script, call):
            yield Upload(script, call, factory)
    for subscript in hidden.in_steps(script, function, syntax.Subscript):
        index = ranged_index(script, subscript) or host_index(script, subscript)
        if index is not None:
            yield Upload(script, subscript, index)


def is_map(found: Created) -> bool:
    """Whether the tensor has four dimensions or more, as a batch of maps has: to copy it takes time by itself."""
    return _dimensions(found) >= _MAP


def is_of_volumes(found: Created) -> bool:
    """Whether the tensor has five dimensions or more, as a batch of volumes has: the host fills and copies megabytes."""
    return _dimensions(found) > _MAP


def _dimensions(found: Created) -> int:
    sizes = [arg.value for arg in found.factory.args if arg.keyword is None or arg.keyword.value == "size"]
    if sizes and isinstance(sizes[0], syntax.Tuple | syntax.List):
        return len(sizes[0].elements)
    return len(sizes)


def created(script: Script, move: syntax.Call) -> Created | None:
    """What a copy to the GPU copies, if it is made on the host just for that; None for any other call."""
    if not isinstance(move.func, syntax.Attribute) or move.func.attr.value not in MOVES:
        return _handed(script, move)
    copied = move.func.value
    held = copied if isinstance(copied, syntax.Name) else None
    made = bound(script, held) if held is not None else copied
    found = _trace(script, made) if made is not None else None
    if found is None or target(script, move) is None:
        return None
    if is_made_elsewhere(script):
        return None
    factory, is_exact, is_random = found
    return Created(factory, move, is_exact, is_random, held)


def is_made_elsewhere(script: Script) -> bool:
    """Whether the program chooses a device on which tensors are made where none is named; what is started by itself, and
    imports no training, chooses for its own run."""
    if script.program.mentions(script, _WITHIN_DEVICE):
        return True
    choosing = (one for one in script.everywhere(*_MODES) if any(True for _ in one.calls(*_ELSEWHERE)))
    return any(len(script.program.upward_files(one)) > 1 or _may_train(one) for one in choosing)


def _may_train(script: Script) -> bool:
    """Whether a script takes training steps, has a ``Trainer`` take them, or imports a file with a loop that does."""
    if script.loops.takes_steps() or any(script.roles.calls.made_of(library.TRAINERS)):
        return True
    trainings = (place for place in script.everywhere(b"backward(") if place.loops.trains)
    return any(script.key in script.program.upward_files(place) for place in trainings)


def _handed(script: Script, move: syntax.Call) -> Created | None:
    """What a call hands to a function of the project that only copies it to the GPU: ``to_var(torch.zeros(n))``."""
    copied = only_copied(script, move)
    held = copied if isinstance(copied, syntax.Name) else None
    made = bound(script, held) if held is not None else copied
    found = _trace(script, made) if made is not None else None
    return Created(found[0], move, found[1], found[2], held) if found is not None else None


def only_copied(script: Script, move: syntax.Call) -> syntax.BaseExpression | None:
    """What a call hands to a function of the project that gives it back, copied to the GPU where there is one."""
    if len(move.args) != 1 or move.args[0].keyword is not None or move.args[0].star:
        return None
    callee = script.callee(move)
    if callee is None or not isinstance(callee.node, syntax.FunctionDef) or not _only_copies(callee):
        return None
    return move.args[0].value


def _only_copies(function: Definition) -> bool:
    """Whether a function gives back the tensor that it is handed, and copies it to the GPU where there is one."""
    script, node = function.script, function.node
    assert isinstance(node, syntax.FunctionDef)
    if len(node.params.params) < 1 or node.decorators:
        return False
    name = node.params.params[0].name.value
    moves = []
    for call in script.source.inside(node.body, syntax.Call):
        match call:
            case syntax.Call(func=syntax.Attribute(value=syntax.Name(value=held), attr=syntax.Name(value=method))) if (
                held == name and method in MOVES
            ):
                moves.append(call)
            case _ if script.name(call.func) not in _HARMLESS:
                return False
    returns = [each.value for each in script.source.inside(node.body, syntax.Return)]
    given = [part for each in returns for part in ((each.body, each.orelse) if isinstance(each, syntax.IfExp) else (each,))]
    if not moves or not given or any(target(script, each) is None for each in moves):
        return False
    return all(each in moves or is_name(each, name) or _is_wrapped(script, each, name) for each in given)


def _is_wrapped(script: Script, node: syntax.BaseExpression | None, name: str) -> bool:
    """Whether a node is ``Variable(x)`` of a variable's name."""
    if not isinstance(node, syntax.Call) or script.name(node.func) not in _HARMLESS:
        return False
    return any(is_name(arg.value, name) for arg in node.args)


def target(script: Script, move: syntax.Call) -> str | None:
    """The device of a move to where there may be a GPU, as it is written for a factory."""
    assert isinstance(move.func, syntax.Attribute)
    method = move.func.attr.value
    device = script.argument(move, "device", 0)
    if method == "cuda":
        return '"cuda"' if device is None else script.text(device)
    if method == "type_as":
        other = script.argument(move, "other", 0)
        return f"{script.text(other)}.device" if other is not None and is_like_tensor(script, other) else None
    if method != "to" or device is None or not script.source.contains(move, device):
        return None
    if script.roles.calls.is_dtype(device) or script.roles.calls.device_of(device) is Place.HOST:
        return None
    known = script.constant(device)
    if is_like_tensor(script, device):
        return f"{script.text(device)}.device"
    if script.role(device) in (Role.TENSOR, Role.BATCH, Role.MODULE, Role.ARRAY):
        return None
    is_named = bool(_NAMED.search(script.text(device).rpartition(".")[2]))
    is_device = script.role(device) is Role.DEVICE or is_named or (known is not None and isinstance(known.value, (str, int)))
    return script.text(device) if is_device else None


def drawn(script: Script, call: syntax.Call) -> syntax.Call | None:
    """The numbers that NumPy draws on the host, where a call copies them to the GPU: ``Tensor(np.random.normal(...))`` of a
    type on the GPU, ``torch.tensor(..., device=device)``, ``torch.from_numpy(...).to(device)``."""
    made: syntax.BaseExpression = call
    if isinstance(call.func, syntax.Attribute) and call.func.attr.value in ("to", "cuda") and script.name(call.func) is None:
        if target(script, call) is None:
            return None
        made = call.func.value
        while isinstance(made, syntax.Call) and isinstance(made.func, syntax.Attribute) and made.func.attr.value in SAME:
            made = made.func.value
    elif not is_made_on_gpu(script, call):
        return None
    if not isinstance(made, syntax.Call) or not made.args:
        return None
    types = (script.name(made.func), *script.roles.calls.tensor_types(made.func))
    data = made.args[0].value
    if not any(name in _FROM_ARRAYS or name in library.CUDA_FACTORIES for name in types):
        return None
    return _drawn_for(script, data)


def _is_of_sizes(script: Script, draw: syntax.Call) -> bool:
    """Whether NumPy draws by sizes and numbers alone; an order of places by how many there are, and of no values."""
    if script.name(draw.func) == "numpy.random.permutation":
        count = draw.args[0].value if len(draw.args) == 1 else None
        is_range = isinstance(count, syntax.Call) and script.name(count.func) in ("range", "len", "numpy.arange")
        return count is not None and (is_range or script.role(count) is Role.NUMBER)
    return all(is_plain(script, arg.value) for arg in draw.args)


def _drawn_for(script: Script, data: syntax.BaseExpression) -> syntax.Call | None:
    """The call of NumPy's that draws an array, or of whose array it is a slice, where the host uses it for nothing else."""
    todo: list[syntax.BaseExpression] = [data]
    followed: set[syntax.Node] = set()
    bindings: set[Binding] = set()
    calls: list[syntax.Call] = []
    while todo:
        node = todo.pop()
        followed.add(node)
        match node:
            case syntax.Call() if script.name(node.func) in DRAWS and _is_of_sizes(script, node):
                calls += [] if node in calls else [node]
            case syntax.Subscript(value=whole, slice=[syntax.SubscriptElement(slice=syntax.Slice())]):
                todo.append(whole)
            case syntax.Name():
                found = set(script.names.reaching(node)) - bindings
                if any(each.kind is not Kind.ASSIGN or each.path or each.value is None for each in found):
                    return None
                todo += [each.value for each in found if each.value is not None]
                followed |= {each.node for each in found}
                bindings |= found
            case _:
                return None
        if len(followed) > _MOST_PARTS * 2:
            return None
    uses = {use for each in followed if isinstance(each, syntax.Name) for use in script.names.uses(each)}
    others = {use for use in uses - followed if not is_target(script.source, use)}
    if len(calls) != 1 or any(bindings & set(script.names.reaching(use)) for use in others):
        return None
    return calls[0]


def is_made_on_gpu(script: Script, call: syntax.Call) -> bool:
    """Whether a call makes a tensor of data on the GPU by itself: by its type, or by ``device=``."""
    types = (script.name(call.func), *script.roles.calls.tensor_types(call.func))
    if any(name in library.CUDA_FACTORIES for name in types):
        return True
    device = script.argument(call, "device") if script.name(call.func) in ("torch.tensor", "torch.as_tensor") else None
    return device is not None and not is_none(device) and script.roles.calls.device_of(device) is not Place.HOST


def is_like_tensor(script: Script, device: syntax.BaseExpression) -> bool:
    """Whether ``.to(other)`` or ``.type_as(other)`` takes the device and dtype of a tensor that is on the GPU, or may be."""
    return isinstance(device, (syntax.Name, syntax.Attribute)) and script.is_device_tensor(device)


def ranged_index(script: Script, subscript: syntax.Subscript) -> syntax.Call | None:
    """The ``range(n)``, as it is or as a list or array, or the ``torch.arange(n)`` of the host, by which a tensor on the GPU
    is indexed."""
    if not script.is_shown_device_tensor(subscript.value):
        return None
    for element in subscript.slice:
        index = element.slice.value if isinstance(element.slice, syntax.Index) else None
        if index is not None and (counted := _counted(script, index)) is not None:
            return counted
        if isinstance(index, syntax.Call) and (name := script.name(index.func)) in ("range", "list", "numpy.arange"):
            inner = index.args[0].value if name == "list" and len(index.args) == 1 else index
            is_range = isinstance(inner, syntax.Call) and script.name(inner.func) in ("range", "numpy.arange")
            if is_range and not any(arg.keyword or arg.star for arg in inner.args):
                return index
    return None


def host_index(script: Script, subscript: syntax.Subscript) -> syntax.BaseExpression | None:
    """The array, list or tensor of the host by which a tensor on the GPU is indexed: torch copies it there, each time."""
    if not script.is_shown_device_tensor(subscript.value):
        return None
    for element in subscript.slice:
        index = element.slice.value if isinstance(element.slice, syntax.Index) else None
        if index is not None and _is_of_places(script, index):
            return index
    return None


def _is_of_places(script: Script, index: syntax.BaseExpression) -> bool:
    """Whether an index is surely an array, a list of numbers or a tensor of the host."""
    if isinstance(index, syntax.List):  # of one place it is most often the last one, where a network only infers
        return len(index.elements) > 1 and all(script.role(each.value) is Role.NUMBER for each in index.elements)
    value = script.value(index)
    if value.role is Role.TENSOR:
        return value.place is Place.HOST and not value.assumed and not is_made_elsewhere(script)
    if value.role not in (Role.ARRAY, Role.SEQUENCE):
        return False
    made = list(script.roles.origins(index))
    if value.role is Role.ARRAY:
        return bool(made) and all(_is_of_several_places(place, node) for place, node in made)
    are_lists = bool(made) and all(isinstance(node, syntax.List | syntax.ListComp) for _, node in made)
    return are_lists and value.element is not None and value.element.role is Role.NUMBER


def _is_of_several_places(script: Script, node: syntax.BaseExpression) -> bool:
    """Whether an expression is an array, and no single number of NumPy's, which is copied with the kernel's arguments."""
    match node:
        case syntax.Subscript(value=syntax.Call(func=func)) if script.name(func) in ("numpy.where", "numpy.nonzero"):
            return True
        case syntax.Subscript(slice=elements):
            indices = [each.slice.value for each in elements if isinstance(each.slice, syntax.Index)]
            is_cut = len(indices) < len(elements)
            return is_cut or any(script.role(each) in (Role.ARRAY, Role.SEQUENCE, Role.TENSOR) for each in indices)
        case syntax.BinaryOperation(left=left, right=right):
            return any(_is_several(script, each) for each in (left, right))
        case syntax.Call(func=func, args=args):
            name = script.name(func) or (func.attr.value if isinstance(func, syntax.Attribute) else "")
            if name in _DRAWN_PLACES:
                least, given = _DRAWN_PLACES[name], [arg for arg in args if arg.keyword is None]
                return len(given) >= least or any(is_name(arg.keyword, "size") for arg in args)
            if name in _SAME_PLACES and isinstance(func, syntax.Attribute):
                return _is_several(script, func.value)
            return name in _ARRAYS_OF_PLACES
    return False


def _is_several(script: Script, node: syntax.BaseExpression) -> bool:
    made = list(script.roles.origins(node))
    return bool(made) and all(_is_of_several_places(place, each) for place, each in made)


def _counted(script: Script, index: syntax.BaseExpression) -> syntax.Call | None:
    """The ``torch.arange(n)`` that an index is, or its variable, and that is made on the host."""
    made = all_written(script.names.reaching(index)) if isinstance(index, syntax.Name) else [index]
    made = [_before_cast(each) for each in made]
    found = [each for each in made if isinstance(each, syntax.Call) and script.is_call_to(each, "torch.arange")]
    if len(found) != 1 or len(made) != 1 or _is_bound_to_host(script, found[0]) or is_made_elsewhere(script):
        return None
    if script.program.mentions(script, b"torch.compile"):  # inductor makes it on the GPU
        return None
    return found[0] if script.frequency(found[0]) in FREQUENT else None


def _before_cast(node: syntax.BaseExpression) -> syntax.BaseExpression:
    match node:
        case syntax.Call(func=syntax.Attribute(value=inner, attr=syntax.Name("long" | "int")), args=[]):
            return inner
    return node


def bound(script: Script, name: syntax.Name) -> syntax.BaseExpression | None:
    """The value of a variable that is copied before anything else uses it, and whose copy alone is used from then on."""
    bindings, source = script.names.reaching(name), script.source
    if len(bindings) != 1 or bindings[0].kind is not Kind.ASSIGN or bindings[0].path:
        return None
    bound, statement = bindings[0], source.statement(name)
    if bound.value is None or script.function(bound.node) is not script.function(name):
        return None
    others = [use for use in script.names.uses(name) if use is not bound.node and not source.contains(statement, use)]
    between = (use for use in others if script.order.may_run_between(bound.node, use, name))
    if not all(_is_filled(script, use, source.statement(bound.node)) for use in between):
        return None
    is_rebound = any(source.contains(statement, binding.node) for binding in _all(script, name))
    later = any(script.order.runs_again(name, use) for use in others)
    return bound.value if is_rebound or not later else None


def _is_filled(script: Script, use: syntax.Name, beside: syntax.BaseStatement) -> bool:
    """Whether a use sets a part of a tensor, which a number or slice picks, to a number: ``x[:, 0] = 4``, in the block
    where another statement stands."""
    entry, parents = script.source.parents[use], script.source.parents
    if parents[script.source.statement(use)] is not parents[beside]:
        return False
    if not isinstance(entry, syntax.Subscript) or entry.value is not use:
        return False
    target = script.source.parents[entry]
    assign = script.source.parents[target] if isinstance(target, syntax.AssignTarget) else None
    if not isinstance(assign, syntax.Assign) or not _is_number(script, assign.value):
        return False
    indices = (each.slice for each in entry.slice)
    return all(isinstance(each, syntax.Slice) or _is_number(script, each.value) for each in indices)


def _all(script: Script, name: syntax.Name) -> list[Binding]:
    scope = script.names.scope(name).lookup(name.value)
    return scope.bindings.get(name.value, []) if scope is not None else []


def _trace(script: Script, node: syntax.BaseExpression) -> tuple[syntax.Call, bool, bool] | None:
    """The factory at the bottom of an expression of host work, whether it is exact, and whether it is random."""
    is_exact, is_random, is_filled = True, False, False
    while True:
        match node:
            case syntax.Call() if is_type(script, node):
                return (node, is_exact and not is_random, is_random) if is_filled and _is_sized(script, node) else None
            case syntax.Call() if (name := script.name(node.func)) in _EXACT | _ROUNDED | _RANDOM:
                if _is_bound_to_host(script, node):
                    return None
                is_random = is_random or name in _RANDOM
                is_exact = is_exact and not is_random and name not in _ROUNDED and _has_whole_steps(script, node)
                return node, is_exact, is_random
            case syntax.Call(func=func, args=[syntax.Arg(value=inner, star=""), *_]) if script.name(func) in _WRAPPERS:
                node = inner
            case syntax.Call(func=syntax.Attribute(value=inner, attr=syntax.Name(value=method))) if (
                script.name(node.func) is None
            ):
                is_filled = is_filled or method in _FILLS or method in _RANDOM_METHODS
                if method in _RANDOM_METHODS and not any(arg.keyword for arg in node.args):
                    is_random = True
                elif method not in SAME and not _changes_dtype(script, node, method):
                    return None
                if not all(is_plain(script, arg.value) for arg in node.args):
                    return None
                node = inner
            case syntax.BinaryOperation(left=left, operator=operator, right=right):
                is_exact = is_exact and isinstance(operator, _KEPT_OPERATORS)
                if not isinstance(operator, (*_KEPT_OPERATORS, syntax.Divide)):
                    return None
                if _is_number(script, right):
                    node = left
                elif _is_number(script, left):
                    node = right
                else:
                    return None
            case _:
                return None


def is_type(script: Script, factory: syntax.BaseExpression) -> bool:
    """Whether a call makes a tensor by its type, as in ``torch.FloatTensor(n)``, which takes no device of a GPU."""
    return isinstance(factory, syntax.Call) and script.name(factory.func) in _TYPES


def _is_sized(script: Script, made: syntax.Call) -> bool:
    """Whether a tensor's type is called with sizes alone, and no data: ``torch.FloatTensor(n, 1)``, ``(x.size())``."""
    given = [arg.value for arg in made.args if arg.keyword is None]
    if len(given) != len(made.args):
        return False
    if len(given) == 1 and script.role(given[0]) is not Role.NUMBER:
        origins = list(script.roles.origins(given[0])) or [(script, given[0])]
        return bool(origins) and all(_is_size(place, each) for place, each in origins)
    return bool(given) and all(not arg.star and script.role(arg.value) is Role.NUMBER for arg in made.args)


def _is_size(script: Script, node: syntax.BaseExpression) -> bool:
    """Whether an expression is the whole size of a tensor."""
    match node:
        case syntax.Call(func=syntax.Attribute(value=tensor, attr=syntax.Name("size")), args=[]):
            return script.role(tensor) in (Role.TENSOR, Role.BATCH)
        case syntax.Attribute(value=tensor, attr=syntax.Name("shape")):
            return script.role(tensor) in (Role.TENSOR, Role.BATCH)
    return False


def made_by_function(script: Script, move: syntax.Call) -> syntax.Call | None:
    """The call of a function of the project that makes a tensor on the host, of numbers alone, where another one copies it
    to the GPU: ``causal_mask(words.shape[1]).to(device)``, also by way of a variable."""
    if not isinstance(move.func, syntax.Attribute) or move.func.attr.value not in MOVES:
        return None
    copied = move.func.value
    made = bound(script, copied) if isinstance(copied, syntax.Name) else copied
    if not isinstance(made, syntax.Call) or target(script, move) is None or is_made_elsewhere(script):
        return None
    if script.frequency(made) is not script.frequency(move):
        return None
    callee = script.callee(made)
    if callee is None or not isinstance(callee.node, syntax.FunctionDef) or callee.node.decorators:
        return None
    value = script.value(made)
    is_on_host = value.role is Role.TENSOR and value.place is Place.HOST and not value.assumed
    of_numbers = all(not arg.star and _is_number_or_size(script, arg.value) for arg in made.args)
    return made if is_on_host and of_numbers and _makes_of_sizes(callee) else None


def _is_number_or_size(script: Script, node: syntax.BaseExpression) -> bool:
    return script.role(node) is Role.NUMBER or _is_size(script, node)


@once(False)
def _makes_of_sizes(function: Definition) -> bool:
    """Whether a function makes a tensor of sizes, wherever torch likes to, and none of data."""
    script = function.script
    names = {call: script.name(call.func) or "" for call in script.source.inside(function.node, syntax.Call)}
    if any(name in _FROM_ARRAYS or name.startswith(_DATA) for name in names.values()) or _takes_data(function):
        return False
    if any(isinstance(each.func, syntax.Attribute) and each.func.attr.value == "pin_memory" for each in names):
        return False
    factories = [call for call, name in names.items() if name in _EXACT | _ROUNDED | _RANDOM]
    return bool(factories) and not any(_is_bound_to_host(script, call) for call in factories)


def _takes_data(function: Definition) -> bool:
    """Whether a function reads a tensor, or what may hold some, that stands outside of it or in its object, or fills one row
    by row: on the GPU each row would be a kernel of its own."""
    script = function.script
    own = script.names.scope(function.node.body).bindings
    if any(True for loop in (syntax.For, syntax.While) for _ in script.source.inside(function.node, loop)):
        return True
    outside = [each for each in script.source.inside(function.node, syntax.Name) if each.value not in own]
    held = (each for each in script.source.inside(function.node, syntax.Attribute) if is_name(each.value, "self"))
    indexed = [index.value for index in script.source.inside(function.node, syntax.Subscript) if index.value in outside]
    return any(script.role(each) in _HOLDS_DATA for each in (*outside, *held)) or any(
        script.role(each) is Role.UNKNOWN for each in indexed
    )


def put_together(script: Script, move: syntax.Call) -> syntax.Call | None:
    """One of the factories of what a copy to the GPU copies, where that is put together of such tensors on the host alone:
    the labels of pairs, ``(labels[None] == labels[:, None]).float().cuda()``."""
    match move.func:
        case syntax.Attribute(value=copied, attr=syntax.Name(value="to" | "cuda")) if script.name(move.func) is None:
            if target(script, move) is not None and not is_made_elsewhere(script) and _is_of_several(script, copied):
                return _part_made(script, copied)
    return None


@once(False)
def _is_of_several(script: Script, node: syntax.BaseExpression) -> bool:
    """Whether an expression joins, compares or computes with several tensors."""
    match node:
        case syntax.Name():
            given = all_written(script.names.reaching(node))
            return len(given) == 1 and _is_of_several(script, given[0])
        case syntax.Comparison(left=left, comparisons=[syntax.ComparisonTarget(comparator=right)]):
            return not _is_number(script, left) and not _is_number(script, right)
        case syntax.BinaryOperation(left=left, right=right):
            return not _is_number(script, left) and not _is_number(script, right)
        case syntax.Call(func=func) if script.name(func) in _JOINS:
            return True
        case syntax.Call(func=syntax.Attribute(value=inner)) if script.name(node.func) is None:
            return _is_of_several(script, inner)
    return False


@once(None)
def _part_made(script: Script, node: syntax.BaseExpression) -> syntax.Call | None:
    """One of the factories that an expression is made of; None where it may hold anything else but numbers."""
    name = script.name(node.func) if isinstance(node, syntax.Call) else None
    match node:
        case syntax.Name():
            bound = script.names.reaching(node)
            given = all_written(bound)
            held = (use for use in script.names.uses(node) if any(each in bound for each in script.names.reaching(use)))
            is_kept = len(given) == 1 and all(_only_reads(script, use) for use in held)
            return _part_made(script, given[0]) if is_kept else None
        case syntax.Call() if name in _EXACT | _ROUNDED:
            return None if _is_bound_to_host(script, node) else node
        case syntax.Call(args=[syntax.Arg(value=parts), *_]) if name in _JOINS:
            return _any_made(script, _parts(parts))
        case syntax.Call(func=syntax.Attribute(value=inner, attr=syntax.Name(value=method))) if name is None:
            is_same = method in SAME or _changes_dtype(script, node, method)
            return _part_made(script, inner) if is_same and all(is_plain(script, arg.value) for arg in node.args) else None
        case syntax.Comparison(left=left, comparisons=[syntax.ComparisonTarget(comparator=right)]):
            return _any_made(script, [left, right])
        case syntax.BinaryOperation(left=left, right=right):
            return _any_made(script, [left, right])
        case syntax.UnaryOperation(expression=inner):
            return _part_made(script, inner)
    return None


def _only_reads(script: Script, use: syntax.Name) -> bool:
    """Whether a use of a variable surely leaves its tensor as it is: not ``x.zero_()``, ``x[0] = 1``, ``f(x)``."""
    up = script.source.parents[use]
    if isinstance(up, syntax.Subscript) and up.value is use:
        up = script.source.parents[up]
    match up:
        case syntax.Attribute(attr=syntax.Name(value=name)):
            return name in _READS or (name in SAME and not name.endswith("_"))
        case syntax.Arg(keyword=None):
            call = script.source.parents[up]
            return isinstance(call, syntax.Call) and (script.name(call.func) or "").startswith("torch.")
        case syntax.AssignTarget(target=target):
            return target is use
    return isinstance(up, syntax.Comparison | syntax.ComparisonTarget | syntax.BinaryOperation | syntax.UnaryOperation)


def _parts(several: syntax.BaseExpression) -> list[syntax.BaseExpression]:
    match several:
        case syntax.List(elements=elements) | syntax.Tuple(elements=elements):
            return [each.value for each in elements]
        case syntax.ListComp(elt=element):
            return [element]
    return []


def _any_made(script: Script, parts: list[syntax.BaseExpression]) -> syntax.Call | None:
    made = [_part_made(script, each) for each in parts if not _is_number(script, each)]
    return made[0] if made and None not in made else None


def _changes_dtype(script: Script, call: syntax.Call, method: str) -> bool:
    return method in ("to", "type") and len(call.args) == 1 and script.roles.calls.is_dtype(call.args[0].value)


def is_plain(script: Script, value: syntax.BaseExpression) -> bool:
    """Whether an argument of a method is no tensor: a size, a dimension, a number."""
    return script.role(value) not in (Role.TENSOR, Role.BATCH)


def _is_number(script: Script, value: syntax.BaseExpression) -> bool:
    if isinstance(value, (syntax.Integer, syntax.Float, syntax.UnaryOperation)) or script.role(value) is Role.NUMBER:
        return True
    known = script.constant(value)
    return known is not None and isinstance(known.value, int | float)


def _is_bound_to_host(script: Script, factory: syntax.Call) -> bool:
    """Whether a factory says where or how it makes its tensor, as for one that is meant for the host, or makes it empty; not
    where it fills a tensor that is made for that, ``out=torch.LongTensor(n)``."""
    match factory.args:
        case [syntax.Arg(value=syntax.Integer("0"))]:
            return True
    said = {arg.keyword.value for arg in factory.args if arg.keyword is not None}
    if (filled := filled_by(factory)) is not None and script.name(filled.func) in _BY_SIZE:
        said.remove("out")
    return bool(said & {"device", "out", "generator", "pin_memory", "layout", "names"}) or any(
        arg.star == "**" for arg in factory.args
    )


def filled_by(factory: syntax.Call) -> syntax.Call | None:
    """The call that makes the tensor which a factory fills: ``torch.LongTensor(n)`` of ``out=torch.LongTensor(n)``."""
    made = (arg.value for arg in factory.args if is_name(arg.keyword, "out"))
    return next((each for each in made if isinstance(each, syntax.Call)), None)


def _has_whole_steps(script: Script, factory: syntax.Call) -> bool:
    """Whether ``arange`` counts in whole steps from a whole number, and so without rounding."""
    if script.name(factory.func) not in ("torch.arange", "torch.range"):
        return True
    plain = [arg.value for arg in factory.args if arg.keyword is None]
    if any(arg.star or is_name(arg.keyword, "start", "end", "step") for arg in factory.args):
        return False
    first = plain[:1] if len(plain) > 1 else []
    counted = (script.constant(each) for each in (*first, *plain[2:]))
    dtype = script.argument(factory, "dtype")
    is_half = dtype is not None and script.text(dtype).rpartition(".")[2] not in _WIDE
    return not is_half and all(known is not None and isinstance(known.value, int) for known in counted)


def is_kept(script: Script, move: syntax.Call) -> bool:
    """Whether the tensor is made only when it is missing, under a condition on what the branch then sets, or only while a
    model is exported."""
    for up in script.source.ancestors(move):
        if isinstance(up, syntax.If):
            asked = script.text(up.test)
            targets = (target.target for assign in script.source.inside(up.body, syntax.Assign) for target in assign.targets)
            if _EXPORT.search(asked) or any(_asks_for(script, each, asked) for each in targets):
                return True
        if isinstance(up, syntax.FunctionDef):
            return any("cache" in script.text(each.decorator) for each in up.decorators)
    return False


def _asks_for(script: Script, target: syntax.Node, asked: str) -> bool:
    """Whether a condition is about the attribute or the entry that is set, or about a variable that is None."""
    if isinstance(target, (syntax.Attribute, syntax.Subscript)):
        return _root(script, target) in asked
    if not isinstance(target, syntax.Name) or not re.search(rf"\b{target.value} is None", asked):
        return False
    parameters = [binding.node for binding in _all(script, target) if binding.kind is Kind.PARAMETER]
    return all(_is_handed(script, each) for each in parameters if isinstance(each, syntax.Param))


def _is_handed(script: Script, parameter: syntax.Param) -> bool:
    """Whether a call hands over something for a parameter, so that it may never be None."""
    return any(value is not None and not is_none(value) for _, value in script.values.passed(parameter))


def _root(script: Script, target: syntax.Attribute | syntax.Subscript) -> str:
    return script.text(target.value if isinstance(target, syntax.Subscript) else target)
