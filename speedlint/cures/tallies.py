"""Objects that add up what they are given, ``metric.add(loss, hits, n)``, and how they add up tensors without reading them.

The class is the textbook's: a list of sums that starts at ``0.0``, a method that adds ``float(value)`` to each, and reads by
position. Adding a tensor as it is makes a new one, so that nothing that happens to what was added changes the sum.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.cures import spelling
from speedlint.cures.callers import check_named_only_by
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Edit
from speedlint.shapes.sync.accumulators import is_written_zero
from speedlint.solve import reach
from speedlint.solve.dtypes import may_be_half
from speedlint.solve.terms import Definition
from speedlint.torch.words import FREQUENT, Role


class Tally(NamedTuple):
    """A class of such objects.

    Attributes:
        owner: the class.
        sums: the attribute that holds the sums.
        read: what adds one value: ``float(value)``, or what keeps a tensor a tensor.
        value: the value.
    """

    script: Script
    owner: syntax.ClassDef
    sums: str
    read: syntax.BaseExpression
    value: syntax.Name


def adding(script: Script, method: syntax.Node | None) -> Tally | None:
    """The class whose method adds each of its arguments to a sum: ``[a + float(b) for a, b in zip(self.data, args)]``."""
    owner = script.names.owner(method) if isinstance(method, syntax.FunctionDef) else None
    if owner is None or not isinstance(method, syntax.FunctionDef) or method.decorators:
        return None
    match method.params:
        case syntax.Parameters(params=[syntax.Param(name=me)], star_arg=syntax.Param(name=given), kwonly_params=[]):
            pass
        case _:
            return None
    match _only_statement(method):
        case syntax.Assign(
            targets=[syntax.AssignTarget(target=syntax.Attribute(value=syntax.Name(held), attr=sums))],
            value=syntax.ListComp(
                elt=syntax.BinaryOperation(left=syntax.Name(total), operator=syntax.Add(), right=read),
                for_in=syntax.CompFor(
                    target=syntax.Tuple(
                        elements=[syntax.Element(value=syntax.Name(one)), syntax.Element(value=syntax.Name(other))]
                    ),
                    iter=syntax.Call(
                        func=syntax.Name("zip"),
                        args=[
                            syntax.Arg(value=syntax.Attribute(value=syntax.Name(holder), attr=syntax.Name(added))),
                            syntax.Arg(value=syntax.Name(arguments)),
                        ],
                    ),
                    ifs=[],
                    inner_for_in=None,
                ),
            ),
        ) if held == holder == me.value and added == sums.value and arguments == given.value and total == one:
            value = _value(script, read)
            return Tally(script, owner, sums.value, read, value) if value is not None and value.value == other else None
    return None


def _only_statement(method: syntax.FunctionDef) -> syntax.Node | None:
    """The one statement of a method, its documentation left out."""
    lines = list(method.body.body)
    if lines and isinstance(lines[0], syntax.SimpleStatementLine) and isinstance(lines[0].body[0], syntax.Expr):
        lines = lines[1:]
    match lines:
        case [syntax.SimpleStatementLine(body=[statement])]:
            return statement
    return None


def _value(script: Script, read: syntax.BaseExpression) -> syntax.Name | None:
    """The value that is added as a number, or as a tensor where it is one."""
    match read:
        case syntax.Call(func=syntax.Name("float"), args=[syntax.Arg(value=syntax.Name() as value, keyword=None, star="")]):
            return value if script.name(read.func) == "float" else None
        case syntax.IfExp(test=syntax.Call(args=[syntax.Arg(value=syntax.Name() as value)]) as test, body=body):
            is_kept = script.text(body) in (f"{value.value}.detach()", f"{value.value}.detach().float()")
            return value if is_kept and script.is_call_to(test, "torch.is_tensor") else None
    return None


def kept(tally: Tally) -> tuple[Edit, ...]:
    """The edits by which the sums of such objects stay on the device until they are read, none where they do already.

    Raises CannotEdit where not every object is seen from its making on, or one is read in every step.
    """
    script, found = tally.script, list(_reads_of_sums(tally))
    reading = {function.name.value for read in found if (function := script.function(read)) is not None}
    if tally.owner.bases or tally.owner.decorators:
        raise CannotEdit(f"`{tally.owner.name.value}` is more than a class of its own")
    for other, made in _objects(tally):
        flow = reach.reached(other, made)
        if flow.is_lost:
            raise CannotEdit(f"where the `{tally.owner.name.value}` of line {other.source.line(made)} goes is not seen")
        for use in flow.uses:
            _check_use(tally, reading, use.script, use.node)
    wraps = [
        edits.replace(script.source, read, f"{spelling.builtin(script, 'float', read)}({script.text(read)})")
        for read in found
        if not script.is_call_to(script.source.parents[script.source.parents[read]], "float")
    ]
    if isinstance(tally.read, syntax.IfExp):
        return tuple(wraps)
    name, text = tally.value.value, script.text(tally.read)
    torch, imports = spelling.spell(script, "torch")
    tensor = f"{name}.detach().float()" if may_be_half(script) else f"{name}.detach()"
    added = edits.replace(script.source, tally.read, f"({tensor} if {torch}.is_tensor({name}) else {text})")
    return (*imports, added, *wraps)


def _reads_of_sums(tally: Tally) -> Iterator[syntax.Subscript]:
    """Where methods give a sum away. Raises CannotEdit where they do anything else with the sums but start them."""
    script, parents = tally.script, tally.script.source.parents
    for use in script.source.inside(tally.owner, syntax.Attribute):
        if use.attr.value != tally.sums:
            continue
        parent = parents[use]
        above = parents[parent]
        match parent:
            case syntax.AssignTarget() if _starts(script, tally, above):
                continue
            case syntax.Arg() if script.is_call_to(above, "len") or script.source.contains(
                parents[parents[tally.read]], parent
            ):
                continue
            case syntax.Subscript(slice=[syntax.SubscriptElement(slice=syntax.Index())]) if parent.value is use:
                is_given = isinstance(above, syntax.Return) or (
                    script.is_call_to(parents[above], "float") and isinstance(parents[parents[above]], syntax.Return)
                )
                if is_given:
                    yield parent
                    continue
        raise CannotEdit(f"`{script.text(use)}` is used on line {script.source.line(use)} in a way that is not followed")


def _starts(script: Script, tally: Tally, statement: syntax.Node) -> bool:
    """Whether a statement gives the list of sums: zeros, or the old ones with something added."""
    match statement:
        case syntax.Assign(
            targets=[_],
            value=syntax.BinaryOperation(
                left=syntax.List(elements=[syntax.Element(value=syntax.Float() as zero)]), operator=syntax.Multiply()
            ),
        ):
            return is_written_zero(script, zero)
        case syntax.Assign(targets=[_], value=syntax.ListComp(elt=syntax.Float() as zero)):
            return is_written_zero(script, zero)
        case syntax.Assign(targets=[_]):
            return script.source.contains(statement, tally.read)
    return False


def _objects(tally: Tally) -> list[tuple[Script, syntax.Call]]:
    """Where objects of the class are made. Raises CannotEdit where it may be used in another way."""
    script, owner = tally.script, tally.owner
    init = script.roles.calls.method(Definition(script, owner), "__init__")
    if init is None or not isinstance(init.node, syntax.FunctionDef) or script.names.scope(owner).parent is not None:
        raise CannotEdit(f"where `{owner.name.value}` is made is not seen")
    sites = script.call_sites(init.node)
    check_named_only_by(script, owner, sites)
    return sites


def _check_use(tally: Tally, reading: set[str], script: Script, node: syntax.Node) -> None:
    """Raises CannotEdit where a use of an object is neither followed, nor a call of a method, nor a read of one sum; and
    where it is a read in every step."""
    parent = script.source.parents[node]
    above = script.source.parents[parent]
    line = script.source.line(node)
    match parent:
        case syntax.Attribute(value=value, attr=attr) if value is node and isinstance(above, syntax.Call):
            names = {each.name.value for each in tally.owner.body.body if isinstance(each, syntax.FunctionDef)}
            if above.func is parent and attr.value in names:
                if attr.value in reading and script.frequency(above) in FREQUENT:
                    raise CannotEdit(f"`{script.text(above)}` reads it in every step, on line {line}")
                return
        case syntax.Subscript(value=value, slice=[syntax.SubscriptElement(slice=syntax.Index(value=index))]) if (
            value is node
        ):
            if script.frequency(parent) in FREQUENT:
                raise CannotEdit(f"`{script.text(parent)}` is read in every step, on line {line}")
            if isinstance(index, syntax.Integer | syntax.UnaryOperation) or script.role(index) is Role.NUMBER:
                return
        case syntax.Element() if isinstance(above, syntax.Tuple | syntax.List):
            return
        case syntax.Assign() | syntax.AnnAssign() | syntax.NamedExpr() | syntax.Return() | syntax.Expr():
            return
        case syntax.Arg() if isinstance(above, syntax.Call):
            callee = script.callee(above)
            if callee is not None and reach.parameter_of(script, callee, above, parent) is not None:
                return
    raise CannotEdit(f"what `{script.text(node)}` is for on line {line} is not followed")
