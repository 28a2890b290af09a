"""Whether gradients are recorded where a line runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.solve.terms import Definition
from speedlint.source import is_name
from speedlint.torch import library

if TYPE_CHECKING:
    from speedlint.ask.script import Script

SETTERS = ("torch.set_grad_enabled", "torch.autograd.set_grad_enabled", "torch._C._set_grad_enabled")
_BY_HAND = ("torch.enable_grad", "torch.autograd.enable_grad")
_WORDS = ("no_grad", "inference_mode", "set_grad_enabled")
_DEPTH = 5
_WITHOUT_VOLATILE = (0, 4)


def gradients_off(script: Script, node: syntax.Node, depth: int = 0) -> bool | None:
    """Whether gradients are off where a node runs: True where ``no_grad`` or the like is around it in its function.

    None where they may be: by a flag, a manager of the project's own, a statement before it, around a call of its function;
    and where ``enable_grad`` says that this was thought of.
    """
    said = told(script, node)
    if said is not False:
        return said
    function = script.function(node)
    if function is not None and _is_evaluation_hook(script, function):
        return True
    if depth > _DEPTH or _is_switched_before(script, node, function):
        return None
    calls = script.call_sites(function) if function is not None else []
    if function is not None and not calls and script.names.owner(function) is not None:
        calls = list(_by_name(script, function.name.value))
    return None if any(gradients_off(other, call, depth + 1) is not False for other, call in calls) else False


def _is_evaluation_hook(script: Script, function: syntax.FunctionDef) -> bool:
    """Whether a method is one that Lightning calls in an evaluation, with gradients off."""
    owner = script.names.owner(function) if function.name.value in library.HOOKS_WITHOUT_GRADIENTS else None
    bases = set(script.roles.calls.foreign_bases(Definition(script, owner))) if owner is not None else set()
    return not bases.isdisjoint(library.LIGHTNING_MODULES | library.LIGHTNING_CALLBACKS)


def _by_name(script: Script, method: str) -> Iterator[tuple[Script, syntax.Call]]:
    """The calls of a method on objects that are not known, which may be one of this script's."""
    for place in script.everywhere(f".{method}(".encode()):
        yield from ((place, call) for call in place.method_calls(method) if place.callee(call) is None)


def told(script: Script, node: syntax.Node) -> bool | None:
    """What the ``with`` statements and decorators around a node in its function say, and the variables made in it; False
    where they say nothing."""
    is_later = False
    for up in script.source.ancestors(node):
        managers: Iterable[syntax.BaseExpression] = ()
        if isinstance(up, syntax.With):
            managers = (item.item for item in reversed(up.items))
        elif isinstance(up, syntax.FunctionDef):
            managers = (each.decorator for each in up.decorators)
        said = next((said for each in managers if (said := switches(script, each)) is not False), False)
        if said is not False:
            return None if is_later else said
        if isinstance(up, syntax.FunctionDef):
            break
        is_later = is_later or isinstance(up, syntax.Lambda)
    return None if _is_volatile(script, node) else False


def switches(script: Script, expression: syntax.BaseExpression) -> bool | None:
    """Whether a context manager or decorator switches gradients off; None where it may, or switches them on; else False."""
    called = expression.func if isinstance(expression, syntax.Call) else expression
    name = script.name(called)
    if name in library.NO_GRADS or name in SETTERS:
        return _by_mode(script, expression, must_be_false=name in SETTERS)
    if name in _BY_HAND or (isinstance(called, syntax.Attribute) and called.attr.value in _WORDS):
        return None
    if isinstance(expression, syntax.IfExp):
        return _all_of(switches(script, each) for each in (expression.body, expression.orelse))
    definition = script.definition(called)
    if definition is not None:
        place = definition.script
        named = (each for kind in (syntax.Name, syntax.Attribute) for each in place.source.inside(definition.node, kind))
        return None if any(place.name(each) in library.NO_GRADS for each in named) else False
    if not isinstance(called, syntax.Name):
        return False
    return _all_of(switches(other, value) for other, value in script.roles.origins(called) if value is not expression)


def _by_mode(script: Script, expression: syntax.BaseExpression, *, must_be_false: bool) -> bool | None:
    """What ``set_grad_enabled(mode)`` (off where it is False) or ``inference_mode(mode)`` does."""
    mode = script.argument(expression, "mode", 0) if isinstance(expression, syntax.Call) else None
    if mode is None:
        return None if must_be_false else True
    known = script.constant(mode)
    return True if known is not None and known.value is (not must_be_false) else None


def _all_of(said: Iterable[bool | None]) -> bool | None:
    found = set(said)
    return found.pop() if len(found) == 1 else None if found else False


def _is_volatile(script: Script, node: syntax.Node) -> bool:
    """Whether the code around says ``Variable(x, volatile=True)``, as ``no_grad`` was written before torch 0.4; what runs on
    later releases gains nothing by that."""
    if (script.options.torch or _WITHOUT_VOLATILE) >= _WITHOUT_VOLATILE:
        return False
    around = script.function(node) or script.source.module
    return b"volatile" in script.source.data and any(
        is_name(arg.keyword, "volatile") for arg in script.source.inside(around, syntax.Arg)
    )


def _is_switched_before(script: Script, node: syntax.Node, function: syntax.FunctionDef | None) -> bool:
    """Whether a statement ``torch.set_grad_enabled(...)`` may run before the node, in its function or atop the file."""
    return any(
        isinstance(script.source.parents[call], syntax.Expr)
        and script.function(call) is function
        and script.order.may_run_before(call, node)
        for call in script.calls(*SETTERS)
    )
