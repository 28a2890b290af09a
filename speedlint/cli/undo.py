"""``speedlint undo``."""

from __future__ import annotations

import click

from speedlint.errors import UserError
from speedlint.facts.store import Store
from speedlint.output.problems import report_problems
from speedlint.output.terminal import shown, visible


@click.command()
@click.pass_context
def undo(ctx: click.Context) -> None:
    """Takes back the fixes that were written last in this project, in all files or in none.

    What the files held before is kept in the user's cache (`SPEEDLINT_CACHE_DIR` names another one) until the next fixes are
    written, or `speedlint clean`. Nothing is taken back where one of the files has changed since.
    """
    from speedlint import undo as kept
    from speedlint import writing

    store = Store.of_user()
    found = kept.back(store)
    if found is None:
        raise UserError(f"{kept.project()}: no fixes are kept that were written here, so there is nothing to take back")
    outcomes, problems = found
    problems = problems or writing.write_all(outcomes)
    report_problems(problems)
    if problems:
        ctx.exit(2)
    kept.forget(store)
    for outcome in outcomes:
        click.echo(f"taken back: {visible(shown(outcome.path))}")
    if not outcomes:
        click.echo("Nothing to take back: the files are as they were.")
