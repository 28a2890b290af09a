"""The tiers of verify, from losses alone."""

from __future__ import annotations

import math

import pytest

from speedlint.verify.parity import Parity, Tier, compare, with_drift, with_seeds
from speedlint.verify.samples import Sample

LOSSES = tuple(2.0 * 0.97**k for k in range(30))


def run(
    losses: tuple[float, ...] = LOSSES, *, seeds: tuple[str, ...] = ("torch.manual_seed",), half: bool = False
) -> Sample:
    return Sample("x", losses=losses, seeds=seeds, half=half)


def moved(by: float, first: int = 0) -> tuple[float, ...]:
    return tuple(loss * (1 + by) if k >= first else loss for k, loss in enumerate(LOSSES))


def judged(other: Sample, once: Sample | None = None, nudged: Sample | None = None) -> Parity:
    once = once or run()
    found = compare(once, once, other)
    return found if found.tier is not Tier.UNKNOWN else with_drift(found, once, other, nudged or run(moved(1e-6, 1)))


def test_the_same_losses_are_identical() -> None:
    assert judged(run()).tier is Tier.IDENTICAL


def test_a_script_that_sets_no_seed_has_no_identical() -> None:
    found = judged(run(seeds=()), run(seeds=()))
    assert found.tier is Tier.NUMERIC
    assert "sets none" in found.why


def test_an_original_that_does_not_repeat_itself_has_no_identical() -> None:
    found = compare(run(), run(moved(1e-7, 3)), run())
    assert found.tier is Tier.NUMERIC
    assert "does not repeat itself" in found.why


@pytest.mark.parametrize(
    ("other", "half", "tier"),
    [
        (moved(2e-6), False, Tier.NUMERIC),
        (moved(1e-3), False, Tier.UNKNOWN),
        (moved(1e-3), True, Tier.NUMERIC),
        (moved(1e-2, 5), False, Tier.UNKNOWN),
        (LOSSES[:20], False, Tier.UNKNOWN),
    ],
)
def test_rounding_is_numeric_and_no_more(other: tuple[float, ...], half: bool, tier: Tier) -> None:
    assert judged(run(other, half=half)).tier is tier


def test_drift_is_measured_against_one_ulp() -> None:
    chaotic = run(moved(4e-3, 1))
    assert judged(run(moved(1e-2, 5)), nudged=chaotic).tier is Tier.NUMERIC
    assert judged(run(moved(2e-2, 5)), nudged=chaotic).tier is Tier.UNKNOWN


def test_not_a_number_is_another_training() -> None:
    losses = (*LOSSES[:10], *[math.nan] * 20)
    found = judged(run(losses))
    assert found.tier is Tier.DIFFERENT
    assert "step 11" in found.why
    assert judged(run(losses), run(losses)).tier is Tier.IDENTICAL


def seeded(shift: float = 0.0, scale: float = 1.0) -> list[tuple[float, ...]]:
    return [tuple(scale * loss + 0.05 * (k - 2) + shift for loss in LOSSES) for k in range(5)]


def test_five_seeds_tell_noise_from_another_training() -> None:
    found = compare(run(), run(), run(moved(1e-2)))
    noisy = [tuple(loss + (-1) ** k * 0.03 for loss in losses) for k, losses in enumerate(seeded())]
    assert with_seeds(found, seeded(), noisy).tier is Tier.STATISTICAL
    assert with_seeds(found, seeded(), seeded(0.5)).tier is Tier.DIFFERENT
    assert with_seeds(found, seeded(), seeded(scale=0.6)).tier is Tier.DIFFERENT
    assert with_seeds(found, seeded(), [each[:3] for each in seeded()]).tier is Tier.DIFFERENT


def test_a_small_shift_of_all_seeds_is_another_training() -> None:
    found = with_seeds(compare(run(), run(), run(moved(1e-2))), seeded(), seeded(0.03))
    assert found.tier is Tier.DIFFERENT
    assert "seed by seed" in found.why
    assert with_seeds(found, seeded(), seeded(0.001)).tier is Tier.STATISTICAL


def test_seeds_without_a_number_are_counted() -> None:
    found = compare(run(), run(), run(moved(1e-2)))
    broken = [*seeded()[:4], (math.nan,) * len(LOSSES)]
    assert with_seeds(found, seeded(), broken).tier is Tier.DIFFERENT
    assert with_seeds(found, broken, broken).tier is Tier.UNKNOWN


def test_a_drift_in_half_precision_is_measured_against_one_ulp_too() -> None:
    found = judged(run(moved(1e-2, 1), half=True), run(half=True), run(moved(1e-4, 1)))
    assert found.tier is Tier.UNKNOWN
    assert judged(run(moved(1e-2, 1), half=True), run(), run(moved(1e-4, 1))).tier is Tier.NUMERIC
