"""What fixes change, as a unified diff grouped by risk."""

from __future__ import annotations

import difflib
import io
import os
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from speedlint import notebook
from speedlint.fixer import Outcome
from speedlint.output.terminal import located, shown, visible
from speedlint.output.text import RISKS, count
from speedlint.stages import Stage

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_LINE_BYTES = re.compile(r"[^\n]*\n|[^\n]+")
"""A line as git counts them: what ends in a lone CR goes on."""
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def render(stages: Iterable[Stage]) -> Iterator[str]:
    """The stages' diffs; each file's is headed by the fixes it holds."""
    for stage in stages:
        if stage.outcomes:
            yield click.style(f"{stage.risk.name.lower()}: {RISKS[stage.risk]}\n", bold=True)
        for outcome in stage.outcomes:
            for fix in outcome.applied:
                place = located(fix.path, fix.line, cell=fix.cell)
                yield f"# {visible(place)} {fix.code} {fix.rule}: {visible(fix.message)}"
            for name, before, after in _parts(outcome):
                yield from _diff(name, before, after)
            yield ""


def plain(stages: Iterable[Stage]) -> Iterator[str]:
    """The lines of ``render`` without colours."""
    for block in render(stages):
        yield from click.unstyle(block).rstrip("\n").split("\n")


def written(outcome: Outcome) -> str:
    """The line that says what was done to a file."""
    codes = sorted({fix.code for fix in outcome.applied})
    return f"fixed {visible(shown(outcome.path))}: {count(len(outcome.applied), 'fix', 'fixes')} ({', '.join(codes)})"


def patch(outcome: Outcome) -> bytes:
    """What is done to a file as a unified diff that ``git apply`` takes in the current folder, to the byte.

    Its names are relative to the repository, or to the current folder where there is none, as git reads them. Raises
    ValueError where the file lies outside the current folder: git would leave it out and say nothing.
    """
    here, path = Path.cwd().resolve(), outcome.path.resolve()
    path.relative_to(here)
    top = next((up for up in (here, *here.parents) if (up / ".git").exists()), here)
    inside = path.relative_to(top).as_posix()
    before, after = (_LINE_BYTES.findall(data.decode("latin-1")) for data in _on_disk(outcome))
    old, new = (_quoted(os.fsencode(f"{side}/{inside}")) for side in "ab")
    end = "\t" if " " in old and not old.startswith('"') else ""  # as git ends a name that holds spaces
    changes = difflib.unified_diff(before, after, old + end, new + end)
    text = "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in changes)
    return f"diff --git {old} {new}\n{text}".encode("latin-1")


def _quoted(name: bytes) -> str:
    """A file's name as git writes it in a diff."""
    if all(map(_is_plain, name)):
        return name.decode()
    return '"' + "".join(chr(byte) if _is_plain(byte) else f"\\{byte:03o}" for byte in name) + '"'


def _is_plain(byte: int) -> bool:
    return chr(byte).isascii() and chr(byte).isprintable() and chr(byte) not in '"\\'


def safe(patch: bytes) -> str:
    """A diff as a terminal may be given it."""
    return "\n".join(map(_safe, patch.decode("utf-8", "backslashreplace").split("\n")))


def _on_disk(outcome: Outcome) -> tuple[bytes, bytes]:
    """What the file holds before and after, of a notebook with all but its code."""
    if not notebook.is_notebook(outcome.path):
        return outcome.before, outcome.after
    held = outcome.path.read_bytes()
    return held, notebook.replaced(held, outcome.after)


def _parts(outcome: Outcome) -> Iterator[tuple[str, list[str], list[str]]]:
    """The name and the lines before and after: of the file, or of each cell of a notebook that differs."""
    name = visible(shown(outcome.path))
    if not notebook.is_notebook(outcome.path):
        yield name, _lines(outcome.before), _lines(outcome.after)
        return
    cells = zip(notebook.split(outcome.before.decode()), notebook.split(outcome.after.decode()), strict=True)
    for (number, before), (_, after) in cells:
        if before != after:
            yield f"{name}:cell {number}", _LINE.findall(f"{before}\n"), _LINE.findall(f"{after}\n")


def _diff(name: str, before: list[str], after: list[str]) -> Iterator[str]:
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
