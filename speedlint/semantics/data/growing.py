"""Tensors, arrays and lists that each step joins anew to all that was gathered before, which is copied each time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from speedlint.facts import syntax
from speedlint.semantics.loops import Loop
from speedlint.semantics.script import Script
from speedlint.semantics.sync.accumulators import is_empty_list
from speedlint.semantics.terms import FREQUENT

_TORCH = tuple(f"torch.{name}" for name in ("cat", "concat", "concatenate", "hstack", "vstack"))
_NUMPY = tuple(f"numpy.{name}" for name in ("concatenate", "hstack", "vstack"))
_APPEND = "numpy.append"
_MAKES_LIST = frozenset({"tolist"})


@dataclass(frozen=True, slots=True)
class Growth:
    """What grows, how it is joined (``torch.cat``, ``+``), and the loop in whose each step it is."""

    store: syntax.BaseExpression
    join: str
    loop: Loop


def grown(script: Script, assign: syntax.Assign) -> Growth | None:
    """What an assignment joins anew in each step, and nothing reads before the loop is over."""
    if len(assign.targets) != 1 or script.frequency(assign) not in FREQUENT:
        return None
    store, loop = assign.targets[0].target, script.loops.driving_loop(assign)
    if loop is None or script.function(loop) is not script.function(assign) or script.loops.kind(loop) not in FREQUENT:
        return None
    join = _join(script, store, assign.value)
    if join is None or not _begins_outside(script, store, loop) or _is_read(script, store, assign, loop):
        return None
    return Growth(store, join, loop)


def _join(script: Script, store: syntax.BaseExpression, value: syntax.BaseExpression) -> str | None:
    """How a value joins something to what the store holds."""
    text = script.text(store)
    match value:
        case syntax.Call(func=func, args=[syntax.Arg(keyword=None, star="", value=first), *_]):
            name = script.name(func) or ""
            if name == _APPEND:
                return "np.append" if script.text(first) == text else None
            if name in (*_TORCH, *_NUMPY) and isinstance(first, syntax.Tuple | syntax.List):
                is_joined = any(script.text(each.value) == text for each in first.elements)
                return script.text(func) if is_joined and len(first.elements) > 1 else None
        case syntax.BinaryOperation(left=left, operator=syntax.Add(), right=right) if script.text(left) == text:
            return "+" if _is_list(script, right) and _was_list(script, left) else None
    return None


def _is_list(script: Script, expression: syntax.BaseExpression) -> bool:
    match expression:
        case syntax.List() | syntax.ListComp():
            return True
        case syntax.Call(func=syntax.Attribute(attr=syntax.Name(value=method))) if method in _MAKES_LIST:
            return True
    return script.is_call_to(expression, "list")


def _was_list(script: Script, store: syntax.BaseExpression) -> bool:
    return isinstance(store, syntax.Name) and any(is_empty_list(script, each) for each in script.names.reaching(store))


def _begins_outside(script: Script, store: syntax.BaseExpression, loop: Loop) -> bool:
    """Whether what grows is there before the loop begins."""
    while isinstance(store, syntax.Subscript | syntax.Attribute):
        store = store.value
    if not isinstance(store, syntax.Name):
        return False
    scope = script.names.scope(store)
    bindings = scope.bindings.get(store.value, []) if scope.lookup(store.value) is scope else []
    return any(not script.source.contains(loop, binding.node) for binding in bindings)


def _is_read(script: Script, store: syntax.BaseExpression, assign: syntax.Assign, loop: Loop) -> bool:
    """Whether anything else in the loop takes what is gathered so far, but to ask whether there is any, or to begin it."""
    source = script.source
    branches = [up for up in source.ancestors(assign) if isinstance(up, syntax.If) and source.contains(loop.body, up)]
    for use in _uses(script, store, loop):
        if source.contains(assign, use) or any(source.contains(branch.test, use) for branch in branches):
            continue
        is_set = isinstance(source.parents[use], syntax.AssignTarget)
        begins = is_set and any(source.contains(branch, use) for branch in branches)
        if not begins:
            return True
    return False


def _uses(script: Script, store: syntax.BaseExpression, loop: Loop) -> Iterator[syntax.Node]:
    if isinstance(store, syntax.Name):
        yield from (use for use in script.names.uses(store) if script.source.contains(loop.body, use))
        return
    text = script.text(store)
    for kind in (syntax.Subscript, syntax.Attribute):
        yield from (each for each in script.source.inside(loop.body, kind) if script.text(each) == text)
