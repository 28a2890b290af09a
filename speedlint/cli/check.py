"""``speedlint check``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from speedlint import files, run
from speedlint.cli.options import prepare, shared
from speedlint.output import json, text
from speedlint.output.problems import report_bounds, report_problems
from speedlint.output.progress import tracked
from speedlint.output.terminal import coloured
from speedlint.rule import Level


@click.command()
@shared
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", help="How to print findings.")
@click.option("--notes", is_flag=True, help="Show notes as well: what costs little, or only may be slow.")
@click.pass_context
def check(ctx: click.Context, /, paths: tuple[Path, ...], style: str, notes: bool, **options: Any) -> None:
    """Finds what slows down the training scripts in PATHS: files and folders, the current folder if none are given.

    Exits with 0 if nothing is found, 1 if something is, and 2 if a file or an option is wrong.
    """
    settings, registry, store = prepare(paths, **options)
    found = files.discover(paths or (Path(),), settings.exclude, settings.root)
    reports = run.check(found.paths, settings, registry, store)
    report = run.merge(tracked(reports, len(found.paths), "Checking"))
    problems = (*found.problems, *report.problems)
    shown = [each for each in report.diagnostics if notes or each.level is Level.WARNING]
    if style == "json":
        click.echo(json.render(shown, problems))
    else:
        hidden = len(report.diagnostics) - len(shown)
        for block in text.render(shown, hidden, len(found.paths), registry, settings.risk):
            click.echo(block, color=coloured(sys.stdout))
        report_problems(problems)
    report_bounds(report.bounds)
    ctx.exit(2 if problems else 1 if shown else 0)
