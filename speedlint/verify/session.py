"""One ``verify``: parity, then timing, then what each fix brings, within the budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from statistics import fmean, median
from typing import Protocol

from speedlint import host
from speedlint.registry import Registry
from speedlint.verify import attribution, forecast, machine, parity, seeds
from speedlint.verify.applying import unpaid
from speedlint.verify.budget import FOR_LOSSES, Budget, BudgetError, HungError, bounded
from speedlint.verify.gpus import OFTEN
from speedlint.verify.nvml import Meter
from speedlint.verify.parity import BrokenError, Parity, Tier
from speedlint.verify.plan import Plan, Version, without
from speedlint.verify.report import Effect, Kept, LeftOut, Report
from speedlint.verify.runner import LOSS_RUNS, Limits, Mode, Runner, refusal
from speedlint.verify.samples import Sample
from speedlint.verify.scratch import Scratch
from speedlint.verify.stats import Verdict
from speedlint.verify.targets import targets
from speedlint.verify.timing import Timing, TimingError, measure, timed_run

_NO_TIME = "the budget (`--budget`) does not suffice for comparing the losses"
_FOR_ALL_FIXES = 0.5
"""With ``--per-fix``: what part of the time after the losses is for all fixes together."""
_MOST_REFUSALS = 5
_ONE_EPOCH = "the script trains one epoch: what its first steps cost more is in what was timed"
_ROUNDED_RUNS = LOSS_RUNS + parity.ROUNDED
_OFFSET_RUNS = _ROUNDED_RUNS + 2 * (seeds.FEW - 1)
"""How many runs for the losses there are where they must be compared with rounding, or with further seeds."""


@dataclass(frozen=True)
class Effort:
    """How much is measured.

    Attributes:
        pairs, most: the fewest and the most pairs of runs.
        budget: the time for everything; it has begun when planning has.
        per_fix: whether each rule's fixes are timed too.
        apply: whether what pays is to be written, and is timed without the other fixes before.
    """

    pairs: int = 6
    most: int = 20
    budget: Budget = field(default_factory=lambda: Budget(300.0))
    per_fix: bool = False
    apply: bool = False


class Watch(Protocol):
    """Is told what goes on."""

    def phase(self, name: str) -> None:
        """A new part begins."""

    def timing(self, timing: Timing) -> None:
        """A pair is done."""

    def running(self, seconds: float, steps: int) -> None:
        """A run goes on."""


def verify(
    plan: Plan, scratch: Scratch, limits: Limits, effort: Effort, registry: Registry, watch: Watch, meter: Meter
) -> Report:
    """Measures, and reports what there is where it is interrupted. Raises UserError."""
    budget = effort.budget
    runner = Runner(plan, scratch, limits, meter, watch.running)
    runner.until, runner.losses_until = budget.deadline, budget.share(FOR_LOSSES)
    runner.begins = _counting(watch)
    notes = [*_surroundings(), *_of_runner(runner)]
    timing: Timing | None = None
    likeness = Parity(Tier.UNKNOWN, "it was not compared")
    effects: tuple[Effect, ...] = ()
    kept: Kept | None = None
    syncs: tuple[float, float] | None = None
    work: tuple[Sample, Sample] | None = None
    problem, interrupted, hangs, timed = "", False, False, 0.0
    try:
        likeness = _losses(runner, plan.original, plan.fixed)
        notes += _of_others(meter)
        watch.phase("timing")
        timing, timed_from = Timing(unit="epoch" if limits.epochs else "step"), budget.spent
        deadline = budget.share(_FOR_ALL_FIXES) if effort.per_fix else budget.deadline
        measure(runner, (plan.original, plan.fixed), timing, effort.pairs, effort.most, deadline, watch.timing)
        timed = budget.spent - timed_from
        if timing.pairs and "total" in timing.pairs[0][0].memory:
            watch.phase("counting synchronisations")
            syncs = _syncs(runner, plan)
            watch.phase("counting operations")
            work = _counted(runner, plan, "work")
        if effort.per_fix and timing.has_ratio:
            watch.phase("timing each fix")
            deadline = budget.share(_FOR_ALL_FIXES) if effort.apply else budget.deadline
            effects = attribution.effects(runner, plan, timing, registry, deadline, effort.most, watch.timing)
            if effort.apply and timing.verdict is Verdict.FASTER:
                kept = _kept(runner, plan, effects, registry, effort, watch)
    except BrokenError as error:
        problem = str(error)
    except TimingError as error:
        problem, timing = str(error), None
        likeness = parity.after_failure(likeness, error.sample, runner.furthest)
    except HungError as error:
        hangs, timing = True, None
        notes += [] if likeness.tier is Tier.UNKNOWN else [str(error)]
        likeness = Parity(Tier.UNKNOWN, str(error)) if likeness.tier is Tier.UNKNOWN else likeness
    except KeyboardInterrupt:
        interrupted = True
        problem = "interrupted: this is what was measured until then"
    measured = timing if timing is not None and timing.has_ratio else None
    missing = None
    if not problem and not hangs and likeness.unrun:
        longest = max(runner.longest.values(), default=0.0)
        missing = forecast.of_runs(budget.spent, longest, max(LOSS_RUNS, runner.loss_runs + likeness.unrun))
    elif not problem and not hangs and measured is None and timing is not None:
        missing = forecast.of_timing(timing, budget.spent, timed_run(runner), effort.pairs)
    elif measured is not None and measured.is_unclear_for_noise:
        missing = forecast.of_pairs(measured, budget.spent, timed, effort.most)
    return Report(
        command=plan.original.command.shown,
        root=plan.original.root,
        stages=plan.stages,
        timing=measured,
        parity=likeness,
        targets=tuple(targets([b for _, b in measured.pairs], meter.why)) if measured else (),
        machine=machine.fingerprint(plan.original.root, runner.environment, meter),
        effects=effects,
        syncs=syncs,
        work=work,
        notes=tuple(
            notes
            + _of_gpu(runner)
            + _of_writes(runner, problem)
            + _of_timing(measured)
            + ([likeness.beyond] if likeness.beyond else [])
        ),
        problem=problem,
        other=plan.fixed.name,
        interrupted=interrupted,
        seconds=budget.spent,
        budget=budget.seconds,
        wanting=missing,
        kept=kept,
        left_out=_left_out(plan),
    )


def _left_out(plan: Plan) -> tuple[LeftOut, ...]:
    """The fixes of a higher risk than was asked for, rule by rule."""
    found = []
    for code, risk in sorted({(each.code, each.risk) for each in plan.beyond}):
        same = [each for each in plan.beyond if (each.code, each.risk) == (code, risk)]
        name = risk.name.lower()
        found.append(LeftOut(code, same[0].rule, name, len(same), f"`--risk {name}`"))
    return tuple(found)


def _kept(
    runner: Runner, plan: Plan, effects: tuple[Effect, ...], registry: Registry, effort: Effort, watch: Watch
) -> Kept | None:
    """What pays, without what was not shown to: two fixes together may be another training than all of them, and slower."""
    codes = tuple(each.code for each in unpaid(effects))
    if len(codes) in (0, len(effects)):
        return None
    try:
        with bounded(effort.budget.left, _NO_TIME):
            version, outcomes = without(plan, codes, "kept", registry)
    except BudgetError:
        return None
    watch.phase("comparing and timing what pays")
    runner.losses_until = effort.budget.share(FOR_LOSSES)
    timing = Timing(unit="epoch" if runner.limits.epochs else "step")
    likeness = Parity(Tier.UNKNOWN, _NO_TIME)
    try:
        likeness = _losses(runner, plan.original, version)
        versions = (plan.original, version)
        measure(runner, versions, timing, effort.pairs, effort.most, effort.budget.deadline, watch.timing)
    except BrokenError as error:
        return Kept(outcomes, None, replace(likeness, why=str(error)))
    except TimingError as error:
        return Kept(outcomes, None, parity.after_failure(likeness, error.sample, runner.furthest))
    except HungError as error:
        return Kept(outcomes, None, Parity(Tier.UNKNOWN, str(error)))
    return Kept(outcomes, timing if timing.has_ratio else None, likeness)


def _losses(runner: Runner, original: Version, other: Version) -> Parity:
    try:
        return parity.judge(runner, original, other)
    except HungError:
        raise
    except BudgetError:
        return Parity(Tier.UNKNOWN, _NO_TIME, unrun=1)


def _counting(watch: Watch) -> Callable[[Mode], None]:
    """Says which of the runs for the losses begins, and how many there are, as far as is known by then."""
    count = 0

    def begins(mode: Mode) -> None:
        nonlocal count
        if mode.kind == "loss":
            count += 1
            expected = _OFFSET_RUNS if mode.offset else _ROUNDED_RUNS if mode.rounding else LOSS_RUNS
            watch.phase(f"losses {count} of {max(count, expected)}, then timing")

    return begins


def _syncs(runner: Runner, plan: Plan) -> tuple[float, float] | None:
    """How often the host waits for the GPU in a step, the first ones aside: the median of one run of each version."""
    runs = _counted(runner, plan, "syncs")
    if runs is None:
        return None
    one, other = (run.syncs[runner.limits.warmup :] for run in runs)
    return (median(one), median(other)) if one and other else None


def _counted(runner: Runner, plan: Plan, kind: str) -> tuple[Sample, Sample] | None:
    """One run of each version in which something is counted; None where there is no time for them."""
    try:
        return runner.run(plan.original, Mode(kind)), runner.run(plan.fixed, Mode(kind))
    except BudgetError:
        return None


def _surroundings() -> list[str]:
    if (busy := host.busy_with_others()) > host.cores() * 0.5:
        return [f"other processes keep {busy:.1f} of {host.cores()} cores busy: timings will spread"]
    return []


def _of_others(meter: Meter) -> list[str]:
    """Asked between runs, so that none of these is a run's."""
    if others := meter.others():
        return [f"the GPU is in use by {len(others)} other process{'es' if len(others) > 1 else ''}"]
    return []


