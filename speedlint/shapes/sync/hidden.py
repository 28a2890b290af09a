"""What a call hides: code behind it, in another function or file, that costs time in every step, once or many times."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Generic, NamedTuple, Protocol, TypeVar

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.program.imports import absolute
from speedlint.solve import counts, modes, off, picked
from speedlint.solve.flow import once
from speedlint.solve.folding import Folding, Frame
from speedlint.solve.terms import Definition
from speedlint.torch.words import FREQUENT, Frequency

_DEEPEST = 4
_MOST = 12


class Slow(Protocol):
    """A slow place."""

    @property
    def script(self) -> Script:
        """The script it stands in."""

    @property
    def node(self) -> syntax.Node:
        """Its node."""


class SlowCall(NamedTuple):
    """A call that is one."""

    script: Script
    node: syntax.Call


Node = TypeVar("Node", bound=syntax.Node)
What = TypeVar("What", bound=Slow)
Find = Callable[[Script, syntax.FunctionDef], "list[What]"]


@dataclass(frozen=True, slots=True)
class Hidden(Generic[What]):
    """One slow place behind a call.

    Attributes:
        chain: the calls between, each in its script, from the outermost.
        count: how often it runs for one run of the outermost call; None where that is not known.
    """

    what: What
    chain: tuple[tuple[Script, syntax.Call], ...]
    count: int | None


def in_steps(script: Script, function: syntax.FunctionDef, kind: type[Node]) -> Iterator[Node]:
    """The nodes of a kind of a function itself that run in each step, in source order."""
    for node in script.source.inside(function.body, kind):
        if script.function(node) is function and script.frequency(node) in FREQUENT:
            yield node


def behind(script: Script, call: syntax.Call, find: Find[What]) -> list[Hidden[What]]:
    """The slow places behind a call of a first-party function, in the order in which its code is written.

    ``find`` gives those of one function itself; it is a function of a module, known by its name. Of several functions, one
    of which the call runs, it is what the one with the fewest has: none of them does without.
    """
    each = (_in_function(Frame(script), ((script, call),), callee, 1, find) for callee in _callees(script, call))
    return min((list(islice(found, _MOST)) for found in each), key=len, default=[])


def _callees(script: Script, call: syntax.Call) -> list[Definition]:
    callee = script.callee(call)
    if callee is not None:
        return [callee]
    called = script.roles.calls.called(call)
    called = (
        [each for each in called if not off.is_of_unmade(each.script, each.node)] or called if len(called) > 1 else called
    )
    if len(called) > 1 and (made := picked.classes(script, call.func)):
        run = [each for each in called if any(kind.script.roles.calls.method(kind, each.name) == each for kind in made)]
        called = run or called
    return called if len(called) < 2 or _are_all(script, call.func) else []


def _are_all(script: Script, function: syntax.BaseExpression) -> bool:
    """Whether all functions are known that a call may run, or all objects whose method it calls."""
    if script.roles.knows_all_chosen(function):
        return True
    return isinstance(function, syntax.Attribute) and script.roles.knows_all_chosen(function.value)


def _in_function(
    outer: Frame, chain: tuple[tuple[Script, syntax.Call], ...], function: Definition, before: int | None, find: Find[What]
) -> Iterator[Hidden[What]]:
    node, script = function.node, function.script
    if not isinstance(node, syntax.FunctionDef) or len(chain) > _DEEPEST:
        return
    if any(call_of.function(call) is node for call_of, call in chain):
        return
    depth = _DEEPEST - len(chain)
    if not _may_hide(*function, depth, find) and not _may_hand_hidden(function, *chain[-1], depth, find):
        return
    frame = Folding().called(outer, chain[-1][1], function)

    for each in find(script, node):
        if each.script is not script or not is_left_out(function, each.node, *chain[-1]):
            yield Hidden(each, chain, _product(before, counts.times(script, each.node, node.body, frame)))
    for call in script.source.inside(node.body, syntax.Call):
        if script.function(call) is not node or script.frequency(call) not in FREQUENT:
            continue
        if is_left_out(function, call, *chain[-1]):
            continue
        callees = _handed(function, call, *chain[-1]) or _callees(script, call)
        if len(callees) == 1:
            times = _product(before, counts.times(script, call, node.body, frame))
            yield from _in_function(frame, (*chain, (script, call)), callees[0], times, find)


def _taken(script: Script, function: syntax.FunctionDef, call: syntax.Call) -> syntax.Param | None:
    """The parameter of a function that a call in its body calls."""
    bindings = script.names.reaching(call.func) if isinstance(call.func, syntax.Name) else []
    taken = bindings[0].node if len(bindings) == 1 else None
    return taken if isinstance(taken, syntax.Param) and script.source.contains(function.params, taken) else None


def _may_hand_hidden(function: Definition, caller: Script, by: syntax.Call, depth: int, find: Find[What]) -> bool:
    """Whether one call of a function hands over a function that it calls, and that holds a slow place."""
    script, node = function.script, function.node
    if depth <= 0 or not isinstance(node, syntax.FunctionDef):
        return False
    own = (call for call in script.source.inside(node.body, syntax.Call) if script.function(call) is node)
    return any(_may_hide(*handed, depth - 1, find) for call in own for handed in _handed(function, call, caller, by))


def _handed(function: Definition, call: syntax.Call, caller: Script, by: syntax.Call) -> list[Definition]:
    """The function that a call of a parameter runs, as one call of its function hands it over: ``compute(self.loss, x)``."""
    if not isinstance(function.node, syntax.FunctionDef):
        return []
    parameter = _taken(function.script, function.node, call)
    given = function.script.values.given(function.node, parameter, caller, by) if parameter is not None else None
    run = caller.roles.calls.run_by(caller.value(given)) if given is not None else None
    return [run] if run is not None else []


def is_left_out(function: Definition, node: syntax.Node, caller: Script, call: syntax.Call) -> bool:
    """Whether a call of a function passes a constant that keeps it from a node of its body."""
    asked = modes.conditions(function.script, node)
    if not asked or not isinstance(function.node, syntax.FunctionDef):
        return False
    return not modes.reaching(function.script, function.node, asked, ((caller, call),))


@once(False)
def _may_hide(script: Script, function: syntax.Node, depth: int, find: Find[What]) -> bool:
    """Whether a function, or one that it calls, holds a slow place."""
    if not isinstance(function, syntax.FunctionDef):
        return False
    if find(script, function):
        return True
    calls = [call for call in script.source.inside(function.body, syntax.Call) if script.function(call) is function]
    return depth > 0 and any(
        _may_hide(*callee, depth - 1, find) or _may_hand_hidden(callee, script, call, depth - 1, find)
        for call in calls
        for callee in _callees(script, call)
    )


def _product(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left * right


def told(script: Script, call: syntax.Call, find: Find[What]) -> list[Hidden[What]]:
    """Those of the slow places behind a call that are told of at the call: reached in each of its steps, in files that are
    not asked for."""
    if script.frequency(call) not in FREQUENT:
        return []
    training = script.frequency(call) is Frequency.STEP
    found = [each for each in behind(script, call, find) if each.count != 0 and is_told_at_call(script, each)]
    return [each for each in found if runs_in_mode(each, training=training) and not is_off(each)]


def is_off(hidden: Hidden[What]) -> bool:
    """Whether a slow place is left out in the runs that are made."""
    return off.is_off(hidden.what.script, hidden.what.node) or any(off.is_off(*each) for each in hidden.chain[1:])


def is_told_at_call(script: Script, hidden: Hidden[What]) -> bool:
    """Whether neither the slow place nor a call between stands in a file that is asked for, where it would be told of."""
    between = [where for where, _ in hidden.chain[1:]]
    return not any(script.is_reported(where) for where in (*between, hidden.what.script))


def runs_in_mode(hidden: Hidden[What], *, training: bool) -> bool:
    """Whether a slow place is reached in the mode that the modules are in, as far as ``self.training`` is asked for."""
    reached: list[tuple[Script, syntax.Node]] = [*hidden.chain[1:], (hidden.what.script, hidden.what.node)]
    return all(where.loops.guards.is_trained_only(node) in (None, training) for where, node in reached)


def by_line(found: Iterable[What]) -> list[What]:
    """Some slow places, the first of each line."""
    first: dict[tuple[Path, int], What] = {}
    for each in found:
        first.setdefault((each.script.key, each.script.source.line(each.node)), each)
    return list(first.values())


def place(script: Script, what: Slow) -> str:
    """Where a slow place stands, as seen from a script of the same program: ``line 12``, or ``utils/losses.py:12``."""
    line = what.script.source.line(what.node)
    if what.script is script:
        return f"line {line}"
    return f"{os.path.relpath(absolute(what.script.path), script.program.root(script.path))}:{line}"
