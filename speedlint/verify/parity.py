"""Whether the fixed version is the same training: losses of separate runs, which are not timed. See `docs/verify.md`."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from speedlint.verify import drift, seeds
from speedlint.verify.budget import BudgetError, HungError
from speedlint.verify.plan import Version
from speedlint.verify.runner import Mode, Rounding, Runner
from speedlint.verify.samples import Sample
from speedlint.verify.seeds import Answer

ROUNDED = 3
"""The runs that show what rounding does."""
_WINDOW = 5
_REHEARSAL = Mode("rehearsal")
_SEEDING = ("torch.manual_seed", "torch.random.manual_seed")
"""What seeds torch's own generator; one that a loader or a split is given says nothing of the weights."""
_READ_AHEAD = 2
"""How many more losses one of two runs of the same training may have, where a thread asks for the batches."""
_SINGLE = 2.0**-24
"""The unit roundoff of float32."""


class Tier(enum.IntEnum):
    """How alike two trainings are, the most alike first."""

    IDENTICAL = 0
    NUMERIC = 1
    STATISTICAL = 2
    DIFFERENT = 3
    UNKNOWN = 4

    @property
    def words(self) -> str:
        """The tier's name for people."""
        return {
            Tier.IDENTICAL: "identical",
            Tier.NUMERIC: "numeric",
            Tier.STATISTICAL: "statistical",
            Tier.DIFFERENT: "different training",
            Tier.UNKNOWN: "not known",
        }[self]


@dataclass(frozen=True)
class Parity:
    """The tier and what it rests on.

    Attributes:
        why: one sentence.
        original, fixed: the losses of both versions under the same seed.
        first: how far the first losses are apart, relative to the original's.
        drift: the largest such distance over all steps.
        allowed: the drift that numeric parity allows, in the step that comes closest to it.
        seeded: whether the script seeds generators itself, with the same seeds in each run.
        repeatable: whether two runs of the original, under the same seeds, agree bit for bit.
        original_seeds, fixed_seeds: the losses under further seeds, where they were needed.
        beyond: what is known of the script after these losses: evaluation, saving, its end. Empty where nothing was left.
        unrun: how many more runs it takes to compare the losses, for which there was no time.
    """

    tier: Tier
    why: str
    original: tuple[float, ...] = ()
    fixed: tuple[float, ...] = ()
    first: float = math.nan
    drift: float = math.nan
    allowed: float = math.nan
    seeded: bool = True
    repeatable: bool = True
    original_seeds: tuple[tuple[float, ...], ...] = field(default=())
    fixed_seeds: tuple[tuple[float, ...], ...] = field(default=())
    beyond: str = ""
    unrun: int = 0


class BrokenError(Exception):
    """The original version fails, so that there is nothing to compare with. ``str()`` is one line."""

    def __init__(self, sample: Sample) -> None:
        after = f", after {len(sample.losses)} losses" if sample.losses else ""
        super().__init__(f"the {sample.version} version {sample.note}{after}")


def judge(runner: Runner, original: Version, fixed: Version) -> Parity:
    """Runs both versions under the same seeds, and more often where the losses are not the same. Raises BrokenError."""
    once = runner.run(original, Mode("loss"))
    if once.failed:
        raise BrokenError(once)
    if not once.losses:
        return Parity(Tier.UNKNOWN, f"the original version {once.note or 'ran no backward pass'}")
    if _numbers(once.losses) < min(seeds.FEWEST_LOSSES, len(once.losses)):
        why = f"of the original's {len(once.losses)} losses {_numbers(once.losses)} are numbers, which is too few"
        return Parity(Tier.UNKNOWN, why, once.losses)
    again = runner.run(original, Mode("loss", replay=once.seeds))
    if again.failed:
        raise BrokenError(again)
    mode = Mode("loss", replay=varying(once, again))
    other = runner.run(fixed, mode)
    if not other.losses or (other.note and not once.note):
        why = f"the fixed version {other.note or 'ran no backward pass'}"
        return Parity(Tier.DIFFERENT, why, once.losses, other.losses)
    found = compare(once, again, other)
    if found.tier is Tier.UNKNOWN and may_be_rounding(found, once, other):
        if not runner.has_time(mode.kind, ROUNDED):
            return _apart(found, ROUNDED)
        unit, passing = precision(found, once, other)
        modes = [replace(mode, rounding=Rounding(seed, unit, passing)) for seed in range(ROUNDED)]
        found = with_drift(found, unit, [again.losses, *(runner.run(original, each).losses for each in modes)])
    if found.tier is Tier.UNKNOWN:
        found = _with_seeds(found, runner, (original, fixed), again, mode)
    if found.tier in (Tier.DIFFERENT, Tier.UNKNOWN) or once.ended == other.ended == "script":
        return found
    try:
        return beyond(found, runner, original, fixed)
    except HungError as error:
        return replace(found, beyond=str(error))
    except BudgetError:
        return replace(found, beyond="what comes after the steps that were compared was not run: there was no time left")


