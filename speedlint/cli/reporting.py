"""The options that say how findings are reported, and what they do."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from speedlint.cli.options import revision
from speedlint.errors import UserError
from speedlint.output import formats
from speedlint.output.problems import report_problems
from speedlint.output.results import Results
from speedlint.output.terminal import coloured, columns, linked

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--format",
        "style",
        type=click.Choice(list(formats.FORMATS)),
        metavar="FORMAT",
        help=f"How to print findings: {', '.join(formats.FORMATS)} (default: full for a few, else concise).",
    ),
    click.option("--output-file", type=click.Path(path_type=Path), metavar="PATH", help="Write the findings to this file."),
    click.option("--statistics", "counted", is_flag=True, help="Count the findings of each rule instead; as text or json."),
    click.option("--exit-zero", is_flag=True, help="Exit with 0 although something is found."),
)


_OF_FIX: dict[str, Callable[[Any], str]] = {
    "select": ",".join,
    "ignore": ",".join,
    "extend_select": ",".join,
    "torch": lambda release: ".".join(map(str, release)),
    "amp": str,
    "config": str,
    "baseline": str,
    "changed": lambda changed: revision(changed, ())[0] or "",
    "stdin_filename": str,
}
"""How the options that decide what is found are written; one that is written empty stands without a value."""


def reporting(command: F) -> F:
    """Adds the options."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def repeated(ctx: click.Context) -> tuple[str, ...]:
    """The options that were given and that ``fix`` needs too, as they are written."""
    written: list[str] = []
    for name, spell in _OF_FIX.items():
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            written += filter(None, (f"--{name.replace('_', '-')}", spell(ctx.params[name])))
    return tuple(written)


def wide(output_file: Path | None) -> dict[str, Any]:
    """What the results' reader can take: a file any width and no links, standard output what its terminal can."""
    return {} if output_file is not None else {"columns": columns(sys.stdout), "links": linked(sys.stdout)}


def report(results: Results, style: str | None, output_file: Path | None, counted: bool) -> None:
    """Prints the results, or writes them to a file. Raises UserError."""
    chosen = formats.choose(style, results)
    results = replace(results, is_brief=style is None and chosen is formats.FORMATS[formats.CONCISE])
    pieces = _counted(results, style) if counted else chosen.render(results)
    if output_file is not None:
        _write(output_file, pieces)
    else:
        for piece in pieces:
            click.echo(piece, color=chosen.for_people and coloured(sys.stdout))
    if not chosen.has_problems or counted:
        report_problems(results.problems)


def _counted(results: Results, style: str | None) -> Iterator[str]:
    from speedlint.output import statistics

    return statistics.render(results, style)


def _write(path: Path, pieces: Iterator[str]) -> None:
    text = "".join(f"{click.unstyle(piece)}\n" for piece in pieces)
    try:
        path.write_bytes(text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror})") from None
