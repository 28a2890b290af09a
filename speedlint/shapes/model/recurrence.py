"""Recurrent cells that a loop over time runs step by step, where a recurrent layer takes the whole sequence in one call."""

from __future__ import annotations

from dataclasses import dataclass

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes.evaluation import is_in_forward
from speedlint.shapes.model.networks import RECURRENT_CELLS
from speedlint.solve import changing
from speedlint.solve.counts import turns
from speedlint.solve.inplace import is_written
from speedlint.solve.loops import Does
from speedlint.solve.names import Binding, Kind
from speedlint.solve.terms import Definition
from speedlint.torch.words import FREQUENT

_FEWEST = 8
"""Time steps below which one call saves too little to speak of."""
_DEPTH = 12
_LEAVES = (syntax.Break, syntax.Continue, syntax.Return, syntax.Raise)


@dataclass(frozen=True, slots=True)
class Unrolled:
    """Cells that run in a loop over time.

    Attributes:
        cells: the calls of the cells, in source order; the input of each is known before the loop, or is the output of an
            earlier one at the same time step.
        layer: the name of the layer that does the same: ``LSTM``, ``GRU`` or ``RNN``, that of the first cell.
    """

    cells: tuple[syntax.Call, ...]
    layer: str


def unrolled(script: Script, loop: syntax.For) -> Unrolled | None:
    """The cells that a loop runs on inputs which do not hang on what the cells have given; None where there are none, or
    where one of the loop's cells does hang on it."""
    if not (script.frequency(loop) in FREQUENT or is_in_forward(script, loop)) or loop.asynchronous:
        return None
    if script.loops.iterates_loader(loop) or script.loops.does(loop.body, Does.STEPS):
        return None
    made = [(call, name) for call in script.source.inside(loop.body, syntax.Call) if (name := _cell(script, call))]
    if not made or any(True for kind in _LEAVES for _ in script.source.inside(loop.body, kind)):
        return None
    known = turns(script, loop)
    if (known is not None and known < _FEWEST) or _changes_objects(script, loop):
        return None
    outputs: set[syntax.Node] = set()
    for call, _ in made:
        states = _states(script, loop, call)
        given = script.argument(call, "input", 0)
        if not states or given is None or not _is_ahead(script, loop, given, outputs):
            return None
        outputs.update(states)
    return Unrolled(tuple(call for call, _ in made), made[0][1])


def _cell(script: Script, call: syntax.Call) -> str | None:
    """The layer of whose cells a call runs one: ``LSTM`` for an ``nn.LSTMCell``."""
    origins = list(script.roles.origins(call.func)) if isinstance(call.func, (syntax.Name, syntax.Attribute)) else []
    names = {place.name(node.func) if isinstance(node, syntax.Call) else None for place, node in origins}
    name = names.pop() if len(names) == 1 else None
    return name.rpartition(".")[2].removesuffix("Cell") if name in RECURRENT_CELLS else None


def _states(script: Script, loop: syntax.For, call: syntax.Call) -> list[syntax.Name]:
    """The variables that hand the state of a cell from one turn to the next, where nothing else in the loop sets them."""
    source = script.source
    assign = source.parents[call]
    if not isinstance(assign, syntax.Assign) or len(assign.targets) != 1:
        return []
    if source.enclosing(call, syntax.If, syntax.For, syntax.While, syntax.Try, syntax.Match, syntax.FunctionDef) is not loop:
        return []
    given = script.argument(call, "hx", 1)
    targets = _names(assign.targets[0].target)
    if given is None or not targets or [each.value for each in targets] != [each.value for each in _names(given)]:
        return []
    for name in targets:
        bindings = script.names.scope(name).bindings.get(name.value, [])
        inside = [one for one in bindings if source.contains(loop, one.node)]
        if len(inside) != 1 or is_written(script, name):
            return []
    return targets


def _names(expression: syntax.BaseExpression) -> list[syntax.Name]:
    """The variables that an expression is, or is a tuple of; none for anything else."""
    if isinstance(expression, syntax.Name):
        return [expression]
    if isinstance(expression, (syntax.Tuple, syntax.List)):
        names = [each.value for each in expression.elements if isinstance(each.value, syntax.Name)]
        return names if len(names) == len(expression.elements) else []
    return []


def _changes_objects(script: Script, loop: syntax.For) -> bool:
    """Whether a turn sets attributes, itself or in a function of the project: by them a turn may tell the next one."""
    if any(isinstance(base, syntax.Attribute) for base, _ in changing.written(script, loop.body)):
        return True
    for call in script.source.inside(loop.body, syntax.Call):
        callee = script.callee(call)
        if isinstance(callee, Definition) and any(
            isinstance(base, syntax.Attribute) for base, _ in changing.written(callee.script, callee.node)
        ):
            return True
    return False


def _is_ahead(script: Script, loop: syntax.For, given: syntax.BaseExpression, outputs: set[syntax.Node]) -> bool:
    """Whether the input of a cell is of this time step, and none of it is made from what an earlier turn has given."""
    changed = {
        each.value for base, _ in changing.written(script, loop.body) for each in script.source.inside(base, syntax.Name)
    }
    fresh: set[bool] = set()
    return _gather(script, loop, given, outputs, changed, fresh, _DEPTH) and bool(fresh)


def _gather(
    script: Script,
    loop: syntax.For,
    node: syntax.Node,
    outputs: set[syntax.Node],
    changed: set[str],
    fresh: set[bool],
    depth: int,
) -> bool:
    for name in script.source.inside(node, syntax.Name):
        if name.value in changed:
            return False
        for binding in script.names.reaching(name):
            if script.source.contains(loop.target, binding.node):
                fresh.add(True)
            elif script.source.contains(loop.body, binding.node):
                if not script.order.may_run_before(binding.node, name):
                    return False
                fresh.add(True)
                if binding.node not in outputs and not _is_gathered(script, loop, binding, outputs, changed, fresh, depth):
                    return False
    return True


def _is_gathered(
    script: Script,
    loop: syntax.For,
    binding: Binding,
    outputs: set[syntax.Node],
    changed: set[str],
    fresh: set[bool],
    depth: int,
) -> bool:
    if binding.kind not in (Kind.ASSIGN, Kind.FOR) or binding.value is None or depth == 0:
        return False
    return _gather(script, loop, binding.value, outputs, changed, fresh, depth - 1)
