"""The tiers of verify, from losses alone."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from speedlint.verify.parity import (
    Parity,
    Tier,
    beyond,
    compare,
    judge,
    may_be_rounding,
    precision,
    varying,
    with_drift,
    with_seeds,
)
from speedlint.verify.plan import Command, Version
from speedlint.verify.samples import Sample

LOSSES = tuple(2.0 * 0.97**k for k in range(30))
SINGLE, BFLOAT16, DOUBLE = 2.0**-24, 2.0**-8, 2.0**-53
SEEDED = (("torch.manual_seed", 0),)


def run(
    losses: tuple[float, ...] = LOSSES,
    *,
    seeds: tuple[tuple[str, int | None], ...] = SEEDED,
    stored: float = SINGLE,
    computed: float = SINGLE,
) -> Sample:
    return Sample("x", losses=losses, seeds=seeds, stored=stored, computed=computed)


def moved(by: float, first: int = 0) -> tuple[float, ...]:
    return tuple(loss * (1 + by) if k >= first else loss for k, loss in enumerate(LOSSES))


def growing(at_first: float, factor: float, until: float = 0.1) -> tuple[float, ...]:
    """The losses, drifting apart by a factor in each step, as a chaotic training does."""
    return tuple(loss * (1 + min(until, at_first * factor**k) * (k > 0)) for k, loss in enumerate(LOSSES))


def judged(other: Sample, once: Sample | None = None, rounded: tuple[float, ...] = moved(1e-6, 1)) -> Parity:
    once = once or run()
    found = compare(once, once, other)
    if found.tier is not Tier.UNKNOWN or not may_be_rounding(found, once, other):
        return found
    return with_drift(found, precision(found, once, other)[0], [rounded])


def test_the_same_losses_are_identical() -> None:
    assert judged(run()).tier is Tier.IDENTICAL


def test_a_script_that_sets_no_seed_has_no_identical() -> None:
    found = judged(run(seeds=()), run(seeds=()))
    assert found.tier is Tier.NUMERIC
    assert "sets none" in found.why


def test_a_seed_for_a_generator_of_its_own_is_none_for_the_weights() -> None:
    split = run(seeds=(("torch.Generator.manual_seed", 42), ("torch.cuda.manual_seed", 42)))
    assert judged(split, split).tier is Tier.NUMERIC


def test_a_thread_that_reads_ahead_changes_no_losses() -> None:
    assert judged(run(LOSSES[:29])).tier is Tier.IDENTICAL
    ended = replace(run(LOSSES[:29]), ended="script")
    assert judged(ended).tier is not Tier.IDENTICAL


def test_a_shorter_training_is_another_one() -> None:
    half = [each[:15] for each in seeded()]
    found, is_clear = with_seeds(UNCLEAR, seeded(), half)
    assert (found.tier, is_clear) == (Tier.DIFFERENT, True)
    assert "come to 15 losses, those of the original to 30" in found.why
    lengths = [each[: 28 + k % 3] for k, each in enumerate(seeded())]
    assert with_seeds(UNCLEAR, seeded(), lengths)[0].tier is Tier.STATISTICAL


def test_an_original_whose_losses_are_no_numbers_is_compared_with_nothing() -> None:
    broken = run((2.0, *[math.nan] * 29))
    runner: Any = SimpleNamespace(run=lambda *_: broken)
    version = Version("original", Path(), Command("python", "train.py", False, (), (), Path()))
    found = judge(runner, version, version)
    assert (found.tier, "of the original's 30 losses 1 are numbers" in found.why) == (Tier.UNKNOWN, True)


@pytest.mark.parametrize(("other", "unrun"), [(moved(1e-6, 3), 3), (moved(0.1), 8)])
def test_losses_that_are_apart_are_told_where_there_is_no_time_for_more_runs(other: tuple[float, ...], unrun: int) -> None:
    """No further run is begun: what is left is for the pairs."""
    runs = [run(), run(), run(other)]
    runner: Any = SimpleNamespace(run=lambda *_: runs.pop(0), has_time=lambda _kind, _count: False)
    version = Version("original", Path(), Command("python", "train.py", False, (), (), Path()))
    found = judge(runner, version, replace(version, name="fixed"))
    assert (found.tier, found.unrun, found.fixed) == (Tier.UNKNOWN, unrun, other)
    assert f"takes {unrun} more runs, for which the budget" in found.why


def test_an_original_that_does_not_repeat_itself_has_no_identical() -> None:
    found = compare(run(), run(moved(1e-7, 3)), run())
    assert found.tier is Tier.NUMERIC
    assert "does not repeat itself" in found.why


@pytest.mark.parametrize("seeds", [(("torch.manual_seed", 1),), (("torch.seed", None), ("torch.manual_seed", 0))])
def test_a_script_with_other_seeds_each_time_has_no_identical(seeds: tuple[tuple[str, int | None], ...]) -> None:
    first = seeds if seeds[0][1] is None else SEEDED
    found = compare(run(seeds=first), run(seeds=seeds), run(seeds=seeds))
    assert found.tier is Tier.NUMERIC
    assert "takes others each time" in found.why


def test_only_seeds_that_vary_are_set_again() -> None:
    once = run(seeds=(("torch.manual_seed", 0), ("random.seed", 5)))
    assert varying(once, once) == ()
    again = run(seeds=(("torch.manual_seed", 0), ("random.seed", 6)))
    assert varying(once, again) == (("torch.manual_seed", None), ("random.seed", 5))


@pytest.mark.parametrize(
    ("other", "is_numeric"),
    [
        (moved(2e-6), True),
        (moved(1e-3), False),
        (moved(1e-5, 5), False),
        (LOSSES[:20], False),
    ],
)
def test_rounding_is_numeric_and_no_more(other: tuple[float, ...], is_numeric: bool) -> None:
    assert (judged(run(other)).tier is Tier.NUMERIC) is is_numeric


def test_drift_is_measured_against_rounding_in_each_step() -> None:
    chaotic = growing(1e-7, 1.35)
    assert judged(run(growing(2e-7, 1.35, 9e-4)), rounded=chaotic).tier is Tier.NUMERIC
    early = moved(5e-4, 1)  # below what rounding comes to in the end, but not in the second step
    assert judged(run(early), rounded=chaotic).tier is Tier.UNKNOWN


def test_a_jump_in_one_step_is_no_rounding() -> None:
    chaotic = growing(1e-7, 1.5)
    late = moved(5e-4, 25)  # rounding has come to as much by then, but not in one step
    assert judged(run(late), rounded=chaotic).tier is Tier.UNKNOWN


def test_a_drift_that_hides_a_change_is_not_numeric() -> None:
    chaotic = growing(1e-7, 2.0)
    assert judged(run(growing(1e-7, 2.0)), rounded=chaotic).tier is Tier.UNKNOWN


def test_losses_near_zero_are_measured_by_those_around_them() -> None:
    losses = tuple(math.cos(0.5 * k) for k in range(30))
    nearly = tuple(loss + 1e-8 for loss in losses)
    assert judged(run(nearly), run(losses), rounded=losses).tier is Tier.NUMERIC


def test_precision_is_that_of_the_coarser_version() -> None:
    double = run(stored=DOUBLE, computed=DOUBLE)
    assert judged(run(moved(3e-6)), double, rounded=moved(1e-6, 1)).tier is Tier.NUMERIC
    other = run(moved(3e-6), stored=DOUBLE, computed=DOUBLE)
    assert judged(other, double, rounded=moved(1e-15, 1)).tier is Tier.UNKNOWN


def test_half_precision_in_one_version_is_numeric() -> None:
    other = run(moved(1e-3), computed=BFLOAT16)
    assert judged(other, rounded=moved(1e-3, 1)).tier is Tier.NUMERIC
    assert judged(run(moved(3e-2), computed=BFLOAT16), rounded=moved(1e-2, 1)).tier is Tier.UNKNOWN


def test_where_both_compute_in_half_precision_a_change_does_not_hide_in_it() -> None:
    half, changed = run(computed=BFLOAT16), run(moved(1e-3, 1), computed=BFLOAT16)
    found = compare(half, half, changed)
    assert precision(found, half, changed) == (SINGLE, False)
    assert judged(changed, half).tier is Tier.UNKNOWN


def test_not_a_number_is_another_training() -> None:
    losses = (*LOSSES[:10], *[math.nan] * 20)
    found = judged(run(losses))
    assert found.tier is Tier.DIFFERENT
    assert "step 11" in found.why
    assert judged(run(losses), run(losses)).tier is Tier.IDENTICAL


def seeded(shift: float = 0.0, scale: float = 1.0, count: int = 5) -> list[tuple[float, ...]]:
    return [tuple(scale * loss + 0.05 * ((3 * k) % 5 - 2) + shift for loss in LOSSES) for k in range(count)]


@pytest.mark.parametrize(
    ("original", "tier"),
    [
        (Sample("original", warmup=(1.0,) * 9, ended="steps"), Tier.DIFFERENT),
        (Sample("original", warmup=(1.0,) * 2, ended="script"), Tier.DIFFERENT),
        (Sample("original", warmup=(1.0,) * 8, ended="steps"), Tier.IDENTICAL),
    ],
)
def test_a_failure_counts_where_the_original_came_further(original: Sample, tier: Tier) -> None:
    failed = Sample("fixed", warmup=(1.0,) * 8, ended="script", note="failed with exit code 1: it broke", failed=True)
    version = Version("original", Path(), Command("python", "train.py", False, (), (), Path()))
    runner: Any = SimpleNamespace(run=lambda asked, _mode: original if asked is version else failed)
    found = beyond(judged(run()), runner, version, replace(version, name="fixed"))
    assert found.tier is tier
    assert "it broke" in found.why + found.beyond


UNCLEAR = compare(run(), run(), run(moved(1e-2)))


def test_five_seeds_tell_noise_from_another_training() -> None:
    draw = random.Random(0)
    noisy, otherwise = ([tuple(loss + draw.gauss(0, 0.03) for loss in losses) for losses in seeded()] for _ in range(2))
    assert with_seeds(UNCLEAR, noisy, otherwise)[0].tier is Tier.STATISTICAL
    assert with_seeds(UNCLEAR, seeded(), seeded(0.5))[0].tier is Tier.DIFFERENT
    assert with_seeds(UNCLEAR, seeded(), seeded(scale=0.6))[0].tier is Tier.DIFFERENT


def test_a_small_shift_of_all_seeds_is_another_training() -> None:
    found, _ = with_seeds(UNCLEAR, seeded(), seeded(0.03))
    assert found.tier is Tier.DIFFERENT
    assert "seed by seed" in found.why
    assert with_seeds(found, seeded(), seeded(0.001))[0].tier is Tier.STATISTICAL


def test_a_doubt_asks_for_more_seeds() -> None:
    shifts = (0.1, 0.03, 0.07, 0.04, 0.09)
    theirs = [tuple(loss + each for loss in losses) for losses, each in zip(seeded(), shifts, strict=True)]
    found, is_clear = with_seeds(UNCLEAR, seeded(), theirs)
    assert (found.tier, is_clear) == (Tier.STATISTICAL, False)
    assert with_seeds(UNCLEAR, seeded() * 2, theirs * 2)[0].tier is Tier.DIFFERENT


def test_one_seed_that_diverges_is_another_training() -> None:
    theirs = [*seeded()[:4], tuple(loss * 1.3**k for k, loss in enumerate(LOSSES))]
    found, _ = with_seeds(UNCLEAR, seeded(), theirs)
    assert found.tier is Tier.DIFFERENT
    assert "run 5 of 5" in found.why


def test_seeds_without_a_number_are_counted() -> None:
    broken = [*seeded()[:4], (math.nan,) * len(LOSSES)]
    assert with_seeds(UNCLEAR, seeded(), broken)[0].tier is Tier.DIFFERENT
    assert with_seeds(UNCLEAR, broken, broken)[0].tier is Tier.UNKNOWN


def test_a_run_that_ends_early_is_not_compared() -> None:
    short = [each[:3] for each in seeded()]
    assert with_seeds(UNCLEAR, seeded(), short)[0].tier is Tier.DIFFERENT
    assert with_seeds(UNCLEAR, short, seeded())[0].tier is Tier.UNKNOWN


@pytest.mark.parametrize("paired", [True, False])
def test_runs_of_one_training_are_seldom_called_different(paired: bool) -> None:
    """Simulated comparisons of a training with itself: each run has its own level, and noise in each step."""
    draw = random.Random(0)

    def one() -> tuple[float, ...]:
        level = draw.gauss(0, 0.05)
        return tuple(loss + level + draw.gauss(0, 0.1) for loss in LOSSES)

    wrong = 0
    for _ in range(400):
        mine, theirs = [one() for _ in range(5)], [one() for _ in range(5)]
        found, is_clear = with_seeds(UNCLEAR, mine, theirs, paired)
        if not is_clear:
            mine, theirs = ([*side, *(one() for _ in range(5))] for side in (mine, theirs))
            found, _ = with_seeds(UNCLEAR, mine, theirs, paired)
        wrong += found.tier is Tier.DIFFERENT
    assert wrong <= 4
