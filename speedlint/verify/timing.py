"""Pairs, of blocks of turns or of runs in ABBA order, until the answer is clear."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from statistics import median

from speedlint import host
from speedlint.verify import stats
from speedlint.verify.budget import BudgetError, HungError
from speedlint.verify.plan import Version
from speedlint.verify.runner import FEWEST_STEPS, TIMED, Runner
from speedlint.verify.samples import Sample
from speedlint.verify.stats import Estimate, Verdict

_BLOCK = 2
_WIDE = math.log1p(0.03)
_ALIKE = 0.1
_LEAST_BLOCK = 0.5
"""How short a block of turns may be, as a part of ``--seconds``, where the time or the script ends early."""
_TOGETHER = 3
"""How many runs take turns: the original, the other version, and the original's twin."""
_FIRST_SHARE = 6
"""What the time is cut into for each version's first run: two of them, and as much again and more for pairs."""


class TimingError(Exception):
    """A run failed, or measured too few steps or epochs; ``sample`` says why. ``str()`` is one line."""

    def __init__(self, sample: Sample, unit: str = "step") -> None:
        self.sample = sample
        counted = len(sample.steps)
        why = sample.note or f"ended after {counted} measured steps, and at least {FEWEST_STEPS} are needed"
        if unit == "epoch" and not sample.note:
            why = "ended without a whole epoch: `--epochs` needs a DataLoader that feeds the training and ends"
        super().__init__(f"the {sample.version} version {why}")


@dataclass
class Timing:
    """Two versions, timed in turn.

    Attributes:
        unit: what is timed: ``step``, or ``epoch`` with evaluation and the start of workers. Where it is an epoch, the steps
            of all runs are epochs.
        first: each version's first run, whose caches were empty; not among the pairs. Empty before it was made.
        pairs: the runs of both versions that stood side by side, or blocks of their turns; the original's first.
        twins: for each pair that was run in turns, a second run of the original that took turns with them.
        starts: how often three runs were started to take turns.
        start: the seconds that the last start took until the first turn; None before it was made.
        in_turns: whether the runs of a pair take turns; else they follow each other.
        tried_turns: whether turns were tried and did not work.
    """

    first: tuple[Sample, ...] = ()
    pairs: list[tuple[Sample, Sample]] = field(default_factory=list)
    twins: list[Sample] = field(default_factory=list)
    in_turns: bool = False
    tried_turns: bool = False
    starts: int = 0
    start: float | None = None
    unit: str = "step"

    @property
    def has_ratio(self) -> bool:
        """Whether there are as many pairs as an interval needs; with fewer no ratio is shown."""
        return len(self.pairs) >= stats.FEWEST

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
        if not self.has_ratio or self.is_contradicted or not self.steps_are_alike:
            return Verdict.UNCLEAR
        return stats.verdict(self.estimate, self.floor)

    @property
    def is_unclear_for_noise(self) -> bool:
        """Whether more pairs would make the verdict clear."""
        return self.verdict is Verdict.UNCLEAR and not self.is_contradicted and self.steps_are_alike

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
        """The same for all that happens between the first and the last measured step: evaluation, starts of workers; None
        where epochs are timed, which have it in."""
        if self.unit == "epoch":
            return None
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
    """Adds pairs of runs of both versions to ``timing``. Raises TimingError and HungError.

    Pairs follow until there are ``pairs`` of them, the interval is within 3% of the ratio and the verdict is clear, or
    ``most`` are made, or what comes next would not be over at ``deadline``, a reading of ``time.monotonic()``.
    """
    before, runner.until = runner.until, min(runner.until, deadline)
    try:
        _measure(runner, versions, timing, pairs, most, watch)
    except HungError:
        raise
    except BudgetError:
        pass
    finally:
        runner.until = before


def _measure(
    runner: Runner,
    versions: tuple[Version, Version],
    timing: Timing,
    pairs: int,
    most: int,
    watch: Callable[[Timing], None],
) -> None:
    if not timing.first:
        timing.first = first_runs(runner, versions, pairs)
        timing.in_turns = all(runner.can_take_turns(sample, _TOGETHER) for sample in timing.first)
    watch(timing)
    while not _is_enough(timing, pairs, most):
        if timing.in_turns:
            _add_in_turns(runner, versions, timing, pairs, most)
        else:
            _add_in_order(runner, versions, timing, pairs)
        watch(timing)


def first_runs(runner: Runner, versions: tuple[Version, Version], pairs: int) -> tuple[Sample, Sample]:
    """Each version's first run; the one for its losses where time is too short for another beside ``pairs`` pairs."""
    left, limits = runner.until - time.monotonic(), runner.limits
    one, other = (runner.compared.get(version.name, Sample(version.name)) for version in versions)
    needed = (2 + _together()) * max(runner.longest.values(), default=0.0) + pairs * _TOGETHER * limits.seconds
    if needed > left and not limits.epochs and min(len(one.steps), len(other.steps)) >= FEWEST_STEPS:
        return one, other
    within = left / _FIRST_SHARE
    return _timed(runner, versions[0], within), _timed(runner, versions[1], within)


def _together() -> float:
    """How many times as long as by itself a start takes when three begin together."""
    return max(1.0, _TOGETHER / host.cores())


