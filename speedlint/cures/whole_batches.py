"""How one operation on a batch takes the place of a loop over its rows."""

from __future__ import annotations

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Edit
from speedlint.shapes.model import rowwise, surgery
from speedlint.shapes.model.evaluating import is_evaluating
from speedlint.shapes.sync.accumulators import is_empty_list
from speedlint.shapes.sync.batchwise import RowLoop, indexes_row
from speedlint.source import is_target
from speedlint.torch.words import Role

_TOGETHER = 32
"""Rows that go through the network at a time: enough to fill it, and few enough to fit where a batch of training does."""


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
    is_evaluated = is_evaluating(script, call.func, found.node)
    if not rowwise.maps_rows(script, call.func, is_evaluated=is_evaluated):
        raise CannotEdit("it is not certain that the network maps each row by itself")
    if (change := next(surgery.changes(script), None)) is not None:
        raise CannotEdit(f"{change.place(script)} may change the network after it is made")
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
    is_row = script.text(taken.value) == script.text(found.rows) and indexes_row(script, index, found.node.target.value)
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
