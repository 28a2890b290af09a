"""Reads that nothing spells out: Python or torch asks a tensor on the GPU for its number, where one is needed.

``range(n)``, ``torch.arange(n)``, ``x[:, :n]`` and ``names[n]`` of a list or an array ask for ``n.__index__()``, which is
``n.item()``; ``max(x)`` and ``sorted(x)`` compare the numbers of ``x`` one by one and ask for the truth of each comparison.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes.sync import reads, returned
from speedlint.shapes.sync.conditions import is_asked_what_it_is, rules_out_tensor
from speedlint.solve.flow import once
from speedlint.solve.names import Binding, Kind
from speedlint.solve.unpacking import written
from speedlint.source import is_none
from speedlint.torch.words import Frequency, Role

_OF_TENSORS = frozenset(
    "size dim ndim shape numel unsqueeze squeeze view long float int tolist cpu max min sum mean argmax".split()
)
"""What neither dicts have, nor lists and tuples."""
_GIVES_TENSORS = frozenset(
    "mean sum argmax argmin softmax log_softmax sigmoid exp log abs square long float int detach flatten reshape view clamp "
    "squeeze unsqueeze cumsum tanh relu".split()
)
"""Methods of tensors, and functions of torch, that give one tensor."""
_COMPARE = ("max", "min", "sorted", "any", "all")
_COUNT = ("range", *(f"torch.{name}" for name in "arange zeros ones empty rand randn randperm".split()))
"""What is handed a number, or several, that say how many."""


class Implied(NamedTuple):
    """A tensor on the GPU that is read.

    Attributes:
        tensor: what is read.
        is_each: whether each of its numbers is, by itself.
        is_place: whether it says which entry of a list or an array on the host is meant.
    """

    tensor: syntax.BaseExpression
    is_each: bool
    is_place: bool = False


def read(script: Script, node: syntax.Call | syntax.Subscript) -> Implied | None:
    """What a call or an index reads of a tensor on the GPU; None of one that reads nothing, or says that it does."""
    if isinstance(node, syntax.Subscript):
        return _of_subscript(script, node)
    name, given = script.name(node.func), [arg.value for arg in node.args if arg.keyword is None and not arg.star]
    if name is not None and "." not in name and _may_be_starred(script, name):
        return None
    if name in _COMPARE and len(node.args) == 1 and given:
        found = _first(script, given)
        return found._replace(is_each=True) if found is not None else None
    return _first(script, given) if name in _COUNT else None


def is_needless(script: Script, node: syntax.Call | syntax.Subscript, read: Implied) -> bool:
    """Whether what is read is surely a tensor that lies on the GPU, and lay on the host before, or is one of many that are
    read one by one."""
    if is_asked_what_it_is(script, read.tensor) or reads.often(script, node) is None or reads.is_repeated(script, node):
        return False
    if read.is_each:
        return _is_tensor(script, read.tensor)
    is_of_step = reads.how_often(script, node) is Frequency.STEP
    return read.is_place or (is_of_step and returned.before(script, read.tensor) is not None)


def _of_subscript(script: Script, node: syntax.Subscript) -> Implied | None:
    role = script.role(node.value)
    if role in (Role.ARRAY, Role.SEQUENCE):
        indices = (each.slice.value for each in node.slice if isinstance(each.slice, syntax.Index))
        places = [each for each in indices if _is_single(script, each)]
        if (found := _first(script, places)) is not None:
            return found._replace(is_place=True)
    return _first(script, _bounds(node)) if role is not Role.MAPPING else None


def _is_single(script: Script, index: syntax.BaseExpression) -> bool:
    """Whether an index is one entry of a tensor, taken out of it by its number or by a loop over it: of more than one number
    on a GPU, no list and no array takes any."""
    match index:
        case syntax.Name():
            bindings = script.names.reaching(index)
            return bool(bindings) and all(_is_bound_to_single(script, each) for each in bindings)
        case syntax.Subscript(value=inner, slice=[syntax.SubscriptElement(slice=syntax.Index(value=number))]):
            return script.role(inner) is Role.TENSOR and script.role(number) is Role.NUMBER
    return False


def _is_bound_to_single(script: Script, binding: Binding) -> bool:
    value = binding.value
    if binding.kind is Kind.ASSIGN and not binding.path and isinstance(value, syntax.Subscript):
        return _is_single(script, value)
    if binding.kind is not Kind.FOR or value is None:
        return False
    match value:
        case syntax.Call(func=func, args=args) if script.name(func) == "zip" and len(binding.path) == 1:
            at = binding.path[0]
            return at is not None and at < len(args) and script.role(args[at].value) is Role.TENSOR
    return not binding.path and script.role(value) is Role.TENSOR


def _may_be_starred(script: Script, builtin: str) -> bool:
    """Whether a builtin may be another thing, as ``max`` is after ``from torch import *``."""
    found = (script.program.module(script, star) for star in script.names.module.stars)
    return any(each is None or bool(each[1]) for each in found) or script.star_imported(builtin) is not None


@once(True)
def _is_tensor(script: Script, expression: syntax.BaseExpression | None) -> bool:
    """Whether an expression is surely a tensor, no dict or list of some: computed or moved to a GPU, here or by whoever
    hands it on, or a variable that is asked somewhere for what tensors alone have."""
    match expression:
        case syntax.Call(func=syntax.Attribute(value=base, attr=syntax.Name(value=name))) if name in _GIVES_TENSORS:
            return (script.name(expression.func) or "torch.").startswith("torch.") and script.role(base) is not Role.BATCH
        case syntax.Call(func=func) if (dotted := script.name(func)) is not None:
            return dotted.startswith("torch.") and script.role(expression) is Role.TENSOR
        case syntax.Call(func=syntax.Attribute(attr=syntax.Name("cuda"))):
            return True
        case syntax.BinaryOperation(left=left, right=right):
            return _is_tensor(script, left) or _is_tensor(script, right)
        case syntax.Comparison(left=left, comparisons=[_]):
            return _is_tensor(script, left)
        case syntax.Name():
            bound, uses = script.names.reaching(expression), script.names.uses(expression)
            asked = (script.source.parents[use] for use in uses if script.names.reaching(use) == bound)
            if any(isinstance(each, syntax.Attribute) and each.attr.value in _OF_TENSORS for each in asked):
                return True
            given = [list(_given(script, each)) for each in bound]
            return bool(given) and all(each and all(_is_tensor(*one) for one in each) for each in given)
    return False


def _given(script: Script, binding: Binding) -> Iterator[tuple[Script, syntax.BaseExpression | None]]:
    """What a variable is given by one of its bindings: what is assigned to it, or what the calls of its function hand it,
    None where that is not written out. That it is left out where the default is None says nothing of it."""
    if isinstance(binding.node, syntax.Param):
        default = binding.node.default
        for other, value in script.values.passed(binding.node):
            if value is not None or default is None or not is_none(default):
                yield other, value if value is not None else default
    else:
        yield script, written(binding)


def _bounds(node: syntax.Subscript) -> Iterator[syntax.BaseExpression]:
    for each in node.slice:
        if isinstance(each.slice, syntax.Slice):
            yield from (bound for bound in (each.slice.lower, each.slice.upper, each.slice.step) if bound is not None)


def _first(script: Script, given: Iterator[syntax.BaseExpression] | list[syntax.BaseExpression]) -> Implied | None:
    tensors = (each for each in given if script.is_shown_device_tensor(each) and not rules_out_tensor(script, each))
    tensor = next(tensors, None)
    return Implied(tensor, is_each=False) if tensor is not None else None
