"""``speedlint fix``."""

from __future__ import annotations

import collections
import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from speedlint import config, git, notebook, run
from speedlint.choice import Choice
from speedlint.cli.asked import STDIN, Asked, from_stdin
from speedlint.cli.options import choosing, places, revision, shared
from speedlint.cli.running import Voice, running
from speedlint.diagnostic import Diagnostic, Report
from speedlint.errors import UserError
from speedlint.files import Problem
from speedlint.output.problems import report_problems
from speedlint.output.terminal import coloured, shown, visible
from speedlint.output.text import RISKS, count
from speedlint.program.imports import absolute
from speedlint.rule import Level, Risk

if TYPE_CHECKING:
    from speedlint.cli.interactive import Asking
    from speedlint.stages import Staged


@click.command()
@shared
@choosing
@running
@from_stdin
@click.option("--risk", type=click.Choice(config.RISKS), help="The highest risk of the fixes to apply (default: exact).")
@click.option(
    "--only-paying", type=click.Path(path_type=Path), metavar="REPORT", help="Only what `verify --per-fix` found to pay."
)
@click.option("--apply", is_flag=True, help="Write the changes instead of showing them; `speedlint undo` takes them back.")
@click.option("--exit-non-zero-on-fix", "exit_on_fix", is_flag=True, help="Exit with 1 if a file has changed.")
@click.option("-i", "--interactive", is_flag=True, help="Ask about each change, then write those that were agreed to.")
@click.option("--diff", "as_patch", is_flag=True, help="Print the changes as a diff that `git apply` takes, and no more.")
@click.pass_context
def fix(
    ctx: click.Context,
    /,
    paths: tuple[Path, ...],
    risk: str | None,
    only_paying: Path | None,
    apply: bool,
    exit_on_fix: bool,
    interactive: bool,
    as_patch: bool,
    changed: str | None,
    stdin_filename: Path | None,
    jobs: int | None,
    quiet: bool,
    verbose: bool,
    **options: Any,
) -> None:
    """Rewrites what slows down the training scripts in PATHS; shows the changes, and writes them with --apply.

    PATHS may name lines, as in train.py:12: then only what begins there is changed; `-` fixes the text on standard input and
    prints it. The risk says what may change: `exact`, the same training bit for bit; `numeric`, rounding or the random
    stream; `behavior`, what is computed, logged or saved. A note's fix is applied only when its rule is selected by name.

    Exits with 0 if there is nothing to fix or all was written, 1 if there are changes to write, and 2 if a file or an
    option is wrong.
    """
    if (apply or interactive) and as_patch:
        raise UserError("--diff prints the changes for git to apply, and --apply and --interactive write them; take one")
    if STDIN in paths and apply:
        raise UserError("--apply writes files, and `-` is none; leave --apply out: the fixed text is printed")
    if STDIN in paths and interactive:
        raise UserError("--interactive asks on standard input, and `-` reads the text from there; name the file")
    voice = Voice(quiet, verbose)
    changed, paths = revision(changed, paths)
    paths, lines = places(paths)
    asked = Asked.of(paths, stdin_filename, risk=Risk[risk.upper()] if risk else None, **options)
    if only_paying is not None:
        asked = _of_rules(asked, _paying(only_paying))
    found, settings = asked.found, asked.settings
    choice = replace(Choice.load(settings, changed, found.paths, asked.read), asked=lines)
    report = run.merge(voice.tracked(asked.reports(jobs), len(found.paths)))
    staged = _staged(asked, choice, report, interactive)
    problems = [*found.problems, *report.problems, *staged.problems]
    if asked.text is not None and not as_patch:
        click.echo(staged.outcomes[0].after if staged.outcomes else asked.text, nl=False)
        report_problems(problems)
        ctx.exit(2 if problems else 1 if staged.outcomes and exit_on_fix else 0)
    written: list[Path] = []
    unsaved = git.unsaved(each.path for each in staged.outcomes)
    if apply or interactive:
        from speedlint import fixer, undo

        failures = undo.write(asked.store, staged.outcomes) if asked.store else fixer.write_all(staged.outcomes)
        failed = {failure.path for failure in failures}
        written = [each.path for each in staged.outcomes if each.path not in failed]
        problems += failures
        if not quiet:
            _say_written(staged, failed)
    elif as_patch:
        problems += _print_patch(staged)
    else:
        _show(staged)
    chosen = choice.of(report.diagnostics)
    if found.paths and not staged.outcomes and not (as_patch or quiet):
        click.echo(f"Nothing to fix{' at this risk' if _of_higher_risk(chosen, settings.risk) else ''}.")
    if not quiet:
        for sentence in _remarks(staged, chosen, found.paths, settings.risk):
            click.echo(sentence, err=as_patch)
        if written:
            _point_on(written, asked)
    voice.remark((*map(_unsaved, unsaved), *report.bounds))
    voice.explain(found.paths, settings, asked.registry)
    report_problems(problems)
    is_open = exit_on_fix or not (apply or interactive)
    ctx.exit(2 if problems else 1 if staged.outcomes and is_open else 0)


