"""Pairs of runs, in turns or in ABBA order, until the answer is clear."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from statistics import median

from speedlint.verify import stats
from speedlint.verify.plan import Version
from speedlint.verify.runner import Runner
from speedlint.verify.samples import Sample
from speedlint.verify.stats import Estimate, Verdict

_BLOCK = 2
_WIDE = math.log1p(0.03)
FEWEST_STEPS = 3
_ALIKE = 0.1


class TimingError(Exception):
    """A run measured too few steps; ``sample`` says why. ``str()`` is one line."""

    def __init__(self, sample: Sample) -> None:
        self.sample = sample
        counted = len(sample.steps)
        why = sample.note or f"ended after {counted} measured steps, and at least {FEWEST_STEPS} are needed"
        super().__init__(f"the {sample.version} version {why}")


@dataclass
class Timing:
    """Two versions, timed in turn.

    Attributes:
        first: each version's first run, whose caches were empty; not among the pairs. Empty before it was made.
        pairs: the runs of both versions that stood side by side, the original's first.
        twins: for each pair that was run in turns, a second run of the original that took turns with them.
        in_turns: whether the runs of a pair take turns; else they follow each other.
        tried_turns: whether turns were tried and did not work.
    """

    first: tuple[Sample, ...] = ()
    pairs: list[tuple[Sample, Sample]] = field(default_factory=list)
    twins: list[Sample] = field(default_factory=list)
    in_turns: bool = False
    tried_turns: bool = False

    @property
    def estimate(self) -> Estimate:
        """How many times as long the original's step takes."""
        return stats.estimate(self.logs)

    @property
    def logs(self) -> list[float]:
        """The logarithm of each pair's ratio; where the original has a twin, of the geometric mean of the two."""
        if not self.twins:
            return [math.log(a.step / b.step) for a, b in self.pairs]
        both = zip(self.pairs, self.twins, strict=True)
        return [(math.log(a.step) + math.log(twin.step)) / 2 - math.log(b.step) for (a, b), twin in both]

    @property
    def control(self) -> Estimate:
        """The original against itself: its two runs of each pair, or those of neighbouring pairs."""
        own = [a for a, _ in self.pairs]
        beside = list(zip(own, self.twins, strict=True)) if self.twins else list(zip(own[::2], own[1::2], strict=False))
        return stats.estimate([math.log(one.step / other.step) for one, other in beside])

    @property
    def floor(self) -> float:
        """The smallest logarithm of a ratio that counts."""
        return stats.floor(self.control)

    @property
    def verdict(self) -> Verdict:
        """What the pairs say of the step; not clear where all that lies between the steps says the opposite."""
        if len(self.pairs) < 2 or self.is_contradicted or not self.steps_are_alike:
            return Verdict.UNCLEAR
        return stats.verdict(self.estimate, self.floor)

    @property
    def is_contradicted(self) -> bool:
        """Whether the median step and all the time together say different things, such as where a few steps take long."""
        found, whole, floor = self.estimate, self.whole, self.floor
        if whole is None:
            return False
        if whole.log * found.log < 0 and abs(whole.log - found.log) > floor:
            return True
        is_hidden = stats.verdict(whole, floor) in (Verdict.FASTER, Verdict.SLOWER)
        return is_hidden and stats.verdict(found, floor) is Verdict.SAME

    @property
    def steps_are_alike(self) -> bool:
        """Whether both versions' steps begin at the same kind of event and take as many samples."""
        mine, theirs = self.pairs[0]
        one, other = mine.samples / len(mine.steps), theirs.samples / len(theirs.steps)
        return mine.clock == theirs.clock and abs(one - other) <= _ALIKE * max(one, other)

    @property
    def whole(self) -> Estimate | None:
        """The same for all that happens between the first and the last measured step: evaluation, starts of workers."""
        windows = [(a.window / len(a.steps), b.window / len(b.steps)) for a, b in self.pairs if a.window and b.window]
        return stats.estimate([math.log(a / b) for a, b in windows]) if len(windows) == len(self.pairs) else None

    @property
    def breakeven(self) -> int | None:
        """The steps after which what the fixed version's first run spent more on its start is paid for; None where it is
        not known to be faster, so that it may never be."""
        cost = self.first[1].warmup_cost - self.first[0].warmup_cost
        gain = median([a.step for a, _ in self.pairs]) - median([b.step for _, b in self.pairs])
        if cost <= 0:
            return 0
        return math.ceil(cost / gain) if gain > 0 and self.verdict is Verdict.FASTER else None


def measure(
    runner: Runner,
    versions: tuple[Version, Version],
    timing: Timing,
    pairs: int,
    most: int,
    deadline: float,
    watch: Callable[[Timing], None],
) -> None:
    """Adds pairs of runs of both versions to ``timing``. Raises TimingError.

    After ``pairs`` pairs, blocks of two follow until the interval is within 3% of the ratio and the verdict is clear, or
    ``most`` pairs are made, or the next block would end after ``deadline``, a reading of ``time.monotonic()``.
    """
    if not timing.first:
        timing.first = (_timed(runner, versions[0]), _timed(runner, versions[1]))
        timing.in_turns = all(runner.can_take_turns(sample, len(versions) + 1) for sample in timing.first)
    watch(timing)
    began, before = time.monotonic(), len(timing.pairs)
    while not _is_enough(timing, pairs, most, deadline, (time.monotonic() - began) / max(1, len(timing.pairs) - before)):
        if timing.in_turns:
            _add_in_turns(runner, versions, timing)
        else:
            _add_in_order(runner, versions, timing)
        watch(timing)


def _add_in_turns(runner: Runner, versions: tuple[Version, Version], timing: Timing) -> None:
    """A pair and its twin; where they cannot run at the same time, since all want the same port for example, none."""
    original, fixed = versions
    order = (original, fixed, replace(original, twin=1))
    turned = len(timing.pairs) % 2 == 1
    runs = runner.in_turns(order[::-1] if turned else order)
    if runs is not None and all(len(sample.steps) >= FEWEST_STEPS for sample in runs):
        mine, theirs, twin = runs[::-1] if turned else runs
        timing.pairs.append((mine, theirs))
        timing.twins.append(twin)
        return
    timing.in_turns, timing.tried_turns = False, True
    timing.pairs.clear()
    timing.twins.clear()


def _add_in_order(runner: Runner, versions: tuple[Version, Version], timing: Timing) -> None:
    """A pair of runs that follow each other: original, fixed, and in the next pair fixed, original."""
    turned = len(timing.pairs) % 2 == 1
    runs = [_timed(runner, version) for version in (versions[::-1] if turned else versions)]
    timing.pairs.append((runs[1], runs[0]) if turned else (runs[0], runs[1]))


def _timed(runner: Runner, version: Version) -> Sample:
    sample = runner.run(version)
    if len(sample.steps) < FEWEST_STEPS:
        raise TimingError(sample)
    return sample


def _is_enough(timing: Timing, pairs: int, most: int, deadline: float, each: float) -> bool:
    """Whether to stop; ``each`` is the seconds that a pair takes."""
    done = len(timing.pairs)
    if done >= most or (done >= _BLOCK and time.monotonic() + each * (_BLOCK - done % _BLOCK) > deadline):
        return True
    if done < pairs or done % _BLOCK:
        return False
    return timing.estimate.half < _WIDE and timing.verdict is not Verdict.UNCLEAR
