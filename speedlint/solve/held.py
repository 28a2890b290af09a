"""Whether a value goes to where it outlives the turn of a loop that it was made in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.solve.reach import parameter_of
from speedlint.solve.unpacking import key_of
from speedlint.torch.methods import VIEWS

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_KEEPS = frozenset("append appendleft extend add insert put push setdefault".split())
_HOLDS = (syntax.Element, syntax.StarredElement, syntax.DictElement, syntax.Tuple, syntax.List, syntax.Dict, syntax.Set)
_VIEWS = VIEWS | {"contiguous", "numpy", "cpu"}
"""Methods whose result shares its memory with a tensor on the host."""
_DEEPEST = 3


def is_kept(script: Script, use: syntax.BaseExpression, depth: int = 0) -> bool:
    """Whether what a use of a variable gives, or a view of it, is put into a list, an entry or an attribute, here or by a
    function of the project's that is handed it."""
    parents = script.source.parents
    node: syntax.Node = use
    while True:
        parent = parents[node]
        if isinstance(parent, _HOLDS):
            node = parent
            continue
        if isinstance(parent, syntax.Attribute) and parent.value is node and parent.attr.value in _VIEWS:
            above = parents[parent]
            if isinstance(above, syntax.Call) and above.func is parent:
                node = above
                continue
        if isinstance(parent, syntax.Subscript) and parent.value is node and not isinstance(key_of(parent), str):
            node = parent
            continue
        break
    match parent:
        case syntax.Assign(targets=targets, value=value) if value is node:
            return any(isinstance(each.target, syntax.Subscript | syntax.Attribute) for each in targets)
        case syntax.Arg():
            return _takes(script, parent, depth)
    return False


def _takes(script: Script, arg: syntax.Arg, depth: int) -> bool:
    """Whether a call keeps what it is given."""
    call = script.source.parents[arg]
    if not isinstance(call, syntax.Call):
        return False
    callee = script.callee(call)
    if callee is None or not isinstance(callee.node, syntax.FunctionDef):
        is_method = isinstance(call.func, syntax.Attribute) and script.name(call.func) is None
        return is_method and isinstance(call.func, syntax.Attribute) and call.func.attr.value in _KEEPS
    parameter = parameter_of(script, callee, call, arg)
    if parameter is None:
        star = callee.node.params.star_kwarg or callee.node.params.star_arg
        parameter = star if isinstance(star, syntax.Param) else None
    if parameter is None or depth > _DEEPEST:
        return False
    other = callee.script
    return any(
        is_kept(other, each, depth + 1)
        for each in other.names.uses(parameter)
        if any(binding.node is parameter for binding in other.names.reaching(each))
    )
