"""Whether the tensors that the turns of a loop give can be added up and joined: all of them tensors, on one device."""

from __future__ import annotations

import re
from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.solve.names import Kind
from speedlint.solve.values import returned
from speedlint.torch.words import Place, Role

_SEVERAL = re.compile(rb"device_count\(|cuda:[1-9]|cuda:\{|cuda:%|[\"']cuda:[\"']\s{0,3}\+|device\([\"']cuda[\"'],")
_SECOND = re.compile(rb"cuda:[1-9]|cuda\([1-9]|device\([\"']cuda[\"'],\s{0,3}(index=)?[1-9]")
_MOVES = frozenset({"to", "cuda"})
_DEEPEST = 4


def given(script: Script, tensor: syntax.BaseExpression, depth: int = 0) -> Iterator[tuple[Script, syntax.BaseExpression]]:
    """What a tensor may be: seen through variables, conditions, its methods and what the project's functions return."""
    for other, value in script.roles.origins(tensor):
        match value:
            case syntax.IfExp(body=body, orelse=orelse) if depth < _DEEPEST:
                yield from given(other, body, depth + 1)
                yield from given(other, orelse, depth + 1)
            case syntax.BooleanOperation(left=left, right=right) if depth < _DEEPEST:
                yield from given(other, left, depth + 1)
                yield from given(other, right, depth + 1)
            case syntax.Call() if depth < _DEEPEST:
                yield from _given_by_call(other, value, depth)
            case _:
                yield other, value


def _given_by_call(script: Script, call: syntax.Call, depth: int) -> Iterator[tuple[Script, syntax.BaseExpression]]:
    func, results = call.func, list(_returned_by(script, call))
    if results:
        for other, result in results:
            yield from given(other, result, depth + 1)
    elif isinstance(func, syntax.Attribute) and script.role(func.value) is Role.TENSOR and func.attr.value not in _MOVES:
        yield from given(script, func.value, depth + 1)
    else:
        yield script, call


def _returned_by(script: Script, call: syntax.Call) -> Iterator[tuple[Script, syntax.BaseExpression]]:
    """What the project's functions return that a call may run, those of heirs and of each of several objects too."""
    for callee in script.roles.calls.may_run(call):
        if isinstance(callee.node, syntax.FunctionDef) and callee.node.name.value != "__init__":
            yield from ((callee.script, each) for each in returned(callee))


def has_one_shape(script: Script, tensor: syntax.BaseExpression) -> bool:
    """Whether one call or expression alone gives the tensor, wherever it is written: its dimensions stay the same."""
    made = {other.text(value.func if isinstance(value, syntax.Call) else value) for other, value in given(script, tensor)}
    return len(made) <= 1


def why_apart(script: Script, tensor: syntax.BaseExpression, *, is_called: bool, beside: bool = False) -> str | None:
    """Why what is read of a tensor may not be added up on one device, or None.

    A read that ``is_called`` as a method, ``x.item()``, has no number before it; ``beside`` is whether the sum takes other
    tensors too.
    """
    for name in _methods(script, tensor):
        if script.program.mentions(script, re.compile(rb"\.%s\s{0,3}=(?!=)" % re.escape(name.encode()))):
            return f"`{name}` may be set to another function"
    for other, value in given(script, tensor):
        known = other.value(value)
        if known.role is Role.ARRAY or (known.role is Role.NUMBER and not is_called):
            return f"`{script.first_line(tensor)}` may be `{other.first_line(value)}`, which is no tensor"
        if known.role is Role.TENSOR and known.place is Place.HOST:
            return f"`{script.first_line(tensor)}` may be `{other.first_line(value)}`, which is not on the GPU"
    if beside and script.program.mentions(script, _SECOND):
        return "what is added to one sum may lie on several GPUs"
    return None


def _methods(script: Script, tensor: syntax.BaseExpression) -> Iterator[str]:
    """The names of the methods of the project that give a tensor, called by these names."""
    for other, value in script.roles.origins(tensor):
        match value:
            case syntax.Call(func=syntax.Attribute(attr=syntax.Name(value=name))):
                if any(each.name == name for each in other.roles.calls.may_run(value)):
                    yield name


def changes_device(script: Script, read: syntax.Node) -> bool:
    """Whether the loop around a read takes its device, or its network, out of several in turn."""
    loop = script.source.enclosing(read, syntax.For, syntax.While, syntax.FunctionDef, syntax.Lambda)
    if not isinstance(loop, syntax.For | syntax.While) or not script.program.mentions(script, _SEVERAL):
        return False
    for call in script.source.inside(loop, syntax.Call):
        func = call.func
        moved = isinstance(func, syntax.Attribute) and func.attr.value in _MOVES
        chosen = [arg.value for arg in call.args] if moved else [func]
        if any(_varies(script, each, loop) for each in chosen):
            return True
    return False


def _varies(script: Script, node: syntax.BaseExpression, loop: syntax.For | syntax.While) -> bool:
    """Whether it is an entry of a list that is chosen by a computed index, or a variable that a turn takes out of one."""
    match node:
        case syntax.Subscript(slice=[syntax.SubscriptElement(slice=syntax.Index(value=index))]):
            return script.constant(index) is None
        case syntax.Name():
            return any(
                binding.value is not None
                and script.source.contains(loop, binding.node)
                and (binding.kind is Kind.FOR or isinstance(binding.value, syntax.Subscript))
                for binding in script.names.reaching(node)
            )
    return False
