"""Where a script reads the clock: what waits for the GPU right beside it does so for the sake of the measurement."""

from __future__ import annotations

import re

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.solve.flow import once

_CLOCKS = frozenset(
    {
        "time.time",
        "time.time_ns",
        "time.perf_counter",
        "time.perf_counter_ns",
        "time.monotonic",
        "time.monotonic_ns",
        "time.process_time",
        "timeit.default_timer",
        "datetime.datetime.now",
        "datetime.now",
    }
)
_EVENTS = frozenset({"elapsed_time", "record"})
_NAMED = re.compile(r"time|clock|prof|elapsed|stopwatch|throughput|^(?:tic|toc|fps)$|per_sec", re.IGNORECASE)
_DEPTH = 3


def reads_clock(script: Script, block: syntax.Node) -> bool:
    """Whether a piece of code itself reads the host's clock where there is a GPU: events tell the GPU's own time."""
    calls = (call for call in script.source.inside(block, syntax.Call) if script.name(call.func) in _CLOCKS)
    return any(not script.loops.guards.is_without_gpu(call) for call in calls)


@once(False)
def may_read_clock(script: Script, block: syntax.Node, depth: int = _DEPTH) -> bool:
    """Whether a piece of code reads the clock, itself or through what it calls; what is named for time may, out of sight."""
    if any(_NAMED.search(name.value) for name in script.source.inside(block, syntax.Name)):
        return True
    return any(_may_tell_time(script, call, depth) for call in script.source.inside(block, syntax.Call))


def _is_clock(script: Script, call: syntax.Call) -> bool:
    if script.name(call.func) in _CLOCKS:
        return True
    if isinstance(call.func, syntax.Attribute) and call.func.attr.value in _EVENTS and script.name(call.func) is None:
        return any(_is_event(script, value) for script, value in script.roles.origins(call.func.value))
    return False


def _is_event(script: Script, value: syntax.BaseExpression) -> bool:
    return isinstance(value, syntax.Call) and script.name(value.func) in ("torch.cuda.Event", "torch.Event")


def _may_tell_time(script: Script, call: syntax.Call, depth: int) -> bool:
    if _is_clock(script, call):
        return True
    callee = script.callee(call)
    if callee is None:
        return False
    return depth > 0 and may_read_clock(*callee, depth - 1)
