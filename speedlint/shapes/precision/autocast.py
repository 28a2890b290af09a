"""Which precision a step computes in: autocast, loss scalers and TF32, wherever in the program they are decided."""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.disk import words
from speedlint.facts import syntax
from speedlint.shapes.steps import Step, modules_of
from speedlint.shapes.training import Root
from speedlint.solve.calls import CALLED_AS
from speedlint.solve.flow import once
from speedlint.source import is_name
from speedlint.torch import library

_DEPTH = 5
_MOST_FUNCTIONS = 60
"""Functions through which one may be called from the step: where there are more, it is taken to be."""
_MOST_READ = 16
"""Files that speak of a function: where there are more, its name is too common to tell."""
_AUTOCAST_MARKS = (b"autocast", b"NativeScaler", b"use_amp")
_PRECISIONS = ("allow_tf32", "fp32_precision", "set_float32_matmul_precision")


def uses_autocast(step: Step) -> bool:
    """Whether autocast, or another precision library, may reach the step: from its function, its callers, what it calls, or
    another script of the program."""
    return any(
        _may_reach(step, place, node) for place in step.script.everywhere(*_AUTOCAST_MARKS) for node in halvings(place)
    )


def is_loaded_in_half(step: Step) -> bool:
    """Whether a network of the step is loaded in half precision: ``from_pretrained(..., torch_dtype=torch.bfloat16)``."""
    loads = ((place, node) for place, node in modules_of(step) if isinstance(node, syntax.Call))
    given = ((place, place.argument(node, each)) for place, node in loads for each in ("torch_dtype", "dtype"))
    return any(dtype is not None and not _is_single(place, dtype) for place, dtype in given)


def _is_single(script: Script, dtype: syntax.BaseExpression) -> bool:
    known = script.constant(dtype)
    is_written = known is not None and known.value in (None, "float32")
    return is_written or script.name(dtype) in ("torch.float32", "torch.float")


def _may_reach(step: Step, place: Script, node: syntax.Node) -> bool:
    """Whether half precision that is named at a node may hold for the step. A ``with`` holds for what stands in it, and for
    what that calls; all else for whatever it is handed to."""
    if _is_switched_off(place, node):
        return False
    if _is_entered_for_good(place, node):
        return True
    function = _innermost(place, node)
    block = _block_of(place, node, function)
    if block is None:
        if place is step.script:
            return _is_in_reach(step, [node])
        return function is None or function in _upward(step) or _is_spoken_of(step, place, function, as_block=False)
    chain = _chain(step.script, step.backward, step.forward)
    if any(other is place and place.source.contains(block, call) for other, call in chain):
        return True
    if place is step.script and place.source.contains(step.turn, node):
        return True
    return function is not None and _is_spoken_of(step, place, function, as_block=True)


def _is_entered_for_good(script: Script, node: syntax.Node) -> bool:
    """Whether it is ``torch.autocast("cuda").__enter__()``, which holds for all that comes after."""
    call = script.source.enclosing(node, syntax.Call)
    up = script.source.parents[call] if isinstance(call, syntax.Call) else None
    return isinstance(up, syntax.Attribute) and up.attr.value == "__enter__"


def _is_switched_off(script: Script, node: syntax.Node) -> bool:
    """Whether it is ``autocast(enabled=False)``."""
    call = script.source.enclosing(node, syntax.Call)
    if not isinstance(call, syntax.Call) or not script.source.contains(call.func, node):
        return False
    enabled = script.argument(call, "enabled")
    return is_name(enabled, "False")


def _block_of(script: Script, node: syntax.Node, function: syntax.FunctionDef | None) -> syntax.With | None:
    """The ``with`` that a node is an item of; None in a function that hands the context on."""
    item = script.source.enclosing(node, syntax.WithItem, syntax.With, syntax.FunctionDef)
    block = script.source.enclosing(item, syntax.With) if isinstance(item, syntax.WithItem) else None
    if function is not None and (function.decorators or any(True for _ in script.source.inside(function, syntax.Yield))):
        return None
    return block if isinstance(block, syntax.With) else None


def _innermost(script: Script, node: syntax.Node) -> syntax.FunctionDef | None:
    """The function or method around a node, those that stand in it left out."""
    functions = [up for up in script.source.ancestors(node) if isinstance(up, syntax.FunctionDef)]
    return functions[-1] if functions else None


