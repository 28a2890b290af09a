"""What kept speedlint from a file, one line each, on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import click

from speedlint.files import Problem
from speedlint.output.terminal import coloured, located, visible


def report_problems(problems: Iterable[Problem]) -> None:
    """Prints each problem."""
    for problem in problems:
        place = located(problem.path, problem.line, cell=problem.cell)
        label = click.style("error:", fg="red", bold=True)
        click.echo(f"{label} {visible(f'{place}: {problem.what}')}", err=True, color=coloured(sys.stderr))


def report_bounds(bounds: Iterable[str]) -> None:
    """Prints to standard error what was not looked at since there was too much."""
    report_remarks(bounds)


def report_remarks(remarks: Iterable[str]) -> None:
    """Prints sentences to standard error."""
    for remark in remarks:
        click.echo(f"note: {visible(remark)}", err=True)
