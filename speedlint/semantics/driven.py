"""What the loops of training drive: the functions that run in them, from the loops down.

Few loops drive a training, and most functions are reached from none. Asking each function for its callers, and these for
theirs, reads all that may call it; going down from the loops reads what they run.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from speedlint.facts import syntax

if TYPE_CHECKING:
    from speedlint.semantics.script import Script

Sites = dict[syntax.FunctionDef, list[tuple["Script", syntax.Call]]]
_Called = tuple[syntax.Call, "Script", syntax.FunctionDef]
"""A call, and the function that it runs, with its script."""
_BACKWARD = b".backward("
_MAY_DRIVE = re.compile(
    rb"torch|model|net\w*\(|oader|atch|backward|\.(?:step|to|cuda|eval|train|fit)\(|no_grad|inference_mode|_step|rainer|ightning"
)
"""What a file says somewhere that loops over the batches of a loader, steps or evaluates."""


class Among(enum.Enum):
    """Which of the files that may call a function are looked at, the first that matter first: one way may say enough."""

    ASKED = enum.auto()
    """Those that findings are reported in."""
    TRAININGS = enum.auto()
    """Those that speak of backward passes."""
    ALL = enum.auto()


def sites(script: Script, function: syntax.FunctionDef, among: Among = Among.ALL) -> list[tuple[Script, syntax.Call]]:
    """The calls of one of a script's functions that loops of training drive, by way of other functions too."""
    nothing: Sites = {}
    question = ("driven", script.path, among)
    return script.program.flow.ask(question, lambda: _find(script, among), nothing).get(function, [])


def _find(script: Script, among: Among) -> Sites:
    found: Sites = {}
    starts = list(_starts(script))
    around = frozenset().union(*(script.program.upward_paths(each) for each in starts))
    drivers = dict.fromkeys(each for start in starts for each in _drivers(start, among))
    # Have: a test that goes over the ways to make an object, and trains one step with each.
    todo = [(each, body) for each in drivers if script.is_test or not each.is_test for body in each.loops.driving]
    for other, region in todo:
        for call, place, callee in _run_in(other, region):
            if place.key not in around:
                continue
            if callee not in found:
                todo.append((place, callee.body))
            known = found.setdefault(callee, [])
            if all(site is not call for _, site in known):
                known.append((other, call))
    return found


def _starts(script: Script) -> Iterator[Script]:
    """The script, and those that may train with its objects: these, and what imports them, may call what it defines."""
    yield script
    functions = script.source.of(syntax.FunctionDef)
    yield from script.roles.calls.beside([each.name.value for each in functions if script.names.owner(each) is not None])


def _drivers(script: Script, among: Among) -> Iterator[Script]:
    marks = (_BACKWARD,) if among is Among.TRAININGS else (_MAY_DRIVE,)
    return script.program.upward(script, *marks, only_asked=among is Among.ASKED)


def _run_in(script: Script, region: syntax.Node) -> list[_Called]:
    """The calls of first-party functions that run whenever a region does, or may, and these functions."""
    nothing: list[_Called] = []
    return script.once(("run in", region), lambda: list(_find_run_in(script, region)), nothing)


def _find_run_in(script: Script, region: syntax.Node) -> Iterator[_Called]:
    function = script.function(region)
    for call in script.source.inside(region, syntax.Call):
        if script.function(call) is function and script.order.is_run(call):
            callee = script.callee(call)
            if callee is not None and isinstance(callee.node, syntax.FunctionDef):
                yield call, callee.script, callee.node
