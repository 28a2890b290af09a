"""How a call is done every few epochs or every thousand steps."""

from __future__ import annotations

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Edit
from speedlint.shapes.schedule.helpers import does_more
from speedlint.shapes.schedule.periods import EPOCHS, STEPS, Scheduled, Validation
from speedlint.shapes.sync.displays import display_around
from speedlint.source import is_target

_SIZED = ("torchvision.datasets.", "torch.utils.data.TensorDataset", "torch.utils.data.Subset")


def every_few_epochs(script: Script, one: Scheduled) -> tuple[Edit, ...]:
    """Puts a call under ``if epoch % 10 == 0``, the last epoch included. Raises CannotEdit."""
    statement = alone(script, one.call, evaluates=isinstance(one, Validation))
    match one.loop:
        case syntax.For(target=syntax.Name(value=epoch), iter=syntax.Call(args=args) as counted) if (
            script.is_call_to(counted, "range") and 0 < len(args) < 3 and not any(arg.star or arg.keyword for arg in args)
        ):
            stop = args[-1].value
        case _:
            raise CannotEdit("no counter of the epochs is at hand")
    names = {epoch, *(name.value for name in script.source.inside(stop, syntax.Name))}
    if any(True for _ in script.source.inside(stop, syntax.Call)) or _is_set(script, one.loop, names):
        raise CannotEdit("the counter of the epochs, or where it ends, may change within the loop")
    return edits.wrap(
        script.source, statement, statement, f"if {epoch} % {EPOCHS} == 0 or {epoch} + 1 == {script.text(stop)}:"
    )


def every_thousand_steps(script: Script, one: Scheduled) -> tuple[Edit, ...]:
    """Puts a call under ``if step % 1000 == 0``, the last step included. Raises CannotEdit."""
    statement, loop = alone(script, one.call, evaluates=isinstance(one, Validation)), one.loop
    if any(True for kind in (syntax.Break, syntax.Return) for _ in script.source.inside(loop.body, kind)):
        raise CannotEdit("the loop may end before its last step")
    match loop:
        case syntax.For(
            target=syntax.Name(value=step), iter=syntax.Call(args=[syntax.Arg(value=stop, star="", keyword=None)])
        ) if script.is_call_to(loop.iter, "range") and not any(True for _ in script.source.inside(stop, syntax.Call)):
            names, last = {step}, script.text(stop)
        case syntax.For(
            target=syntax.Tuple(elements=[syntax.Element(value=syntax.Name(value=step)), *_]),
            iter=syntax.Call(args=[syntax.Arg(value=syntax.Name() | syntax.Attribute() as stop)]),
        ) if script.is_call_to(loop.iter, "enumerate") and _has_length(script, stop):
            names, last = {step}, f"len({script.text(stop)})"
        case _:
            raise CannotEdit("no counter of the steps, and of how many there are, is at hand")
    if _is_set(script, loop, names | {name.value for name in script.source.inside(stop, syntax.Name)}):
        raise CannotEdit("the counter of the steps, or where it ends, may change within the loop")
    return edits.wrap(script.source, statement, statement, f"if {step} % {STEPS} == 0 or {step} + 1 == {last}:")


def _has_length(script: Script, loader: syntax.BaseExpression) -> bool:
    """Whether ``len(loader)`` is a number of batches: all that it may be reads a dataset that has a length."""
    made = [(place, node) for place, node in script.roles.origins(loader)]
    return bool(made) and all(
        isinstance(node, syntax.Call)
        and place.is_call_to(node, "torch.utils.data.DataLoader")
        and (dataset := place.argument(node, "dataset", 0)) is not None
        and _is_sized(place, dataset)
        for place, node in made
    )


def _is_sized(script: Script, dataset: syntax.BaseExpression) -> bool:
    """Whether a dataset is one of torchvision's or torch's own in memory, or of a class with a ``__len__``."""
    definition = script.value(dataset).definition
    if definition is not None:
        return definition.script.roles.calls.method(definition, "__len__") is not None
    made = [
        (place.name(node.func) or "") if isinstance(node, syntax.Call) else ""
        for place, node in script.roles.origins(dataset)
    ]
    return bool(made) and all(name.startswith(_SIZED) for name in made)


def alone(script: Script, call: syntax.Call, *, evaluates: bool = False) -> syntax.Call | syntax.Assign:
    """The statement of a call that is there for its effect alone, or the display around it; with ``evaluates``, that of one
    that only evaluates. Raises CannotEdit."""
    statement = call if isinstance(script.source.parents[call], syntax.Expr) else display_around(script, call)
    if statement is None:
        raise CannotEdit("what it returns is read")
    if any(True for _ in script.source.inside(statement, syntax.NamedExpr)):
        raise CannotEdit("its statement gives a name a value")
    for other in script.source.inside(statement, syntax.Call):
        is_display = other is statement and other is not call
        is_known = script.name(other.func) is not None or (other is call and script.callee(call) is None)
        more = None if is_display or is_known else does_more(script, other, evaluates=evaluates and other is call)
        if more is not None:
            raise CannotEdit(f"what else `{more}` does is not followed")
    return statement


def _is_set(script: Script, loop: syntax.For, names: set[str]) -> bool:
    body = loop.body
    targets = (name for name in script.source.inside(body, syntax.Name) if is_target(script.source, name))
    return any(name.value in names for name in targets)