def _of_runner(runner: Runner) -> list[str]:
    if runner.is_confined:
        return []
    return ["this system has no Landlock: writes from compiled code are not kept inside the copy"]


def _of_gpu(runner: Runner) -> list[str]:
    if lost := runner.environment.get("lost"):
        return [f"all ran on the CPU: the machine has a GPU, but torch does not find it ({lost})"]
    return []


def _of_writes(runner: Runner, problem: str) -> list[str]:
    said = [line for line in map(refusal, runner.refused) if line not in problem]
    more = len(said) - _MOST_REFUSALS
    return said if more <= 0 else [*said[:_MOST_REFUSALS], f"{more} more writes were refused"]


def _of_timing(timing: Timing | None) -> list[str]:
    if timing is None:
        return []
    notes = []
    run = timing.pairs[0][0]
    if timing.unit == "epoch":
        return [_ONE_EPOCH] if not timing.first[0].warmup else []
    if timing.is_contradicted:
        notes.append(
            "the median step and all steps together, with what lies between them, say different things: some steps take "
            "much longer than most, or evaluation and the start of workers do; `--epochs 1` times whole epochs"
        )
    if not timing.steps_are_alike:
        notes.append("the steps of both versions are not alike: they take other batches, or begin at other events")
    if timing.tried_turns:
        notes.append("the runs of a pair could not take turns; they follow each other")
    if run.ended == "script":
        notes.append(f"the script ended after {len(run.steps)} measured steps, before all that were asked for (`--steps`)")
    if run.clock == "backward":
        notes.append("neither a DataLoader nor an optimizer is used: a step is from one backward pass to the next")
    if run.clock == "optimizer":
        notes.append("no DataLoader feeds the training steps: a step is from one optimizer step to the next")
    if run.optimizers > 1:
        notes.append(f"{run.optimizers} optimizers step: the first one, or the loader's batch, sets the step")
    notes += _of_held_back(timing)
    if run.ranks > 1:
        notes.append(f"{run.ranks} processes train: the slowest sets the step")
    return notes


def _of_held_back(timing: Timing) -> list[str]:
    """GPUs that ran below the clock they could, in either version's measured steps."""
    shares: dict[tuple[str, str, str], list[float]] = {}
    runs = [run for pair in timing.pairs for run in pair]
    for gpu in (gpu for run in runs for gpu in run.gpus):
        for reason in gpu.held_back:
            shares.setdefault((gpu.uuid, gpu.name, reason), [])
    for (uuid, _, reason), found in shares.items():
        for run in runs:
            found += [gpu.held_back.get(reason, 0.0) for gpu in run.gpus if gpu.uuid == uuid]
    often = {key: fmean(found) for key, found in shares.items() if fmean(found) >= OFTEN}
    return [
        f"{reason} held back the clock of {name} ({uuid[:8]}) in {share:.0%} of the readings: elsewhere times will differ"
        for (uuid, name, reason), share in often.items()
    ]
