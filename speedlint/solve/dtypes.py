"""What kind of number a tensor holds, as far as the source shows it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.solve.unpacking import all_written
from speedlint.solve.values import returned
from speedlint.source import is_name
from speedlint.torch import library
from speedlint.torch.methods import COMPARES, EXPANDS, MOVES, RESHAPES, TRANSPOSES
from speedlint.torch.words import Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_BOOLEAN = COMPARES | frozenset(
    "equal_ logical_and logical_or logical_not logical_xor isnan isinf isfinite isclose isin bool greater less "
    "greater_equal less_equal".split()
)
_SAME = RESHAPES | TRANSPOSES | EXPANDS | MOVES | {"detach", "clone", "contiguous", "item", "type_as_"}
_KEEP_WIDTH = (RESHAPES - {"view", "view_as"}) | TRANSPOSES | EXPANDS | frozenset("cpu cuda detach clone mean sum".split())
"""What gives numbers of the same dtype, whatever it is given beside; ``to`` and ``view`` may be told another."""
_WHOLE = frozenset("sum long int argmax argmin count_nonzero nonzero bincount numel".split())
_FRACTIONS = frozenset(
    "mean std var softmax log_softmax sigmoid exp log sqrt norm float double half cross_entropy mse_loss".split()
)
_DEPTH = 4
_NAMES_HALF = re.compile(rb"autocast|float16|\.half\(")
_COMPLEX = re.compile(rb"complex(?:32|64|128)|cfloat|cdouble|_complex\(|torch\.complex\(|\b\d+j\b")
_OF_WAVES = ("torch.fft.", "torch.stft")
"""Functions whose results are complex."""
_SMALL = re.compile(rb"\bu?int(?:8|16)\b|\.byte\(|\.short\(|\.char\(|(?:Byte|Short|Char)(?:Tensor|Storage)")
_MAY_CHOOSE_HALF = re.compile(
    rb"mixed_precision|(?:import|from)\s+(?:apex|accelerate|lightning|pytorch_lightning|deepspeed)\b"
)


def is_integral(script: Script, tensor: syntax.BaseExpression) -> bool:
    """Whether a tensor certainly holds whole numbers, such as a count of correct predictions."""
    return _is_whole(script, tensor, _DEPTH)


def _is_whole(script: Script, node: syntax.BaseExpression, depth: int) -> bool:
    match _applied(script, node):
        case (name, base) if name in _WHOLE:
            return name != "sum" or _is_boolean(script, base, depth) or _is_whole(script, base, depth)
        case (name, base) if name in _SAME:
            return _is_whole(script, base, depth)
    match node:
        case syntax.Name() if depth:
            return _is_bound_to(script, node, lambda value: _is_whole(script, value, depth - 1))
        case syntax.Attribute(value=base, attr=syntax.Name(value="data")):
            return _is_whole(script, base, depth)
    return False


def is_mask(script: Script, tensor: syntax.BaseExpression) -> bool:
    """Whether a tensor certainly holds truth values, such as the result of a comparison."""
    return _is_boolean(script, tensor, _DEPTH)


def _is_boolean(script: Script, node: syntax.BaseExpression, depth: int) -> bool:
    if isinstance(node, syntax.Call) and any(script.name(arg.value) == "torch.bool" for arg in node.args):
        return True
    match _applied(script, node):
        case (name, _) if name in _BOOLEAN:
            return True
        case (name, base) if name in _SAME:
            return _is_boolean(script, base, depth)
    match node:
        case syntax.Comparison():
            return True
        case syntax.Call(args=[syntax.Arg(value=syntax.ListComp(elt=part)), *_]) if script.is_call_to(node, "torch.stack"):
            return _is_boolean(script, part, depth)
        case syntax.BinaryOperation(left=left, operator=syntax.BitAnd() | syntax.BitOr() | syntax.Multiply(), right=right):
            return _is_boolean(script, left, depth) and _is_boolean(script, right, depth)
        case syntax.UnaryOperation(operator=syntax.BitInvert(), expression=inner) | syntax.Subscript(value=inner):
            return _is_boolean(script, inner, depth)
        case syntax.Attribute(value=graph, attr=syntax.Name(value=name)) if name in library.GRAPH_MASKS:
            return script.role(graph) in (Role.TENSOR, Role.BATCH) and not script.values.is_written_anywhere(name)
        case syntax.Name() if depth:
            handed = _handed(script, node)
            return _is_bound_to(script, node, lambda value: _is_boolean(script, value, depth - 1)) or (
                bool(handed) and all(each is not None and _is_boolean(place, each, depth - 1) for place, each in handed)
            )
    return False


def _handed(script: Script, name: syntax.Name) -> list[tuple[Script, syntax.BaseExpression | None]]:
    """What each call of a function gives for its parameter, where a name is nothing else."""
    bindings, function = script.names.reaching(name), script.function(name)
    parameter = bindings[0].node if len(bindings) == 1 else None
    if function is None or not isinstance(parameter, syntax.Param) or script.function(parameter) is not function:
        return []
    return [(place, script.values.given(function, parameter, place, call)) for place, call in script.call_sites(function)]


def _applied(script: Script, node: syntax.BaseExpression) -> tuple[str, syntax.BaseExpression] | None:
    """The function and its operand: ``("sum", x)`` for ``x.sum()`` and for ``torch.sum(x)``."""
    if not isinstance(node, syntax.Call) or any(is_name(arg.keyword, "dtype") for arg in node.args):
        return None
    name = script.name(node.func)
    if name is not None and name.startswith("torch.") and node.args:
        return name.rpartition(".")[2], node.args[0].value
    if name is None and isinstance(node.func, syntax.Attribute):
        return node.func.attr.value, node.func.value
    return None


def _is_bound_to(script: Script, name: syntax.Name, holds: Callable[[syntax.BaseExpression], bool]) -> bool:
    values = all_written(script.names.reaching(name))
    return bool(values) and all(map(holds, values))


def is_floating(script: Script, tensor: syntax.BaseExpression) -> bool:
    """Whether a tensor certainly holds fractions: it is a loss, or a mean."""
    match _applied(script, tensor):
        case (name, base):
            return name in _FRACTIONS or name.endswith("_loss") or (name in _SAME | {"sum"} and is_floating(script, base))
    match tensor:
        case syntax.BinaryOperation(left=left, operator=operator, right=right):
            return isinstance(operator, syntax.Divide) or is_floating(script, left) or is_floating(script, right)
        case syntax.Call(func=func):
            return script.role(func) is Role.MODULE or _returns(script, tensor, is_floating)
        case syntax.Name():
            return _is_differentiated(script, tensor) or _is_bound_to(
                script, tensor, lambda value: is_floating(script, value)
            )
        case syntax.Attribute(value=base, attr=syntax.Name(value="data" | "loss")):
            return tensor.attr.value == "loss" or is_floating(script, base)
        case syntax.Subscript(value=base):
            return script.role(base) is Role.TENSOR and is_floating(script, base)
    return False


def is_wide(script: Script, tensor: syntax.BaseExpression, depth: int = _DEPTH) -> bool:
    """Whether a tensor is certainly no half: it was made ``float`` or ``double``, and added up at most since."""
    match _applied(script, tensor):
        case (name, base):
            return name in ("float", "double") or (name in _KEEP_WIDTH and is_wide(script, base, depth))
    match tensor:
        case syntax.BinaryOperation(left=left, operator=syntax.Add() | syntax.Subtract() | syntax.Multiply(), right=right):
            sides = [script.role(each) is Role.NUMBER for each in (left, right)]
            return not all(sides) and all(
                number or is_wide(script, each, depth) for number, each in zip(sides, (left, right), strict=True)
            )
        case syntax.Name() if depth:
            return _is_bound_to(script, tensor, lambda value: is_wide(script, value, depth - 1))
    return False


def _returns(script: Script, call: syntax.Call, holds: Callable[[Script, syntax.BaseExpression], bool]) -> bool:
    """Whether all that a first-party function returns has a property."""
    callee = script.callee(call)
    if callee is None or not isinstance(callee.node, syntax.FunctionDef):
        return False
    results = list(returned(callee))
    return bool(results) and all(holds(callee.script, result) for result in results)


def is_scalar(script: Script, tensor: syntax.BaseExpression, depth: int = _DEPTH) -> bool:
    """Whether a tensor certainly has no dimension at all, not one of length 1: only then it can be formatted as a number."""
    if depth == 0:
        return False
    match tensor:
        case syntax.Call(func=syntax.Attribute(attr=syntax.Name(value="mean" | "sum")), args=args):
            return not args or (len(args) == 1 and script.name(tensor.func) is not None)
        case syntax.Call(func=func):
            if any(is_name(arg.keyword, "reduction", "reduce") for arg in tensor.args):
                return False
            made = script.value(func).made
            names = (script.name(func) or "", (made.script.name(made.call.func) or "") if made is not None else "")
            plain = _is_reduced(tensor, 3) and (made is None or _is_reduced(made.call, 1))
            if plain and any(
                name.startswith("torch.nn.") and name.endswith(("Loss", "_loss", "cross_entropy", "kl_div"))
                for name in names
            ):
                return True
            return _returns(script, tensor, lambda where, value: is_scalar(where, value, depth - 1))
        case syntax.BinaryOperation(left=left, right=right):
            sides = [script.role(left) is Role.NUMBER, script.role(right) is Role.NUMBER]
            return not all(sides) and all(
                number or is_scalar(script, side, depth - 1) for number, side in zip(sides, (left, right), strict=True)
            )
        case syntax.Name():
            return _is_bound_to(script, tensor, lambda value: is_scalar(script, value, depth - 1))
    return False


def _is_reduced(call: syntax.Call, most: int) -> bool:
    """Whether a call of a loss of torch's, or of its class, is told nothing of how to reduce, neither by name nor by a text
    or one of the last places: ``most`` arguments stand before those."""
    told = any(is_name(arg.keyword, "reduction", "reduce") or arg.star for arg in call.args)
    plain = [arg.value for arg in call.args if arg.keyword is None]
    return not told and len(plain) <= most and not any(isinstance(each, syntax.SimpleString) for each in plain)


def _is_differentiated(script: Script, name: syntax.Name) -> bool:
    """Whether ``backward`` is called on the variable, itself or scaled."""
    for call in script.method_calls("backward"):
        assert isinstance(call.func, syntax.Attribute)
        held = [use.value for use in script.source.inside(call.func.value, syntax.Name)]
        if name.value in held and script.function(call) is script.function(name):
            return True
    return False


def may_be_complex(script: Script) -> bool:
    """Whether anything in the programs speaks of complex numbers."""
    return script.program.mentions(script, _COMPLEX)


def has_complex_parameters(script: Script) -> bool:
    """Whether a parameter of the programs may be complex: one that is made of a Fourier transform, or where anything speaks
    of complex numbers."""
    if may_be_complex(script):
        return True
    made = ((place, call) for place in script.everywhere(b"fft", b"stft") for call in place.calls(*library.PARAMETERS))
    return any(_is_of_waves(place, arg.value, _DEPTH) for place, call in made for arg in call.args)


def _is_of_waves(script: Script, node: syntax.BaseExpression, depth: int) -> bool:
    calls = script.source.inside(node, syntax.Call)
    if any((script.name(call.func) or "").startswith(_OF_WAVES) for call in calls):
        return True
    return depth > 0 and any(
        _is_of_waves(script, value, depth - 1)
        for name in script.source.inside(node, syntax.Name)
        for value in all_written(script.names.reaching(name))
    )


def may_be_half(script: Script) -> bool:
    """Whether the program may compute in half precision: a sum of many such numbers goes wrong."""
    return names_half(script) or script.program.mentions(script, _MAY_CHOOSE_HALF)


def names_half(script: Script) -> bool:
    """Whether the program's own text chooses a half precision."""
    return script.program.mentions(script, _NAMES_HALF)


def may_be_small(script: Script) -> bool:
    """Whether anything in the programs speaks of whole numbers of a byte or two: a sum of them begins again at zero."""
    return script.program.mentions(script, _SMALL)
