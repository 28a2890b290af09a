"""Whether a variable is bound where a fix would write its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.solve.names import Scope

if TYPE_CHECKING:
    from speedlint.ask.script import Script


def is_bound(script: Script, name: str, at: syntax.Node, seen: frozenset[syntax.Node] = frozenset()) -> bool:
    """Whether a variable surely holds a value where ``at`` begins.

    Of a variable of a scope around the function: where the function is defined or, failing that, at all of its calls. Where
    another file may call it, the module's code has run to its end.
    """
    scope = script.names.scope(at).lookup(name)
    if scope is None:
        return False
    binds, unbinds = _changes(script, scope, name)
    if script.order.surely(binds, at, unbinds):
        return True
    function = script.function(at)
    if function is None or scope.node is function or function in seen:
        return False
    calls = script.call_sites(function)
    if not calls or any(other is not script for other, _ in calls):
        return any(next(script.order.under(node), None) is None for node in binds if script.function(node) is None)
    return all(is_bound(script, name, call, seen | {function}) for _, call in calls)


def _changes(script: Script, scope: Scope, name: str) -> tuple[list[syntax.Node], list[syntax.Node]]:
    """The places that give a variable a value or need one, and those that take it away."""
    parents = script.source.parents
    binds: list[syntax.Node] = [binding.node for binding in scope.bindings.get(name, [])]
    unbinds: list[syntax.Node] = []
    known = next((node for node in map(_named, binds) if node is not None), None)
    for use in script.names.uses(known) if known is not None else ():
        match parents[use]:
            case syntax.Del() | syntax.Element() if script.source.enclosing(use, syntax.Del) is not None:
                unbinds.append(use)
            case syntax.AsName() as bound if isinstance(handler := parents[bound], syntax.ExceptHandler):
                unbinds.append(handler)
            case syntax.NameItem() | syntax.AnnAssign() | syntax.FunctionDef() | syntax.ClassDef():
                pass
            case _:
                binds.append(use)
    return binds, unbinds


def _named(node: syntax.Node) -> syntax.Name | syntax.Param | None:
    """The name that a binding binds, where ``Names.uses`` takes it."""
    match node:
        case syntax.Name() | syntax.Param():
            return node
        case syntax.FunctionDef(name=name) | syntax.ClassDef(name=name):
            return name
        case syntax.MatchAs(name=name):
            return name
        case syntax.ImportAlias(asname=syntax.AsName(name=syntax.Name() as name)):
            return name
        case syntax.ImportAlias(name=syntax.Name() as name):
            return name
    return None
