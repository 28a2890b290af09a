"""Whether two versions' losses, over several seeds, are those of the same training. `docs/verify.md` gives the tests."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, stdev, variance

from speedlint.verify import stats

FEW, MANY = 5, 10
"""The seeds each version runs under; the second number where the first leaves a doubt."""
FEWEST_LOSSES = 5
_SHIFT = 0.005
"""How far the losses may be moved, relative to the original's, whatever the seeds say."""
_ERROR = 0.001
"""How often the same training may be called another one at either number of seeds."""
_HINT = 0.95
_FAR = 2.0
"""A single run has diverged where its last losses lie so many times above all of the original's."""

Runs = Sequence[Sequence[float]]


class Answer(enum.Enum):
    """What the seeds say."""

    ALIKE = enum.auto()
    DOUBT = enum.auto()
    MOVED = enum.auto()


@dataclass(frozen=True)
class Shift:
    """How far the mean loss of a part of the steps, or another number of each run, is moved.

    Attributes:
        part: its name.
        mean: relative to the original's.
        half: half the width of its 95% interval.
        t: Student's t of the mean.
        degrees: its degrees of freedom.
    """

    part: str
    mean: float
    half: float
    t: float
    degrees: int

    def is_sure(self, probability: float) -> bool:
        """Whether the shift is large enough to count, and other than zero with this probability."""
        return abs(self.mean) > _SHIFT and self.t > stats.t_quantile((1 + probability) / 2, self.degrees)


def judged(mine: Runs, theirs: Runs, paired: bool) -> tuple[Answer, str]:
    """The answer and its reason. ``paired``: runs of one place in both sides used the same random numbers."""
    if diverged := _diverged(mine, theirs):
        return Answer.MOVED, diverged
    found = shifts(mine, theirs, paired)
    count = len(theirs)
    sure = [each for each in found if each.is_sure(1 - _ERROR / len(found))]
    if sure:
        worst = max(sure, key=lambda each: each.t)
        side = "above" if worst.mean > 0 else "below"
        how = "seed by seed" if paired else f"over {count} runs"
        why = f"{how}, {worst.part} of its losses is {abs(worst.mean):.1%} {side} the original's"
        return Answer.MOVED, f"{why} (t = {worst.t:.1f} over {count} {'seeds' if paired else 'runs'})"
    main = found[1]
    over = f"{count} seeds" if paired else f"{count} runs with seeds of their own"
    why = f"over {over}, {main.part} of its losses is moved by {main.mean:+.2%} ± {main.half:.2%}, which is no clear shift"
    return (Answer.DOUBT if any(each.is_sure(_HINT) for each in found) else Answer.ALIKE), why


def shifts(mine: Runs, theirs: Runs, paired: bool) -> list[Shift]:
    """The shift of each part of the steps: seed by seed, or by Welch's test where the runs share no random numbers."""
    found = []
    for part, one, other in _parts(mine, theirs):
        scale = fmean(abs(each) for each in one) or 1.0
        if paired:
            mean, error, degrees = _paired([(b - a) / scale for a, b in zip(one, other, strict=True)])
        else:
            mean, error, degrees = _welch([each / scale for each in one], [each / scale for each in other])
        t = abs(mean) / error if error else math.inf if mean else 0.0
        found.append(Shift(part, mean, stats.t_quantile(0.975, degrees) * error, t, degrees))
    return found


def _parts(mine: Runs, theirs: Runs) -> list[tuple[str, list[float], list[float]]]:
    """The mean losses of each run in the first half, the second half and the last quarter, and how they change in a step."""
    length = min(map(len, (*mine, *theirs)))
    half, quarter = length // 2, length - length // 4
    spans = (("the first half", 0, half), ("the second half", half, length), ("the last quarter", quarter, length))
    parts = [(name, [fmean(each[a:b]) for each in mine], [fmean(each[a:b]) for each in theirs]) for name, a, b in spans]
    return [*parts, ("the change from step to step", list(map(_roughness, mine)), list(map(_roughness, theirs)))]


def _roughness(losses: Sequence[float]) -> float:
    """The mean change from one loss to the next, whichever its sign."""
    return fmean(abs(b - a) for a, b in pairwise(losses))


def _paired(differences: Sequence[float]) -> tuple[float, float, int]:
    """The mean, its standard error and the degrees of freedom."""
    return fmean(differences), stdev(differences) / math.sqrt(len(differences)), len(differences) - 1


def _welch(one: Sequence[float], other: Sequence[float]) -> tuple[float, float, int]:
    """The same for the difference of two samples' means, by Welch and Satterthwaite (B. L. Welch, Biometrika 34, 1947)."""
    a, b = variance(one) / len(one), variance(other) / len(other)
    spread = a * a / (len(one) - 1) + b * b / (len(other) - 1)
    degrees = int((a + b) ** 2 / spread) if spread else len(one) - 1
    return fmean(other) - fmean(one), math.sqrt(a + b), degrees


def _diverged(mine: Runs, theirs: Runs) -> str:
    """Why a single run is another training, or nothing: one of several that diverges moves no mean by much of its spread."""
    most = max(abs(loss) for each in mine for loss in each)
    for k, each in enumerate(theirs):
        end = fmean(map(abs, each[-max(1, len(each) // 4) :]))
        if end > _FAR * most:
            return f"run {k + 1} of {len(theirs)} ends with losses of {end:.3g}; no loss of the original is above {most:.3g}"
    return ""
