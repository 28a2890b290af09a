"""What the start of a loader's workers is beside a pass, and beside what comes between two passes."""

from __future__ import annotations

from speedlint.facts import syntax
from speedlint.semantics import durations
from speedlint.semantics.data import scale
from speedlint.semantics.data.loaders import Loader, Start
from speedlint.semantics.loops import Does
from speedlint.semantics.schedule import periods

_MANY_STEPS = 500
"""Steps from which on they take so long, at 50 ms each, that the start of some workers is half a percent."""


def why_trifle(found: Loader) -> str | None:
    """Why the start of a loader's workers is nothing beside what it is for; None where it may not be."""
    if scale.is_large(found):
        return "a pass over so large a data set takes minutes, and the start of its workers a second"
    if (slow := durations.why_slow_on_host(found.script)) is not None:
        return slow
    read = [start for start in found.starts if isinstance(start.node, syntax.For)]
    if read and len(read) == len(found.starts) and all(map(_is_read_seldom, read)):
        return "it is read once in hundreds of steps"
    return None


def _is_read_seldom(start: Start) -> bool:
    """Whether many steps of the training are known to lie between two reads."""
    script = start.script
    function = script.function(start.node)
    if function is None or script.loops.does(start.node, Does.STEPS):
        return False
    found = periods.during_training(script, function)
    one = periods.scheduled(*found) if found is not None else None
    steps = periods.period(found[0], one) if found is not None and one is not None else None
    return steps is not None and isinstance(steps.value, int) and steps.value >= _MANY_STEPS
