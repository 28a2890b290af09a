"""Loops that go over the rows of a batch one by one, where one operation on all of them would do."""

from __future__ import annotations

from typing import NamedTuple

from speedlint import edits
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Edit
from speedlint.semantics import passes
from speedlint.semantics.dtypes import is_mask
from speedlint.semantics.evaluation import is_network
from speedlint.semantics.model import rowwise
from speedlint.semantics.names import Kind
from speedlint.semantics.script import Script
from speedlint.semantics.sync.accumulators import is_empty_list, is_target
from speedlint.semantics.terms import FREQUENT, Role

_TOGETHER = 32
"""Rows that go through the network at a time: enough to fill it, and few enough to fit where a batch of training does."""
_ROWS = (Role.TENSOR, Role.ARRAY)


class RowLoop(NamedTuple):
    """A loop over rows.

    Attributes:
        node: the loop.
        rows: what it goes over: the tensor or array whose rows are taken.
        network: the call of a network in it, which takes what a turn has made; None where there is none.
        is_sized: whether its turns are counted by ``size(0)`` or ``shape[0]``, which lists of tensors do not have.
    """

    script: Script
    node: syntax.For
    rows: syntax.BaseExpression
    network: syntax.Call | None
    is_sized: bool


def row_loop(script: Script, loop: syntax.For) -> RowLoop | None:
    """The loop as one over the rows of a tensor or array; None where it is over anything else."""
    if script.frequency(loop) not in FREQUENT or script.loops.iterates_loader(loop):
        return None
    rows = _counted(script, loop) if isinstance(loop.iter, syntax.Call) else _walked(script, loop)
    is_sized = _is_sized(script, loop)
    if rows is None or (script.value(rows).assumed and not is_sized):
        return None  # a list of whole batches has a length, and entries, as well
    calls = [call for call in script.source.inside(loop.body, syntax.Call) if is_network(script, call)]
    if any(passes.hangs_on_turn_before(script, loop, call) for call in calls):
        return None
    fed = next((call for call in calls if passes.feeding(script, loop, [call])), None)
    return RowLoop(script, loop, rows, fed, is_sized)


def within(script: Script, function: syntax.FunctionDef) -> list[RowLoop]:
    """The loops of a function itself that run a network once for each row."""
    found = (
        row_loop(script, loop)
        for loop in script.source.inside(function.body, syntax.For)
        if script.function(loop) is function
    )
    return [each for each in found if each is not None and each.network is not None]


def row_gather(script: Script, call: syntax.Call) -> tuple[syntax.BaseExpression, syntax.BaseExpression] | None:
    """``x`` and ``rows`` of ``torch.stack([x[i] for i in rows])``, both on the device: ``x[rows]``, taken row by row.

    Where ``rows`` has one dimension each index is read on the host: torch turns a single integer into a position.
    """
    if not script.is_call_to(call, "torch.stack") or not call.args:
        return None
    dim = script.argument(call, "dim", 1)
    match call.args[0].value:
        case syntax.ListComp(
            elt=syntax.Subscript(
                value=taken, slice=[syntax.SubscriptElement(slice=syntax.Index(value=syntax.Name(value=index)))]
            ),
            for_in=syntax.CompFor(target=syntax.Name(value=target), iter=rows, ifs=[], inner_for_in=None),
        ) if index == target and (dim is None or script.text(dim) == "0"):
            both = all(script.is_device_tensor(each) and not script.value(each).assumed for each in (taken, rows))
            return (taken, rows) if both and not _may_be_keys(script, taken, rows) else None
    return None


def _may_be_keys(script: Script, taken: syntax.BaseExpression, rows: syntax.BaseExpression) -> bool:
    """Whether rows are chosen by a mask, or may be the keys of a dict: what is indexed itself, or sorted."""
    of_taken = [node for _, node in script.roles.origins(taken)]
    for place, node in script.roles.origins(rows):
        if any(node is each for each in of_taken) or place.is_call_to(node, "sorted"):
            return True
        if isinstance(node, syntax.BaseExpression) and is_mask(place, node):
            return True
    return False


