"""The statistics of verify: intervals that cover, and verdicts that do not overstate."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from speedlint.verify import stats
from speedlint.verify.samples import Sample
from speedlint.verify.stats import Estimate, Verdict
from speedlint.verify.timing import Timing


@pytest.mark.parametrize(
    ("degrees", "quantile"),
    [(1, 12.7062), (2, 4.30265), (3, 3.18245), (5, 2.57058), (10, 2.22814), (11, 2.20099), (30, 2.04227), (120, 1.97993)],
)
def test_quantiles_of_t_are_those_of_the_tables(degrees: int, quantile: float) -> None:
    assert stats.t_quantile(0.975, degrees) == pytest.approx(quantile, abs=1e-5)


@pytest.mark.parametrize("count", [2, 3, 6, 12])
def test_the_interval_covers_the_truth_as_often_as_it_says(count: int) -> None:
    drawn = random.Random(count)
    found = [stats.estimate([drawn.gauss(0.1, 0.05) for _ in range(count)]) for _ in range(4000)]
    covered = sum(abs(each.log - 0.1) <= each.half for each in found) / len(found)
    assert covered == pytest.approx(0.95, abs=0.015)


def test_one_pair_has_no_interval_and_no_verdict() -> None:
    one = stats.estimate([0.5])
    assert math.isinf(one.half)
    assert stats.verdict(one, math.log(1.03)) is Verdict.UNCLEAR


@pytest.mark.parametrize(
    ("log", "half", "floor", "verdict"),
    [
        (0.20, 0.05, 0.03, Verdict.FASTER),
        (-0.20, 0.05, 0.03, Verdict.SLOWER),
        (0.06, 0.05, 0.03, Verdict.UNCLEAR),
        (0.00, 0.02, 0.03, Verdict.SAME),
        (0.20, 0.05, 0.30, Verdict.UNCLEAR),  # within a floor so wide that nothing can be said
        (0.01, 0.20, 2.00, Verdict.UNCLEAR),
    ],
)
def test_a_verdict_needs_the_whole_interval(log: float, half: float, floor: float, verdict: Verdict) -> None:
    assert stats.verdict(Estimate(log, half, 6), floor) is verdict


def test_the_floor_is_never_below_three_percent() -> None:
    assert stats.floor(Estimate(0.0, 0.001, 3)) == pytest.approx(math.log(1.03))
    assert stats.floor(Estimate(0.0, 0.2, 3)) == 0.2
    assert stats.floor(stats.estimate([])) == pytest.approx(math.log(1.03))


def test_a_costly_start_is_paid_for_only_by_what_is_faster() -> None:
    def timing(fixed: float) -> Timing:
        starts = (Sample("original", steps=(2.0,) * 5, warmup=(2.0,)), Sample("fixed", steps=(fixed,) * 5, warmup=(12.0,)))
        pairs = [(replace(starts[0], steps=(2.0 + k / 100,) * 5), starts[1]) for k in range(4)]
        return Timing(starts, pairs)

    assert timing(1.0).breakeven == 11  # 11 s more, and 1.015 s less in each step
    assert timing(2.0).breakeven is None


def test_faster_steps_in_a_slower_training_are_no_faster_training() -> None:
    def run(step: float, window: float) -> Sample:
        return Sample("x", steps=(step,) * 10, window=window)

    pairs = [(run(2.0 + k / 100, 20.0), run(1.0, window=19.0)) for k in range(4)]
    assert Timing(pairs=pairs).verdict is Verdict.FASTER
    slower = [(original, replace(fixed, window=30.0)) for original, fixed in pairs]
    assert Timing(pairs=slower).verdict is Verdict.UNCLEAR


def test_a_long_step_among_short_ones_is_not_overlooked() -> None:
    def run(usual: float, rare: float) -> Sample:
        steps = ((usual,) * 3 + (rare,)) * 10
        return Sample("x", steps=steps, window=sum(steps))

    bursts = [(run(30 + k / 100, 30), run(12, 120)) for k in range(4)]
    assert Timing(pairs=bursts).verdict is Verdict.UNCLEAR
    hidden = [(run(10 + k / 100, 40), run(10, 20)) for k in range(4)]
    assert Timing(pairs=hidden).verdict is Verdict.UNCLEAR


def test_steps_of_another_kind_are_not_compared() -> None:
    one, other = Sample("x", steps=(2.0,) * 10, samples=40), Sample("y", steps=(1.0,) * 10, samples=20)
    assert Timing(pairs=[(one, other)] * 4).verdict is Verdict.UNCLEAR
    assert Timing(pairs=[(one, replace(other, samples=40))] * 4).verdict is Verdict.FASTER
    assert Timing(pairs=[(one, replace(other, samples=40, clock="optimizer"))] * 4).verdict is Verdict.UNCLEAR
