"""What the code of a network keeps of what it computes where nothing follows it: a cache, another object, a listener.

Without gradients what is kept has no graph, and a later loss that is made of it teaches the network nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.shapes.model.networks import root_definition, with_named
from speedlint.shapes.sync.reads import shown
from speedlint.shapes.training import roots
from speedlint.solve.flow import once
from speedlint.solve.names import Kind, last_name
from speedlint.solve.terms import Definition
from speedlint.source import is_name
from speedlint.torch.words import Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_PLAIN_DECORATORS = ("torch.", "staticmethod", "classmethod", "property", "abc.", "typing.")
"""Decorators that keep nothing of what a function gives."""
_CACHES = ("functools.lru_cache", "functools.cache", "functools.cached_property")
_BY_NAME = frozenset({"setattr", "vars", "globals", "__setattr__", "__setitem__"})
_TABLES = frozenset({"__dict__", "_buffers", "_parameters", "_modules", "__class__"})
_WITHOUT_GRAPH = (Role.NUMBER, Role.STRING, Role.NONE)
_TAKES = frozenset("append appendleft add update setdefault insert extend".split())
"""Methods by which a container takes what it is given, which is followed on ``self``."""
_KEEPS = frozenset("send set put put_nowait register".split())
"""Methods by which other objects do, which is not."""


@once(None)
def why(definition: Definition) -> str | None:
    """What a function, a part of a network or what it runs, keeps out of sight, in a clause; None where nothing is."""
    script, function = definition.script, definition.node
    if not isinstance(function, syntax.FunctionDef):
        return None
    owner = script.names.owner(function)
    beside = script.source.inside(owner.body, syntax.FunctionDef) if owner is not None else ()
    for each in (function, *beside):
        if (kept := _decorated(script, each, is_run=each is function)) is not None:
            return f"`{kept}` keeps what `{each.name.value}` gives"
    return next(_kept(script, function), None)


def why_of_network(script: Script, module: syntax.BaseExpression) -> str | None:
    """The same of all the code that a module is seen to be made of."""
    for place, node in roots(script, module):
        definition = root_definition(place, node)
        for where, piece in with_named(*(definition or (place, node)), called=True):
            methods = piece.body.body if isinstance(piece, syntax.ClassDef) else (piece,)
            for each in methods:
                is_run = isinstance(each, syntax.FunctionDef) and each.name.value != "__init__"
                kept = why(Definition(where, each)) if is_run and isinstance(each, syntax.FunctionDef) else None
                if kept is not None:
                    return kept
    return None


def _decorated(script: Script, function: syntax.FunctionDef, *, is_run: bool) -> str | None:
    """What decorates a function so that its results may be kept."""
    for each in function.decorators:
        decorator = each.decorator.func if isinstance(each.decorator, syntax.Call) else each.decorator
        name = script.name(decorator) or ""
        may_keep = name in _CACHES or script.definition(decorator) is not None
        if may_keep or (is_run and not name.startswith(_PLAIN_DECORATORS)):
            return script.text(decorator)
    return None


def _kept(script: Script, function: syntax.FunctionDef) -> Iterator[str]:
    inside = script.source.inside
    for attribute in inside(function.body, syntax.Attribute):
        if attribute.attr.value in _TABLES and not _is_read(script, attribute):
            yield f"what `{shown(script, attribute)}` keeps is not followed"
    for target in inside(function.body, syntax.AssignTarget):
        assign = script.source.parents[target]
        part = target.target
        if not isinstance(part, syntax.Attribute | syntax.Subscript) or not isinstance(assign, syntax.Assign):
            continue
        if script.role(assign.value) not in (Role.NUMBER, Role.STRING, Role.NONE) and not _is_of_call(
            script, function, part
        ):
            yield f"what `{shown(script, part)}` keeps is not followed"
    for call in inside(function.body, syntax.Call):
        if _takes(script, function, call):
            yield f"what `{shown(script, call.func)}` keeps is not followed"


def _is_read(script: Script, table: syntax.Attribute) -> bool:
    """Whether an object's own table is only asked for its entries: ``self._modules.values()``."""
    up = script.source.parents[table]
    return isinstance(up, syntax.Attribute) and up.attr.value in ("items", "keys", "values", "get", "__name__")


def _is_of_call(script: Script, function: syntax.FunctionDef, part: syntax.BaseExpression) -> bool:
    """Whether what is set is a part of a variable of the call itself, or of ``self``, which is followed."""
    while isinstance(part, syntax.Attribute | syntax.Subscript):
        if isinstance(part, syntax.Attribute) and part.attr.value in _TABLES:
            return False
        part = part.value
    if is_name(part, "self"):
        return True
    if not isinstance(part, syntax.Name):
        return False
    scope = script.names.scope(part).lookup(part.value)
    is_local = scope is not None and script.source.contains(function, scope.node)
    return is_local and all(each.kind is not Kind.PARAMETER for each in script.names.reaching(part))


def _takes(script: Script, function: syntax.FunctionDef, call: syntax.Call) -> bool:
    """Whether a call hands something to what is not seen, or to an object that outlives the call and is not followed."""
    func = call.func
    if not call.args or script.callee(call) is not None or script.role(func) is Role.MODULE:
        return last_name(func) in _BY_NAME and script.name(func) is not None
    if last_name(func) in _BY_NAME:
        return True
    if script.name(func) is not None or script.definition(func) is not None:
        return False
    if isinstance(func, syntax.Name):
        bindings = script.names.reaching(func)
        return any(each.kind in (Kind.FOR, Kind.PARAMETER) for each in bindings) and script.role(func) is Role.UNKNOWN
    if not isinstance(func, syntax.Attribute):
        return script.role(func) is Role.UNKNOWN
    if is_name(func.value, "self"):
        return script.role(func) is Role.UNKNOWN or _is_set_by_others(script, func.attr.value)
    if script.role(func.value) in (Role.TENSOR, Role.MODULE):
        return False
    if func.attr.value in _KEEPS:
        return any(script.role(arg.value) not in _WITHOUT_GRAPH for arg in call.args)
    return func.attr.value in _TAKES and not _is_of_call(script, function, func.value)


def _is_set_by_others(script: Script, name: str) -> bool:
    """Whether the program sets an attribute of a name other than on ``self``."""
    return any(
        isinstance(target.target, syntax.Attribute)
        and target.target.attr.value == name
        and not is_name(target.target.value, "self")
        for place in script.everywhere(name.encode())
        for target in place.source.of(syntax.AssignTarget)
    )
