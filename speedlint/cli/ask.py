"""``speedlint ask``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from speedlint import config, files, notebook
from speedlint.cli.options import colour
from speedlint.errors import UserError

if TYPE_CHECKING:
    from speedlint.known import Line

_PLACE = re.compile(r"(?s)(.+?):(\d+)(?::(\d+))?")


@click.command()
@click.argument("place", type=click.Path(), metavar="FILE:LINE")
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", help="How to print it.")
@colour
def ask(place: str, style: str) -> None:
    """Says what is known of each expression of a line, how often the line runs, and why.

    The file is read as a part of its program, as `check` does. FILE:LINE:COLUMN, as `check` prints it, asks only for the
    expressions around that column.
    """
    line = _asked(*_parsed(place))
    if style == "json":
        from speedlint.output import ask_json

        click.echo(ask_json.render(line))
        return
    from speedlint.output import ask_text

    ask_text.print_line(line)


def _parsed(place: str) -> tuple[Path, int, int | None]:
    found = _PLACE.fullmatch(place)
    if found is None:
        raise UserError(f"{place}: names no line; write FILE:LINE, such as `train.py:12`")
    return Path(found[1]), int(found[2][:9]), int(found[3][:9]) if found[3] else None


def _asked(path: Path, number: int, column: int | None) -> Line:
    """What is known of the line. Raises UserError."""
    from speedlint import known
    from speedlint.source import SourceError

    if notebook.is_notebook(path):
        raise UserError(f"{path}:{number}: is a notebook, not Python; convert it with `jupyter nbconvert --to script`")
    if path.is_dir():
        raise UserError(f"{path}:{number}: is a folder; name a Python file in it")
    problems = files.discover((path,)).problems
    if problems:
        raise UserError(f"{path}:{number}: {problems[0].what}")
    try:
        return known.ask(path, number, column, config.load((path,)))
    except SourceError as error:
        raise UserError(str(error)) from None
    except OSError as error:
        raise UserError(f"{path}:{number}: cannot be read ({error.strerror}); check its permissions") from None
