"""What it would have taken to be clear: more pairs, and the budget for them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from speedlint.verify import stats
from speedlint.verify.budget import FOR_LOSSES
from speedlint.verify.stats import Estimate, Verdict
from speedlint.verify.timing import Timing

_MOST = 200
"""Pairs beyond which no budget is named: such a spread wants a quieter machine."""
_SPARE = 1.2
"""What a budget is more than the time that was counted: starts take now longer, now shorter."""
_STEPS = (30.0, 60.0)
"""Seconds to which a budget is rounded up, under ten minutes and above."""


_FOR_PAIRS = 2 + 4
"""In single runs: each version's first, and three that start together and take turns."""


@dataclass(frozen=True, slots=True)
class Wanting:
    """What is missing for a clear answer.

    Attributes:
        pairs: how many more pairs, about; None where that cannot be told or is more than anybody would wait for.
        budget: the seconds for all of it; None as for the pairs.
        most: the pairs in all where that is more than were allowed, else None.
    """

    pairs: int | None = None
    budget: float | None = None
    most: int | None = None


def more_pairs(timing: Timing) -> int | None:
    """How many more pairs make the verdict clear, if they spread as those that there are; None for more than 200."""
    done = len(timing.pairs)
    count = done + 1
    while count <= done + _MOST:
        control = _with(timing.control, count) if timing.twins else _with(timing.control, count // 2)
        if stats.verdict(_with(timing.estimate, count), stats.floor(control)) is not Verdict.UNCLEAR:
            return count - done
        count += 1 + (count - done) // 8
    return None


def of_runs(spent: float, longest: float, runs: int) -> Wanting:
    """What is missing where the losses could not be compared, after ``spent`` seconds; the longest run took ``longest``, and
    comparing them takes ``runs``."""
    losses = runs + 1  # and the rehearsal
    return Wanting(budget=rounded(_SPARE * max(spent, losses / FOR_LOSSES * longest, (losses + _FOR_PAIRS) * longest)))


def of_timing(timing: Timing, spent: float, run: float, pairs: int) -> Wanting:
    """What is missing where too few pairs fitted after the losses, and ``spent`` seconds were spent in all: at least
    ``pairs`` are wanted, and a run takes ``run`` seconds."""
    return Wanting(budget=rounded(_SPARE * (spent + (_FOR_PAIRS if timing.in_turns else 2 * pairs) * run)))


def of_pairs(timing: Timing, spent: float, timed: float, most: int) -> Wanting:
    """What is missing where the pairs are not clear, after ``spent`` seconds in all, ``timed`` of them for pairs, of which
    ``most`` were allowed."""
    more = more_pairs(timing)
    if more is None:
        return Wanting()
    whole = len(timing.pairs) + more
    return Wanting(more, rounded(spent + _SPARE * more * timed / len(timing.pairs)), whole if whole > most else None)


def rounded(seconds: float) -> float:
    """Rounded up to what one would type."""
    step = _STEPS[seconds > 600]
    return math.ceil(seconds / step) * step


def _with(found: Estimate, count: int) -> Estimate:
    """The same mean and spread, of so many ratios."""
    if found.count < 2 or count < 2:
        return found
    spread = found.half * math.sqrt(found.count) / stats.t_quantile((1 + stats.CONFIDENCE) / 2, found.count - 1)
    half = stats.t_quantile((1 + stats.CONFIDENCE) / 2, count - 1) * spread / math.sqrt(count)
    return Estimate(found.log, half, count)