def together(script: Script, found: RowLoop) -> tuple[Edit, ...]:
    """The edits that run the network on 32 rows at a time, where each row is mapped by itself and the outputs are joined.
    Raises CannotEdit."""
    call = found.network
    if call is None or len(call.args) != 1 or call.args[0].star or call.args[0].keyword is not None:
        raise CannotEdit("what the network is given is not seen")
    _check_filled(script, found, call)
    row = _row(script, found, call.args[0].value)
    if row is None:
        raise CannotEdit("a turn does more with a row than to give it to the network")
    if not _is_tensor(script, found, call) or not isinstance(found.rows, (syntax.Name, syntax.Attribute)):
        raise CannotEdit(f"it is not certain that `{script.text(found.rows)}` is a tensor")
    is_evaluated = rowwise.is_switched_to_evaluation(script, call.func, found.node)
    if not rowwise.maps_rows(script, call.func, is_evaluated=is_evaluated):
        raise CannotEdit("it is not certain that the network maps each row by itself")
    if _is_counter_kept(script, found):
        raise CannotEdit("the rows are counted by what is not seen to be their number, or the counter is read again")
    part = _free_name(script, found)
    return (
        edits.replace(script.source, found.node.target, part),
        edits.replace(script.source, found.node.iter, f"{script.text(found.rows)}.split({_TOGETHER})"),
        edits.replace(script.source, call.args[0].value, f"{part}{row}"),
    )


def _is_tensor(script: Script, found: RowLoop, call: syntax.Call) -> bool:
    """Whether the rows are surely a tensor's: of what a loader gives that is what has a ``size(0)``, or rows with an
    ``unsqueeze``."""
    role, counted = script.role(found.rows), script.text(found.node.iter)
    is_asked = ".size(" in counted or (".shape[" in counted and ".unsqueeze(" in script.text(call))
    return role is Role.TENSOR or (role is Role.BATCH and is_asked)


def _check_filled(script: Script, found: RowLoop, call: syntax.Call) -> None:
    """Raises CannotEdit where the loop does more than to append the outputs to a list that is joined along the rows."""
    match found.node:
        case syntax.For(
            body=syntax.IndentedBlock(
                body=[
                    syntax.SimpleStatementLine(
                        body=[
                            syntax.Expr(
                                value=syntax.Call(
                                    func=syntax.Attribute(value=syntax.Name() as base, attr=syntax.Name("append")),
                                    args=[syntax.Arg(value=appended)],
                                )
                            )
                        ]
                    )
                ]
            ),
            orelse=None,
        ) if appended is call:
            starts = script.names.reaching(base)
        case _:
            raise CannotEdit("the loop does more than to append what the network gives")
    if len(starts) != 1 or not is_empty_list(script, starts[0]):
        raise CannotEdit(f"`{base.value}` is not only a list that starts empty in this function")
    for use in script.names.uses(base):
        if use is base or is_target(script.source, use) or starts[0] not in script.names.reaching(use):
            continue
        joined = script.source.parents[script.source.parents[use]]
        if (
            not isinstance(joined, syntax.Call)
            or not script.is_call_to(joined, "torch.cat", "torch.concat")
            or joined.args[0].value is not use
            or any(script.text(arg.value) != "0" for arg in joined.args[1:])
            or script.function(use) is not script.function(base)
        ):
            raise CannotEdit(f"`{base.value}` is not only joined along the rows")


def _row(script: Script, found: RowLoop, given: syntax.BaseExpression) -> str | None:
    """What is done to a row that the network is given as a batch of one, such as ``.to(device)``; None where it is given
    anything else than a row."""
    target = found.node.target
    match given:
        case syntax.Call(func=syntax.Attribute(value=inner, attr=syntax.Name("to" | "cuda" | "float" as method))):
            moved = _row(script, found, inner)
            names = {each.value for arg in given.args for each in script.source.inside(arg, syntax.Name)}
            if script.text(target) in names:
                return None
            args = ", ".join(script.text(arg) for arg in given.args)
            return None if moved is None else f"{moved}.{method}({args})"
        case (
            syntax.Call(
                func=syntax.Attribute(value=inner, attr=syntax.Name("unsqueeze")),
                args=[syntax.Arg(value=syntax.Integer("0"))],
            )
            | syntax.Subscript(value=inner, slice=[syntax.SubscriptElement(slice=syntax.Index(value=syntax.Name("None")))])
        ):
            if isinstance(target, syntax.Name) and isinstance(inner, syntax.Name):
                return "" if inner.value == target.value and not isinstance(found.node.iter, syntax.Call) else None
            return "" if _takes(script, found, inner, is_batch=False) else None
        case syntax.Subscript():
            return "" if _takes(script, found, given, is_batch=True) else None
    return None


