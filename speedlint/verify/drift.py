"""Whether two series of losses drift apart as rounding makes them, and no faster. `docs/verify.md` gives the rules."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

HALF, SINGLE, DOUBLE = 2e-2, 1e-5, 1e-12
"""How far the first losses may be apart, by the coarser version's precision; relative."""
_BELOW_SINGLE, _BELOW_DOUBLE = 2.0**-20, 2.0**-40
CAP, CAP_HALF = 1e-3, 2e-2
"""The drift from which rounding is not told from a small change any more; relative."""
TIMES = 4.0
"""How many times the drift, and the growth in one step, of runs that were moved by rounding is allowed."""
_UNITS = 64.0
"""The drift that is no growth yet, in units of roundoff; at most `CAP`."""
_LEAST_SCALE = 0.1


@dataclass(frozen=True)
class Drift:
    """How far two versions drift apart, against what rounding does.

    Attributes:
        first: the distance of the first losses.
        largest: the largest distance of all steps.
        allowed: what rounding may come to in the step that comes closest to it, or exceeds it most.
        at: that step, from 0.
        ratio: the distance there, as a share of ``allowed``.
        growth: how many times the drift grew in its largest jump from one step to the next, as a share of what is allowed.
        jump: the step of that jump.
    """

    first: float
    largest: float
    allowed: float
    at: int
    ratio: float
    growth: float
    jump: int

    @property
    def is_rounding(self) -> bool:
        """Whether each step lies within what is allowed, and none jumps."""
        return self.ratio <= 1 and self.growth <= 1


def tolerance(unit: float) -> float:
    """How far the first losses may be apart where ``unit`` is the unit roundoff."""
    return HALF if unit > _BELOW_SINGLE else SINGLE if unit > _BELOW_DOUBLE else DOUBLE


def cap(unit: float) -> float:
    """How far any two losses may be apart."""
    return CAP_HALF if unit > _BELOW_SINGLE else CAP


def gaps(one: Sequence[float], other: Sequence[float]) -> list[float]:
    """The distance of the losses of each step that both have, relative to the first's.

    A loss that crosses zero is measured by a tenth of the median loss.
    """
    sizes = [abs(loss) for loss in one if math.isfinite(loss)]
    least = max(_LEAST_SCALE * median(sizes), 1e-300) if sizes else 1.0
    return [_gap(a, b, max(abs(a), least)) for a, b in zip(one, other)]  # noqa: B905 (one may have ended before)


def measured(one: Sequence[float], other: Sequence[float], moved: Sequence[Sequence[float]], unit: float) -> Drift:
    """The drift of ``other``, against that of ``moved``: runs of the same training that were moved by rounding."""
    found = _running(gaps(one, other))
    own = [_running(gaps(one, each)) for each in moved]
    start = min(_UNITS * unit, CAP)
    limit = cap(unit)
    envelope = [max((each[min(k, len(each) - 1)] for each in own), default=0.0) for k in range(len(found))]
    allowed = [min(limit, max(TIMES * each, start)) for each in envelope]
    allowed[0] = tolerance(unit)
    at = max(range(len(found)), key=lambda k: found[k] / allowed[k])
    jump, growth = _jump(found, start)
    most = TIMES * max((_jump(each, start)[1] for each in own), default=1.0)
    return Drift(found[0], found[-1], allowed[at], at, found[at] / allowed[at], growth / most, jump)


def _jump(drift: Sequence[float], start: float) -> tuple[int, float]:
    """The step at which the drift grows most, and how many times; what lies below ``start`` is no drift yet."""
    grown = [max(drift[k], start) / max(drift[k - 1], start) for k in range(1, len(drift))]
    return (max(range(len(grown)), key=grown.__getitem__) + 1, max(grown)) if grown else (0, 1.0)


def _running(distances: Sequence[float]) -> list[float]:
    """The largest distance up to each step."""
    found, most = [], 0.0
    for each in distances:
        most = max(most, each)
        found.append(most)
    return found


def _gap(one: float, other: float, scale: float) -> float:
    if one == other or (math.isnan(one) and math.isnan(other)):
        return 0.0
    gap = abs(one - other) / scale
    return math.inf if math.isnan(gap) else gap