def _of_rules(asked: Asked, codes: frozenset[str]) -> Asked:
    """What is asked for, of some rules only."""
    others = tuple(rule.code for rule in asked.registry.rules if rule.code not in codes)
    return replace(asked, settings=replace(asked.settings, without=(*asked.settings.without, *others)))


def _staged(asked: Asked, choice: Choice, report: Report, interactive: bool) -> Staged:
    """The fixes of what is chosen; with ``interactive`` those that the user agrees to."""
    from speedlint import stages

    chosen = choice.of(report.diagnostics)
    slow = dict.fromkeys(each.path for each in chosen if stages.fixable(each, asked.settings.risk))
    if interactive:
        from speedlint.cli.interactive import Asking

        return _agreed(Asking(tuple(slow), asked.settings, asked.registry, choice, asked.store))
    slow |= dict.fromkeys(each.path for each in choice.unused(report.unused))
    return stages.fix(
        tuple(slow),
        asked.settings,
        asked.registry,
        store=asked.store,
        choice=choice,
        with_comments=True,
        read=asked.read,
        alone=asked.text is not None,
        beside=asked.found.paths,
    )


def _agreed(asking: Asking) -> Staged:
    """The changes that the user agrees to. Raises KeyboardInterrupt where there is no answer."""
    from speedlint.stages import Staged

    try:
        return Staged((), tuple(asking.ask()), ())
    except click.Abort:
        raise KeyboardInterrupt from None


def _remarks(staged: Staged, chosen: Sequence[Diagnostic], asked: Sequence[Path], risk: Risk) -> Iterator[str]:
    """What is to be said beside the changes."""
    from speedlint import stages

    named = {absolute(path) for path in asked}
    others = [each.path for each in staged.outcomes if absolute(each.path) not in named]
    if others:
        names = ", ".join(visible(shown(path)) for path in others)
        yield f"{count(len(others), 'file')} beside what was asked for, where calls lead: {names}."
    for higher, more in _of_higher_risk(chosen, risk).items():
        option = f"`--risk {higher.name.lower()}`"
        yield f"{count(more, 'more fix', 'more fixes')} with {option}: {RISKS[higher]}."
    left = sum(each.level is Level.WARNING and not stages.fixable(each, Risk.BEHAVIOR) for each in chosen)
    if left:
        yield f"{count(left, 'finding')} without a fix that is written; `speedlint check` says what to do."


def _of_higher_risk(chosen: Sequence[Diagnostic], risk: Risk) -> dict[Risk, int]:
    """How many fixes of each risk above this one there are."""
    from speedlint import stages

    open_ = (each.fix.risk for each in chosen if each.fix is not None and stages.fixable(each, Risk.BEHAVIOR))
    found = collections.Counter(each for each in open_ if each > risk)
    return {each: found[each] for each in Risk if found[each]}


def _unsaved(path: Path) -> str:
    return f"{shown(path)} has changes that git does not hold; commit or stash them to tell them from the fixes"


def _print_patch(staged: Staged) -> Iterator[Problem]:
    """Prints one diff a file; gives the files that a diff cannot name."""
    from speedlint.output import diff

    for outcome in staged.outcomes:
        try:
            patch = diff.patch(outcome)
        except ValueError:
            yield Problem(outcome.path, None, "lies outside the current folder, so git cannot apply a diff of it here")
        else:
            click.echo(diff.safe(patch) if sys.stdout.isatty() else patch, nl=False)


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


def _point_on(written: Sequence[Path], asked: Asked) -> None:
    """Says how what was written is taken back, and how it is timed."""
    if asked.store is None:
        return
    commands = {"takes it back": ("speedlint", "undo")}
    if not any(map(notebook.is_notebook, written)):
        risk = asked.settings.risk
        named = () if risk is Risk.NUMERIC else ("--risk", risk.name.lower())
        script = visible(shown(asked.path)) if len(asked.found.paths) == 1 else "SCRIPT"
        commands = {"measures it": ("speedlint", "verify", *named, script), **commands}
    said = ", ".join(f"`{click.style(shlex.join(each), bold=True)}` {what}" for what, each in commands.items())
    click.echo(f"Next: {said}.", color=coloured(sys.stdout))


def _show(staged: Staged) -> None:
    from speedlint.output import diff

    for line in diff.render(staged.stages):
        click.echo(line, color=coloured(sys.stdout))
    fixes = sum(len(stage.applied) for stage in staged.stages)
    where = count(len(staged.outcomes), "file")
    if fixes:
        click.echo(f"{count(fixes, 'fix', 'fixes')} in {where}, not written; `--apply` writes.")
