"""The result of ``verify`` for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from speedlint.output import verify_words as words
from speedlint.output.terminal import visible
from speedlint.verify.parity import Tier
from speedlint.verify.report import Report
from speedlint.verify.stats import Verdict
from speedlint.verify.timing import Timing

_STYLES = {Verdict.FASTER: "bold green", Verdict.SLOWER: "bold red", Verdict.SAME: "bold", Verdict.UNCLEAR: "bold yellow"}
_TIERS = {Tier.IDENTICAL: "green", Tier.NUMERIC: "green", Tier.STATISTICAL: "yellow", Tier.DIFFERENT: "bold red"}


def render(report: Report) -> RenderableType:
    """The verdict, the table of both versions, the targets, and what is to be known about them."""
    parts: list[RenderableType] = [_headline(report)]
    if report.timing is not None:
        parts += [Text(words.noise(report.timing), style="dim"), Text(), _versions(report, report.timing)]
        if found := list(words.ranks(report.timing)):
            parts += [Text(), _table(words.RANKS, found), Text("of the last pair: original, other", style="dim")]
        parts += [Text(), _targets(report)]
    if report.effects:
        parts += [Text(), _table(words.EFFECTS, words.effects(report))]
    parts += [Text(visible(line)) for line in words.fixes(report)]
    parts += [Text(f"note: {visible(note)}", style="dim") for note in report.notes]
    if missing := words.wanting(report):
        parts.append(Text(missing, style="bold yellow"))
    if report.problem:
        parts.append(Text(visible(report.problem), style="bold red"))
    return Group(*parts)


def _headline(report: Report) -> Text:
    text = Text(words.headline(report), style=_STYLES[report.verdict])
    text.append(f"\n{report.parity.tier.words}: ", style=_TIERS.get(report.parity.tier, ""))
    text.append(visible(report.parity.why), style="default not bold")
    return text


def _versions(report: Report, timing: Timing) -> Table:
    table = _table(("", "original", timing.pairs[0][1].version, "ratio"), words.comparison(report, timing))
    for column in table.columns[1:]:
        column.justify = "right"
    return table


def _targets(report: Report) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in words.TARGETS:
        table.add_column(name)
    for target, (name, value, aim, advice) in zip(report.targets, words.targets(report), strict=True):
        style = "" if target.is_met is None else "green" if target.is_met else "yellow"
        table.add_row(name, Text(value, style=style), aim, visible(advice))
    return table


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in head:
        table.add_column(visible(name))
    for row in rows:
        table.add_row(*map(Text, map(visible, row)))
    return table