def _add_in_turns(runner: Runner, versions: tuple[Version, Version], timing: Timing, pairs: int, most: int) -> None:
    """The pairs of one start, and their twins; where the versions cannot run at the same time, since all want the same port
    for example, none. Raises BudgetError."""
    original, fixed = versions
    order = (original, fixed, replace(original, twin=1))
    turned = timing.starts % 2 == 1
    missing = max(pairs, len(timing.pairs) + _BLOCK) - len(timing.pairs)
    count = min(_blocks(runner, timing, missing), most - len(timing.pairs))
    began = time.monotonic()
    runs = runner.in_turns(order[::-1] if turned else order, count)
    if runs is not None and all(len(sample.steps) >= runner.limits.fewest for sample in runs):
        timing.starts += 1
        timing.start = time.monotonic() - began - sum(sample.window or 0.0 for sample in runs)
        mine, theirs, twin = runs[::-1] if turned else runs
        turns = runner.limits.epochs or FEWEST_STEPS
        least = 0.0 if runner.limits.epochs else runner.limits.seconds * _LEAST_BLOCK
        for each in cut((mine, theirs, twin), count, turns, least):
            timing.pairs.append(each[:2])
            timing.twins.append(each[2])
        return
    timing.in_turns, timing.tried_turns = False, True
    timing.pairs.clear()
    timing.twins.clear()


def _blocks(runner: Runner, timing: Timing, missing: int) -> int:
    """How many blocks of turns the next start is used for. Raises BudgetError where it does not fit."""
    limits, step = runner.limits, max(sample.step for sample in timing.first)
    left = runner.until - time.monotonic()
    start = _start(timing)
    least = limits.epochs * step if limits.epochs else max(limits.seconds * _LEAST_BLOCK, FEWEST_STEPS * step)
    if start + (stats.FEWEST - len(timing.pairs)) * _TOGETHER * least > left:
        raise BudgetError
    block = limits.epochs * step if limits.epochs else limits.seconds
    steps = 0.0 if limits.epochs else limits.steps * step
    return blocks_of_start(start, block * _TOGETHER, steps * _TOGETHER, left, missing)


def _start(timing: Timing) -> float:
    """The seconds until three runs that begin together take turns: those of the last start, or what single runs took."""
    if timing.start is not None:
        return timing.start
    return _alone(timing) * _together()


def _alone(timing: Timing) -> float:
    """The seconds until a run that begins by itself has measured its first step."""
    return max(sample.wall - (sample.window or sum(sample.steps)) for sample in timing.first)


def timed_run(runner: Runner) -> float:
    """The seconds that a run took whose steps were timed; where there was none, the longest of the others."""
    return runner.longest.get(TIMED.kind) or max(runner.longest.values(), default=0.0)


def blocks_of_start(start: float, block: float, steps: float, left: float, missing: int) -> int:
    """How many blocks of turns one start is used for, if a block takes ``block`` seconds and ``left`` are left.

    As many as take as long as the start, so that no more than half the time goes into starts, or as long as the fewest steps
    do (``steps``), but two at the least; and all that are missing where no other start will fit.
    """
    count = max(_BLOCK, math.ceil(max(start, steps) / max(block, 1e-3)))
    is_last = 2 * start + missing * block > left
    return missing if is_last else min(missing, count)


def cut(runs: tuple[Sample, Sample, Sample], most: int, fewest: int, least: float) -> list[tuple[Sample, Sample, Sample]]:
    """Runs that took turns, cut into at most ``most`` blocks of turns that all of them had: of ``fewest`` turns and
    ``least`` seconds for each version, or more."""
    rounds = min(len(run.turns) for run in runs)
    window = min(run.turns[rounds - 1][1] for run in runs) if rounds else 0.0
    count = max(1, min(most, rounds // fewest, int(window / least) if least else most))
    if count == 1:
        return [runs]
    edges = [rounds * k // count for k in range(count + 1)]
    return [(runs[0].during(a, b), runs[1].during(a, b), runs[2].during(a, b)) for a, b in itertools.pairwise(edges)]


def _add_in_order(runner: Runner, versions: tuple[Version, Version], timing: Timing, pairs: int) -> None:
    """A pair of runs that follow each other: original, fixed, and in the next pair fixed, original. Raises BudgetError."""
    done, left = len(timing.pairs), runner.until - time.monotonic()
    turned = done % 2 == 1
    if not timing.pairs and 2 * stats.FEWEST * timed_run(runner) > left:
        raise BudgetError
    within = left / 2 / max(1, pairs - done)
    whole = _alone(timing) + runner.limits.seconds
    if 2 * max(1, stats.FEWEST - done) * whole <= left:
        within = max(within, whole)  # ended during its start, a run would spare little and say less
    runs = [_timed(runner, version, within) for version in (versions[::-1] if turned else versions)]
    timing.pairs.append((runs[1], runs[0]) if turned else (runs[0], runs[1]))


def _timed(runner: Runner, version: Version, within: float) -> Sample:
    sample = runner.run(version, TIMED, within)
    if sample.failed or len(sample.steps) < runner.limits.fewest:
        raise TimingError(sample, "epoch" if runner.limits.epochs else "step")
    return sample


def _is_enough(timing: Timing, pairs: int, most: int) -> bool:
    """Whether to stop."""
    done = len(timing.pairs)
    if done >= most:
        return True
    if done < pairs or (not timing.in_turns and done % _BLOCK):
        return False
    return timing.estimate.half < _WIDE and timing.verdict is not Verdict.UNCLEAR