def after_failure(found: Parity, sample: Sample, furthest: int) -> Parity:
    """What a timed run that failed says: it goes on for longer than those for the losses. ``furthest``: the steps that the
    original comes through."""
    if not sample.failed:
        return found
    if sample.version == "original":
        return replace(found, tier=Tier.UNKNOWN, why="an original that fails is compared with nothing")
    if furthest <= sample.done:
        return found
    return replace(found, tier=Tier.DIFFERENT, why=f"after {sample.done} steps it {sample.note}; the original does not")


def varying(once: Sample, again: Sample) -> tuple[tuple[str, int | None], ...]:
    """The seeds to set in all further runs: those that the script took from elsewhere, and None for its own."""
    if once.seeds == again.seeds:
        return ()
    return tuple((one[0], None if one == other else one[1]) for one, other in zip(once.seeds, again.seeds))  # noqa: B905


def compare(once: Sample, again: Sample, other: Sample) -> Parity:
    """Identical, different for certain, or not known yet."""
    repeatable = _same(once, again)
    sets_seeds = any(name in _SEEDING for name, _ in once.seeds)
    varies = once.seeds != again.seeds or any(seed is None for _, seed in once.seeds)
    distances = drift.gaps(once.losses, other.losses)
    known = (once.losses, other.losses, distances[0], max(distances))
    seeded = sets_seeds and not varies
    if any(map(math.isnan, other.losses)) and not any(map(math.isnan, once.losses)):
        at = next(i for i, each in enumerate(other.losses) if math.isnan(each))
        return Parity(Tier.DIFFERENT, f"its loss is not a number from step {at + 1} on", *known, 0.0, seeded, repeatable)
    if not _same(once, other):
        return Parity(Tier.UNKNOWN, "", *known, math.nan, seeded, repeatable)
    if repeatable and seeded:
        broken = len(once.losses) - _numbers(once.losses)
        but = f", though {broken} of them are no numbers" if broken else ""
        why = f"all {len(once.losses)} losses are the same, bit for bit{but}"
        return Parity(Tier.IDENTICAL, why, *known, 0.0, seeded, repeatable)
    why = "the losses are the same under a seed of verify's own; the script sets none, so `identical` is not to be had"
    if varies:
        why = "the losses are the same under one run's seeds; the script takes others each time, so there is no `identical`"
    elif seeded:
        why = "the losses are the same, but the original does not repeat itself, so that `identical` is not to be had"
    return Parity(Tier.NUMERIC, why, *known, 0.0, seeded, repeatable)


def may_be_rounding(found: Parity, once: Sample, other: Sample) -> bool:
    """Whether the losses are so near to each other that runs moved by rounding are worth their time."""
    unit = precision(found, once, other)[0]
    return _are_as_many(once, other) and found.first <= drift.tolerance(unit) and found.drift <= drift.cap(unit)


def precision(found: Parity, once: Sample, other: Sample) -> tuple[float, bool]:
    """The unit roundoff by which the versions may differ, and whether parameters are stored more finely than that.

    Where both compute in the same precision and the first losses agree as finely as parameters are stored, it is theirs.
    """
    stored = max(once.stored, other.stored) or _SINGLE
    unit = max(once.computed, other.computed, stored)
    if once.computed == other.computed and found.first <= drift.tolerance(stored):
        unit = stored
    return unit, unit > stored


def with_drift(found: Parity, unit: float, moved: Sequence[Sequence[float]]) -> Parity:
    """Numeric, or not known yet. ``moved``: losses of the original that rounding has moved."""
    rounding = drift.measured(found.original, found.fixed, moved, unit)
    found = replace(found, allowed=rounding.allowed)
    if not rounding.is_rounding:
        return found
    why = (
        f"the first losses agree within {rounding.first:.1e}, and later ones drift by {rounding.largest:.1e}, step by step "
        f"as rounding makes them (at most {rounding.ratio:.0%} of what is allowed, in step {rounding.at + 1})"
    )
    return replace(found, tier=Tier.NUMERIC, why=why)


def _with_seeds(found: Parity, runner: Runner, versions: tuple[Version, Version], again: Sample, mode: Mode) -> Parity:
    """Runs both versions under further seeds, and under more where those leave a doubt."""
    paired = max(drift.gaps(found.original, again.losses)) <= drift.CAP_HALF
    mine, theirs = [found.original], [found.fixed]
    if not paired:
        mine.append(again.losses)
    for count in (seeds.FEW, seeds.MANY):
        more = 2 * count - len(mine) - len(theirs)
        if not runner.has_time(mode.kind, more):
            return _apart(found, more)
        for side, version in zip((mine, theirs), versions, strict=True):
            for seed in range(len(side), count):
                sample = runner.run(version, replace(mode, offset=seed))
                if sample.failed:
                    tier = Tier.UNKNOWN if side is mine else Tier.DIFFERENT
                    return replace(found, tier=tier, why=f"under another seed the {version.name} version {sample.note}")
                side.append(sample.losses)
        answered, is_clear = with_seeds(found, mine, theirs, paired)
        if is_clear:
            break
    return answered


