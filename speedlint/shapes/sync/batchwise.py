"""Loops that go over the rows of a batch one by one, where one operation on all of them would do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes.evaluation import is_network
from speedlint.shapes.sync import conditions, reads
from speedlint.solve import passes
from speedlint.solve.dtypes import is_mask
from speedlint.solve.names import Kind
from speedlint.solve.unpacking import gone_over
from speedlint.torch.methods import CASTS, DETACHES, MOVES, WHOLES
from speedlint.torch.words import FREQUENT, Role

_ROWS = (Role.TENSOR, Role.ARRAY)
_FEW = 8
"""Rows up to which taking them one by one is a handful of launches."""


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
    if any(passes.hangs_on_turn_before(script, loop, call) or _is_one_of_several(call) for call in calls):
        return None
    fed = next((call for call in calls if passes.feeding(script, loop, [call])), None)
    return RowLoop(script, loop, rows, fed, is_sized)


def _is_one_of_several(call: syntax.Call) -> bool:
    """Whether a call runs the network of its turn: ``self.embeddings[i](x[:, i])``."""
    match call.func:
        case syntax.Subscript(slice=[syntax.SubscriptElement(slice=syntax.Index(value=index))]):
            return not isinstance(index, syntax.Integer)
    return False


def within(script: Script, function: syntax.FunctionDef) -> list[RowLoop]:
    """The loops of a function itself that run a network once for each row."""
    found = (
        row_loop(script, loop)
        for loop in script.source.inside(function.body, syntax.For)
        if script.function(loop) is function
    )
    return [each for each in found if each is not None and each.network is not None]


class ReadApart(NamedTuple):
    """A loop that only reads the rows of a tensor on the device, each by itself.

    Attributes:
        rows: the tensor, as the loop goes over it; those beside it, of ``zip``, that are only read as well.
        first: the first read of a row: the call, the comparison, or what is indexed by it.
        beside: what else a row is compared with, and is not known to lie on the host; None for nothing.
    """

    rows: tuple[syntax.BaseExpression, ...]
    first: syntax.BaseExpression
    beside: syntax.BaseExpression | None


def read_apart(script: Script, loop: syntax.For) -> ReadApart | None:
    """The loop as one that reads each row of a tensor on the device where it needs it at once, and does nothing else with
    the rows: the whole tensor could be copied before."""
    if script.frequency(loop) not in FREQUENT or script.loops.iterates_loader(loop):
        return None
    read: dict[syntax.BaseExpression, syntax.BaseExpression] = {}
    bound = {target.value: rows for target, rows in gone_over(script, loop) if isinstance(target, syntax.Name)}
    compared: list[syntax.Comparison] = []
    for target, rows in gone_over(script, loop):
        if isinstance(target, syntax.Name) and script.is_shown_device_tensor(rows):
            uses = _uses(script, target, loop)
            awaited = any(_asked_in(script, use) is not None for use in uses)
            single = _is_flat(script, rows)
            found = [
                _asked_in(script, use)
                or _read_of(script, use, awaited=awaited)
                or (_indexed_by(script, use) if single else None)
                for use in uses
            ]
            in_each = [each for each in found if each is not None and not conditions.depends_on_data(script, each)]
            if in_each and None not in found:
                read[rows] = in_each[0]
                compared += [each for each in found if isinstance(each, syntax.Comparison)]
    sides = [side for each in compared for side in (each.left, *(target.comparator for target in each.comparisons))]
    others = [side for side in sides if not (isinstance(side, syntax.Name) and bound.get(side.value) in read)]
    if not read or any(script.is_device_tensor(side) for side in others):
        return None
    beside = next((side for side in others if script.constant(side) is None), None)
    return ReadApart(tuple(read), next(iter(read.values())), beside)


def _uses(script: Script, target: syntax.Name, loop: syntax.For) -> list[syntax.Name]:
    """Where the body of a loop takes what its turn is bound to."""
    named = (name for name in script.source.inside(loop.body, syntax.Name) if name.value == target.value)
    read = (name for name in named if not isinstance(script.source.parents[name], syntax.AssignTarget))
    return [name for name in read if any(each.node is target for each in script.names.reaching(name))]


def _asked_in(script: Script, row: syntax.Name) -> syntax.Comparison | None:
    """The comparison of a row that is a condition: ``if row == 0:``."""
    up: syntax.Node = script.source.parents[row]
    if isinstance(up, syntax.ComparisonTarget):
        up = script.source.parents[up]
    holder = script.source.parents[up]
    is_test = isinstance(holder, syntax.If | syntax.IfExp) and holder.test is up
    return up if is_test and isinstance(up, syntax.Comparison) else None


def _read_of(script: Script, row: syntax.Name, *, awaited: bool) -> syntax.BaseExpression | None:
    """The call by which the host reads a row as it is, and needs at once, ``row.tolist()``, ``int(row)``; one that could be
    read later too where a condition on the row is ``awaited``."""
    for up in script.source.ancestors(row):
        if isinstance(up, syntax.Call):
            read = reads.scalar(script, up) or reads.copied(script, up)
            if read is not None and not any(inner.args for inner in script.source.inside(read, syntax.Call)):
                is_told = not awaited and (reads.avoidable_scalar(script, up) or reads.avoidable_copy(script, up))
                return None if is_told else up
        elif not isinstance(up, syntax.Attribute | syntax.Arg):
            return None
    return None


def _is_flat(script: Script, rows: syntax.BaseExpression) -> bool:
    """Whether a tensor is seen to have one dimension, so that a row of it is a single number."""
    match rows:
        case syntax.Name():
            bound = [binding.value for binding in script.names.reaching(rows)]
            return len(bound) == 1 and bound[0] is not None and _is_flat(script, bound[0])
        case syntax.Call(func=syntax.Attribute(attr=syntax.Name(value="flatten")), args=[]):
            return True
        case syntax.Call(func=syntax.Attribute(attr=syntax.Name(value="view" | "reshape")), args=[syntax.Arg(value=size)]):
            known = script.constant(size)
            return known is not None and known.value == -1
        case syntax.Call(func=syntax.Attribute(value=inner, attr=syntax.Name(value=method)), args=[]):
            return method in DETACHES | CASTS | MOVES and _is_flat(script, inner)
    return False


def _indexed_by(script: Script, row: syntax.Name) -> syntax.BaseExpression | None:
    """What is indexed by a row that is a single number, ``counts[row.long()]``: torch reads it on the host."""
    whole: syntax.BaseExpression = row
    match script.source.parents[row]:
        case syntax.Attribute(value=value, attr=syntax.Name(value=method)) as cast if value is row and method in WHOLES:
            called = script.source.parents[cast]
            if not isinstance(called, syntax.Call) or called.args:
                return None
            whole = called
    index = script.source.parents[whole]
    if not isinstance(index, syntax.Index):
        return None
    taken = script.source.enclosing(index, syntax.Subscript)
    return taken if isinstance(taken, syntax.Subscript) and script.role(taken.value) is Role.TENSOR else None


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
            both = all(script.is_shown_device_tensor(each) for each in (taken, rows))
            return (taken, rows) if both and not _may_be_keys(script, taken, rows) else None
    return None


def row_arithmetic(script: Script, call: syntax.Call) -> syntax.BaseExpression | None:
    """The tensor on the device whose rows go through the same arithmetic one by one, to be put together again:
    ``torch.cat(tuple(reward + 0.9 * value for reward, value in zip(rewards, values)))``."""
    if not script.is_call_to(call, "torch.stack", "torch.cat") or not call.args:
        return None
    given = call.args[0].value
    if isinstance(given, syntax.Call) and script.name(given.func) in ("tuple", "list") and len(given.args) == 1:
        given = given.args[0].value
    match given:
        case (
            syntax.ListComp(elt=each, for_in=syntax.CompFor(target=target, iter=iterated, ifs=[], inner_for_in=None))
            | syntax.GeneratorExp(elt=each, for_in=syntax.CompFor(target=target, iter=iterated, ifs=[], inner_for_in=None))
        ) if _is_arithmetic(script, each):
            for name, rows in _rows_of(script, target, iterated):
                is_used = any(used.value == name for used in script.source.inside(each, syntax.Name))
                if is_used and script.role(rows) is Role.TENSOR and script.is_shown_device_tensor(rows):
                    return rows
    return None


def _is_arithmetic(script: Script, each: syntax.BaseExpression) -> bool:
    """Whether an expression only computes, with operators, and chooses between what it has computed."""
    branches = (each.body, each.orelse) if isinstance(each, syntax.IfExp) else (each,)
    computes = any(isinstance(branch, syntax.BinaryOperation) for branch in branches)
    return computes and not any(True for _ in script.source.inside(each, syntax.Call))


def _rows_of(
    script: Script, target: syntax.BaseExpression, iterated: syntax.BaseExpression
) -> Iterator[tuple[str, syntax.BaseExpression]]:
    """What a comprehension goes over, by the name of each row, through ``zip``."""
    match target, iterated:
        case syntax.Name(value=name), _:
            yield name, iterated
        case syntax.Tuple(elements=names), syntax.Call(args=args) if script.name(iterated.func) == "zip":
            for element, arg in zip(names, args, strict=False):
                if isinstance(element.value, syntax.Name) and not arg.star:
                    yield element.value.value, arg.value


class PairedGather(NamedTuple):
    """What is taken out of each row of a tensor by the same row of another one, row by row: ``x[i][places[i]]``.

    Attributes:
        node: ``torch.stack([x[i][places[i]] for i in range(len(places))])``.
        taken: ``x``.
        places: ``places``.
    """

    script: Script
    node: syntax.Call
    taken: syntax.BaseExpression
    places: syntax.BaseExpression


def paired_gather(script: Script, call: syntax.Call) -> PairedGather | None:
    """A call as one that stacks what is taken out of the rows of a tensor on the device, one by one."""
    if not script.is_call_to(call, "torch.stack") or not call.args:
        return None
    match call.args[0].value:
        case syntax.ListComp(
            elt=each,
            for_in=syntax.CompFor(target=syntax.Name(value=counter), iter=syntax.Call() as turns, ifs=[], inner_for_in=None),
        ) if _counts_many(script, turns):
            found = _taken_by(script, *_written_out(script, each, counter))
            return PairedGather(script, call, *found) if found is not None and script.is_device_tensor(found[0]) else None
    return None


def paired_gathers(script: Script, function: syntax.FunctionDef) -> list[PairedGather]:
    """Those of a function itself."""
    calls = (call for call in script.source.inside(function.body, syntax.Call) if script.function(call) is function)
    return [found for call in calls if (found := paired_gather(script, call)) is not None]


def _counts_many(script: Script, turns: syntax.Call) -> bool:
    """Whether it is ``range(n)`` or ``torch.arange(n)`` of what may be a whole batch."""
    while isinstance(turns.func, syntax.Attribute) and isinstance(turns.func.value, syntax.Call) and not turns.args:
        turns = turns.func.value
    if script.name(turns.func) not in ("range", "torch.arange") or len([a for a in turns.args if a.keyword is None]) != 1:
        return False
    known = script.constant(turns.args[0].value)
    return known is None or (isinstance(known.value, int) and known.value > _FEW)


def _written_out(script: Script, each: syntax.BaseExpression, counter: str) -> tuple[syntax.BaseExpression, str]:
    """The element of a list, and its counter; that of the lambda where it is ``take(i)`` of ``take = lambda i: ...``."""
    match each:
        case syntax.Call(func=syntax.Name() as called, args=[syntax.Arg(value=syntax.Name(value=given))]) if (
            given == counter
        ):
            bound = [binding.value for binding in script.names.reaching(called)]
            match bound:
                case [
                    syntax.Lambda(params=syntax.Parameters(params=[syntax.Param(name=syntax.Name(value=own))]), body=body)
                ]:
                    return body, own
    return each, counter


def _taken_by(
    script: Script, each: syntax.BaseExpression, counter: str
) -> tuple[syntax.BaseExpression, syntax.BaseExpression] | None:
    """``x`` and ``places`` of ``x[i][places[i]]`` or ``x[i, places[i]]``, with whole dimensions beside."""
    indices: list[syntax.BaseSlice] = []
    while isinstance(each, syntax.Subscript):
        indices = [*(part.slice for part in each.slice), *indices]
        each = each.value
    if not indices or not indexes_row(script, indices[0], counter) or isinstance(indices[0], syntax.Slice):
        return None
    places = [_row_of(script, index, counter) for index in indices[1:]]
    named = [place for place in places if place is not None]
    rest = [index for index, place in zip(indices[1:], places, strict=True) if place is None]
    is_whole = all(isinstance(index, syntax.Slice) and index.lower is None and index.upper is None for index in rest)
    return (each, named[0]) if len(named) == 1 and is_whole else None


def _row_of(script: Script, index: syntax.BaseSlice, counter: str) -> syntax.BaseExpression | None:
    """``places`` of the index ``places[i]``."""
    match index:
        case syntax.Index(
            value=syntax.Subscript(value=places, slice=[syntax.SubscriptElement(slice=syntax.Index() as inner)])
        ) if indexes_row(script, inner, counter):
            return places
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


def _walked(script: Script, loop: syntax.For) -> syntax.BaseExpression | None:
    """``x`` of ``for row in x``; none where ``x[row]`` is asked for, as with the keys of a dict."""
    if not isinstance(loop.target, syntax.Name) or not isinstance(loop.iter, syntax.Name):
        return loop.iter if script.role(loop.iter) in _ROWS else None
    asked = f"{loop.iter.value}[{loop.target.value}]"
    are_keys = any(script.text(each) == asked for each in script.source.inside(loop.body, syntax.Subscript))
    return loop.iter if script.role(loop.iter) in _ROWS and not are_keys else None


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
        is_row = indexes_row(script, taken.slice[0].slice, loop.target.value)
        if is_row and counted is not None and script.text(taken.value) == counted and script.role(taken.value) in roles:
            return taken.value
    return None


def _is_sized(script: Script, loop: syntax.For) -> bool:
    """Whether the turns are counted by what lists do not have."""
    return any(word in script.text(loop.iter) for word in (".size(", ".shape["))


def indexes_row(script: Script, index: syntax.BaseSlice, counter: str) -> bool:
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
