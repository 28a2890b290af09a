"""Waits that a call hides: the host waits for the GPU in another function or file, once or many times for one call."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from speedlint.semantics import counts, waits
from speedlint.semantics.folding import Folding, Frame
from speedlint.semantics.model import Definition, Frequency
from speedlint.semantics.program import absolute
from speedlint.semantics.script import Script
from speedlint.semantics.waits import Wait

_HOT = (Frequency.STEP, Frequency.EVAL_STEP)
_DEEPEST = 4
_MOST = 12


@dataclass(frozen=True, slots=True)
class Hidden:
    """One wait behind a call.

    Attributes:
        chain: the calls between, each in its script, from the outermost.
        count: how often it waits for one run of the outermost call; None where that is not known.
    """

    wait: Wait
    chain: tuple[tuple[Script, cst.Call], ...]
    count: int | None


def behind(script: Script, call: cst.Call) -> list[Hidden]:
    """The waits behind a call of a first-party function, in the order in which its code is written."""
    callee = script.callee(call)
    if callee is None:
        return []
    found = []
    for hidden in _in_function(Frame(script), ((script, call),), callee, 1):
        found.append(hidden)
        if len(found) == _MOST:
            break
    return found


def _in_function(
    outer: Frame, chain: tuple[tuple[Script, cst.Call], ...], function: Definition, before: int | None
) -> Iterator[Hidden]:
    node, script = function.node, function.script
    if not isinstance(node, cst.FunctionDef) or len(chain) > _DEEPEST:
        return
    if any(call_of.function(call) is node for call_of, call in chain):
        return
    frame = Folding().called(outer, chain[-1][1], function)
    for wait in waits.within(script, node):
        yield Hidden(wait, chain, _product(before, counts.times(script, wait.node, node.body, frame)))
    for call in script.source.inside(node.body, cst.Call):
        if script.function(call) is not node or (callee := script.callee(call)) is None:
            continue
        if script.frequency(call) in _HOT and _may_wait(callee, _DEEPEST - len(chain)):
            times = _product(before, counts.times(script, call, node.body, frame))
            yield from _in_function(frame, (*chain, (script, call)), callee, times)


def _may_wait(function: Definition, depth: int) -> bool:
    """Whether a function, or one that it calls, waits."""
    node, script = function.node, function.script
    if not isinstance(node, cst.FunctionDef):
        return False
    return script.once(("may wait", node, depth), lambda: _waits(script, node, depth), False)


def _waits(script: Script, function: cst.FunctionDef, depth: int) -> bool:
    if waits.within(script, function):
        return True
    calls = (call for call in script.source.inside(function.body, cst.Call) if script.function(call) is function)
    return depth > 0 and any((callee := script.callee(call)) is not None and _may_wait(callee, depth - 1) for call in calls)


def _product(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left * right


def is_told_at_call(script: Script, hidden: Hidden) -> bool:
    """Whether neither the wait nor a call between stands in a file that is asked for, where it would be told of."""
    between = [where for where, _ in hidden.chain[1:]]
    return not any(_is_asked(script, where) for where in (*between, hidden.wait.script))


def _is_asked(script: Script, where: Script) -> bool:
    path = absolute(where.path)
    return path == absolute(script.path) or path in script.program.asked


def place(script: Script, wait: Wait) -> str:
    """Where a wait stands, as seen from a script of the same program: ``line 12``, or ``utils/losses.py:12``."""
    line = wait.script.source.line(wait.node)
    if wait.script is script:
        return f"line {line}"
    return f"{os.path.relpath(absolute(wait.script.path), script.program.root(script.path))}:{line}"
