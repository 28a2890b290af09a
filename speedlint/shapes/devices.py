"""Which devices a script may run on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.solve.bound import is_bound
from speedlint.solve.names import Binding, Kind, Scope
from speedlint.torch.words import Place, Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script


_SPEAK_OF_DEVICES = (b"is_available", b"current_accelerator", b"cuda", b"cpu", b"mps", b"auto")


def gpu_is_certain(script: Script) -> bool:
    """Whether the program cannot run without a GPU: nothing in it asks whether there is one or names another device."""
    places = []
    for place in script.everywhere(*_SPEAK_OF_DEVICES):
        asks = any(each.attr.value in ("is_available", "current_accelerator") for each in place.source.of(syntax.Attribute))
        if asks or any(text in ("cpu", "mps", "auto") for text in _strings(place)):
            return False
        places.append(place)
    return any(place.method_calls("cuda") or any(text.startswith("cuda") for text in _strings(place)) for place in places)


def may_be_mps(script: Script) -> bool:
    """Whether the program may choose Apple's GPU."""
    for place in script.everywhere(b"mps", b"current_accelerator"):
        if "mps" in _strings(place) or any(True for _ in place.calls("torch.accelerator.current_accelerator")):
            return True
        if any(attribute.attr.value == "mps" for attribute in place.source.of(syntax.Attribute)):
            return True
    return False


# The device that the script chose


def is_device_variable(script: Script, device: syntax.Node, node: syntax.Node) -> bool:
    """Whether an expression is a variable that holds a ``torch.device``, the same here as at ``node``."""
    if not isinstance(device, syntax.Name) or script.value(device).role is not Role.DEVICE:
        return False
    here, there = script.names.scope(device).lookup(device.value), script.names.scope(node).lookup(device.value)
    return here is not None and here is there and len(here.bindings[device.value]) == 1


def is_chosen_by_cuda(script: Script, value: syntax.BaseExpression) -> bool:
    """Whether an expression is ``"cuda" if torch.cuda.is_available() else "cpu"``, as a string or a device."""
    if script.is_call_to(value, "torch.device") and isinstance(value, syntax.Call) and value.args:
        value = value.args[0].value
    match value:
        case syntax.IfExp(body=body, test=test, orelse=orelse):
            chosen = script.roles.calls.device_of(body) is Place.GPU and script.roles.calls.device_of(orelse) is Place.HOST
            return chosen and script.loops.guards.asks_for_gpu(test) is True
    return False


def is_of_cuda(device: str) -> str:
    """The condition that a device, as it is written, is a CUDA device."""
    return f'{device}.type == "cuda"'


def gpu_condition(script: Script, node: syntax.Node) -> str | None:
    """What tells, where ``node`` stands, whether the device that the script chose is a GPU; None where no variable does.

    Of the variables in sight those of the innermost scope count, and only if they are one.
    """
    scope: Scope | None = script.names.scope(node)
    found: dict[Scope, list[str]] = {}
    for name in script.source.of(syntax.Name):
        parent = script.source.parents[name]
        owner = script.names.scope(node).lookup(name.value)
        if owner is not None and isinstance(parent, syntax.Arg) and parent.value is name:
            condition = _condition(script, name, node)
            if condition is not None and condition not in found.setdefault(owner, []):
                found[owner].append(condition)
    while scope is not None:
        if found.get(scope):
            return found[scope][0] if len(found[scope]) == 1 else None
        scope = scope.parent
    return None


def _condition(script: Script, device: syntax.Name, node: syntax.Node) -> str | None:
    owner = script.names.scope(node).lookup(device.value)
    if owner is None or owner is not script.names.scope(device).lookup(device.value):
        return None
    bindings = owner.bindings[device.value]
    known = bindings[0].kind in (Kind.PARAMETER, Kind.IMPORT) or (bindings[0].kind is Kind.ASSIGN and not bindings[0].path)
    if len(bindings) != 1 or not known or not is_bound(script, device.value, node):
        return None
    if is_device_variable(script, device, node):
        on_host = script.roles.calls.device_of(device) is Place.HOST
        return None if on_host or not _is_passed_devices(script, bindings[0]) else is_of_cuda(device.value)
    return f'{device.value} == "cuda"' if _is_named(script, bindings[0]) else None


def _is_passed_devices(script: Script, binding: Binding) -> bool:
    """Whether each call of the function whose parameter a variable is passes a ``torch.device``."""
    if binding.kind is not Kind.PARAMETER or not isinstance(binding.node, syntax.Param):
        return True
    passed = script.values.passed(binding.node)
    return all(value is not None and other.role(value) is Role.DEVICE for other, value in passed)


def _is_named(script: Script, binding: Binding) -> bool:
    """Whether a variable is ``"cuda"`` or the name of another kind of device, chosen otherwise than by what there is."""
    match binding.value:
        case syntax.IfExp(body=syntax.SimpleString() as body, orelse=syntax.SimpleString() as orelse):
            names = {str(body.evaluated_value), str(orelse.evaluated_value)}
            return "cuda" in names and names <= {"cuda", "cpu", "mps"} and not is_chosen_by_cuda(script, binding.value)
    return False


def _strings(script: Script) -> Iterator[str]:
    return (str(string.evaluated_value) for string in script.source.of(syntax.SimpleString))
