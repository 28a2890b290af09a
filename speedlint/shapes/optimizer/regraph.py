"""Backward passes that keep their graph, and whether another one may run through it: in the same turn, in the next, or
from somewhere else. A proof from what is in sight; where anything is not, the graph counts as needed."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes import training
from speedlint.shapes.optimizer.graphs import carrier
from speedlint.shapes.sync.displays import display_around
from speedlint.solve.gradients import told
from speedlint.solve.names import Binding, Kind
from speedlint.source import is_name, is_target
from speedlint.torch import library
from speedlint.torch.methods import FLOATS, MOVES, RESHAPES, works_in_place
from speedlint.torch.words import Frequency, Role

_MARKS = (b"backward(", b"autograd.grad", b"import grad", b"jacobian", b"hessian")
_PASSES = frozenset({"backward", "manual_backward"})
_DERIVES = ("torch.autograd.", "torch.func.", "functorch.")
_STATELESS = sys.stdlib_module_names | frozenset(
    "torch torchvision timm numpy scipy pandas sklearn skimage PIL cv2 tqdm matplotlib seaborn yaml einops h5py "
    "albumentations tensorboard tensorboardX wandb transformers datasets tokenizers nltk imageio".split()
)
"""Packages whose modules and functions keep no tensor with a graph from one call to the next."""
_GRAPHLESS = frozenset(
    {
        Role.NUMBER, Role.STRING, Role.NONE, Role.ARRAY, Role.MODULE, Role.OPTIMIZER, Role.SCHEDULER, Role.SCALER,
        Role.LOADER, Role.DATASET, Role.SAMPLER, Role.DEVICE, Role.DTYPE, Role.FUNCTION, Role.CLASS,
    }
)  # fmt: skip
_FACTORIES = frozenset(
    f"torch.{name}" for name in "zeros ones full tensor as_tensor from_numpy arange linspace eye rand randn randint".split()
)
_MOVED = RESHAPES | FLOATS | MOVES
_CACHES = (b"parametrize.cached", b"weight_norm", b"lru_cache", b"functools.cache", b"@cache")
_FILLS = (
    "append",
    "appendleft",
    "add",
    "extend",
    "insert",
    "update",
    "setdefault",
    "push",
    "put",
    "copy_",
)


def needless(script: Script, backward: syntax.Call) -> syntax.Arg | None:
    """The argument ``retain_graph=True`` of a backward pass in each training step that no other pass can follow."""
    found = [arg for arg in backward.args if is_name(arg.keyword, "retain_graph")]
    if len(found) != 1 or len(backward.args) != 1 or not is_name(found[0].value, "True"):
        return None
    if script.name(backward.func) is not None or script.frequency(backward) is not Frequency.STEP:
        return None
    if _is_alone(script, backward) and _is_new_each_turn(script, backward) and _keeps_nothing(script):
        return found[0]
    return None


def _is_alone(script: Script, backward: syntax.Call) -> bool:
    """Whether the program differentiates nowhere else."""
    if training.is_framework_driven(script):
        return False
    return not any(
        call is not backward and _differentiates(place, call)
        for place in script.everywhere(*_MARKS)
        for call in place.source.of(syntax.Call)
    )


def _differentiates(script: Script, call: syntax.Call) -> bool:
    name = script.name(call.func)
    if name is not None:
        return name.startswith(_DERIVES)
    return isinstance(call.func, syntax.Attribute) and call.func.attr.value in _PASSES


# Within the turn


def _is_new_each_turn(script: Script, backward: syntax.Call) -> bool:
    """Whether each tensor that a turn of the loop works with is made in it, of things without a graph."""
    loop, function = script.loops.driving_loop(backward), script.function(backward)
    if loop is None or (
        function is not None and script.source.enclosing(function, syntax.FunctionDef, syntax.Lambda) is not None
    ):
        return False
    if any(True for kind in (syntax.Lambda, syntax.FunctionDef) for _ in script.source.inside(loop, kind)):
        return False
    if (
        script.source.enclosing(backward, syntax.For, syntax.While) is not loop
        or script.loops.driving_loop(loop) is not None
    ):
        return False
    return all(_is_fresh(script, name, loop) for name in _read(script, loop))


def _read(script: Script, loop: syntax.For | syntax.While) -> Iterator[syntax.Name]:
    """The variables whose values the body of a loop works with; what is only stored into or shown is left out."""
    source = script.source
    for name in source.inside(loop.body, syntax.Name):
        parent = source.parents[name]
        if isinstance(parent, syntax.Attribute) and parent.attr is name:
            continue
        if isinstance(parent, syntax.Arg) and parent.keyword is name:
            continue
        if not is_target(source, name) and not _only_takes(script, name) and display_around(script, name) is None:
            yield name


def _only_takes(script: Script, name: syntax.Name) -> bool:
    """Whether a name is there to be given something: ``losses.append(...)``, ``meter.update(...)``, ``seen["n"] = ...``."""
    node: syntax.Node = name
    while isinstance(parent := script.source.parents[node], syntax.Attribute | syntax.Subscript) and parent.value is node:
        node = parent
    if isinstance(parent, syntax.AssignTarget) or (isinstance(parent, syntax.AugAssign) and parent.target is node):
        return True
    return isinstance(parent, syntax.Call) and parent.func is node and isinstance(script.source.parents[parent], syntax.Expr)


def _is_fresh(script: Script, name: syntax.Name, loop: syntax.For | syntax.While) -> bool:
    whole: syntax.Node = name
    while isinstance(parent := script.source.parents[whole], syntax.Attribute) and parent.value is whole:
        if script.role(whole) in _GRAPHLESS or script.name(whole) is not None:
            return True
        whole = parent
    if script.name(whole) is not None or script.role(whole) in _GRAPHLESS or script.definition(whole) is not None:
        return True
    if isinstance(whole, syntax.BaseExpression) and script.constant(whole) is not None:
        return True
    bindings = script.names.reaching(name)
    in_turn = [binding.node for binding in bindings if script.source.contains(loop.body, binding.node)]
    if in_turn and not script.order.surely(in_turn, name):
        return False
    return bool(bindings) and all(binding.node in in_turn or _binds_fresh(script, binding, loop) for binding in bindings)


def _binds_fresh(script: Script, binding: Binding, loop: syntax.For | syntax.While) -> bool:
    if isinstance(loop, syntax.For) and script.source.contains(loop.target, binding.node):
        return script.loops.iterates_loader(loop) and carrier(script, loop.iter) is None
    return binding.kind is Kind.ASSIGN and not binding.path and _is_made_plain(script, binding.value)


def _is_made_plain(script: Script, value: syntax.Node | None) -> bool:
    """Whether a tensor is made of numbers, and moved at most."""
    match value:
        case syntax.Call(func=syntax.Attribute(value=inner, attr=syntax.Name(value=method))) if method in _MOVED:
            return _is_made_plain(script, inner)
        case syntax.Call(func=func, args=args):
            given = (arg.value for arg in args)
            plain = all(script.role(each) in _GRAPHLESS or script.constant(each) is not None for each in given)
            return plain and script.name(func) in _FACTORIES
    return False


# From one turn to the next, out of sight of the loop


def _keeps_nothing(script: Script) -> bool:
    """Whether no module or function of the program can keep a tensor with its graph."""
    return all(_is_stateless(place) for place in script.everywhere())


def _is_stateless(script: Script) -> bool:
    source = script.source
    outer: list[syntax.Node] = [*source.of(syntax.Global), *source.of(syntax.Nonlocal), *script.calls("setattr")]
    if outer or any(mark in source.data for mark in _CACHES):
        return False
    if not all(_is_known(script, binding) for bindings in script.names.all_bindings() for binding in bindings):
        return False
    if any(star and script.program.module(script, star) is None and not _is_of_known(star) for star in _stars(script)):
        return False
    if any(_is_taken_from_outside(script, name) for name in source.of(syntax.Name)):
        return False
    if any(carrier(script, arg.value) for call in script.method_calls("register_buffer") for arg in call.args):
        return False
    return all(_holds_no_graph(script, store, value) for store, value in _stores(script) if _outlives(script, store))


def _is_taken_from_outside(script: Script, name: syntax.Name) -> bool:
    """Whether a function uses a tensor that is computed outside it, once for all its calls."""
    scope = script.names.scope(name)
    if not isinstance(scope.node, syntax.FunctionDef | syntax.Lambda):
        return False
    owner = scope.lookup(name.value)
    if owner is None or owner is scope or script.role(name) is not Role.TENSOR:
        return False
    return not all(_is_made_plain(script, binding.value) for binding in owner.bindings[name.value])


def _stores(script: Script) -> Iterator[tuple[syntax.Node, syntax.BaseExpression | None]]:
    """What the file stores into names, attributes, entries and containers, with the value; None where that is not seen."""
    source = script.source
    for assign in source.of(syntax.Assign):
        for target in assign.targets:
            yield from _parts(target.target, assign.value)
    changed: list[syntax.AugAssign | syntax.AnnAssign] = [*source.of(syntax.AugAssign), *source.of(syntax.AnnAssign)]
    yield from ((each.target, each.value) for each in changed if each.value is not None)
    for loop in source.of(syntax.For):
        yield from _parts(loop.target, None)
    for call in script.method_calls(*_FILLS):
        assert isinstance(call.func, syntax.Attribute)
        yield from ((call.func.value, arg.value) for arg in call.args)
    for call in source.of(syntax.Call):
        if isinstance(call.func, syntax.Attribute) and _is_in_place(call.func) and told(script, call) is not True:
            holder: syntax.BaseExpression = call.func.value
            while isinstance(holder, syntax.Call) and isinstance(holder.func, syntax.Attribute):
                holder = holder.func.value
            yield from ((holder, arg.value) for arg in call.args)


def _is_in_place(method: syntax.Attribute) -> bool:
    """Whether a method changes its tensor, as ``add_`` does, ``.data`` aside, which records no graph."""
    name, of = method.attr.value, method.value
    is_data = isinstance(of, syntax.Attribute) and of.attr.value in ("data", "grad")
    return works_in_place(name) and name not in _FILLS and not is_data


def _parts(
    target: syntax.BaseExpression, value: syntax.BaseExpression | None
) -> Iterator[tuple[syntax.Node, syntax.BaseExpression | None]]:
    if not isinstance(target, syntax.Tuple | syntax.List):
        yield target, value
        return
    values = value.elements if isinstance(value, syntax.Tuple | syntax.List) else ()
    for index, element in enumerate(target.elements):
        is_paired = len(values) == len(target.elements)
        yield from _parts(element.value, values[index].value if is_paired else None)


def _outlives(script: Script, store: syntax.Node) -> bool:
    """Whether what is stored may be read in the next turn: from an attribute, or a container made outside the function, as
    one that is handed in or its parameter's default."""
    is_entry = isinstance(script.source.parents[store], syntax.Attribute)
    while isinstance(store, syntax.Subscript):
        store, is_entry = store.value, True
    if isinstance(store, syntax.Attribute):
        return True
    if not isinstance(store, syntax.Name) or not is_entry:
        return False
    scope = script.names.scope(store)
    is_handed = any(binding.kind is Kind.PARAMETER for binding in scope.bindings.get(store.value, ()))
    return is_handed or scope.lookup(store.value) is not scope


