"""``--format text``: each finding with its code frame and what to do about it, then a summary."""

from __future__ import annotations

import collections
import itertools
import shutil
import textwrap
from collections.abc import Iterator, Sequence

import click

from speedlint import docs
from speedlint.causes import Cause, by_worth, together
from speedlint.diagnostic import Diagnostic, Proposal
from speedlint.output.terminal import shown, visible, width
from speedlint.registry import Registry
from speedlint.rule import Level, Risk

RISKS = {
    Risk.EXACT: "the same training, bit for bit",
    Risk.NUMERIC: "rounding or the random stream may differ",
    Risk.BEHAVIOR: "what is computed, logged or saved may change",
}
_COLOURS = {Level.WARNING: "red", Level.NOTE: "cyan"}
_CURES = (
    "fixable with `speedlint fix --apply`",
    "fixable at a higher `--risk`",
    "with a fix that is only shown",
    "to change by hand",
)
_WIDEST = 110


def render(diagnostics: Sequence[Diagnostic], hidden: int, files: int, registry: Registry, risk: Risk) -> Iterator[str]:
    """The report, block by block, what is worth most first. The reason why a rule's pattern is slow is told once."""
    told: set[str] = set()
    causes = by_worth(together(diagnostics))
    for cause in causes:
        found = cause.first
        why = "" if found.code in told else docs.why(registry.by_code[found.code].docs)
        told.add(found.code)
        yield "\n".join((_head(found), *_frame(found), *_remarks(cause, why, risk), ""))
    yield _summary(causes, hidden, files, risk)


def _head(found: Diagnostic) -> str:
    place = click.style(f"{visible(shown(found.path))}:{found.line}:{found.column}", bold=True)
    code = click.style(found.code, fg=_COLOURS[found.level], bold=True)
    level = "note: " if found.level is Level.NOTE else ""
    return f"{place} {code} {found.rule}: {level}{visible(found.message)}"


def _frame(found: Diagnostic) -> Iterator[str]:
    gutter = _gutter(found)
    several = found.end_line > found.line
    for number, line in zip(itertools.count(found.line), found.excerpt, strict=False):
        bar = click.style(f"{number:>{gutter}} {'>' if several else '|'}", fg="blue")
        yield f"{bar} {_expanded(line)}".rstrip()
    if several and found.excerpt and found.end_line >= found.line + len(found.excerpt):
        yield click.style(f"{'':{gutter}} ...", fg="blue")
    elif not several and found.excerpt:
        start = width(_expanded(found.excerpt[0][: found.column - 1]))
        length = max(1, width(_expanded(found.excerpt[0][: found.end_column - 1])) - start)
        carets = click.style("^" * length, fg=_COLOURS[found.level], bold=True)
        yield f"{click.style(f'{chr(32):{gutter}} |', fg='blue')} {'':{start}}{carets}"


def _remarks(cause: Cause, why: str, risk: Risk) -> Iterator[str]:
    found = cause.first
    share = found.worth
    remarks = [
        ("cost", f"{share.worth.value}: {share.because}" if share.because else ""),
        ("why", why),
        ("do", found.advice),
    ]
    remarks += [("fix", _fix(found.fix, risk) if found.fix else "")]
    remarks += [("also", _place(found, each)) for each in cause.others]
    remarks += [("see", f"{shown(each.path)}:{each.line}: {each.message}") for each in found.related]
    remarks += [("more", f"speedlint explain {found.code}")] if why else []
    margin = " " * _gutter(found)
    equals = click.style("=", fg="blue")
    for label, text in remarks:
        head = click.style(f"{label + ':':<5}", bold=True)
        for count, line in enumerate(_wrapped(text, len(margin))):
            yield f"{margin} {' ' * 7 if count else f'{equals} {head}'} {line}"


def _place(first: Diagnostic, other: Diagnostic) -> str:
    """Another place of a finding, and what is to be done there where it is not the same."""
    mine, its = (each.fix is not None and each.fix.applicable for each in (first, other))
    if other.code != first.code:
        return f"{_line(other)}: {other.code} {other.message} ({other.advice}{', with a fix' if its else ''})"
    cure = "" if mine == its else " (with a fix)" if its else f" ({other.advice})"
    return f"{_line(other)}: {other.message}{cure}"


def _line(found: Diagnostic) -> str:
    return f"{shown(found.path)}:{found.line}"


def _wrapped(text: str, margin: int) -> list[str]:
    columns = min(_WIDEST, shutil.get_terminal_size((_WIDEST, 24)).columns)
    return textwrap.wrap(visible(text), max(40, columns - margin - 9), break_long_words=False, break_on_hyphens=False)


def _fix(fix: Proposal, risk: Risk) -> str:
    name = fix.risk.name.lower()
    if not fix.applicable:
        return f"{name}, {RISKS[fix.risk]}; not written: {fix.withheld}"
    higher = f" --risk {name}" if fix.risk > risk else ""
    return f"{name}, {RISKS[fix.risk]} (`speedlint fix --apply{higher}`)"


def _summary(causes: Sequence[Cause], hidden: int, files: int, risk: Risk) -> str:
    notes = f" {count(hidden, 'note')} hidden; `--notes` shows {'it' if hidden == 1 else 'them'}." if hidden else ""
    if not causes:
        return click.style(f"Nothing slow found in {count(files, 'file')}.", fg="green") + notes
    cures = collections.Counter(min(_cure(found.fix, risk) for found in (each.first, *each.others)) for each in causes)
    parts = [f"{cures[number]} {cure}" for number, cure in enumerate(_CURES) if cures[number]]
    places = len(causes) + sum(len(each.others) for each in causes)
    at = f" at {places} places" if places > len(causes) else ""
    found = f"{count(len(causes), 'finding')}{at} in {count(len({each.first.path for each in causes}), 'file')}"
    return f"{click.style(found, bold=True)}: {', '.join(parts)}.{notes}"


def _cure(fix: Proposal | None, risk: Risk) -> int:
    """What can be done about a finding, as a place in ``_CURES``: the less is left to do by hand, the smaller."""
    if fix is None:
        return 3
    return 2 if not fix.applicable else 1 if fix.risk > risk else 0


def count(number: int, noun: str, plural: str = "") -> str:
    """``1 file``, ``2 files``."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def _gutter(found: Diagnostic) -> int:
    return len(str(found.line + max(0, len(found.excerpt) - 1)))


def _expanded(line: str) -> str:
    return visible(line.replace("\t", "    "))