@once([])
def _chain(script: Script, *passes: syntax.Call) -> list[Root]:
    """A step's passes, and the calls that lead to them, through several functions too."""
    found: dict[syntax.Node, Script] = {}
    todo: list[Root] = [(script, each) for each in passes]
    while todo:
        script, node = todo.pop()
        if node not in found:
            found[node] = script
            function = script.function(node)
            todo += script.call_sites(function) if function is not None else []
    return [(script, node) for node, script in found.items()]


def _upward(step: Step) -> set[syntax.FunctionDef | None]:
    """The functions that the step runs in."""
    return {_innermost(script, node) for script, node in _chain(step.script, step.backward, step.forward)} - {None}


def _is_spoken_of(step: Step, place: Script, function: syntax.FunctionDef, *, as_block: bool) -> bool:
    """Whether the step may run a function, by names alone: a function that is spoken of may be called there, also by what is
    spoken of there in turn. What is no ``as_block`` also counts where the step's callers speak of it."""
    upward = _upward(step)
    seen = {function}
    todo = [(place, function)]
    while todo:
        owner_script, each = todo.pop()
        names = _called_as(owner_script, each)
        if names is None or len(seen) > _MOST_FUNCTIONS:
            return True
        spoken = words(names)
        if step.script.program.number_of_others(step.script, spoken) > _MOST_READ:
            return True
        for script in step.script.everywhere(spoken):
            for name in _mentions(script, names, each):
                if script is step.script and script.source.contains(step.turn, name):
                    return True
                around = _innermost(script, name)
                is_apart = around is None or around in upward
                if is_apart and (not as_block or names != {each.name.value}):
                    return True
                if around is not None and around not in upward and around not in seen:
                    seen.add(around)
                    todo.append((script, around))
    return False


def _called_as(script: Script, function: syntax.FunctionDef) -> set[str] | None:
    """The names that speak of a function: of a method that calls of an object run, those of its class and its heirs; None
    where it may be called by other means."""
    owner, name = script.names.owner(function), function.name.value
    if owner is None:
        return {name} if not function.decorators else None
    if name not in CALLED_AS and not name.startswith("__"):
        return {name} if not function.decorators else None
    return {*script.roles.calls.heirs(owner)} if not owner.decorators else None


def _mentions(script: Script, names: set[str], function: syntax.FunctionDef) -> Iterator[syntax.Node]:
    """Where a script speaks of one of some names, imports and definitions left out; also in a string."""
    for name in script.source.of(syntax.Name):
        if name.value in names and not script.source.contains(function, name):
            up = script.source.parents[name]
            is_defined = isinstance(up, (syntax.FunctionDef, syntax.ClassDef)) and up.name is name
            if not is_defined and script.source.enclosing(name, syntax.Import, syntax.ImportFrom) is None:
                yield name
    for string in script.source.of(syntax.SimpleString):
        if string.evaluated_value in names:
            yield string


def _is_in_reach(step: Step, nodes: list[syntax.Node]) -> bool:
    """Whether one of the nodes of this script stands where the step, its callers or what it calls does."""
    if not nodes:
        return False
    near = _near(step)
    places = (_outermost(step.script, node) for node in nodes)
    return any(place is None or place in near for place in places)


def is_sharded_in_half(script: Script) -> bool:
    """Whether the program lets FSDP compute in the precision of its ``mixed_precision``."""
    return any(
        any(
            (place.name(call.func) or "").endswith(("FullyShardedDataParallel", ".MixedPrecision", ".fully_shard"))
            and (place.argument(call, "mixed_precision") is not None or place.argument(call, "mp_policy") is not None)
            for call in place.source.of(syntax.Call)
        )
        for place in script.everywhere(b"mixed_precision")
    )


def names_autocast(script: Script) -> bool:
    """Whether a script names autocast outside of its imports, or computes in half precision by hand."""
    data = script.source.data
    return any(mark in data for mark in _AUTOCAST_MARKS) and any(True for _ in halvings(script))


@once([])
def halvings(script: Script) -> list[syntax.Node]:
    """The places that name autocast, imports left out, and those that turn a module or batch to half precision."""
    found: list[syntax.Node] = []
    for name in script.source.of(syntax.Name):
        parent = script.source.parents[name]
        is_keyword = isinstance(parent, syntax.Arg) and parent.keyword is name
        is_import = script.source.enclosing(name, syntax.Import, syntax.ImportFrom) is not None
        if "autocast" in name.value.lower() and not is_import and not is_keyword:
            found.append(name)
    return [*found, *(call for call in script.method_calls("half", "bfloat16") if not call.args)]