def _takes(script: Script, found: RowLoop, taken: syntax.BaseExpression, *, is_batch: bool) -> bool:
    """Whether an expression is ``x[i]``, or ``x[i : i + 1]`` where that is a batch of its own."""
    if not isinstance(taken, syntax.Subscript) or len(taken.slice) != 1 or not isinstance(found.node.target, syntax.Name):
        return False
    index = taken.slice[0].slice
    is_row = script.text(taken.value) == script.text(found.rows) and _indexes_row(script, index, found.node.target.value)
    return is_row and isinstance(index, syntax.Slice) is is_batch and isinstance(found.node.iter, syntax.Call)


def _is_counter_kept(script: Script, found: RowLoop) -> bool:
    """Whether the loop's variable is read when the loop is over, or its range is not written out as all rows."""
    counted, target = found.node.iter, found.node.target
    if isinstance(counted, syntax.Call) and (len(counted.args) != 1 or isinstance(counted.args[0].value, syntax.Name)):
        return True
    assert isinstance(target, syntax.Name)
    own = [one for one in script.names.scope(target).bindings.get(target.value, []) if one.node is target]
    return any(
        not script.source.contains(found.node, use)
        and not is_target(script.source, use)
        and any(one in own for one in script.names.reaching(use))
        for use in script.names.uses(target)
    )


def _free_name(script: Script, found: RowLoop) -> str:
    """A name for some rows that nothing in the scope of the loop is called."""
    scope = script.names.scope(found.node.body)
    used = {each.value for each in script.source.of(syntax.Name)} | set(scope.bindings)
    name = next((each for each in ("part", "some_rows") if each not in used), None)
    if name is None:
        raise CannotEdit("no name is free for several rows")
    return name


def _walked(script: Script, loop: syntax.For) -> syntax.BaseExpression | None:
    """``x`` of ``for row in x``."""
    return loop.iter if script.role(loop.iter) in _ROWS else None


def _counted(script: Script, loop: syntax.For) -> syntax.BaseExpression | None:
    """``x`` of ``for i in range(len(x))`` whose body takes ``x[i]``."""
    if not script.is_call_to(loop.iter, "range") or not isinstance(loop.target, syntax.Name):
        return None
    assert isinstance(loop.iter, syntax.Call)
    if not loop.iter.args or len(loop.iter.args) > 2:
        return None
    counted = _sized(script, loop.iter.args[-1].value)
    roles = (*_ROWS, Role.BATCH) if _is_sized(script, loop) else _ROWS
    for taken in script.source.inside(loop.body, syntax.Subscript):
        is_row = _indexes_row(script, taken.slice[0].slice, loop.target.value)
        if is_row and counted is not None and script.text(taken.value) == counted and script.role(taken.value) in roles:
            return taken.value
    return None


def _is_sized(script: Script, loop: syntax.For) -> bool:
    """Whether the turns are counted by what lists do not have."""
    return any(word in script.text(loop.iter) for word in (".size(", ".shape["))


def _indexes_row(script: Script, index: syntax.BaseSlice, counter: str) -> bool:
    """Whether an index takes the row of a counter: ``i``, or ``i : i + 1``."""
    match index:
        case syntax.Index(value=value):
            return script.text(value) == counter
        case syntax.Slice(lower=syntax.BaseExpression() as lower, upper=syntax.BaseExpression() as upper, step=None):
            return script.text(lower) == counter and "".join(script.text(upper).split()) == f"{counter}+1"
    return False


def _sized(script: Script, count: syntax.BaseExpression) -> str | None:
    """The text of ``x`` in ``len(x)``, ``x.size(0)`` and ``x.shape[0]``, or in what a name is bound to."""
    match count:
        case syntax.Call(func=syntax.Name("len"), args=[syntax.Arg(value=sized)]):
            return script.text(sized)
        case syntax.Call(
            func=syntax.Attribute(value=sized, attr=syntax.Name("size")), args=[syntax.Arg(value=syntax.Integer("0"))]
        ):
            return script.text(sized)
        case syntax.Subscript(
            value=syntax.Attribute(value=sized, attr=syntax.Name("shape")),
            slice=[syntax.SubscriptElement(slice=syntax.Index(value=syntax.Integer("0")))],
        ):
            return script.text(sized)
        case syntax.Name():
            bindings = script.names.reaching(count)
            if len(bindings) == 1 and bindings[0].kind is Kind.ASSIGN and bindings[0].value is not None:
                return (
                    None
                    if bindings[0].path or isinstance(bindings[0].value, syntax.Name)
                    else _sized(script, bindings[0].value)
                )
    return None
