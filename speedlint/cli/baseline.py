"""``speedlint baseline``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from speedlint import run
from speedlint.baseline import NAME, Baseline
from speedlint.cli.options import codes, discover, prepare, shared
from speedlint.config import Settings
from speedlint.output.problems import report_bounds, report_problems
from speedlint.output.progress import tracked
from speedlint.output.terminal import shown, visible
from speedlint.output.text import count


@click.command()
@shared
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help=f"What to write, else what is configured or {NAME}.",
)
@click.pass_context
def baseline(ctx: click.Context, /, paths: tuple[Path, ...], output: Path | None, **options: Any) -> None:
    """Writes down what is found in PATHS now, notes too; `check` and `fix` with `--baseline` then leave it out.

    What the file knows of other files stays. What is gone from the code, or lies in files that are gone, is dropped.
    """
    settings, registry, store = prepare(paths, **options)
    file = output or settings.baseline or _default(settings)
    old = Baseline.load(file) if file.exists() else Baseline(file)
    found, settings, registry = discover(paths, settings, registry, store)
    if found.problems and not found.paths:
        report_problems(found.problems)
        ctx.exit(2)
    report = run.merge(tracked(run.check(found.paths, settings, registry, store), len(found.paths), "Checking"))
    problems = (*found.problems, *report.problems)
    unread = {problem.path for problem in problems}
    new = old.renewed(report.diagnostics, [each for each in found.paths if each not in unread], codes(settings, registry))
    new.write()
    added, dropped = new.beyond(old), old.beyond(new)
    click.echo(f"{visible(shown(file))}: {count(new.total(), 'finding')}, {added} new; {dropped} dropped.")
    if settings.baseline is None:
        name = visible(shown(file))
        use = f'with `--baseline {name}`, or where the configuration says `baseline = "{name}"`'
        click.echo(f"note: `check` and `fix` leave these out {use}", err=True)
    report_problems(problems)
    report_bounds(report.bounds)
    ctx.exit(2 if problems else 0)


def _default(settings: Settings) -> Path:
    here = Path.cwd()
    return (settings.root if here.is_relative_to(settings.root) else here) / NAME
