"""Code that runs for each item or batch of a dataset, wherever a loader calls it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from speedlint.semantics import library
from speedlint.semantics.names import Kind

if TYPE_CHECKING:
    from speedlint.semantics.script import Script

_READS_ITEMS = frozenset({"__getitem__", "__getitems__", "collate_fn"})
_DEPTH = 4


def is_per_item(script: Script, node: cst.CSTNode, depth: int = _DEPTH) -> bool:
    """Whether a node stands in a dataset's ``__getitem__``, in a collate function, or in what one of them calls."""
    function = script.source.enclosing(node, cst.FunctionDef, cst.Lambda)
    if depth == 0 or not isinstance(function, (cst.FunctionDef, cst.Lambda)):
        return False
    if isinstance(function, cst.Lambda):
        return is_collate(script, function)
    if function.name.value in _READS_ITEMS or is_collate(script, function):
        return True
    return any(is_per_item(other, call, depth - 1) for other, call in script.call_sites(function))


def is_collate(script: Script, function: cst.FunctionDef | cst.Lambda) -> bool:
    """Whether a function is given to a loader of this file as its ``collate_fn``."""
    for call in script.source.of(cst.Call):
        given = script.argument(call, "collate_fn") if script.name(call.func) in library.LOADERS else None
        if given is function:
            return True
        if isinstance(given, cst.Name) and isinstance(function, cst.FunctionDef) and given.value == function.name.value:
            return any(b.kind is Kind.FUNCTION and b.node is function for b in script.names.reaching(given))
    return False
