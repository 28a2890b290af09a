"""What the terminal and the page both say of a ``verify``: the verdict, and the rows of their tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from statistics import median

from speedlint.output.terminal import shown
from speedlint.output.text import count
from speedlint.verify import gpus, stats
from speedlint.verify.gpus import Gpu
from speedlint.verify.report import Effect, Kept, Report
from speedlint.verify.samples import Sample
from speedlint.verify.stats import Estimate, Verdict
from speedlint.verify.timing import Timing

_MEMORY = (
    ("peak memory, allocated", "peak_allocated"),
    ("peak memory, reserved", "peak_reserved"),
    ("peak memory, resident", "peak_resident"),
)


def headline(report: Report) -> str:
    """The verdict in one line."""
    return "inconclusive: too little could be timed" if report.timing is None else verdict(report.timing)


def verdict(timing: Timing) -> str:
    """What the timings say, in one line."""
    found, measure = timing.estimate, MEASURES[timing.unit]
    if timing.verdict is Verdict.FASTER:
        return f"{found.ratio:.2f}x faster ({interval(found)}), {measure}"
    if timing.verdict is Verdict.SLOWER:
        return f"{1 / found.ratio:.2f}x slower ({1 / found.high:.2f} to {1 / found.low:.2f}), {measure}"
    return f"{timing.verdict.value}: {found.ratio:.2f}x ({interval(found)}), {measure}"


MEASURES = {"step": "by the step", "epoch": "by whole epochs, evaluation and the start of workers in"}


def interval(found: Estimate) -> str:
    """The 95% interval of a ratio."""
    return f"{found.low:.2f} to {found.high:.2f}"


def wanting(report: Report) -> str:
    """What it would have taken to be clear; nothing where it is, or where something failed."""
    missing = report.wanting
    if missing is None:
        return ""
    if missing.budget is None:
        return "the pairs spread too much for this difference: 200 more would not do; try again while less else runs"
    took = f"{minutes(report.seconds)} of {minutes(report.budget)} were spent"
    pairs = "" if missing.pairs is None else f"{count(missing.pairs, 'more pair')}: "
    most = "" if missing.most is None else f" --max-pairs {missing.most}"
    return f"to be clear it takes about {pairs}`--budget {max(missing.budget, report.budget):.0f}{most}` ({took})"


def minutes(value: float) -> str:
    """A time as minutes and seconds."""
    return f"{int(value) // 60}:{int(value) % 60:02d}"


def noise(timing: Timing) -> str:
    """How many pairs there are, and what the original says against itself."""
    control = timing.control
    is_shown = control.count >= stats.FEWEST
    against = (
        f"the original against itself: {control.ratio:.3f}x ({interval(control)})"
        if is_shown
        else "too few pairs for a control"
    )
    how = f"pairs in turns, from {count(timing.starts, 'start')}" if timing.in_turns else "pairs"
    return f"{len(timing.pairs)} {how}; a difference counts beyond {math.expm1(timing.floor):.1%}; {against}"


def comparison(report: Report, timing: Timing) -> Iterator[tuple[str, str, str, str]]:
    """The rows of both versions: what is compared, the original's, the other's, and how they stand to each other."""
    sides = [a for a, _ in timing.pairs], [b for _, b in timing.pairs]

    def both(value: Callable[[Sample], float]) -> tuple[float, float]:
        one, other = (median(map(value, runs)) for runs in sides)
        return one, other

    def row(name: str, values: tuple[float, float], shown: Callable[[float], str], ratio: str) -> tuple[str, str, str, str]:
        return name, shown(values[0]), shown(values[1]), ratio

    yield row(timing.unit, both(lambda run: run.step), seconds, f"{timing.estimate.ratio:.2f}x")
    if (whole := timing.whole) is not None:
        spent = both(lambda run: (run.window or 0) / len(run.steps))
        yield row("step, and all between steps", spent, seconds, f"{whole.ratio:.2f}x")
    rates = both(lambda run: run.samples / sum(run.steps))
    if all(rates):
        yield row("samples a second", rates, lambda rate: f"{rate:,.0f}", f"{rates[1] / rates[0]:.2f}x")
    yield from _of_work(report, timing, both(lambda run: run.step))
    if sides[0][0].clock == "loader":
        yield row("waiting for data", both(lambda run: run.waiting), lambda share: f"{share:.0%}", "")
    if report.syncs is not None:
        yield row("waits for the GPU in a step", report.syncs, lambda count: f"{count:g}", "")
    yield from (row(name, values, text, "") for name, values, text in _of_gpus(sides))
    if all(run.joules for runs in sides for run in runs):
        joules = both(lambda run: run.joules or 0.0)
        yield row("energy of a step", joules, lambda joule: f"{joule:.3g} J", f"{joules[0] / joules[1]:.2f}x")
    for name, key in _MEMORY:
        peak, other = (max(run.memory.get(key, 0) for run in runs) for runs in sides)
        if peak and other:
            yield row(name, (peak, other), size, f"{peak / other:.2f}x")
    yield row("first steps cost more by", (timing.first[0].warmup_cost, timing.first[1].warmup_cost), seconds, _paid(timing))


Row = tuple[str, str, str, str]


def _of_work(report: Report, timing: Timing, steps: tuple[float, float]) -> Iterator[Row]:
    """Tokens and operations a second; the latter as a share of what the GPUs could do."""
    if report.work is None or timing.unit != "step":
        return
    one, other = (tuple(getattr(run, name) for run in report.work) for name in ("tokens", "flops"))
    samples = timing.pairs[0][0].samples / len(timing.pairs[0][0].steps)
    if all(count > samples for count in one):
        yield _row("tokens a second", [f"{count / step:,.0f}" for count, step in zip(one, steps, strict=True)])
    parts = timing.pairs[0][0].parts
    if not all(other) or any(len(part.gpus) > 1 for part in parts):  # what threads of DataParallel do is not counted
        return
    rates = [count / step for count, step in zip(other, steps, strict=True)]
    yield _row("TFLOP/s", [f"{rate / 1e12:.3g}" for rate in rates])
    peaks = [gpus.peak(gpu.name) for gpu in timing.pairs[0][0].gpus]
    if peaks and None not in peaks:
        most = math.fsum(peak or 0.0 for peak in peaks)
        yield _row(f"MFU, of {most / 1e12:,.0f} TFLOP/s", [f"{rate / most:.1%}" for rate in rates])


def _row(name: str, shown: list[str]) -> Row:
    return name, shown[0], shown[1], ""


def _of_gpus(sides: tuple[list[Sample], list[Sample]]) -> Iterator[tuple[str, tuple[float, float], Callable[[float], str]]]:
    """What all GPUs of all runs say, of both versions."""
    for label, name, text in _SAID:
        said = [[run.said(name) for run in runs] for runs in sides]
        if all(None not in each for each in said):
            one, other = (median([value for value in each if value is not None]) for each in said)
            yield label, (one, other), text


def ranks(timing: Timing) -> Iterator[tuple[str, ...]]:
    """The rows under `RANKS`: each GPU of each process, where there are several."""
    mine, theirs = timing.pairs[-1]
    if sum(max(1, len(part.gpus)) for part in mine.parts) < 2:
        return
    for part, other in zip(mine.parts, theirs.parts, strict=False):
        for k in range(max(1, len(part.gpus), len(other.gpus))):
            one, two = (each.gpus[k] if k < len(each.gpus) else None for each in (part, other))
            known = one or two
            name = "-" if known is None else f"{known.index}: {known.name}"
            both = (f"{_said_by(a, key, text)}, {_said_by(b, key, text)}" for key, text in _EACH for a, b in [(one, two)])
            steps = f"{seconds(part.step)}, {seconds(other.step)}"
            yield str(part.rank), name, steps, f"{part.waiting:.0%}, {other.waiting:.0%}", *both


def _said_by(gpu: Gpu | None, key: str, text: Callable[[float], str]) -> str:
    value = getattr(gpu, key, None)
    return "-" if value is None else text(value)


def _paid(timing: Timing) -> str:
    steps = timing.breakeven
    return f"paid for after {steps:,} steps" if steps else ""


def fixes(report: Report) -> Iterator[str]:
    """Which fixes were timed, with their risk, which were left out, and what was written."""
    timed: dict[tuple[str, str, str], int] = {}
    for fix in (each for stage in report.stages for each in stage.applied):
        key = (fix.code, fix.rule, fix.risk.name.lower())
        timed[key] = timed.get(key, 0) + 1
    if timed:
        yield "fixes in: " + ", ".join(f"{code} {rule} ({risk}, {number})" for (code, rule, risk), number in timed.items())
    if report.left_out:
        out = [f"{each.code} {each.rule} ({each.risk}, {each.fixes}; {each.why})" for each in report.left_out]
        yield "left out: " + ", ".join(out)
    if report.kept is not None:
        yield f"without those, compared and timed again: {_again(report.kept)}"
    if report.written:
        yield "written: " + ", ".join(shown(path) for path in report.written)
    if report.unwritten:
        yield f"nothing was written: {report.unwritten}"


def _again(kept: Kept) -> str:
    said = verdict(kept.timing) if kept.timing is not None else "too little could be timed"
    return f"{said}; {kept.parity.tier.words}: {kept.parity.why}"


_SAID: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("GPU busy", "busy", lambda share: f"{share:.0%}"),
    ("GPU clock", "clock", lambda clock: f"{clock:.0f} MHz"),
    ("GPU temperature", "temperature", lambda degrees: f"{degrees:.0f} °C"),
)
_EACH: tuple[tuple[str, Callable[[float], str]], ...] = (
    *((name, text) for _, name, text in _SAID[:2]),
    ("reserved", lambda count: size(count)),
)
RANKS = ("rank", "GPU", "step", "waiting", "busy", "clock", "reserved")
TARGETS = ("target", "is", "should be", "")
EFFECTS = ("fix", "risk", "without it a step takes", "95% interval", "")


def targets(report: Report) -> Iterator[tuple[str, str, str, str]]:
    """The rows under `TARGETS`."""
    for each in report.targets:
        value = "-" if each.value is None else f"{each.value:.0%}"
        yield each.name, value, each.aim, each.advice or ("met" if each.is_met else "")


def effects(report: Report) -> Iterator[tuple[str, str, str, str, str]]:
    """The rows under `EFFECTS`."""
    for effect in report.effects:
        name = f"{effect.code} {effect.rule} ({effect.fixes})"
        if effect.without is None or not effect.without.has_ratio:
            yield name, effect.risk, "-", "-", effect.note
        else:
            found = effect.without.estimate
            yield name, effect.risk, f"{found.ratio:.3f}x", interval(found), _said(effect)


def _said(effect: Effect) -> str:
    if not effect.full and effect.pays is None:
        return "screened only: the budget (`--budget`) was spent"
    return {True: "pays", False: "does not pay", None: "not clear"}[effect.pays]


def seconds(value: float) -> str:
    """A duration with three digits."""
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if value * factor >= 1:
            return f"{value * factor:.3g} {unit}"
    return f"{value * 1e6:.3g} µs"


def size(count: float) -> str:
    """A number of bytes."""
    return f"{count / (1 << 30):.2f} GiB" if count >= 1 << 30 else f"{count / (1 << 20):.0f} MiB"
