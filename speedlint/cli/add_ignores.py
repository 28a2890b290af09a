"""``speedlint check --add-ignores``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click

from speedlint import suppress, writing
from speedlint.apply import apply_edits
from speedlint.diagnostic import Diagnostic
from speedlint.edits import CannotEdit
from speedlint.files import Problem
from speedlint.fixer import Outcome
from speedlint.output.terminal import shown, visible
from speedlint.output.text import count
from speedlint.source import Source, SourceError


def silenced(found: Iterable[Diagnostic]) -> list[Problem]:
    """Writes beside each finding the comment that silences it, and says so. Returns what went wrong."""
    files: dict[Path, list[Diagnostic]] = {}
    for each in found:
        files.setdefault(each.path, []).append(each)
    return [problem for path, group in files.items() for problem in _add(path, group)]


def _add(path: Path, found: Sequence[Diagnostic]) -> Iterator[Problem]:
    if any(each.cell is not None for each in found):
        yield Problem(path, None, "is a notebook, to which no comments are added; write them by hand")
        return
    codes: dict[int, set[str]] = {}
    for each in found:
        codes.setdefault(each.line, set()).add(each.code)
    try:
        source = Source.parse(path, path.read_bytes())
        edits, left = suppress.additions(source, codes)
        failures = writing.write_all([Outcome(path, source.data, apply_edits(source, edits), ())])
    except (OSError, SourceError, CannotEdit) as error:
        yield Problem(path, None, f"cannot be edited ({error}), left as it was")
        return
    yield from failures
    yield from (Problem(path, line, "no comment can stand here; use `per-file-ignores`") for line in sorted(left))
    here = sum(each.line not in left for each in found)
    if here and not failures:
        click.echo(f"{visible(shown(path))}: {count(here, 'finding')} silenced")
