"""The result of ``verify`` for a terminal."""

from __future__ import annotations

import math

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from speedlint.output.terminal import visible
from speedlint.verify.parity import Tier
from speedlint.verify.report import Effect, Report
from speedlint.verify.stats import Estimate, Verdict, median
from speedlint.verify.timing import Timing

_STYLES = {Verdict.FASTER: "bold green", Verdict.SLOWER: "bold red", Verdict.SAME: "bold", Verdict.UNCLEAR: "bold yellow"}
_TIERS = {Tier.IDENTICAL: "green", Tier.NUMERIC: "green", Tier.STATISTICAL: "yellow", Tier.DIFFERENT: "bold red"}


def render(report: Report) -> RenderableType:
    """The verdict, the table of both versions, the targets, and what is to be known about them."""
    parts: list[RenderableType] = [_headline(report)]
    if report.timing is not None:
        parts += [_floor(report.timing), Text(), _versions(report.timing), Text(), _targets(report)]
    if report.effects:
        parts += [Text(), _effects(report.effects)]
    parts += [Text(f"note: {visible(note)}", style="dim") for note in report.notes]
    if report.problem:
        parts.append(Text(visible(report.problem), style="bold red"))
    return Group(*parts)


def headline(report: Report) -> str:
    """The verdict in one line."""
    if report.timing is None:
        return "inconclusive: nothing could be timed"
    found = report.timing.estimate
    if report.verdict is Verdict.FASTER:
        return f"{found.ratio:.2f}x faster ({interval(found)})"
    if report.verdict is Verdict.SLOWER:
        return f"{1 / found.ratio:.2f}x slower ({1 / found.high:.2f} to {1 / found.low:.2f})"
    return f"{report.verdict.value}: {found.ratio:.2f}x ({interval(found)})"


def interval(found: Estimate) -> str:
    """The 95% interval of a ratio."""
    return f"{found.low:.2f} to {found.high:.2f}" if math.isfinite(found.half) else "one pair, no interval"


def _headline(report: Report) -> Text:
    text = Text(headline(report), style=_STYLES[report.verdict])
    text.append(f"\n{report.parity.tier.words}: ", style=_TIERS.get(report.parity.tier, ""))
    text.append(visible(report.parity.why), style="default not bold")
    return text


def _floor(timing: Timing) -> Text:
    control = timing.control
    against = f"the original against itself: {control.ratio:.3f}x ({interval(control)})" if control.count else "no control"
    return Text(
        f"{len(timing.pairs)} pairs; a difference counts beyond {math.expm1(timing.floor):.1%}; {against}", style="dim"
    )


def _versions(timing: Timing) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("", "original", timing.pairs[0][1].version, "ratio"):
        table.add_column(name, justify="left" if not name else "right")
    mine, theirs = [a for a, _ in timing.pairs], [b for _, b in timing.pairs]
    step = [median([run.step for run in runs]) for runs in (mine, theirs)]
    table.add_row("step", seconds(step[0]), seconds(step[1]), f"{timing.estimate.ratio:.2f}x")
    if (whole := timing.whole) is not None:
        spent = [median([(run.window or 0) / len(run.steps) for run in runs]) for runs in (mine, theirs)]
        table.add_row("step, and all between steps", seconds(spent[0]), seconds(spent[1]), f"{whole.ratio:.2f}x")
    rates = [median([run.samples / sum(run.steps) for run in runs]) for runs in (mine, theirs)]
    if all(rates):
        table.add_row("samples a second", f"{rates[0]:,.0f}", f"{rates[1]:,.0f}", f"{rates[1] / rates[0]:.2f}x")
    if mine[0].clock == "loader":
        table.add_row("waiting for data", *(f"{median([run.waiting for run in runs]):.0%}" for runs in (mine, theirs)), "")
    for key, name in (
        ("peak_resident", "peak memory"),
        ("peak_allocated", "GPU memory, allocated"),
        ("peak_reserved", "GPU memory, reserved"),
    ):
        peaks = [max(run.memory.get(key, 0) for run in runs) for runs in (mine, theirs)]
        if all(peaks):
            table.add_row(name, size(peaks[0]), size(peaks[1]), f"{peaks[0] / peaks[1]:.2f}x")
    costs = [run.warmup_cost for run in timing.first]
    table.add_row("first steps cost more by", seconds(costs[0]), seconds(costs[1]), _paid(timing))
    return table


def _paid(timing: Timing) -> str:
    steps = timing.breakeven
    if steps == 0:
        return ""
    return "never paid for" if steps is None else f"paid for after {steps:,} steps"


def _targets(report: Report) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("target", "is", "should be", ""):
        table.add_column(name)
    for target in report.targets:
        value = "-" if target.value is None else f"{target.value:.0%}"
        style = "" if target.is_met is None else "green" if target.is_met else "yellow"
        table.add_row(target.name, Text(value, style=style), target.aim, visible(target.advice))
    return table


def _effects(effects: tuple[Effect, ...]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("fix", "risk", "without it a step takes", "95% interval", ""):
        table.add_column(name)
    for effect in effects:
        what = f"{effect.code} {effect.rule} ({effect.fixes})"
        if effect.without is None:
            table.add_row(what, effect.risk, "-", "-", visible(effect.note))
            continue
        found = effect.without.estimate
        table.add_row(what, effect.risk, f"{found.ratio:.3f}x", interval(found), said(effect))
    return table


def said(effect: Effect) -> str:
    """Whether a fix pays, in words."""
    if not effect.full:
        return "screened only: far from the floor" if effect.without else effect.note
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
