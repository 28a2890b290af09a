"""Everything that one ``verify`` found; `output/verify_*.py` print it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from speedlint.fixer import Outcome
from speedlint.stages import Stage
from speedlint.verify.forecast import Wanting
from speedlint.verify.parity import Parity, Tier
from speedlint.verify.samples import Sample
from speedlint.verify.stats import Verdict
from speedlint.verify.targets import Target
from speedlint.verify.timing import Timing

FINE, WORSE, FAILED, UNCLEAR = 0, 1, 2, 3


@dataclass(frozen=True)
class Effect:
    """What one rule's fixes bring.

    Attributes:
        code: the rule.
        without: the timing of the fixed version against one without these fixes, how many times as long a step takes there.
        full: whether it was measured in full, not only screened.
    """

    code: str
    rule: str
    risk: str
    fixes: int
    without: Timing | None
    full: bool
    note: str = ""

    @property
    def pays(self) -> bool | None:
        """Whether the step takes longer without these fixes, be it by the screening pairs; None where that is not clear."""
        if self.without is None:
            return None
        return {Verdict.FASTER: True, Verdict.SLOWER: False, Verdict.SAME: False}.get(self.without.verdict)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One rule's fixes that are not in what was timed, or not in what was written, and why."""

    code: str
    rule: str
    risk: str
    fixes: int
    why: str


@dataclass(frozen=True)
class Kept:
    """The fixes that pay, compared with the original and timed without the others.

    Attributes:
        outcomes: the files as they leave them.
        timing: None where a run failed or there was no time for the pairs that a ratio needs.
    """

    outcomes: tuple[Outcome, ...]
    timing: Timing | None
    parity: Parity


@dataclass(frozen=True)
class Report:
    """The verdict and what it rests on.

    Attributes:
        syncs: how often the host waits for the GPU in a step of either version; None where that was not counted.
        work: runs of both versions that counted what a step computes and reads; None where that was not counted.
        seconds, budget: what all of it took, and might take.
        wanting: what was missing for a clear answer; None where it is clear or something failed.
        kept: with ``--apply --per-fix``, what is written; None where all fixes pay, or none does, or no time was left.
        left_out: the fixes that were left out.
        written: the files that ``--apply`` has written.
        unwritten: why it has written none; empty where it has, or was not asked to.
    """

    command: str
    root: Path
    stages: tuple[Stage, ...]
    timing: Timing | None
    parity: Parity
    targets: tuple[Target, ...]
    machine: dict[str, Any]
    effects: tuple[Effect, ...] = ()
    syncs: tuple[float, float] | None = None
    work: tuple[Sample, Sample] | None = None
    notes: tuple[str, ...] = field(default=())
    problem: str = ""
    other: str = ""
    interrupted: bool = False
    seconds: float = 0.0
    budget: float = 0.0
    wanting: Wanting | None = None
    kept: Kept | None = None
    left_out: tuple[LeftOut, ...] = ()
    written: tuple[Path, ...] = ()
    unwritten: str = ""

    @property
    def verdict(self) -> Verdict:
        """What the timings say; inconclusive where there are none."""
        return self.timing.verdict if self.timing is not None else Verdict.UNCLEAR

    def exit_code(self, least: float | None) -> int:
        """0 faster or no difference; 1 slower, another training, or less than ``least`` times as fast; 2 where the original
        cannot be run; 3 inconclusive, or not known to be the same training."""
        if self.parity.tier is Tier.DIFFERENT or self.verdict is Verdict.SLOWER:
            return WORSE
        if self.timing is None and self.parity.tier is Tier.UNKNOWN and self.problem and not self.interrupted:
            return FAILED
        if self.timing is None or self.verdict is Verdict.UNCLEAR or self.parity.tier is Tier.UNKNOWN:
            return UNCLEAR
        return WORSE if least is not None and self.timing.estimate.ratio < least else FINE
