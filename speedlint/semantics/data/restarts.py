"""What the start of a loader's workers is beside a pass, and beside what comes between two passes."""

from __future__ import annotations

import re

from speedlint.facts import syntax
from speedlint.semantics import durations, off
from speedlint.semantics.data import scale
from speedlint.semantics.data.loaders import Loader, Start
from speedlint.semantics.loops import Does
from speedlint.semantics.schedule import periods
from speedlint.semantics.script import Script

_MANY_STEPS = 500
"""Steps from which on they take so long, at 50 ms each, that the start of some workers is half a percent."""

_SYSTEM = re.compile(r"os\.name|platform|windows|darwin", re.IGNORECASE)


def why_trifle(found: Loader) -> str | None:
    """Why the start of a loader's workers is nothing beside what it is for; None where it may not be."""
    if scale.is_large(found):
        return "a pass over so large a data set takes minutes, and the start of its workers a second"
    if durations.trains_library_transformer(found.script) and not found.has_few_rows:
        return "a pass of a library's transformer takes minutes, and the start of its workers some tenths of a second"
    if (slow := durations.why_slow_on_host(found.script)) is not None:
        return slow
    if _may_have_none(found):
        return "the program sets the number of its workers to 0 in some runs"
    read = [start for start in found.starts if isinstance(start.node, syntax.For)]
    if read and len(read) == len(found.starts) and all(map(_is_read_seldom, read)):
        return "it is read once in hundreds of steps"
    return None


def _may_have_none(found: Loader) -> bool:
    """Whether the number of its workers is an attribute, not known, that the program itself sets to 0, and not only on
    Windows: ``configs.num_workers = 0``."""
    workers = found.setting("num_workers")
    if not isinstance(workers.expression, syntax.Attribute) or workers.value is not None:
        return False
    name = workers.expression.attr.value
    return any(
        isinstance(target.target, syntax.Attribute)
        and target.target.attr.value == name
        and isinstance(assign.value, syntax.Integer)
        and int(assign.value.value, 0) == 0
        and _may_run(place, assign)
        for place in found.script.everywhere(name.encode())
        for assign in place.source.of(syntax.Assign)
        for target in assign.targets
    )


def _may_run(script: Script, node: syntax.Node) -> bool:
    """Whether a node may run where trainings run: under no switch that is off by default, and no question for the system."""
    tests = [script.text(up.test) for up in script.source.ancestors(node) if isinstance(up, syntax.If)]
    return not any(_SYSTEM.search(test) for test in tests) and not off.is_off(script, node)


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
