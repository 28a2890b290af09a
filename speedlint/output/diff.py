"""What fixes change, as a unified diff grouped by risk."""

from __future__ import annotations

import difflib
import io
import re
import tokenize
from collections.abc import Iterable, Iterator

import click

from speedlint.fixer import Outcome
from speedlint.output.terminal import shown, visible
from speedlint.output.text import RISKS, count
from speedlint.stages import Stage

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def render(stages: Iterable[Stage]) -> Iterator[str]:
    """The stages' diffs; each file's is headed by the fixes it holds."""
    for stage in stages:
        if stage.outcomes:
            yield click.style(f"{stage.risk.name.lower()}: {RISKS[stage.risk]}\n", bold=True)
        for outcome in stage.outcomes:
            for fix in outcome.applied:
                yield f"# {visible(shown(fix.path))}:{fix.line} {fix.code} {fix.rule}: {visible(fix.message)}"
            yield from _diff(outcome)
            yield ""


def plain(stages: Iterable[Stage]) -> Iterator[str]:
    """The lines of ``render`` without colours."""
    for block in render(stages):
        yield from click.unstyle(block).rstrip("\n").split("\n")


def written(outcome: Outcome) -> str:
    """The line that says what was done to a file."""
    codes = sorted({fix.code for fix in outcome.applied})
    return f"fixed {visible(shown(outcome.path))}: {count(len(outcome.applied), 'fix', 'fixes')} ({', '.join(codes)})"


def _diff(outcome: Outcome) -> Iterator[str]:
    name = visible(shown(outcome.path))
    before, after = _lines(outcome.before), _lines(outcome.after)
    for number, line in enumerate(difflib.unified_diff(before, after, f"a/{name}", f"b/{name}", lineterm="")):
        if number < 2:
            yield click.style(line, bold=True)
            continue
        colour = _COLOURS.get(line[0])
        yield click.style(_safe(line), fg=colour) if colour else _safe(line)
        if line[0] != "@" and not line.endswith(("\n", "\r")):
            yield "\\ No newline at end of file"


def _safe(line: str) -> str:
    return "\t".join(visible(part) for part in line.rstrip("\r\n").split("\t"))


def _lines(data: bytes) -> list[str]:
    """The file's lines with their endings, as Python and ``git diff`` count them."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return _LINE.findall(data.decode(encoding, "replace"))
