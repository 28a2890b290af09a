"""Whether the fixed version is the same training: losses of separate runs, which are not timed. See `docs/verify.md`."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import stdev

from speedlint.verify import stats
from speedlint.verify.plan import Version
from speedlint.verify.runner import Mode, Runner
from speedlint.verify.samples import Sample

SINGLE, HALF = 1e-5, 2e-2
"""How far the first losses may be apart, relative to the original's, for numeric parity."""
DRIFT = 3.0
"""How many times the drift of one ulp is allowed."""
SEEDS = 5
_WINDOW = 5
_INSIDE = 0.8
_SHIFT, _CERTAIN = 0.005, 0.9975
"""How far the second half of the losses may be moved, relative to the original's, if seeds say so with this certainty."""
_SEEDING = "manual_seed"


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
        allowed: the drift that numeric parity allows.
        seeded: whether the script seeds torch itself.
        repeatable: whether two runs of the original agree bit for bit.
        original_seeds, fixed_seeds: the losses under further seeds, where they were needed.
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


def judge(runner: Runner, original: Version, fixed: Version) -> Parity:
    """Runs both versions under the same seed, and more often where the losses are not the same."""
    once, again = runner.run(original, Mode("loss")), runner.run(original, Mode("loss"))
    if not once.losses:
        return Parity(Tier.UNKNOWN, f"the original version {once.note or 'ran no backward pass'}")
    other = runner.run(fixed, Mode("loss"))
    if not other.losses or (other.note and not once.note):
        why = f"the fixed version {other.note or 'ran no backward pass'}"
        return Parity(Tier.DIFFERENT, why, once.losses, other.losses)
    found = compare(once, again, other)
    if found.tier is not Tier.UNKNOWN:
        return found
    nudged = runner.run(original, Mode("loss", nudge=True))
    found = with_drift(found, once, other, nudged)
    if found.tier is not Tier.UNKNOWN:
        return found
    seeds = range(1, SEEDS)
    mine = (once.losses, *(runner.run(original, Mode("loss", offset=seed)).losses for seed in seeds))
    theirs = (other.losses, *(runner.run(fixed, Mode("loss", offset=seed)).losses for seed in seeds))
    return with_seeds(found, mine, theirs)


def compare(once: Sample, again: Sample, other: Sample) -> Parity:
    """Identical, different for certain, or not known yet."""
    repeatable, seeded = _same(once.losses, again.losses), any(_SEEDING in each for each in once.seeds)
    first, drift = _gap(once.losses[0], other.losses[0]), distance(once.losses, other.losses)
    known = (once.losses, other.losses, first, drift)
    if any(map(math.isnan, other.losses)) and not any(map(math.isnan, once.losses)):
        at = next(i for i, each in enumerate(other.losses) if math.isnan(each))
        return Parity(Tier.DIFFERENT, f"its loss is not a number from step {at + 1} on", *known, 0.0, seeded, repeatable)
    if _same(once.losses, other.losses):
        if repeatable and seeded:
            why = f"all {len(once.losses)} losses are the same, bit for bit"
            return Parity(Tier.IDENTICAL, why, *known, 0.0, seeded, repeatable)
        why = "the losses are the same under a seed of verify's own; the script sets none, so `identical` is not to be had"
        if seeded:
            why = "the losses are the same, but the original does not repeat itself, so that `identical` is not to be had"
        return Parity(Tier.NUMERIC, why, *known, 0.0, seeded, repeatable)
    return Parity(Tier.UNKNOWN, "", *known, math.nan, seeded, repeatable)


def with_drift(found: Parity, once: Sample, other: Sample, nudged: Sample) -> Parity:
    """Numeric, or not known yet."""
    drifts = distance(once.losses, nudged.losses)
    least = HALF if once.half or other.half else SINGLE
    allowed = max(DRIFT * drifts, HALF if once.half != other.half else SINGLE)
    if len(once.losses) == len(other.losses) and found.first <= least and found.drift <= allowed:
        why = (
            f"the first losses agree within {found.first:.1e}, and later ones drift by {found.drift:.1e} "
            f"(allowed: {least:.0e}, and {allowed:.1e})"
        )
        return replace(found, tier=Tier.NUMERIC, why=why, allowed=allowed)
    return replace(found, allowed=allowed)


