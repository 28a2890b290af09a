"""What ``verify --apply`` writes: the fixes that were timed together, or with ``--per-fix`` those of them that pay.

Nothing is written that was not itself compared with the original and timed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from speedlint.fixer import Outcome
from speedlint.verify.parity import Parity, Tier
from speedlint.verify.plan import Plan
from speedlint.verify.report import Effect, LeftOut, Report
from speedlint.verify.stats import Verdict
from speedlint.verify.timing import Timing


@dataclass(frozen=True, slots=True)
class Choice:
    """What is written.

    Attributes:
        outcomes: the files as they will be.
        left_out: the fixes that were timed and are not written.
        why_not: why nothing is; empty where something is.
    """

    outcomes: tuple[Outcome, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    why_not: str = ""


def choose(report: Report, plan: Plan, least: float | None) -> Choice:
    """The fixes to write: none unless they are faster, ``least`` times where that is given, and train the same."""
    if why_not := _why_not(None if report.interrupted else report.timing, report.parity, least):
        return Choice(why_not=why_not)
    left_out = tuple(
        LeftOut(each.code, each.rule, each.risk, each.fixes, "does not pay" if each.pays is False else "not shown to pay")
        for each in unpaid(report.effects)
    )
    if not left_out:
        return Choice(plan.outcomes)
    if len(left_out) == len(report.effects):
        return Choice(left_out=left_out, why_not="no rule's fixes were shown to pay by themselves")
    if report.kept is None:
        return Choice(left_out=left_out, why_not="no time (`--budget`) was left to time what pays without the others")
    if why_not := _why_not(report.kept.timing, report.kept.parity, least):
        return Choice(left_out=left_out, why_not=f"without those that do not pay, {why_not}")
    return Choice(report.kept.outcomes, left_out)


def unpaid(effects: Iterable[Effect]) -> tuple[Effect, ...]:
    """Those of rules whose fixes were not shown to pay."""
    return tuple(each for each in effects if not each.pays)


def _why_not(timing: Timing | None, parity: Parity, least: float | None) -> str:
    if timing is None or timing.verdict is not Verdict.FASTER:
        return "the fixes were not shown to be faster"
    if parity.tier not in (Tier.IDENTICAL, Tier.NUMERIC, Tier.STATISTICAL):
        return "the training was not shown to be the same"
    if least is not None and timing.estimate.ratio < least:
        return f"the fixes are less than {least:g} times as fast (`--min-speedup`)"
    return ""
