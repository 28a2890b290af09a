"""Tensors, arrays and lists that each step joins anew to all that was gathered before, which is copied each time."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes.evaluation import is_network
from speedlint.shapes.sync.accumulators import is_empty_list
from speedlint.solve.dtypes import is_integral, is_scalar
from speedlint.solve.loops import Loop
from speedlint.solve.unpacking import all_written
from speedlint.torch.methods import FLOATS, MOVES, RESHAPES
from speedlint.torch.words import FREQUENT

_DEPTH = 4
_SET_AND_JOINED = 2
"""How often an assignment that only joins something to a variable names it."""
COPIES = frozenset({"clone", "copy"})
SAME_SIZE = RESHAPES | FLOATS | MOVES | {"detach", "numpy", "ravel", "contiguous", "astype"}
"""Methods whose result is as large as their object, and may be the same memory."""
ELEMENTWISE = frozenset("sigmoid softmax log_softmax tanh exp log sqrt abs".split())
NARROWS = frozenset("mean sum norm std var max min amax amin prod argmax argmin squeeze item".split())
_TORCH = tuple(f"torch.{name}" for name in ("cat", "concat", "concatenate", "hstack", "vstack"))
_NUMPY = tuple(f"numpy.{name}" for name in ("concatenate", "hstack", "vstack"))
_APPEND = "numpy.append"
_MAKES_LIST = frozenset({"tolist"})


class How(enum.Enum):
    """How the old and the new are put together."""

    JOINED = "joined"
    """``x = torch.cat([x, new])``."""
    APPENDED = "appended"
    """``x = np.append(x, new)``."""
    ADDED = "added"
    """``xs = xs + [new]``."""


@dataclass(frozen=True, slots=True)
class Growth:
    """What grows.

    Attributes:
        statement: the assignment that makes it anew.
        store: what holds it, where it is assigned.
        by: the function that joins it, as a reader knows it, or ``+``.
        old: the store, where it is read in the statement; None where it does not come first.
        new: what is added to it; for lists, the list that is. Empty where it is not all in sight behind the old.
        loop: the loop in whose each step it grows.
    """

    statement: syntax.Assign
    store: syntax.BaseExpression
    how: How
    by: str
    old: syntax.BaseExpression | None
    new: tuple[syntax.BaseExpression, ...]
    loop: Loop


_Join = tuple[How, str, "syntax.BaseExpression | None", tuple[syntax.BaseExpression, ...]]
"""How something is joined, by what, and the old and the new."""


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
    return Growth(assign, store, *join, loop)


def _join(script: Script, store: syntax.BaseExpression, value: syntax.BaseExpression) -> _Join | None:
    """How a value joins something to what the store holds."""
    text = script.text(store)
    match value:
        case syntax.Call(func=func, args=[syntax.Arg(keyword=None, star="", value=first), *others]):
            name = script.name(func) or ""
            if name == _APPEND and script.text(first) == text:
                return How.APPENDED, "np.append", first, tuple(arg.value for arg in others[:1] if not arg.star)
            if name in (*_TORCH, *_NUMPY) and isinstance(first, syntax.Tuple | syntax.List):
                return _of_elements(script, text, script.text(func), first.elements)
        case syntax.BinaryOperation(left=left, operator=syntax.Add(), right=right) if script.text(left) == text:
            return (How.ADDED, "+", left, (right,)) if _is_list(script, right) and _was_list(script, left) else None
    return None


def _of_elements(script: Script, store: str, by: str, elements: Sequence[syntax.BaseElement]) -> _Join | None:
    first, *others = elements or (None,)
    if first is None or not others or not any(script.text(each.value) == store for each in elements):
        return None
    is_plain = script.text(first.value) == store and all(isinstance(each, syntax.Element) for each in elements)
    return (How.JOINED, by, first.value, tuple(each.value for each in others)) if is_plain else (How.JOINED, by, None, ())


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
    uses = list(_uses(script, store, loop))
    joined = [use for use in uses if source.contains(assign, use)]
    if len(joined) > _SET_AND_JOINED:
        return True
    for use in uses:
        if use in joined or any(source.contains(branch.test, use) for branch in branches):
            continue
        is_set = isinstance(source.parents[use], syntax.AssignTarget)
        begins = is_set and any(
            source.contains(branch, use) and not _comes_again(script, branch.test) for branch in branches
        )
        if not begins:
            return True
    return False


def _comes_again(script: Script, test: syntax.BaseExpression) -> bool:
    """Whether a test holds every so many steps: what is begun under it never grows long."""
    return any(isinstance(each.operator, syntax.Modulo) for each in script.source.inside(test, syntax.BinaryOperation))


def _uses(script: Script, store: syntax.BaseExpression, loop: Loop) -> Iterator[syntax.Node]:
    if isinstance(store, syntax.Name):
        yield from (use for use in script.names.uses(store) if script.source.contains(loop.body, use))
        return
    text = script.text(store)
    for kind in (syntax.Subscript, syntax.Attribute):
        yield from (each for each in script.source.inside(loop.body, kind) if script.text(each) == text)


# How it is gathered instead


def is_wide(script: Script, grown: Growth) -> bool:
    """Whether each turn adds, on the host, the whole output of a network: more than a number for each sample."""
    if grown.how is How.ADDED or not isinstance(grown.store, syntax.Name):
        return False
    return any(_is_output(script, new, _DEPTH) and not _stays_on_gpu(script, new) for new in grown.new)


def _stays_on_gpu(script: Script, new: syntax.BaseExpression) -> bool:
    return script.on_gpu and script.is_device_tensor(new)


def _is_output(script: Script, node: syntax.BaseExpression, depth: int) -> bool:
    if depth == 0 or is_integral(script, node) or is_scalar(script, node):
        return False
    match node:
        case syntax.Call() if is_network(script, node):
            return True
        case syntax.Call(func=syntax.Attribute(value=inner, attr=syntax.Name(value=method))) if (
            script.name(node.func) is None
        ):
            same = method in SAME_SIZE | ELEMENTWISE | COPIES and method not in NARROWS
            return same and _is_output(script, inner, depth)
        case syntax.Call(args=[syntax.Arg(value=inner), *_]):
            return (script.name(node.func) or "").rpartition(".")[2] in ELEMENTWISE and _is_output(script, inner, depth)
        case syntax.Attribute(value=inner, attr=syntax.Name(value="data")):
            return _is_output(script, inner, depth)
        case syntax.Name():
            values = all_written(script.names.reaching(node))
            return bool(values) and all(_is_output(script, value, depth - 1) for value in values)
    return False
