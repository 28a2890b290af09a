"""Numbers and lists of constants that are made into a tensor on the GPU, each time with a copy."""

from __future__ import annotations

from typing import NamedTuple

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes.sync import creation
from speedlint.solve.names import Kind
from speedlint.source import is_name, is_none
from speedlint.torch.words import Frequency, Place, Role

_FROM_DATA = ("torch.tensor", "torch.as_tensor")
_NUMBERS = (syntax.Integer, syntax.Float, syntax.UnaryOperation)
_FROM_LISTS = tuple(f"torch.{name}" for name in "Tensor FloatTensor LongTensor IntTensor DoubleTensor BoolTensor".split())


class Copied(NamedTuple):
    """A number, or a list of constants, that a call makes into a tensor on the GPU."""

    data: syntax.BaseExpression
    is_number: bool


def constant(script: Script, call: syntax.Call) -> Copied | None:
    """What a call copies to the GPU, if that is a number or constants: ``.to(...)`` of a new tensor, or ``device=``."""
    made = _made(script, call)
    if made is None or not made.args or any(arg.star or _asks_for_gradient(arg) for arg in made.args):
        return None
    data = made.args[0].value
    is_list = isinstance(data, (syntax.List, syntax.Tuple))
    if not is_list and script.name(made.func) in _FROM_LISTS:
        return None
    if not is_list and _is_scalar(script, data):
        return Copied(data, True)
    return Copied(data, False) if _is_constant(script, data) else None


def is_held(script: Script, call: syntax.Call) -> bool:
    """Whether a call copies to the GPU what an object holds on the host since it was made: ``self.betas.to(x.device)``."""
    if not isinstance(call.func, syntax.Attribute) or call.func.attr.value not in ("to", "cuda"):
        return False
    held = call.func.value
    if not isinstance(held, syntax.Attribute) or script.name(held) is not None:
        return False
    value = script.value(held)
    if value.role is not Role.TENSOR or value.place is not Place.HOST or creation.target(script, call) is None:
        return False
    owner = script.value(held.value).definition
    if owner is None or not isinstance(owner.node, syntax.ClassDef):
        return False
    given = list(script.roles.assigned_on_self(owner, held.attr.value))
    return bool(given) and all(_is_made_at_once(place, node) for place, node, _ in given)


def _is_made_at_once(script: Script, given: syntax.BaseExpression) -> bool:
    """Whether an attribute's value is made where its object is, not in each step."""
    function = script.function(given)
    return function is not None and function.name.value == "__init__" and script.frequency(given) < Frequency.EPOCH


def _made(script: Script, call: syntax.Call) -> syntax.Call | None:
    """The call that makes the tensor of data, where ``call`` is the one that puts it on the GPU."""
    if script.name(call.func) in _FROM_DATA:
        device = script.argument(call, "device", 2)
        if device is None or is_none(device) or script.roles.calls.device_of(device) is Place.HOST:
            return None
        return call
    if not isinstance(call.func, syntax.Attribute) or call.func.attr.value not in ("to", "cuda"):
        return None
    made = _before_same(script, call.func.value)
    if not isinstance(made, syntax.Call) or script.name(made.func) not in (*_FROM_DATA, *_FROM_LISTS):
        return None
    on_host = script.argument(made, "device") is None
    return made if on_host and creation.target(script, call) is not None else None


def _asks_for_gradient(arg: syntax.Arg) -> bool:
    return is_name(arg.keyword, "requires_grad")


def _before_same(script: Script, node: syntax.BaseExpression) -> syntax.BaseExpression:
    """The expression below views and changes of the dtype: ``torch.tensor(1)`` for ``torch.tensor(1).float()``."""
    while isinstance(node, syntax.Call) and isinstance(node.func, syntax.Attribute) and script.name(node.func) is None:
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
