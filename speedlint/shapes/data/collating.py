"""What a collate function does with each item of a batch, beside putting them together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.solve.flow import once

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_LOOPS = (syntax.For, syntax.While, syntax.ListComp, syntax.DictComp, syntax.SetComp, syntax.GeneratorExp)
_DEPTH = 2


@once(False)
def works_on_each_item(script: Script, node: syntax.Node) -> bool:
    """Whether a collate function calls for each item of a batch a function of the project's that goes over something itself,
    as one that makes a graph of a molecule: some tens of microseconds for each, of a thousand items a tenth of a second."""
    loops = (each for kind in _LOOPS for each in script.source.inside(node, kind))
    return any(
        _goes_over(*callee, _DEPTH)
        for loop in loops
        for call in script.source.inside(loop, syntax.Call)
        if (callee := script.callee(call)) is not None
    )


def _goes_over(script: Script, function: syntax.Node, depth: int) -> bool:
    """Whether a function has a loop, or a function that it calls."""
    if not isinstance(function, syntax.FunctionDef):
        return False
    if any(True for kind in _LOOPS for _ in script.source.inside(function.body, kind)):
        return True
    callees = (script.callee(call) for call in script.source.inside(function.body, syntax.Call)) if depth else ()
    return any(_goes_over(*callee, depth - 1) for callee in callees if callee is not None)
