"""The result of ``verify`` as one page that opens from disk: no script, nothing loaded from elsewhere."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Iterator, Sequence
from statistics import median

from speedlint.output import diff, svg
from speedlint.output import verify_words as words
from speedlint.output.terminal import visible
from speedlint.output.verify_words import seconds, size
from speedlint.verify.parity import smoothed
from speedlint.verify.report import Report
from speedlint.verify.timing import Timing

_SHORT = 26
_ARTICLES = {"step": "a step", "epoch": "an epoch"}
_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #667180; --line: #d9dee5; --card: #fff; --page: #f5f6f8;
  --a: #7a8694; --b: #0f7b6c; --good: #0f7b6c; --bad: #b3261e; --warn: #9a6700; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --soft: #9aa4b1; --line: #333c48; --card: #1d232c;
  --page: #14181e; --a: #8b96a5; --b: #4cc2ae; --good: #4cc2ae; --bad: #ff8a80; --warn: #e3b341; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: .2rem 0 .4rem; }
h2 { font-size: 1.05rem; margin: 0 0 .6rem; }
p { margin: .3rem 0; } .soft, figcaption, th { color: var(--soft); font-weight: 400; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1rem; margin: 1rem 0; }
.faster { color: var(--good); } .slower { color: var(--bad); } .inconclusive { color: var(--warn); }
code, pre { font: 12.5px/1.5 ui-monospace, monospace; } .command { overflow-wrap: anywhere; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: right; padding: .3rem .5rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th:first-child, td:first-child, td.words { text-align: left; } tr:last-child td { border-bottom: 0; }
td { font-variant-numeric: tabular-nums; white-space: nowrap; }
td.words { white-space: normal; min-width: 9rem; }
figure { margin: 0; } figcaption { font-size: .85rem; margin-top: .3rem; }
svg { width: 100%; height: auto; display: block; } svg text { fill: var(--soft); font: 12px system-ui, sans-serif; }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 25rem), 1fr)); gap: 1rem; }
.grid section { margin: 0; }
pre { margin: 0; padding: .6rem; overflow-x: auto; background: var(--page); border-radius: 6px; }
.plus { color: var(--good); } .minus { color: var(--bad); } .at { color: var(--soft); }
.key { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin: 0 .35em 0 .9em; }
"""


def render(report: Report) -> str:
    """The page."""
    body = "\n".join(_sections(report))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_text(words.headline(report))}</title><style>{_STYLE}</style></head>\n<body><main>\n{body}\n</main></body></html>\n"
    )


def _sections(report: Report) -> Iterator[str]:
    yield _head(report)
    timing = report.timing
    if timing is not None:
        yield _section("Both versions", _table(report, timing))
        if found := list(words.ranks(timing)):
            said = '<p class="soft">Of the last pair: original, other.</p>'
            yield _section("Ranks and GPUs", _rows(words.RANKS, found) + said)
        charts = [
            _section(f"Time of {_ARTICLES[timing.unit]}", _distribution(timing)),
            _section("Pairs of runs", _pairs(timing)),
        ]
        charts.append(_section("Waiting for data", _shares(timing)))
        charts.append(_section("Peak memory", _memory(timing)))
        yield f'<div class="grid">{"".join(charts)}</div>'
    if report.parity.original:
        yield _section("Losses", _losses(report))
    if report.effects:
        yield _section("What each fix brings", _effects(report))
    if report.targets:
        yield _section("Targets", _targets(report))
    if report.stages:
        yield _section("What was changed", _changes(report))
    yield _section("Measured on", _machine(report))


def _head(report: Report) -> str:
    notes = "".join(f'<p class="soft">{_text(note)}</p>' for note in report.notes)
    missing = words.wanting(report)
    wanting = f'<p class="inconclusive">{_text(missing)}</p>' if missing else ""
    problem = f'<p class="slower">{_text(report.problem)}</p>' if report.problem else ""
    kind = report.verdict.value if report.timing is not None else "inconclusive"
    verdict = _text(words.headline(report))
    return (
        f'<p class="soft command"><code>{_text(report.command)}</code></p><h1 class="{kind}">{verdict}</h1>'
        f"<p><strong>{report.parity.tier.words}</strong>: {_text(report.parity.why)}</p>{wanting}{problem}{notes}"
    )


def _table(report: Report, timing: Timing) -> str:
    head = ("", "original", timing.pairs[0][1].version, "ratio")
    return _rows(head, words.comparison(report, timing)) + f'<p class="soft">{_text(words.noise(timing))}</p>'


def _distribution(timing: Timing) -> str:
    series = [[step for pair in timing.pairs for step in pair[side].steps] for side in (0, 1)]
    return _figure(
        svg.histogram(series, seconds), f"How often a measured {timing.unit} took how long, over all runs.", timing
    )


