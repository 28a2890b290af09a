"""The statistics of paired timings. `docs/verify.md` gives the formulas.

All ratios are of times, ``original / fixed``: above 1 the fixed version is faster. Intervals are Student's t on the
logarithms of per-pair ratios (a percentile bootstrap of five pairs covers only 84%).
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95
LEAST_FLOOR = 0.03
FEWEST = 3
"""The fewest pairs whose ratio is shown: Student's t for a 95% interval is 12.7 with two of them, 4.3 with three."""
MOST_SAME = math.log1p(2 * LEAST_FLOOR)
"""How far the interval of "no difference" may reach, however noisy the control is."""


class Verdict(enum.Enum):
    """What the timings say."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "no difference"
    UNCLEAR = "inconclusive"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A geometric mean of ratios with its 95% interval.

    Attributes:
        log: the mean of the logarithms.
        half: half the interval's width, in logarithms; infinite for fewer than two ratios.
        count: the number of ratios.
    """

    log: float
    half: float
    count: int

    @property
    def ratio(self) -> float:
        """The geometric mean."""
        return math.exp(self.log)

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return math.exp(self.log - self.half)

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return math.exp(self.log + self.half) if self.half < 700 else math.inf


def estimate(logs: Sequence[float]) -> Estimate:
    """The mean of logarithms of ratios with its t interval."""
    count = len(logs)
    mean = math.fsum(logs) / count if count else 0.0
    if count < 2:
        return Estimate(mean, math.inf, count)
    variance = math.fsum((each - mean) ** 2 for each in logs) / (count - 1)
    return Estimate(mean, t_quantile((1 + CONFIDENCE) / 2, count - 1) * math.sqrt(variance / count), count)


def floor(control: Estimate) -> float:
    """The smallest logarithm of a ratio that counts as a difference: 3%, or half the width of the control's interval, or
    what the control is off by: processes of the same program differ for as long as they run, by where their memory lies."""
    least = math.log1p(LEAST_FLOOR)
    return max(least, control.half, abs(control.log)) if math.isfinite(control.half) else least


def verdict(found: Estimate, least: float) -> Verdict:
    """Faster or slower if the interval lies wholly beyond the floor, no difference if wholly within, else inconclusive."""
    low, high = found.log - found.half, found.log + found.half
    if low > least:
        return Verdict.FASTER
    if high < -least:
        return Verdict.SLOWER
    near = min(least, MOST_SAME)
    return Verdict.SAME if -near <= low and high <= near else Verdict.UNCLEAR


def t_quantile(probability: float, degrees: int) -> float:
    """The quantile of Student's t distribution, by bisection; to 1e-9. ``probability`` lies in [0.5, 1)."""
    low, high = 0.0, 1.0
    while _t_below(high, degrees) < probability:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        if _t_below(middle, degrees) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _t_below(t: float, degrees: int) -> float:
    """The probability of a value below ``t`` >= 0, by the finite series for whole degrees of freedom.

    Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
    """
    angle = math.atan(t / math.sqrt(degrees))
    cosine, sine = math.cos(angle), math.sin(angle)
    if degrees % 2:
        inside, term = 0.0, cosine
        for k in range(1, degrees - 1, 2):
            inside += term
            term *= cosine * cosine * (k + 1) / (k + 2)
        within = 2 / math.pi * (angle + sine * inside)
    else:
        inside, term = 0.0, 1.0
        for k in range(0, degrees - 1, 2):
            inside += term
            term *= cosine * cosine * (k + 1) / (k + 2)
        within = sine * inside
    return (1 + within) / 2
