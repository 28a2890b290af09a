"""Code that runs for each item or batch of a dataset, wherever a loader calls it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.shapes.data import loaders

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_READS_ITEMS = frozenset({"__getitem__", "__getitems__", "collate_fn"})
_DEPTH = 4


def is_per_item(script: Script, node: syntax.Node, depth: int = _DEPTH) -> bool:
    """Whether a node stands in a dataset's ``__getitem__``, in a collate function, or in what one of them calls."""
    function = script.source.enclosing(node, syntax.FunctionDef, syntax.Lambda)
    if depth == 0 or not isinstance(function, (syntax.FunctionDef, syntax.Lambda)):
        return False
    if isinstance(function, syntax.Lambda):
        return _is_collate(script, function)
    if function.name.value in _READS_ITEMS or _is_collate(script, function):
        return True
    return any(is_per_item(other, call, depth - 1) for other, call in script.call_sites(function))


def _is_collate(script: Script, function: syntax.FunctionDef | syntax.Lambda) -> bool:
    """Whether a loader of the program is given a function as its ``collate_fn``."""
    return any(found.collates_by(script, function) for found in loaders.near(script))
