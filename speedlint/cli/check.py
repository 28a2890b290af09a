"""``speedlint check``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from speedlint import config
from speedlint.choice import Choice
from speedlint.cli import INTERRUPTED
from speedlint.cli.asked import STDIN, Asked, from_stdin
from speedlint.cli.options import choosing, codes, revision, shared
from speedlint.cli.reporting import repeated, report, reporting, wide
from speedlint.cli.running import Voice, collected, running
from speedlint.config import Settings
from speedlint.errors import UserError
from speedlint.output import formats
from speedlint.output.problems import report_problems
from speedlint.output.results import Results
from speedlint.output.terminal import shown, visible
from speedlint.output.text import count
from speedlint.rule import Level


@click.command()
@shared
@choosing
@running
@from_stdin
@reporting
@click.option("--notes/--no-notes", default=None, help="Show notes as well: what costs little, or only may be slow.")
@click.option("--show-files", is_flag=True, help="Only list the files that would be checked.")
@click.option("--show-settings", is_flag=True, help="Only print the settings that would be used.")
@click.option("--add-ignores", is_flag=True, help="Write a comment that silences it beside each finding that is shown.")
@click.option("--watch", "is_watching", is_flag=True, help="Check again whenever a file changes, until Ctrl-C.")
@click.pass_context
def check(ctx: click.Context, /, paths: tuple[Path, ...], is_watching: bool, **options: Any) -> None:
    """Finds what slows down the training scripts in PATHS: files and folders, the current folder if none are given,
    and `-` for standard input.

    Exits with 0 if nothing is found, 1 if something is, 2 if a file or an option is wrong, and 130 if it is interrupted.
    """
    once = partial(_once, paths, repeated(ctx), **options)
    if not is_watching:
        ctx.exit(once())
    if STDIN in paths:
        raise UserError("--watch looks at files, and `-` is none")
    from speedlint.cli.watch import watch

    watch(once, paths, partial(config.load, paths, options["config"], baseline=options["baseline"]))


def _once(
    paths: tuple[Path, ...],
    given: tuple[str, ...],
    /,
    style: str | None,
    output_file: Path | None,
    counted: bool,
    exit_zero: bool,
    notes: bool | None,
    show_files: bool,
    show_settings: bool,
    add_ignores: bool,
    changed: str | None,
    stdin_filename: Path | None,
    jobs: int | None,
    quiet: bool,
    verbose: bool,
    **options: Any,
) -> int:
    """Checks, prints what is found, and returns the exit code. Raises UserError."""
    voice = Voice(quiet, verbose)
    changed, paths = revision(changed, paths)
    asked = Asked.of(paths, stdin_filename, **options)
    if add_ignores and asked.text is not None:
        raise UserError("--add-ignores writes files, and `-` is none")
    found, settings, registry = asked.found, asked.settings, asked.registry
    style = _style(style, settings)
    if show_settings:
        from speedlint.output import settings as settings_text

        click.echo("\n".join(settings_text.render(settings)))
        return 0
    if show_files:
        click.echo("".join(f"{visible(shown(path))}\n" for path in found.paths), nl=False)
        report_problems(found.problems)
        return 2 if found.problems else 0
    choice = Choice.load(settings, changed, found.paths, asked.read)
    looked = collected(voice.tracked(asked.reports(jobs), len(found.paths)))
    checked = looked.report
    chosen = choice.of(checked.diagnostics)
    problems = (*found.problems, *checked.problems)
    is_noted = settings.notes if notes is None else notes
    told = [each for each in chosen if is_noted or each.level is Level.WARNING]
    if add_ignores and looked.is_whole:
        from speedlint.cli.add_ignores import silenced

        problems = (*problems, *silenced(told))
        report_problems(problems)
        return 2 if problems else 0
    hidden, closes = len(chosen) - len(told), looked.is_whole and not quiet
    more = {**wide(output_file), "closes": closes, "read": asked.read}
    results = Results(told, hidden, found.paths, problems, settings, registry, paths, given, **more)
    report(results, style, output_file, counted)
    if not looked.is_whole:
        click.echo(f"interrupted; {looked.files} of {count(len(found.paths), 'file')} checked", err=True)
        return INTERRUPTED
    unread = {problem.path for problem in problems}
    read = [path for path in found.paths if path not in unread]
    voice.remark((*choice.remarks(checked, read, codes(settings, registry)), *checked.bounds))
    voice.explain(found.paths, settings, registry)
    return 2 if problems else 1 if told and not exit_zero else 0


def _style(style: str | None, settings: Settings) -> str | None:
    """The format that is asked for, by the command line or else the configuration, if one is. Raises UserError."""
    if style is None and settings.format and settings.format not in formats.FORMATS:
        known = ", ".join(formats.FORMATS)
        raise UserError(f"{settings.file}: `format` must be one of {known}, not `{settings.format}`")
    return style or settings.format or None
