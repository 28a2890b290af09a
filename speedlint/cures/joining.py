"""How what grew in each step is gathered in a list, and joined once."""

from __future__ import annotations

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.cures import spelling
from speedlint.cures.filling import check_alias, loop_outside
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Edit
from speedlint.shapes.data.growing import COPIES, ELEMENTWISE, NARROWS, SAME_SIZE, Growth, How
from speedlint.shapes.sync.accumulators import first_binding, is_empty_list
from speedlint.shapes.sync.owned import is_own
from speedlint.solve.inplace import is_written
from speedlint.solve.loops import Loop
from speedlint.solve.names import Binding, Kind
from speedlint.solve.unpacking import all_written, written
from speedlint.torch.methods import CASTS, MOVES
from speedlint.torch.words import Role

_DEPTH = 4

_MOVES = MOVES | CASTS

_FROM_LISTS = frozenset(
    ["numpy.array", "numpy.asarray"] + [f"torch.{name}" for name in ("tensor", "Tensor", "FloatTensor", "LongTensor")]
)

_BY_SIZE = frozenset(["numpy.empty", "numpy.zeros", "torch.empty", "torch.zeros", "torch.Tensor"])


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
        func, imports = spelling.spell(script, "numpy.concatenate")
    given = "" if grown.how is How.APPENDED else "".join(f", {script.text(arg)}" for arg in others)
    return f"{func}({script.text(grown.store)}{given})", imports


def _kept(script: Script, grown: Growth, new: syntax.BaseExpression) -> str:
    """What the list keeps: the new part itself if it is one of its own, else a copy of it."""
    text = script.text(new)
    numpy = spelling.spell(script, "numpy")[0]
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
    if script.role(node) is Role.TENSOR:
        return is_own(script, node)
    match node:
        case syntax.BinaryOperation() | syntax.Comparison():
            return script.role(node) is Role.ARRAY
        case syntax.Call(func=syntax.Attribute(value=inner, attr=syntax.Name(value=method))) if (
            script.name(node.func) is None
        ):
            if method in COPIES or method in NARROWS - {"squeeze"} | ELEMENTWISE:
                return script.role(inner) in (Role.TENSOR, Role.ARRAY, Role.BATCH)
            return method in SAME_SIZE and _is_own(script, grown, inner, depth)
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