def _outermost(script: Script, node: syntax.Node) -> syntax.Node | None:
    """The outermost function around a node, or the class of a module whose ``forward`` may use it."""
    functions = [up for up in script.source.ancestors(node) if isinstance(up, (syntax.FunctionDef, syntax.ClassDef))]
    return functions[-1] if functions else None


def _near(step: Step) -> set[syntax.Node]:
    """The outermost functions and classes of this script that the step runs in, is called from, or calls."""
    script = step.script
    near: set[syntax.Node] = set()
    todo = [step.backward]
    seen: set[syntax.Node] = set()
    while todo:
        node: syntax.Node = todo.pop()
        outer = _outermost(script, node)
        if outer is not None:
            near.add(outer)
        function = script.function(node)
        if function is not None and function not in seen:
            seen.add(function)
            todo += [call for other, call in script.call_sites(function) if other is script]
    for call in script.source.inside(step.turn, syntax.Call):
        _add_called(script, call, near, set(), 0)
    for other, node in modules_of(step):
        definition = other.definition(node.func) if isinstance(node, syntax.Call) else None
        for owner in script.roles.calls.lineage(definition) if definition is not None else ():
            near.add(owner.node)
    return near


def _add_called(script: Script, call: syntax.Call, near: set[syntax.Node], seen: set[syntax.Node], depth: int) -> None:
    callee = script.callee(call)
    if callee is None or callee.script is not script or callee.node in seen or depth > _DEPTH:
        return
    seen.add(callee.node)
    near.add(_outermost(script, callee.node) or callee.node)
    for inner in script.source.inside(callee.node, syntax.Call):
        _add_called(script, inner, near, seen, depth + 1)


def half_autocast(step: Step) -> syntax.Call | None:
    """The float16 autocast around the step's forward call in its own function; None where its dtype is not certain."""
    script = step.script
    for up in script.source.ancestors(step.forward):
        if up is step.region:
            break
        for item in up.items if isinstance(up, syntax.With) else ():
            if isinstance(item.item, syntax.Call) and script.name(item.item.func) in library.AUTOCASTS:
                return item.item if _is_half(script, item.item) else None
    return None


def _is_half(script: Script, call: syntax.Call) -> bool:
    old = script.name(call.func) == "torch.cuda.amp.autocast"
    device = None if old else script.argument(call, "device_type", 0)
    dtype = script.argument(call, "dtype", 1)
    enabled = script.argument(call, "enabled", 0 if old else 2)
    constant = script.constant(enabled) if enabled is not None else None
    if script.hides_arguments(call) or (constant is not None and constant.value is False):
        return False
    named = script.constant(device) if device is not None else None
    on_cuda = old or (named is not None and str(named.value).startswith("cuda"))
    return on_cuda and (dtype is None or script.name(dtype) in ("torch.float16", "torch.half"))


def uses_scaler(step: Step) -> bool:
    """Whether a loss scaler may reach the step: one is named around it, or in another script of the program."""
    others = step.script.program.others(step.script, b"scaler", b"Scaler")
    return any(_scalers(other) for other in others) or _is_in_reach(step, _scalers(step.script))


def _scalers(script: Script) -> list[syntax.Node]:
    """The names that speak of a loss scaler, imports left out."""
    if b"scaler" not in script.source.data.lower():
        return []
    return [
        name
        for name in script.source.of(syntax.Name)
        if "scaler" in name.value.lower() and script.source.enclosing(name, syntax.ImportAlias) is None
    ]


def sets_matmul_precision(script: Script) -> bool:
    """Whether a script of the program decides the precision of float32 matrix products, either way."""
    marks = (b"ALLOW_TF32", *(word.encode() for word in _PRECISIONS))
    return any(_sets_precision(place) for place in script.everywhere(*marks))


def _sets_precision(script: Script) -> bool:
    if b"ALLOW_TF32" in script.source.data:
        return True
    if not any(word.encode() in script.source.data for word in _PRECISIONS):
        return False
    written = [node for node in script.source.of(syntax.Attribute) if node.attr.value in _PRECISIONS]
    if any(".cudnn." not in f"{script.name(node)}." for node in written):
        return True
    return any(
        name.value in _PRECISIONS and not isinstance(script.source.parents[name], (syntax.Attribute, syntax.ImportAlias))
        for name in script.source.of(syntax.Name)
    )