def _apart(found: Parity, unrun: int) -> Parity:
    """Losses that are not the same, where there is no time for the further runs that would say what that means."""
    why = (
        f"the first losses are {found.first:.1e} apart and later ones up to {found.drift:.1e}; to tell that from "
        f"rounding or chance takes {unrun} more runs, for which the budget (`--budget`) does not suffice"
    )
    return replace(found, why=why, unrun=unrun)


def with_seeds(
    found: Parity, mine: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]], paired: bool = True
) -> tuple[Parity, bool]:
    """Statistical or different, and whether more seeds cannot change that."""
    found = replace(found, original_seeds=tuple(map(tuple, mine)), fixed_seeds=tuple(map(tuple, theirs)))
    length = min(map(len, (*mine, *theirs)))
    finite = [sum(all(map(math.isfinite, each[:length])) for each in side) for side in (mine, theirs)]
    if finite != [len(mine), len(theirs)]:
        none = [len(mine) - finite[0], len(theirs) - finite[1]]
        why = f"the losses of {none[1]} of its {len(theirs)} seeds are no numbers, and those of {none[0]} of the original's"
        return replace(found, tier=Tier.DIFFERENT if finite[1] < finite[0] else Tier.UNKNOWN, why=why), True
    if length < seeds.FEWEST_LOSSES:
        short = min(map(len, mine)) < seeds.FEWEST_LOSSES
        tier = Tier.UNKNOWN if short else Tier.DIFFERENT
        which = "original" if short else "fixed"
        return replace(found, tier=tier, why=f"a run of the {which} version ended after {length} losses"), True
    counts = [sorted(map(len, side)) for side in (mine, theirs)]
    if max(counts[0][0], counts[1][0]) > min(counts[0][-1], counts[1][-1]) + _READ_AHEAD:
        why = f"its runs come to {counts[1][-1]} losses, those of the original to {counts[0][-1]}"
        return replace(found, tier=Tier.DIFFERENT, why=why), True
    answer, why = seeds.judged([each[:length] for each in mine], [each[:length] for each in theirs], paired)
    if answer is Answer.MOVED:
        return replace(found, tier=Tier.DIFFERENT, why=why), True
    why = f"under one seed the losses are up to {found.drift:.1e} apart, more than rounding is known to make; {why}"
    return replace(found, tier=Tier.STATISTICAL, why=why), answer is Answer.ALIKE


def beyond(found: Parity, runner: Runner, original: Version, fixed: Version) -> Parity:
    """Whether the fixed version also comes through what follows these losses, in a run with a few batches of each loader."""
    after = f"what follows the first {len(found.original)} losses, such as evaluation,"
    if original.command.launcher:
        return replace(found, beyond=f"{after} was not run")
    theirs = runner.run(fixed, _REHEARSAL)
    if not theirs.failed:
        return replace(found, beyond=_reached(after, theirs))
    mine = runner.run(original, _REHEARSAL)
    if not mine.failed and _came_further(mine, theirs):
        why = f"after {len(found.original)} losses that are {found.tier.words} it {theirs.note}; the original does not"
        return replace(found, tier=Tier.DIFFERENT, why=why)
    both = (
        "both versions fail" if mine.failed else "the fixed version fails where the original did not come in the same time"
    )
    return replace(
        found, beyond=f"{after} was not compared: with few batches of each loader {both} (the fixed one {theirs.note})"
    )


def _came_further(mine: Sample, theirs: Sample) -> bool:
    """Whether one rehearsal, which is ended after some seconds, came past where the other failed."""
    return mine.ended == "script" or (mine.done, mine.evaluations) > (theirs.done, theirs.evaluations)


def _reached(after: str, theirs: Sample) -> str:
    """How far the fixed version came with few batches of each loader."""
    if theirs.ended == "script" and not theirs.note:
        return f"{after} runs in the fixed version too, with few batches of each loader; its results were not compared"
    if theirs.evaluations:
        return f"evaluation runs in the fixed version too, with few batches of each loader; {after} was not compared"
    return f"evaluation was not reached: {after} was not run"


def smoothed(losses: Sequence[float]) -> list[float]:
    """Means of five losses in a row."""
    return [math.fsum(losses[k : k + _WINDOW]) / _WINDOW for k in range(len(losses) - _WINDOW + 1)]


def _same(one: Sample, other: Sample) -> bool:
    """Whether the losses of two runs agree bit for bit."""
    return _are_as_many(one, other) and max(drift.gaps(one.losses, other.losses), default=math.inf) == 0.0


def _numbers(losses: Sequence[float]) -> int:
    return sum(map(math.isfinite, losses))


def _are_as_many(one: Sample, other: Sample) -> bool:
    """Whether two runs have as many losses, but for those that a run which verify ended may be ahead."""
    apart = _READ_AHEAD if one.ended == other.ended == "steps" else 0
    return abs(len(one.losses) - len(other.losses)) <= apart
