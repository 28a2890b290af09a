"""``speedlint fix``."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from speedlint import config, files, git, run
from speedlint.cli.options import prepare, shared
from speedlint.errors import UserError
from speedlint.output.problems import report_bounds, report_problems
from speedlint.output.progress import tracked
from speedlint.output.terminal import coloured, shown, visible
from speedlint.output.text import RISKS, count
from speedlint.program.imports import absolute
from speedlint.rule import Level, Risk

if TYPE_CHECKING:
    from speedlint.stages import Staged

_NOTHING = "Nothing to fix."


@click.command()
@shared
@click.option("--risk", type=click.Choice(config.RISKS), help="The highest risk of the fixes to apply (default: exact).")
@click.option(
    "--only-paying", type=click.Path(path_type=Path), metavar="REPORT", help="Only what `verify --per-fix` found to pay."
)
@click.option("--apply", is_flag=True, help="Write the changes instead of showing them.")
@click.pass_context
def fix(
    ctx: click.Context, /, paths: tuple[Path, ...], risk: str | None, only_paying: Path | None, apply: bool, **options: Any
) -> None:
    """Rewrites what slows down the training scripts in PATHS; shows the changes, and writes them with --apply.

    The risk says what may change: `exact`, the same training bit for bit; `numeric`, rounding or the random stream;
    `behavior`, what is computed, logged or saved. A note's fix is applied only when its rule is selected by name.

    Exits with 0 if there is nothing to fix or all was written, 1 if there are changes to write, and 2 if a file or an
    option is wrong.
    """
    from speedlint import fixer, stages

    settings, registry, store = prepare(paths, risk=Risk[risk.upper()] if risk else None, **options)
    if only_paying is not None:
        kept = _paying(only_paying)
        unpaid = tuple(rule.code for rule in registry.rules if rule.code not in kept)
        settings = replace(settings, ignore=(*settings.ignore, *unpaid))
    found = files.discover(paths or (Path(),), settings.exclude, settings.root)
    reports = run.check(found.paths, settings, registry, store)
    report = run.merge(tracked(reports, len(found.paths), "Checking"))
    slow = dict.fromkeys(each.path for each in report.diagnostics if stages.fixable(each, settings.risk))
    staged = stages.fix(tuple(slow), settings, registry, store=store)
    problems = [*found.problems, *report.problems, *staged.problems]
    asked = {absolute(path) for path in found.paths}
    others = [each.path for each in staged.outcomes if absolute(each.path) not in asked]
    unsaved = git.unsaved(others)
    if apply:
        failures = fixer.write_all(staged.outcomes)
        problems += failures
        _say_written(staged, {failure.path for failure in failures})
    else:
        _show(staged)
    if others:
        names = ", ".join(visible(shown(path)) for path in others)
        click.echo(f"{count(len(others), 'file')} beside what was asked for, where calls lead: {names}.")
    for path in unsaved:
        click.echo(f"note: {visible(shown(path))} has changes that git does not hold", err=True)
    for higher in (each for each in Risk if each > settings.risk):
        more = sum(
            each.fix is not None and each.fix.risk is higher and stages.fixable(each, higher) for each in report.diagnostics
        )
        if more:
            option = f"`--risk {higher.name.lower()}`"
            click.echo(f"{count(more, 'more fix', 'more fixes')} with {option}: {RISKS[higher]}.")
    left = sum(each.level is Level.WARNING and not stages.fixable(each, Risk.BEHAVIOR) for each in report.diagnostics)
    if left:
        click.echo(f"{count(left, 'finding')} without a fix that is written; `speedlint check` says what to do.")
    report_problems(problems)
    report_bounds(report.bounds)
    ctx.exit(2 if problems else 1 if staged.outcomes and not apply else 0)


def _paying(report: Path) -> frozenset[str]:
    """The rules whose fixes a report of ``verify --per-fix`` found to pay. Raises UserError."""
    try:
        effects = json.loads(report.read_text("utf-8"))["per_fix"]
        found = frozenset(str(each["code"]) for each in effects if each["pays"])
    except OSError as error:
        raise UserError(f"{report}: cannot be read ({error.strerror})") from error
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{report}: is no report of `speedlint verify --per-fix --json`") from None
    if not effects:
        raise UserError(f"{report}: holds no timing of single fixes; run `speedlint verify` with `--per-fix`")
    return found


def _say_written(staged: Staged, failed: set[Path]) -> None:
    from speedlint.output import diff

    for outcome in staged.outcomes:
        if outcome.path not in failed:
            click.echo(diff.written(outcome))
    if not staged.outcomes:
        click.echo(_NOTHING)


def _show(staged: Staged) -> None:
    from speedlint.output import diff

    for line in diff.render(staged.stages):
        click.echo(line, color=coloured(sys.stdout))
    fixes = sum(len(stage.applied) for stage in staged.stages)
    where = count(len(staged.outcomes), "file")
    click.echo(f"{count(fixes, 'fix', 'fixes')} in {where}, not written; `--apply` writes." if fixes else _NOTHING)
