"""Scripts that end before they train, as they stand: they read a name that nothing has bound."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.solve.flow import listed_once

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_FINDS_BY_ITSELF = (b"sys.path", b"__path__", b"exec(", b"globals()", b"locals()", b"get_ipython", b"builtins")
_BUILTINS = frozenset(dir(builtins)) | {"__file__", "__path__", "__annotations__", "__builtins__"}
_OF_PYTHON_2 = frozenset("basestring cmp execfile file long raw_input reduce reload unichr unicode xrange".split())
_ELSEWHERE = (syntax.Lambda, syntax.Try, syntax.Import, syntax.ImportFrom, syntax.Annotation)
"""In what a name is read at another time, or not at all, or where the error is caught."""
_DEEPEST = 4


def why_not(script: Script, node: syntax.Node) -> str | None:
    """Why a program surely ends before it reaches a node; None where it may not."""
    if script.source.cells is not None or any(mark in script.source.data for mark in _FINDS_BY_ITSELF):
        return None
    name = next((each for each in _unbound(script) if _precedes(script, each, node, 0)), None)
    return f"the script ends before it: nothing has bound `{name.value}`, which it reads" if name is not None else None


@listed_once
def _unbound(script: Script) -> Iterator[syntax.Name]:
    """The names that the module's own code reads before anything can have bound them, and those that a function reads which
    nothing binds at all; none of an excerpt, which imports nothing."""
    imported = list(script.source.of(syntax.ImportFrom))
    is_excerpt = not imported and not any(True for _ in script.source.of(syntax.Import))
    if is_excerpt or any(each.star is not None for each in imported):
        return
    module = script.names.scope(script.source.module)
    for name in script.source.of(syntax.Name):
        if name.value in _BUILTINS or not _is_read(script, name) or script.source.enclosing(name, *_ELSEWHERE) is not None:
            continue
        scope = script.names.scope(name)
        if script.function(name) is not None:
            if scope.lookup(name.value) is None and not _is_given(script, name.value):
                yield name
        elif scope is module:
            bound = scope.bindings.get(name.value, [])
            if not any(script.order.may_run_before(each.node, name) for each in bound):
                yield name


def _is_given(script: Script, name: str) -> bool:
    """Whether a name of a module may be bound from outside: as ``module.name = x``, or by Python 2."""
    if name in _OF_PYTHON_2:
        return True
    targets = (
        target.target for place in script.everywhere(name.encode()) for target in place.source.of(syntax.AssignTarget)
    )
    return any(isinstance(each, syntax.Attribute) and each.attr.value == name for each in targets)


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
