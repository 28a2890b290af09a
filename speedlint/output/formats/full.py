"""``--format full``: each finding with its code frame and what to do about it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import click

from speedlint import docs
from speedlint.causes import Cause
from speedlint.diagnostic import Diagnostic, Proposal
from speedlint.output import closing
from speedlint.output.results import Results
from speedlint.output.terminal import emphasised, folded, located, visible, width
from speedlint.output.text import RISKS
from speedlint.rule import Level, Risk

_WIDEST = 110
_INDENT = 4


def render(results: Results) -> Iterator[str]:
    """The report, block by block, what is worth most first. The reason why a rule's pattern is slow is told once."""
    told: set[str] = set()
    for cause in results.causes:
        found = cause.first
        why = docs.why(results.registry.by_code[found.code].docs, found.case)
        yield "\n".join((_head(found, results), *_frame(found), *_remarks(cause, "" if why in told else why, results), ""))
        told.add(why)
    yield from closing.lines(results)


def _head(found: Diagnostic, results: Results) -> str:
    place = visible(located(found.path, found.line, found.column, found.cell))
    level = "note: " if found.level is Level.NOTE else ""
    words = visible(f"{found.rule}: {level}{found.message}").split(" ")
    what, *more = folded(words, results.columns - width(f"{place} {found.code} "), results.columns - _INDENT)
    code = emphasised(results.code(found.code), found.level, found.worth.worth)
    return "\n".join((f"{click.style(place, bold=True)} {code} {what}", *(f"{'':{_INDENT}}{each}" for each in more)))


def _frame(found: Diagnostic) -> Iterator[str]:
    gutter = _gutter(found)
    several = found.end_line > found.line
    for number, line in zip(itertools.count(found.line), found.excerpt, strict=False):
        yield f"{number:>{gutter}} {'>' if several else '|'} {_expanded(line)}".rstrip()
    if several and found.excerpt and found.end_line >= found.line + len(found.excerpt):
        yield f"{'':{gutter}} ..."
    elif not several and found.excerpt:
        start = width(_expanded(found.excerpt[0][: found.column - 1]))
        length = max(1, width(_expanded(found.excerpt[0][: found.end_column - 1])) - start)
        carets = emphasised("^" * length, found.level, found.worth.worth)
        yield f"{'':{gutter}} | {'':{start}}{carets}"


def _remarks(cause: Cause, why: str, results: Results) -> Iterator[str]:
    found = cause.first
    share = found.worth
    remarks = [
        ("cost", f"{share.worth.value}: {share.because}" if share.because else ""),
        ("why", why),
        ("do", found.advice),
    ]
    remarks += [("fix", _fix(found.fix, results.settings.risk) if found.fix else "")]
    remarks += [("also", _place(found, each)) for each in cause.others]
    remarks += [("see", f"{located(each.path, each.line, cell=each.cell)}: {each.message}") for each in found.related]
    remarks += [("more", f"speedlint explain {found.code}")] if why else []
    margin = " " * _gutter(found)
    for label, text in remarks:
        head = click.style(f"{label + ':':<5}", bold=True)
        for number, line in enumerate(_wrapped(text, len(margin), results.columns)):
            yield f"{margin} {' ' * 7 if number else f'= {head}'} {line}"


def _place(first: Diagnostic, other: Diagnostic) -> str:
    """Another place of a finding, and what is to be done there where it is not the same."""
    mine, its = (each.fix is not None and each.fix.applicable for each in (first, other))
    if other.code != first.code:
        return f"{_line(other)}: {other.code} {other.message} ({other.advice}{', with a fix' if its else ''})"
    cure = "" if mine == its else " (with a fix)" if its else f" ({other.advice})"
    return f"{_line(other)}: {other.message}{cure}"


def _line(found: Diagnostic) -> str:
    return located(found.path, found.line, cell=found.cell)


def _wrapped(text: str, margin: int, columns: int) -> list[str]:
    room = max(40, min(_WIDEST, columns) - margin - 9)
    return folded(visible(text).split(), room, room) if text else []


def _fix(fix: Proposal, risk: Risk) -> str:
    name = fix.risk.name.lower()
    if not fix.applicable:
        return f"{name}, {RISKS[fix.risk]}; not written: {fix.withheld}"
    higher = f" --risk {name}" if fix.risk > risk else ""
    return f"{name}, {RISKS[fix.risk]} (`speedlint fix --apply{higher}`)"


def _gutter(found: Diagnostic) -> int:
    return len(str(found.line + max(0, len(found.excerpt) - 1)))


def _expanded(line: str) -> str:
    return visible(line.replace("\t", "    "))
