"""What ``verify --apply`` writes: the fixes that were timed together, or with ``--per-fix`` those of them that pay."""

from __future__ import annotations

from dataclasses import dataclass, replace

from speedlint import stages
from speedlint.fixer import Outcome
from speedlint.registry import Registry
from speedlint.verify.parity import Tier
from speedlint.verify.plan import Plan
from speedlint.verify.report import LeftOut, Report
from speedlint.verify.stats import Verdict


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


def choose(report: Report, plan: Plan, registry: Registry, least: float | None) -> Choice:
    """The fixes to write: none unless they are faster, ``least`` times where that is given, and train the same."""
    if why_not := _why_not(report, least):
        return Choice(why_not=why_not)
    if not report.effects:
        return Choice(plan.outcomes)
    unpaid = tuple(
        LeftOut(each.code, each.rule, each.risk, each.fixes, "does not pay" if each.pays is False else "not shown to pay")
        for each in report.effects
        if not each.pays
    )
    if len(unpaid) == len(report.effects):
        return Choice(left_out=unpaid, why_not="no rule's fixes were shown to pay by themselves")
    settings = replace(plan.settings, ignore=(*plan.settings.ignore, *(each.code for each in unpaid)))
    return Choice(stages.fix(plan.files, settings, registry, store=plan.store).outcomes, unpaid)


def _why_not(report: Report, least: float | None) -> str:
    if report.interrupted or report.timing is None or report.verdict is not Verdict.FASTER:
        return "the fixes were not shown to be faster"
    if report.parity.tier not in (Tier.IDENTICAL, Tier.NUMERIC, Tier.STATISTICAL):
        return "the training was not shown to be the same"
    if least is not None and report.timing.estimate.ratio < least:
        return f"the fixes are less than {least:g} times as fast (`--min-speedup`)"
    return ""
