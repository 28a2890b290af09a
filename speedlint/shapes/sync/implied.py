"""Reads that nothing spells out: Python or torch asks a tensor on the GPU for its number, where one is needed.

``range(n)``, ``torch.arange(n)`` and ``x[:, :n]`` ask for ``n.__index__()``, which is ``n.item()``; ``max(x)`` and
``sorted(x)`` compare the numbers of ``x`` one by one and ask for the truth of each comparison.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes.sync.conditions import is_computed, rules_out_tensor
from speedlint.torch.words import Role

_OF_TENSORS = frozenset("size dim ndim shape numel unsqueeze squeeze view long float int tolist cpu device".split())
"""What neither dicts have, nor lists and tuples."""
_COMPARE = ("max", "min", "sorted", "any", "all")
_COUNT = ("range", *(f"torch.{name}" for name in "arange zeros ones empty rand randn randperm".split()))
"""What is handed a number, or several, that say how many."""


class Implied(NamedTuple):
    """A tensor on the GPU that is read.

    Attributes:
        tensor: what is read.
        is_each: whether each of its numbers is, by itself.
    """

    tensor: syntax.BaseExpression
    is_each: bool


def read(script: Script, node: syntax.Call | syntax.Subscript) -> Implied | None:
    """What a call or an index reads of a tensor on the GPU; None of one that reads nothing, or says that it does."""
    if isinstance(node, syntax.Subscript):
        return _first(script, _bounds(node)) if script.role(node.value) is not Role.MAPPING else None
    name, given = script.name(node.func), [arg.value for arg in node.args if arg.keyword is None and not arg.star]
    if name in _COMPARE and len(node.args) == 1 and given:
        found = _first(script, given)
        return found._replace(is_each=True) if found is not None else None
    return _first(script, given) if name in _COUNT else None


def is_tensor(script: Script, expression: syntax.BaseExpression) -> bool:
    """Whether an expression is surely a tensor, no dict or list of some: computed here, or a variable that is asked
    somewhere for what tensors alone have."""
    if not isinstance(expression, syntax.Name):
        return is_computed(script, expression)
    bound = script.names.reaching(expression)
    asked = (script.source.parents[use] for use in script.names.uses(expression) if script.names.reaching(use) == bound)
    return is_computed(script, expression) or any(
        isinstance(each, syntax.Attribute) and each.attr.value in _OF_TENSORS for each in asked
    )


def _bounds(node: syntax.Subscript) -> Iterator[syntax.BaseExpression]:
    for each in node.slice:
        if isinstance(each.slice, syntax.Slice):
            yield from (bound for bound in (each.slice.lower, each.slice.upper, each.slice.step) if bound is not None)


def _first(script: Script, given: Iterator[syntax.BaseExpression] | list[syntax.BaseExpression]) -> Implied | None:
    tensors = (each for each in given if script.is_shown_device_tensor(each) and not rules_out_tensor(script, each))
    tensor = next(tensors, None)
    return Implied(tensor, is_each=False) if tensor is not None else None
