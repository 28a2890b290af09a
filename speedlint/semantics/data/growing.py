"""Tensors, arrays and lists that each step joins anew to all that was gathered before, which is copied each time."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from speedlint import edits
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Edit
from speedlint.semantics.dtypes import is_integral, is_scalar
from speedlint.semantics.evaluation import is_network
from speedlint.semantics.loops import Loop
from speedlint.semantics.methods import CASTS, FLOATS, MOVES, RESHAPES
from speedlint.semantics.names import Binding, Kind
from speedlint.semantics.script import Script
from speedlint.semantics.sync.accumulators import check_alias, first_binding, is_empty_list, loop_outside
from speedlint.semantics.sync.inplace import is_written
from speedlint.semantics.terms import FREQUENT, Role
from speedlint.semantics.unpacking import all_written, written

_DEPTH = 4
_SET_AND_JOINED = 2
"""How often an assignment that only joins something to a variable names it."""
_COPIES = frozenset({"clone", "copy"})
_SAME_SIZE = RESHAPES | FLOATS | MOVES | {"detach", "numpy", "ravel", "contiguous", "astype"}
"""Methods whose result is as large as their object, and may be the same memory."""
_ELEMENTWISE = frozenset("sigmoid softmax log_softmax tanh exp log sqrt abs".split())
_MOVES = MOVES | CASTS
_FROM_LISTS = frozenset(
    ["numpy.array", "numpy.asarray"] + [f"torch.{name}" for name in ("tensor", "Tensor", "FloatTensor", "LongTensor")]
)
_BY_SIZE = frozenset(["numpy.empty", "numpy.zeros", "torch.empty", "torch.zeros", "torch.Tensor"])
_NARROWS = frozenset("mean sum norm std var max min amax amin prod argmax argmin squeeze item".split())
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
            same = method in _SAME_SIZE | _ELEMENTWISE | _COPIES and method not in _NARROWS
            return same and _is_output(script, inner, depth)
        case syntax.Call(args=[syntax.Arg(value=inner), *_]):
            return (script.name(node.func) or "").rpartition(".")[2] in _ELEMENTWISE and _is_output(script, inner, depth)
        case syntax.Attribute(value=inner, attr=syntax.Name(value="data")):
            return _is_output(script, inner, depth)
        case syntax.Name():
            values = all_written(script.names.reaching(node))
            return bool(values) and all(_is_output(script, value, depth - 1) for value in values)
    return False


def gathered(script: Script, grown: Growth) -> tuple[Edit, ...]:
    """The edits that append to a list and join it once, when the loop is over. Raises CannotEdit."""
    source = script.source
    if not isinstance(grown.store, syntax.Name) or not isinstance(grown.old, syntax.Name) or not grown.new:
        raise CannotEdit("the lines before and behind the loop change with it")
    name = grown.store.value
    start, loop = _start(script, grown, grown.store)
    value = written(start)
    if value is None:
        raise CannotEdit(f"what `{name}` is before the loop is not seen")
    if grown.how is How.ADDED:
        if not is_empty_list(script, start):
            raise CannotEdit(f"`{name}` is not only a list that starts empty in this function")
        return (edits.replace(source, grown.statement, _extended(script, grown)),)
    if not _is_empty(script, value, is_flat=grown.how is How.APPENDED and _axis(script, grown) is None):
        raise CannotEdit(f"`{name}` may be more than an empty array before the loop")
    joined, imports = _joined_once(script, grown)
    kept = [_kept(script, grown, each) for each in grown.new]
    added = f"{name}.append({kept[0]})" if len(kept) == 1 else f"{name}.extend([{', '.join(kept)}])"
    return (
        *imports,
        edits.replace(source, value, f"[{script.text(value)}]"),
        edits.replace(source, grown.statement, added),
        edits.insert_after(source, loop, [f"{name} = {joined}"]),
    )


def _extended(script: Script, grown: Growth) -> str:
    """The statement that adds to a list in place what was joined to it."""
    match added := grown.new[0]:
        case syntax.List(elements=[syntax.Element(value=one)]):
            return f"{script.text(grown.store)}.append({script.text(one)})"
    return f"{script.text(grown.store)}.extend({script.text(added)})"


def _start(script: Script, grown: Growth, store: syntax.Name) -> tuple[Binding, Loop]:
    """Where the variable is bound before the loop, and the outermost loop that this is not in. Raises CannotEdit where it
    is anything else in between, or may be read before that loop is over."""
    name, source = store.value, script.source
    start = first_binding(script, store)
    if start is None or start.kind is not Kind.ASSIGN or start.path:
        raise CannotEdit(f"`{name}` is not a variable that this function makes")
    assign = source.enclosing(start.node, syntax.Assign)
    if not isinstance(assign, syntax.Assign) or len(assign.targets) > 1 or assign.value is not start.value:
        raise CannotEdit(f"`{name}` has a second name")
    loop = loop_outside(script, grown.statement, start.node)
    if not script.order.runs_before(start.node, loop):
        raise CannotEdit(f"what `{name}` is before the loop is not certain")
    if loop.orelse is not None:
        raise CannotEdit("the loop has an `else`")
    for use in script.names.uses(store):
        if use in (store, grown.old) or use is start.node:
            continue
        if not script.order.runs_before(loop, use):
            raise CannotEdit(f"`{name}` is used on line {source.line(use)} as well")
    return start, loop


def _is_empty(script: Script, value: syntax.BaseExpression, *, is_flat: bool) -> bool:
    """Whether an expression is an array with no elements, of one dimension if ``is_flat``: ``torch.tensor([])``,
    ``np.empty(0)``, ``np.zeros((0, 4))``."""
    match value:
        case syntax.Call(func=syntax.Attribute(value=inner, attr=syntax.Name(method))) if (
            method in _MOVES and script.name(value.func) is None
        ):
            return _is_empty(script, inner, is_flat=is_flat)
        case syntax.Call(args=[]):
            return script.is_call_to(value, "torch.Tensor")
        case syntax.Call(args=[syntax.Arg(value=given, keyword=None, star=""), *_]):
            name = script.name(value.func) or ""
        case _:
            return False
    if name in _FROM_LISTS and script.text(given) == "[]":
        return True
    sizes = [given]
    if isinstance(given, (syntax.Tuple, syntax.List)):
        sizes = [each.value for each in given.elements]
    elif name.startswith("torch."):
        sizes = [arg.value for arg in value.args if arg.keyword is None]
    is_long = len(sizes) > 1
    return name in _BY_SIZE and bool(sizes) and script.text(sizes[0]) == "0" and not (is_flat and is_long)


def _axis(script: Script, grown: Growth) -> syntax.BaseExpression | None:
    call = grown.statement.value
    assert isinstance(call, syntax.Call)
    return script.argument(call, "axis", 2)


def _joined_once(script: Script, grown: Growth) -> tuple[str, tuple[Edit, ...]]:
    """The call that joins the list. Raises CannotEdit where it would join along what may not be there."""
    call = grown.statement.value
    assert isinstance(call, syntax.Call)
    others = call.args[2 if grown.how is How.APPENDED else 1 :]
    if any(arg.star or script.text(arg.value) != "0" for arg in others) or len(others) > 1:
        raise CannotEdit("it is joined along another dimension than the first")
    if any(arg.keyword is not None and arg.keyword.value not in ("dim", "axis") for arg in others):
        raise CannotEdit("it is joined in a way of its own")
    func = script.text(call.func)
    imports: tuple[Edit, ...] = ()
    if grown.how is How.APPENDED:
        func, imports = script.spell("numpy.concatenate")
    given = "" if grown.how is How.APPENDED else "".join(f", {script.text(arg)}" for arg in others)
    return f"{func}({script.text(grown.store)}{given})", imports


def _kept(script: Script, grown: Growth, new: syntax.BaseExpression) -> str:
    """What the list keeps: the new part itself if it is one of its own, else a copy of it."""
    text = script.text(new)
    numpy = script.spell("numpy")[0]
    is_own, is_flat = _is_own(script, grown, new, _DEPTH), grown.how is How.APPENDED and _axis(script, grown) is None
    if is_flat:
        return f"{text}.ravel()" if is_own and text.endswith(".numpy()") else f"{numpy}.array({text}).ravel()"
    if is_own:
        return text
    if not (script.name(_call(grown).func) or "").startswith("torch."):
        return f"{numpy}.array({text})"
    is_simple = isinstance(new, (syntax.Name, syntax.Call, syntax.Attribute, syntax.Subscript))
    return f"{text}.clone()" if is_simple else f"({text}).clone()"


def _call(grown: Growth) -> syntax.Call:
    assert isinstance(grown.statement.value, syntax.Call)
    return grown.statement.value


def _is_own(script: Script, grown: Growth, node: syntax.BaseExpression, depth: int) -> bool:
    """Whether an expression certainly makes an array in memory of its own, no larger than it, that nothing else holds."""
    if depth == 0:
        return False
    match node:
        case syntax.BinaryOperation() | syntax.Comparison():
            return script.role(node) in (Role.TENSOR, Role.ARRAY)
        case syntax.Call(func=syntax.Attribute(value=inner, attr=syntax.Name(value=method))) if (
            script.name(node.func) is None
        ):
            if method in _COPIES or method in _NARROWS - {"squeeze"} | _ELEMENTWISE:
                return script.role(inner) in (Role.TENSOR, Role.ARRAY, Role.BATCH)
            return method in _SAME_SIZE and _is_own(script, grown, inner, depth)
        case syntax.Call():
            name = script.name(node.func) or ""
            return name.startswith("torch.") and name.rpartition(".")[2] in _NARROWS | _ELEMENTWISE
        case syntax.Attribute(value=inner, attr=syntax.Name(value="data")):
            return _is_own(script, grown, inner, depth)
        case syntax.Name():
            values = all_written(script.names.reaching(node))
            own = (_is_own(script, grown, value, depth - 1) for value in values)
            return bool(values) and all(own) and not _is_changed(script, grown, node)
    return False


def _is_changed(script: Script, grown: Growth, name: syntax.Name) -> bool:
    """Whether something may change the tensor of a variable in place once it is kept."""
    try:
        check_alias(script, grown.statement, name)
    except CannotEdit:
        return True
    return is_written(script, name)
