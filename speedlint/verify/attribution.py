"""What each rule's fixes bring: the fixed version against the same without them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from speedlint.registry import Registry
from speedlint.verify import stats
from speedlint.verify.budget import BudgetError, HungError, bounded
from speedlint.verify.plan import Plan, Version, without
from speedlint.verify.report import Effect
from speedlint.verify.runner import Runner
from speedlint.verify.timing import Timing, TimingError, measure

_SCREENING = stats.FEWEST
_SPENT = "not measured: the budget (`--budget`) was spent"


def effects(
    runner: Runner,
    plan: Plan,
    timing: Timing,
    registry: Registry,
    deadline: float,
    most: int,
    watch: Callable[[Timing], None],
) -> tuple[Effect, ...]:
    """Each rule is left out in three screening pairs; then those that seem to matter most are measured in full, one after
    another, until ``deadline``."""
    screened = [_screened(runner, plan, code, timing, registry, deadline, watch) for code in plan.codes]
    by_size = sorted(screened, key=lambda each: -abs(each.timing.estimate.log) if each.timing.pairs else 0.0)
    for each in by_size:
        if each.problem or time.monotonic() > deadline:
            continue
        try:
            measure(runner, (each.left_out, plan.fixed), each.timing, len(timing.pairs), most, deadline, watch)
        except (TimingError, HungError) as error:
            each.problem = str(error)
    return tuple(_effect(plan, each) for each in screened)


@dataclass
class _Screened:
    code: str
    left_out: Version
    timing: Timing
    problem: str = ""


def _screened(
    runner: Runner,
    plan: Plan,
    code: str,
    timing: Timing,
    registry: Registry,
    deadline: float,
    watch: Callable[[Timing], None],
) -> _Screened:
    found = _Screened(code, plan.fixed, replace(timing, pairs=[], twins=[]))
    try:
        with bounded(deadline - time.monotonic(), _SPENT):
            found.left_out, _ = without(plan, (code,), f"without {code}", registry)
        measure(runner, (found.left_out, plan.fixed), found.timing, _SCREENING, _SCREENING, deadline, watch)
    except (TimingError, BudgetError) as error:
        found.problem = str(error)
    if not found.timing.has_ratio:
        found.problem = found.problem or _SPENT
    return found


def _effect(plan: Plan, screened: _Screened) -> Effect:
    applied = [fix for fix in plan.applied if fix.code == screened.code]
    risk = max(fix.risk for fix in applied)
    measured = None if screened.problem else screened.timing
    return Effect(
        screened.code,
        applied[0].rule,
        risk.name.lower(),
        len(applied),
        measured,
        measured is not None and len(measured.pairs) > _SCREENING,
        screened.problem,
    )
