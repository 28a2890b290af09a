"""``--format grouped``: the findings of each file under its name."""

from __future__ import annotations

from collections.abc import Iterator

import click

from speedlint.causes import Cause
from speedlint.output import closing
from speedlint.output.formats.concise import line
from speedlint.output.results import Results
from speedlint.output.terminal import shown, visible


def render(results: Results) -> Iterator[str]:
    """The files, the one with what is worth most first; in each, a line for each cause."""
    files: dict[str, list[Cause]] = {}
    for cause in results.causes:
        files.setdefault(visible(shown(cause.first.path)), []).append(cause)
    for name, causes in files.items():
        yield click.style(f"{name}:", bold=True)
        for cause in causes:
            yield line(cause, "  ", results)
        yield ""
    yield from closing.lines(results)
