"""Whether the tensors that the turns of a loop give may lie on several GPUs, which nothing adds up or joins."""

from __future__ import annotations

import re

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.solve.names import Kind

_SEVERAL = re.compile(rb"device_count\(|cuda:[1-9]|cuda:\{|cuda:%|[\"']cuda:[\"']\s{0,3}\+|device\([\"']cuda[\"'],")
_MOVES = frozenset({"to", "cuda"})


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
