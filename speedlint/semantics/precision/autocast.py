"""Which precision a step computes in: autocast, loss scalers and TF32, wherever in the program they are decided."""

from __future__ import annotations

from speedlint.facts import syntax
from speedlint.semantics import library
from speedlint.semantics.script import Script
from speedlint.semantics.steps import Step, modules_of

_DEPTH = 5
_AUTOCAST_MARKS = (b"autocast", b"NativeScaler", b"use_amp")
_PRECISIONS = ("allow_tf32", "fp32_precision", "set_float32_matmul_precision")


def uses_autocast(step: Step) -> bool:
    """Whether autocast, or another precision library, may reach the step: from its function, its callers, what it calls, or
    any other script of the program."""
    script = step.script
    if any(names_autocast(other) for other in script.program.others(script, *_AUTOCAST_MARKS)):
        return True
    return _is_in_reach(step, halvings(script))


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


def halvings(script: Script) -> list[syntax.Node]:
    """The places that name autocast, imports left out, and those that turn a module or batch to half precision."""
    return script.once("autocasts", lambda: _find_halvings(script), [])


def _find_halvings(script: Script) -> list[syntax.Node]:
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
