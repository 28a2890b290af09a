"""``--format concise``: a line for each finding: place, code, what, worth, and the risk of its fix."""

from __future__ import annotations

from collections.abc import Iterator

import click

from speedlint.causes import Cause
from speedlint.output import closing
from speedlint.output.results import Results
from speedlint.output.terminal import emphasised, folded, in_cell, shown, visible, width
from speedlint.rule import Level

_MOST_LINES = 2
"""The most lines that a finding takes where a line is narrow: what goes beyond them is left out, at a word."""
_INDENT = 4


def render(results: Results) -> Iterator[str]:
    """A line for each cause, what is worth most first, then the closing lines."""
    for cause in results.causes:
        yield line(cause, visible(shown(cause.first.path)) + ":", results)
    yield from closing.lines(results)


def line(cause: Cause, before: str, results: Results) -> str:
    """A finding in a line, or two where the results' columns are few; ``before`` stands before its line number."""
    found = cause.first
    place = f"{before}{in_cell(found.cell)}{found.line}:{found.column}"
    room = results.columns - width(f"{place} {found.code} ")
    what, *more = _lines(cause, room, results.columns - _INDENT)
    code = emphasised(results.code(found.code), found.level, found.worth.worth)
    return "\n".join(
        (f"{click.style(place, bold=True)} {code} {what}".rstrip(), *(f"{'':{_INDENT}}{each}" for each in more))
    )


def _lines(cause: Cause, first: int, rest: int) -> list[str]:
    """The finding's message, shortened at a word where it is too long, and what follows it."""
    found = cause.first
    level = "note: " if found.level is Level.NOTE else ""
    words = visible(f"{level}{found.message}").split(" ")
    end = [f"({len(cause.others) + 1} places)"] if cause.others else []
    end.append(f"[{found.worth.worth.value}, {closing.cures(cause)}]")
    lines = folded([*words, *end], first, rest)
    while len(lines) > _MOST_LINES and len(words) > 1:
        words.pop()
        lines = folded([*words, "...", *end], first, rest)
    return lines