def _stars(script: Script) -> list[str]:
    return script.names.module.stars


def _is_known(script: Script, binding: Binding) -> bool:
    """Whether an import is of the project, or of a package that keeps no graph."""
    if binding.kind is not Kind.IMPORT or binding.dotted is None:
        return True
    return _is_of_known(binding.dotted) or script.program.module(script, binding.dotted) is not None


def _is_of_known(dotted: str) -> bool:
    return dotted.split(".")[0] in _STATELESS


def _holds_no_graph(script: Script, store: syntax.Node, value: syntax.BaseExpression | None) -> bool:
    """Whether what is stored has no graph: a number, a module, a parameter, a tensor made of numbers."""
    if value is None:
        return False
    if script.role(value) in _GRAPHLESS or script.constant(value) is not None or _is_made_plain(script, value):
        return True
    if isinstance(value, syntax.Call) and script.name(value.func) in library.PARAMETERS:
        return True
    function = script.function(store)
    is_made = function is not None and function.name.value == "__init__"
    return is_made and script.role(value) is not Role.TENSOR and not _computes(script, value)


def _computes(script: Script, value: syntax.BaseExpression) -> bool:
    """Whether something may be computed of parameters, as opposed to a module that is made: a function of torch, a method of
    something out of sight, an entry of another module."""
    for call in script.source.inside(value, syntax.Call):
        name = script.name(call.func)
        is_method = isinstance(call.func, syntax.Attribute) and name is None and script.definition(call.func) is None
        if is_method or (name or "").startswith("torch.nn.functional."):
            return True
        if name is not None and name.startswith("torch.") and not name.startswith("torch.nn."):
            return True
    inner = (each.value for each in script.source.inside(value, syntax.Attribute))
    return any(isinstance(each, syntax.Attribute) and script.name(each) is None for each in inner)
