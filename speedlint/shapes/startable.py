"""Scripts that end before they train, as they stand: they read a name that nothing has bound."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import TYPE_CHECKING

from speedlint.facts import syntax

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_FINDS_BY_ITSELF = (b"sys.path", b"__path__", b"exec(", b"globals()", b"locals()", b"get_ipython", b"builtins")
_BUILTINS = frozenset(dir(builtins)) | {"__file__", "__path__", "__annotations__", "__builtins__"}
_DEEPEST = 4


def why_not(script: Script, node: syntax.Node) -> str | None:
    """Why a program surely ends before it reaches a node; None where it may not."""
    if script.source.cells is not None or any(mark in script.source.data for mark in _FINDS_BY_ITSELF):
        return None
    nothing: list[syntax.Name] = []
    unbound = script.once("reads unbound names", lambda: list(_unbound(script)), nothing)
    name = next((each for each in unbound if _precedes(script, each, node, 0)), None)
    return f"the script ends before it: nothing has bound `{name.value}`, which it reads" if name is not None else None


def _unbound(script: Script) -> Iterator[syntax.Name]:
    """The names that the module's own code reads before anything can have bound them; none of an excerpt, which imports
    nothing."""
    imported = list(script.source.of(syntax.ImportFrom))
    is_excerpt = not imported and not any(True for _ in script.source.of(syntax.Import))
    if is_excerpt or any(each.star is not None for each in imported):
        return
    scope = script.names.scope(script.source.module)
    for name in script.source.of(syntax.Name):
        if name.value in _BUILTINS or script.function(name) is not None or not _is_read(script, name):
            continue
        elsewhere = script.source.enclosing(name, syntax.Lambda, syntax.Try, syntax.Import, syntax.ImportFrom)
        if script.names.scope(name) is not scope or elsewhere is not None:
            continue
        bound = scope.bindings.get(name.value, [])
        if not any(script.order.may_run_before(each.node, name) for each in bound):
            yield name


def _is_read(script: Script, name: syntax.Name) -> bool:
    """Whether an expression takes the value of a name: that of ``x.y``, ``x[0]``, ``x(...)`` or ``f(x)``."""
    match script.source.parents[name]:
        case syntax.Attribute(value=value) | syntax.Subscript(value=value) | syntax.Arg(value=value):
            return value is name
        case syntax.Call(func=func):
            return func is name
    return False


def _precedes(script: Script, first: syntax.Node, then: syntax.Node, depth: int) -> bool:
    """Whether a node surely runs before another one does, also one of a function that is called."""
    if script.order.runs_before(first, then):
        return True
    function = script.function(then)
    sites = script.call_sites(function) if function is not None and depth < _DEEPEST else []
    return bool(sites) and all(other is script and _precedes(script, first, call, depth + 1) for other, call in sites)
