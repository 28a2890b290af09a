"""What the loops of training drive: the functions that run in them, from the loops down.

Few loops drive a training, and most functions are reached from none. Asking each function for its callers, and these for
theirs, reads all that may call it; going down from the loops reads what they run.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import TYPE_CHECKING

from speedlint.facts import syntax

if TYPE_CHECKING:
    from speedlint.semantics.script import Script

Sites = dict[syntax.FunctionDef, list[tuple["Script", syntax.Call]]]
_CALLED_AS = ("forward", "__call__")
_HOLDS_STEPS = (b".backward(", b"no_grad", b"inference_mode")


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
    # Have: a test that goes over the ways to make an object, and trains one step with each.
    around = dict.fromkeys(each for each in _callers(script, among) if script.is_test or not each.is_test)
    todo = [(other, body) for other in around for body in other.loops.driving]
    for other, region in todo:
        for call in _run_in(other, region):
            callee = other.callee(call)
            if callee is None or not isinstance(callee.node, syntax.FunctionDef) or callee.script not in around:
                continue
            if callee.node not in found:
                todo.append((callee.script, callee.node.body))
            known = found.setdefault(callee.node, [])
            if all(site is not call for _, site in known):
                known.append((other, call))
    return found


def _callers(script: Script, among: Among) -> Iterator[Script]:
    """The scripts that may call what a script defines: those that import it, and those that train with its objects."""
    yield from _upward(script, among)
    methods = [each.name.value for each in script.source.of(syntax.FunctionDef) if script.names.owner(each) is not None]
    called = [b"(" if name in _CALLED_AS else f".{name}(".encode() for name in methods if name != "__init__"]
    for other in script.program.few_others(script, *_HOLDS_STEPS) if called else ():
        if any(mark in other.source.data for mark in called):
            yield from _upward(other, among)


def _upward(script: Script, among: Among) -> Iterator[Script]:
    marks = _HOLDS_STEPS[:1] if among is Among.TRAININGS else ()
    return script.program.upward(script, *marks, only_asked=among is Among.ASKED)


def _run_in(script: Script, region: syntax.Node) -> Iterator[syntax.Call]:
    """The calls that run whenever a region does, or may."""
    function = script.function(region)
    return (call for call in script.source.inside(region, syntax.Call) if script.function(call) is function)