def _pairs(timing: Timing) -> str:
    ratios = [math.exp(each) for each in timing.logs]
    found = timing.estimate
    band = (math.exp(-timing.floor), math.exp(timing.floor))
    drawn = svg.ratios(ratios, (found.low, found.ratio, found.high) if math.isfinite(found.half) else None, band)
    caption = (
        f"Each dot is a pair: how many times as long the original's {timing.unit} takes. The grey band is the noise floor."
    )
    return f"<figure>{drawn}<figcaption>{caption}</figcaption></figure>"


def _shares(timing: Timing) -> str:
    if timing.pairs[0][0].clock != "loader":
        return "<p>No DataLoader feeds the training steps.</p>"
    shares = [median([pair[side].waiting for pair in timing.pairs]) for side in (0, 1)]
    drawn = svg.bars(shares, [f"{share:.0%}" for share in shares], 1.0, mark=0.1)
    return _figure(drawn, "The share of a step's time spent waiting for its batch; the line is the target, 10%.", timing)


def _memory(timing: Timing) -> str:
    key = "peak_reserved" if "peak_reserved" in timing.pairs[0][0].memory else "peak_resident"
    peaks = [max((pair[side].memory.get(key, 0) for pair in timing.pairs), default=0) for side in (0, 1)]
    total = timing.pairs[0][0].memory.get("total", 0)
    drawn = svg.bars(peaks, [size(peak) for peak in peaks], total or max(peaks) * 1.2 or 1, mark=0.8 if total else None)
    what = "of the GPU, reserved; the line is the target, 80%" if total else "of the process, resident"
    return _figure(drawn, f"Peak memory {what}.", timing)


def _losses(report: Report) -> str:
    parity = report.parity
    envelope = None
    if len(parity.original_seeds) > 1:
        length = min(map(len, parity.original_seeds))
        smooth = [smoothed(each[:length]) for each in parity.original_seeds]
        envelope = [(min(each), max(each)) for each in zip(*smooth, strict=True)]
    drawn = svg.curves([parity.original, parity.fixed], envelope)
    caption = "The loss of each backward pass under one seed"
    count = len(parity.original_seeds)
    caption += f"; the band is the envelope of {count} seeds of the original, smoothed." if envelope else "."
    return f"<figure>{drawn}<figcaption>{_keys('original', report.other)}{caption}</figcaption></figure>"


def _effects(report: Report) -> str:
    measured = [(each.code, each.without.estimate.log) for each in report.effects if each.without is not None]
    drawn = svg.gains([code for code, _ in measured], [gain for _, gain in measured]) if measured else ""
    return drawn + _rows(words.EFFECTS, words.effects(report))


def _targets(report: Report) -> str:
    return _rows(words.TARGETS, words.targets(report))


def _changes(report: Report) -> str:
    lines = []
    for line in diff.plain(report.stages):
        kind = {"+": "plus", "-": "minus", "@": "at", "#": "at"}.get(line[:1], "")
        lines.append(f'<span class="{kind}">{_text(line)}</span>' if kind else _text(line))
    said = "".join(f"<p>{_text(line)}</p>" for line in words.fixes(report))
    return f"{said}<pre>{chr(10).join(lines)}</pre>"


def _machine(report: Report) -> str:
    machine = report.machine
    process = machine.get("process", {})
    rows = [
        ("device", str(process.get("device", "-"))),
        ("processor", f"{machine['processor']}, {machine['cores']} cores, {process.get('threads', '-')} threads a run"),
        ("torch", f"{process.get('torch', '-')}, Python {process.get('python', '-')}"),
        ("system", machine["system"]),
        (
            "project",
            f"commit {machine['git'].get('commit', '-')[:12]}, {machine['git'].get('changed_files', 0)} files changed",
        ),
        ("took", seconds(report.seconds)),
    ]
    return _rows(("", ""), rows)


def _rows(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    top = "".join(f"<th>{_text(each)}</th>" for each in head)
    body = "".join("<tr>" + "".join(map(_cell, row, head)) + "</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(text: str, head: str) -> str:
    kind = "" if len(text) < _SHORT and head else ' class="words"'
    return f"<td{kind}>{_text(text)}</td>"


def _figure(drawn: str, caption: str, timing: Timing) -> str:
    keys = _keys("original", timing.pairs[0][1].version)
    return f"<figure>{drawn}<figcaption>{keys}{_text(caption)}</figcaption></figure>"


def _keys(first: str, second: str) -> str:
    a = f'<span class="key" style="background: var(--a); margin-left: 0"></span>{_text(first)}'
    return f'{a}<span class="key" style="background: var(--b)"></span>{_text(second)}<br>'


def _section(title: str, inside: str) -> str:
    return f"<section><h2>{_text(title)}</h2>{inside}</section>"


def _text(text: str) -> str:
    return html.escape(visible(text))
