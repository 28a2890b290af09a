"""What each rule's fixes bring: the fixed version against the same without them."""

from __future__ import annotations

import time
from collections.abc import Callable

from speedlint.registry import Registry
from speedlint.verify.plan import Plan, without
from speedlint.verify.report import Effect
from speedlint.verify.runner import Runner
from speedlint.verify.timing import Timing, TimingError, measure

_SCREENING = 2
_NEAR = 2.0


def effects(
    runner: Runner,
    plan: Plan,
    timing: Timing,
    registry: Registry,
    deadline: float,
    most: int,
    watch: Callable[[Timing], None],
) -> tuple[Effect, ...]:
    """Each rule is left out in two screening pairs; what is within twice the floor there is measured in full."""
    found = []
    for code in plan.codes:
        applied = [fix for fix in plan.applied if fix.code == code]
        risk = max(fix.risk for fix in applied)
        told = (code, applied[0].rule, risk.name.lower(), len(applied))
        if time.monotonic() > deadline:
            found.append(Effect(*told, None, False, "not measured: the budget (`--budget`) was spent"))
            continue
        left_out = without(plan, (code,), f"without {code}", registry)
        one = Timing(timing.first, in_turns=timing.in_turns)
        try:
            measure(runner, (left_out, plan.fixed), one, _SCREENING, _SCREENING, deadline, watch)
            gain = abs(one.estimate.log)
            is_clear = gain > _NEAR * timing.floor
            if not is_clear or gain > timing.floor:
                measure(runner, (left_out, plan.fixed), one, len(timing.pairs), most, deadline, watch)
        except TimingError as error:
            found.append(Effect(*told, None, False, str(error)))
            continue
        found.append(Effect(*told, one, len(one.pairs) > _SCREENING))
    return tuple(found)
