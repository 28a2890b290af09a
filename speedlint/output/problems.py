"""What kept speedlint from a file, one line each, on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import click

from speedlint.files import Problem
from speedlint.output.terminal import coloured, shown, visible


def report_problems(problems: Iterable[Problem]) -> None:
    """Prints each problem."""
    for problem in problems:
        place = shown(problem.path) + (f":{problem.line}" if problem.line else "")
        label = click.style("error:", fg="red", bold=True)
        click.echo(f"{label} {visible(f'{place}: {problem.what}')}", err=True, color=coloured(sys.stderr))


def report_bounds(bounds: Iterable[str]) -> None:
    """Prints to standard error what was not looked at since there was too much."""
    for bound in bounds:
        click.echo(f"note: {visible(bound)}", err=True)
