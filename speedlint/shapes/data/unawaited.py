"""Copies from the GPU to the host that do not block, and where their values are read before anything waits for them."""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes.sync.streams import SYNCHRONIZE
from speedlint.solve.names import Kind
from speedlint.source import is_name
from speedlint.torch.methods import VIEWS
from speedlint.torch.words import Place, Role

_WAITS = frozenset("synchronize wait wait_stream wait_event query item tolist cpu numpy".split())
_ASKS = frozenset(
    "shape dtype device size dim ndim numel nelement is_pinned stride layout requires_grad element_size data_ptr".split()
)
_BUILTINS = frozenset("float int bool print str list tuple sum max min any all sorted".split())
_DEPTH = 4


def copied_to_host(script: Script, call: syntax.Call) -> syntax.Arg | None:
    """The ``non_blocking=True`` of a copy of a device tensor to the host; None for any other call."""
    if not isinstance(call.func, syntax.Attribute) or call.func.attr.value != "to" or script.name(call.func) is not None:
        return None
    target = script.argument(call, "device", 0)
    if target is None or not _is_host(script, target) or not script.on_gpu:
        return None
    value = script.value(call.func.value)
    if value.role not in (Role.TENSOR, Role.UNKNOWN) or value.place is Place.HOST:
        return None
    asked = (arg for arg in call.args if is_name(arg.keyword, "non_blocking"))
    return next((arg for arg in asked if is_name(arg.value, "True")), None)


def _is_host(script: Script, target: syntax.BaseExpression) -> bool:
    known = script.constant(target)
    if known is not None:
        return known.value == "cpu"
    made = [target, *(node for place, node in script.roles.origins(target) if place is script)]
    return any(
        script.is_call_to(node, "torch.device") and isinstance(node, syntax.Call) and bool(node.args)
        and (named := script.constant(node.args[0].value)) is not None and named.value == "cpu"
        for node in made
    )  # fmt: skip


def first_read(script: Script, copy: syntax.Call) -> syntax.Node | None:
    """Where the values of a copy are read in its function with nothing that waits in between; None where it is not seen."""
    found = min(_reads(script, copy, _DEPTH), key=script.source.order.__getitem__, default=None)
    if found is None or _is_awaited(script, copy, found):
        return None
    assert isinstance(copy.func, syntax.Attribute)
    return found if script.role(copy.func.value) is Role.TENSOR or _is_of_tensors(script, found) else None


def _is_of_tensors(script: Script, read: syntax.Node) -> bool:
    """Whether a read takes the numbers out of a tensor, so that what was copied is one."""
    match read:
        case syntax.Call(func=syntax.Attribute(attr=syntax.Name("numpy" | "tolist" | "item"))):
            return True
        case syntax.Call():
            return (script.name(read.func) or "").startswith(("numpy.", "torch."))
    return False


def _reads(script: Script, node: syntax.Node, depth: int) -> Iterator[syntax.Node]:
    parent = script.source.parents[node]
    if depth == 0:
        return
    match parent:
        case syntax.Attribute(value=value, attr=syntax.Name(value=name)) if value is node:
            outer = script.source.parents[parent]
            whole = outer if isinstance(outer, syntax.Call) and outer.func is parent else parent
            if name in VIEWS:
                yield from _reads(script, whole, depth)
            elif name not in _ASKS and not name.endswith("_") and isinstance(whole, syntax.Call):
                yield whole
        case syntax.Subscript(value=value) if value is node:
            yield from _reads(script, parent, depth)
        case syntax.Arg():
            yield from _of_argument(script, parent, depth)
        case syntax.Assign(targets=[syntax.AssignTarget(target=syntax.Name() as target)]) if parent.value is node:
            yield from _of_variable(script, target, depth)
        case syntax.ListComp() | syntax.DictComp() | syntax.GeneratorExp():
            if node is getattr(parent, "elt", None) or node is getattr(parent, "value", None):
                yield from _reads(script, parent, depth)
        case syntax.Element() | syntax.DictElement() if parent.value is node:
            yield from _reads(script, script.source.parents[parent], depth)
        case syntax.BinaryOperation() | syntax.ComparisonTarget() | syntax.Comparison() | syntax.FormattedStringExpression():
            yield parent


def _of_argument(script: Script, arg: syntax.Arg, depth: int) -> Iterator[syntax.Node]:
    call = script.source.parents[arg]
    if not isinstance(call, syntax.Call):
        return
    name = script.name(call.func) or ""
    match call.func:
        case syntax.Attribute(value=syntax.Name() as held, attr=syntax.Name("append")) if not name:
            yield from _of_variable(script, held, depth, after=call)
        case _ if name in _BUILTINS or (name.startswith(("numpy.", "torch.")) and not name.startswith("torch.cuda.")):
            yield call


def _of_variable(script: Script, target: syntax.Name, depth: int, after: syntax.Node | None = None) -> Iterator[syntax.Node]:
    scope = script.names.scope(target)
    if scope.lookup(target.value) is not scope:
        return
    held = script.names.reaching(target) if after is not None else scope.bindings.get(target.value, [])
    for use in script.names.uses(target):
        reaching = script.names.reaching(use)
        is_same = use is not target and any(binding in held and binding.kind is Kind.ASSIGN for binding in reaching)
        is_later = script.function(use) is script.function(target) and script.order.may_run_before(after or target, use)
        if is_same and is_later:
            if after is None and not any(binding.node is target for binding in reaching):
                continue
            yield from _reads(script, use, depth - 1)


def _is_awaited(script: Script, copy: syntax.Call, read: syntax.Node) -> bool:
    """Whether something between a copy and a read of it may wait for the GPU; a call of the project's own may."""
    source = script.source
    function = script.function(copy)
    around: syntax.Node = function if function is not None else source.module
    for call in source.inside(around, syntax.Call):
        if call is read or source.contains(read, call) or source.contains(call, copy):
            continue
        if script.function(call) is function and script.order.may_run_between(copy, call, read) and _may_wait(script, call):
            return True
    return False


def _may_wait(script: Script, call: syntax.Call) -> bool:
    name = script.name(call.func)
    if name is not None:
        shows = name in ("float", "int", "bool", "print") and any(script.is_device_tensor(arg.value) for arg in call.args)
        return shows or name in SYNCHRONIZE
    if isinstance(call.func, syntax.Attribute) and call.func.attr.value in _WAITS:
        return True
    return script.callee(call) is not None