def with_seeds(found: Parity, mine: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]]) -> Parity:
    """Statistical if the mean of the fixed version's losses runs inside the original's envelope, and seed by seed they are
    not moved the same way; else different."""
    found = replace(found, original_seeds=tuple(map(tuple, mine)), fixed_seeds=tuple(map(tuple, theirs)))
    length = min(map(len, (*mine, *theirs)))
    finite = [sum(all(map(math.isfinite, each[:length])) for each in side) for side in (mine, theirs)]
    if finite != [len(mine), len(theirs)]:
        none = [len(mine) - finite[0], len(theirs) - finite[1]]
        why = f"the losses of {none[1]} of its {len(theirs)} seeds are no numbers, and those of {none[0]} of the original's"
        return replace(found, tier=Tier.DIFFERENT if finite[1] < finite[0] else Tier.UNKNOWN, why=why)
    if length < _WINDOW:
        return replace(found, tier=Tier.DIFFERENT, why=f"a run ended after {length} losses")
    smooth = [smoothed(each[:length]) for each in mine]
    mean = smoothed([math.fsum(each[k] for each in theirs) / len(theirs) for k in range(length)])
    low, high = [min(each) for each in zip(*smooth, strict=True)], [max(each) for each in zip(*smooth, strict=True)]
    inside = sum(a <= x <= b for a, x, b in zip(low, mean, high, strict=True)) / len(mean)
    ends = low[-1] <= mean[-1] <= high[-1]
    share = f"{inside:.0%} of the mean of {len(theirs)} seeds runs inside the envelope of {len(mine)} of the original"
    shift, t = moved(mine, theirs, length)
    if abs(shift) > _SHIFT and t > stats.t_quantile(_CERTAIN, len(mine) - 1):
        side = "above" if shift > 0 else "below"
        why = f"seed by seed, the second half of its losses is {abs(shift):.1%} {side} the original's"
        return replace(found, tier=Tier.DIFFERENT, why=f"{why} (t = {t:.1f} over {len(mine)} seeds)")
    if inside >= _INSIDE and ends:
        return replace(found, tier=Tier.STATISTICAL, why=f"{share}, its end included")
    return replace(found, tier=Tier.DIFFERENT, why=f"{share}, its end {'included' if ends else 'outside'}")


def moved(mine: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]], length: int) -> tuple[float, float]:
    """How far the second half of the losses is moved, as a mean over pairs of one seed and relative to the original's, and
    Student's t of that mean. Another computation moves all seeds the same way; another random stream does not.
    """
    differences = []
    for one, other in zip(mine, theirs, strict=True):
        half = math.fsum(one[length // 2 : length])
        differences.append((math.fsum(other[length // 2 : length]) - half) / max(abs(half), 1e-12))
    mean = math.fsum(differences) / len(differences)
    deviation = stdev(differences)
    return mean, abs(mean) / (deviation / math.sqrt(len(differences))) if deviation else math.inf


def distance(one: Sequence[float], other: Sequence[float]) -> float:
    """The largest distance of two losses of the same step, relative to the first's."""
    return max((_gap(a, b) for a, b in zip(one, other)), default=math.inf)  # noqa: B905 (one may have ended before)


def smoothed(losses: Sequence[float]) -> list[float]:
    """Means of five losses in a row."""
    return [math.fsum(losses[k : k + _WINDOW]) / _WINDOW for k in range(len(losses) - _WINDOW + 1)]


def _gap(one: float, other: float) -> float:
    if one == other or (math.isnan(one) and math.isnan(other)):
        return 0.0
    gap = abs(one - other) / max(abs(one), 1e-12)
    return math.inf if math.isnan(gap) else gap


def _same(one: Sequence[float], other: Sequence[float]) -> bool:
    return len(one) == len(other) and distance(one, other) == 0.0
