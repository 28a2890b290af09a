"""Tensors that are changed in place: by entries, by methods, as ``out=``, by functions and networks they are handed to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.solve import changing
from speedlint.solve.names import Kind
from speedlint.solve.reach import parameter_of
from speedlint.solve.terms import Definition
from speedlint.solve.unpacking import written
from speedlint.source import is_name
from speedlint.torch.methods import CASTS, MOVES, VIEWS, works_in_place
from speedlint.torch.words import Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_INPLACE = re.compile(
    rb"inplace\s{0,3}(?::\s{0,3}bool\s{0,3})?=\s{0,3}True"
    rb"|(?:LU6?|Mish|Dropout\w{0,5}|Hard\w{3,7}|Threshold)\([^()\n]{0,40}\bTrue\b"
)
"""Layers that are told to work in place, by name or by position."""
_HANDS_OUT = VIEWS | CASTS | MOVES | {"contiguous", "requires_grad_"}
"""Methods whose result may share its memory with their object."""
_DEEPEST = 4


def viewed(tensor: syntax.BaseExpression) -> syntax.BaseExpression:
    """What a view such as ``x.data.squeeze()[0]`` shares its memory with."""
    while True:
        match tensor:
            case syntax.Call(func=syntax.Attribute(value=inner, attr=syntax.Name(value=method))) if method in _HANDS_OUT:
                tensor = inner
            case syntax.Attribute(value=inner, attr=syntax.Name(value="data" | "T")) | syntax.Subscript(value=inner):
                tensor = inner
            case _:
                return tensor


def is_handed_in(script: Script, tensor: syntax.BaseExpression, depth: int = 0) -> bool:
    """Whether a tensor may be one that the function around it was given, or a view of one."""
    made = viewed(tensor)
    if not isinstance(made, syntax.Name):
        return not isinstance(made, syntax.Call | syntax.BinaryOperation | syntax.Comparison | syntax.UnaryOperation)
    bindings = script.names.reaching(made)
    values = [binding.node if binding.kind is Kind.AUGMENT else written(binding) for binding in bindings]
    return depth > _DEEPEST or not all(
        isinstance(value, syntax.BaseExpression) and not is_handed_in(script, value, depth + 1) for value in values or [None]
    )


def is_written(script: Script, name: syntax.Name) -> bool:
    """Whether a variable's tensor is changed in place: by entries, as ``out=``, through ``.data`` or a view."""
    for use in script.names.uses(name):
        whole: syntax.Node = use
        parents = script.source.parents
        while isinstance(parent := parents[whole], syntax.Attribute | syntax.Subscript) and parent.value is whole:
            whole = parent
            if isinstance(whole, syntax.Attribute) and works_in_place(whole.attr.value):
                return True
        if isinstance(whole, syntax.Subscript) and isinstance(parent, syntax.AssignTarget | syntax.AugAssign):
            if parent.target is whole:
                return True
        elif isinstance(parent, syntax.Arg) and changes_argument(script, parent):
            return True
    return False


def changes_argument(script: Script, arg: syntax.Arg, depth: int = 0) -> bool:
    """Whether a call may change a tensor that it is given in place."""
    call = script.source.parents[arg]
    if not isinstance(call, syntax.Call):
        return False
    if is_name(arg.keyword, "out"):
        return True
    inplace = (each.keyword.value for each in call.args if each.keyword is not None)
    name = script.name(call.func) or ""
    takes_true = any(is_name(each.value, "True") for each in call.args if each.keyword is None)
    if takes_true and name.startswith("torch.nn.functional."):
        return True
    if "inplace" in inplace or name.startswith("torch.distributed.") or works_in_place(name):
        return True
    callee = script.callee(call)
    if callee is not None and (parameter := parameter_of(script, callee, call, arg)) is not None:
        for base, _ in changing.written(callee.script, callee.node):
            if isinstance(base, syntax.Name) and base.value == parameter.name.value:
                return True
    is_network = script.role(call.func) is Role.MODULE and script.program.mentions(script, _INPLACE)
    return is_network and _network_may_change(script, call, arg, depth)


def leaves_argument(script: Script, call: syntax.Call, arg: syntax.Arg) -> bool:
    """Whether a function of the project that is seen certainly neither changes nor keeps what a call hands it."""
    callee = script.callee(call)
    if callee is None or not isinstance(callee.node, syntax.FunctionDef):
        return False
    parameter = parameter_of(script, callee, call, arg)
    return parameter is not None and not any(
        _may_change(callee.script, use, 1) for use in callee.script.names.uses(parameter)
    )


def _network_may_change(script: Script, call: syntax.Call, arg: syntax.Arg, depth: int) -> bool:
    """Whether a network of a program that holds layers which work in place may change what it is given."""
    forwards = _forwards(script, call)
    if not forwards or depth > _DEEPEST:
        return True
    for forward in forwards:
        parameter = parameter_of(script, forward, call, arg) if forward is not None else None
        if forward is None or parameter is None:
            return True
        if any(_may_change(forward.script, use, depth + 1) for use in forward.script.names.uses(parameter)):
            return True
    return False


def _forwards(script: Script, call: syntax.Call) -> list[Definition | None]:
    """The methods that may run for a call of a network; None for one that is not seen."""
    found: list[Definition | None] = []
    for where, made in script.roles.origins(call.func):
        if isinstance(made, syntax.Name) and made.value == "None":
            continue
        definition = where.value(made).definition if isinstance(made, syntax.Call) else None
        forward = where.roles.calls.method(definition, "forward") if definition is not None else None
        found.append(forward)
    return found


def _may_change(script: Script, use: syntax.Node, depth: int) -> bool:
    """Whether what happens to a parameter in a function may change its tensor, or hands it on to where that is not seen."""
    whole, parents = use, script.source.parents
    while True:
        parent = parents[whole]
        match parent:
            case syntax.Attribute(value=value, attr=syntax.Name(method)) if value is whole:
                above = parents[parent]
                if works_in_place(method):
                    return True
                if not isinstance(above, syntax.Call) or above.func is not parent:
                    if method not in ("data", "T"):
                        return False
                    whole = parent
                elif method not in _HANDS_OUT:
                    return False
                else:
                    whole = above
            case syntax.Subscript(value=value) if value is whole:
                whole = parent
            case _:
                break
    match parent:
        case syntax.AssignTarget():
            return whole is not use
        case syntax.Assign(targets=[syntax.AssignTarget(target=syntax.Name() as target)]):
            same = isinstance(use, syntax.Name) and target.value == use.value
            return not same and (
                depth > _DEEPEST or any(_may_change(script, each, depth + 1) for each in _others(script, target))
            )
        case syntax.Arg():
            call = parents[parent]
            known = isinstance(call, syntax.Call) and (
                script.name(call.func) is not None or script.role(call.func) is Role.MODULE
            )
            return not known or changes_argument(script, parent, depth)
        case syntax.BinaryOperation() | syntax.UnaryOperation() | syntax.Comparison() | syntax.ComparisonTarget():
            return False
        case syntax.If() | syntax.IfExp() | syntax.Index():
            return isinstance(parent, syntax.IfExp) and parent.test is not whole
    return True


def _others(script: Script, target: syntax.Name) -> Iterator[syntax.Name]:
    return (use for use in script.names.uses(target) if use is not target)
