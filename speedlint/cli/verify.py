"""``speedlint verify``."""

from __future__ import annotations

import shlex
import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from speedlint import config, host
from speedlint.cli import completing
from speedlint.cli.options import prepare
from speedlint.cli.options import words as split_words
from speedlint.errors import UserError
from speedlint.facts.store import Store
from speedlint.interpreter import with_torch
from speedlint.output.problems import report_problems
from speedlint.output.terminal import visible
from speedlint.rule import Risk
from speedlint.verify.budget import Budget, BudgetError, bounded

if TYPE_CHECKING:
    from speedlint.files import Problem
    from speedlint.verify.plan import Command, Plan
    from speedlint.verify.report import Report

_FOR_PLANNING = 0.5
"""What part of the budget planning may take: with less for the runs there is nothing to say."""
_PATIENCE = 0.5
"""Seconds before it is said that Pythons are asked for torch: on a network's disk they may take several to answer."""
_PLANNING_TAKES_LONG = (
    "working out the fixes takes more than half of `--budget`; give it more, or name rules with `--select`"
)
_RULES: dict[str, Any] = {
    "multiple": True,
    "callback": split_words,
    "shell_complete": completing.rules,
    "metavar": "CODE,...",
}
_ENDINGS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class _Verify(click.Command):
    """Says where the script's own options stand when one of them is taken for an option of verify."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Reads the command line."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            where = f"what is for the script follows `--`: speedlint verify train.py -- {error.option_name}"
            raise click.UsageError(f"{error.format_message()} ({where})", ctx) from None


@click.command(cls=_Verify)
@click.argument("script", type=click.Path(), required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option("-m", "module", metavar="MODULE", help="Run a module of the current folder instead of a script.")
@click.option("--against", type=click.Path(path_type=Path), help="Another version of the script or the project.")
@click.option("--risk", type=click.Choice(config.RISKS), help="The highest risk of the fixes to apply (default: numeric).")
@click.option("--select", **_RULES, help="Only fixes of these rules.")
@click.option("--ignore", **_RULES, help="No fixes of these rules.")
@click.option("--amp", type=click.Choice(config.AMP), help="The half precision that fixes bring in (default: fp16).")
@click.option("--config", type=click.Path(path_type=Path), help="The configuration file to use.")
@click.option("--python", metavar="PATH", help="The interpreter that trains (default: the first one around with torch).")
@click.option(
    "--launch", default="", metavar="COMMAND", help='What starts the script, such as "torchrun --nproc-per-node 2".'
)
@click.option(
    "--steps", type=click.IntRange(min=3), default=30, show_default=True, help="The fewest steps to measure in each run."
)
@click.option(
    "--seconds", type=click.FloatRange(min=0), default=1, show_default=True, help="The least time to measure in each."
)
@click.option("--epochs", type=click.IntRange(min=1), metavar="N", help="Time whole epochs, N in each run.")
@click.option("--warmup", type=click.IntRange(min=0), default=5, show_default=True, help="The fewest steps before them.")
@click.option("--pairs", type=click.IntRange(min=3), default=6, show_default=True, help="The fewest pairs of runs.")
@click.option("--max-pairs", type=click.IntRange(min=3), default=20, show_default=True, help="The most pairs of runs.")
@click.option(
    "--budget",
    type=click.FloatRange(min=1),
    default=300,
    show_default=True,
    metavar="SECONDS",
    help="Time for all: planning, losses and pairs.",
)
@click.option(
    "--timeout", type=click.FloatRange(min=1), default=600, show_default=True, metavar="SECONDS", help="For one run."
)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    help="CPU threads of a run (default: one fewer than the cores; with --launch what that sets).",
)
@click.option("--per-fix", is_flag=True, help="Measure what each rule's fixes bring.")
@click.option("--apply", is_flag=True, help="Write the fixes, with --per-fix those that pay, if faster and the same.")
@click.option("--min-speedup", type=float, metavar="X", help="Exit with 1 if it is less than X times as fast.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), metavar="FILE", help="Write all that was measured.")
@click.option("--html", "html_file", type=click.Path(path_type=Path), metavar="FILE", help="Write a page with charts.")
@click.option(
    "--allow-write", multiple=True, type=click.Path(path_type=Path), metavar="FOLDER", help="A folder runs may write to."
)
@click.option("--keep", type=click.Path(path_type=Path), metavar="FOLDER", help="Keep the copies and the outputs there.")
@click.pass_context
def verify(
    ctx: click.Context, /, script: str | None, arguments: tuple[str, ...], module: str | None, **options: Any
) -> None:
    """Times SCRIPT as it is against SCRIPT as `fix` would leave it, and compares what they train.

    Runs happen in copies of the project: nothing of it is written to. What follows `--` is passed to the script:

        speedlint verify train.py -- --epochs 3

    Where nothing is left to fix, what `fix` has written last is timed against what was there before.

    Exits with 0 if it is faster or no different, 1 if it is slower, another training, or less than --min-speedup, 2 if
    something is wrong, and 3 if the answer is not clear.
    """
    if script is None and module is None:
        raise UserError("name the script to time, or a module with -m")
    budget = Budget(options["budget"])
    waiting = threading.Timer(_PATIENCE, click.echo, ("looking for the Python that trains",), {"err": True})
    waiting.start()
    try:
        interpreter = with_torch(options["python"], Path.cwd())
    finally:
        waiting.cancel()
    click.echo(visible(interpreter.said), err=True)  # before what takes time to import

    from speedlint.output import verify_html, verify_json, verify_text
    from speedlint.output.verify_live import Live
    from speedlint.verify import session
    from speedlint.verify.nvml import Meter
    from speedlint.verify.plan import plan
    from speedlint.verify.report import UNCLEAR
    from speedlint.verify.runner import Limits
    from speedlint.verify.scratch import scratch

    live = Live(budget)
    command = _command(interpreter.path, script, arguments, module, options["launch"])
    settings, registry, store = prepare(
        (command.folder / command.target if not command.is_module else command.folder,),
        config=options["config"],
        select=options["select"],
        ignore=options["ignore"],
        amp=options["amp"],
        risk=Risk[options["risk"].upper()] if options["risk"] else None,
        by_default=Risk.NUMERIC,
        no_cache=False,
    )
    if options["apply"] and options["against"] is not None:
        raise UserError("--apply writes speedlint's fixes, and --against times something else")
    for target in (options["json_file"], options["html_file"]):
        if target is not None and not target.absolute().parent.is_dir():
            raise UserError(f"{target}: there is no such folder to write to")
    with live:
        try:
            with bounded(budget.left * _FOR_PLANNING, _PLANNING_TAKES_LONG):
                live.phase("planning the fixes" if options["against"] is None else "planning")
                whole = plan(command, settings, registry, options["against"], store, live.planning)
        except BudgetError as error:
            click.echo(f"inconclusive: {error}")
            ctx.exit(UNCLEAR)
    for word in _misplaced(ctx, command.arguments, whole.files):
        live.say(
            f"note: `{word}` stands after the script's arguments and goes to it; verify's own options stand before `--`"
        )
    if options["against"] is None and not whole.fixed.changed and not options["apply"]:
        last = _of_last_fixes(whole)
        if last is not None:
            live.say("Nothing is left to fix at this risk: what `fix` wrote last is timed against what was there before.")
            whole = last
    if options["against"] is None and not whole.fixed.changed and not whole.original.changed:
        click.echo("Nothing to fix at this risk, so there is nothing to compare; `speedlint check` says what it saw.")
        ctx.exit(0)
    limits = Limits(
        steps=options["steps"],
        seconds=options["seconds"],
        warmup=options["warmup"],
        threads=options["threads"] or (None if command.launcher else max(1, host.cores() - 1)),
        timeout=options["timeout"],
        epochs=options["epochs"] or 0,
    )
    most = max(options["pairs"], options["max_pairs"])
    effort = session.Effort(options["pairs"], most, budget, options["per_fix"], options["apply"])
    for kind in _ENDINGS:
        signal.signal(kind, _interrupt)
    with scratch(options["keep"], options["allow_write"]) as folders, Live(budget) as live:
        report = session.verify(whole, folders, limits, effort, whole.registry or registry, live, Meter())
    problems: list[Problem] = []
    if options["apply"]:
        report, problems = _applied(report, whole, options["min_speedup"])
    live.show(verify_text.render(report))
    report_problems(problems)
    if options["json_file"] is not None:
        _write(options["json_file"], verify_json.render(report))
    if options["html_file"] is not None:
        _write(options["html_file"], verify_html.render(report))
    ctx.exit(2 if problems else report.exit_code(options["min_speedup"]))


def _applied(report: Report, whole: Plan, least: float | None) -> tuple[Report, list[Problem]]:
    """Writes what paid. Returns the report that says so, and what could not be written."""
    from speedlint import undo
    from speedlint.verify.applying import choose

    choice = choose(report, whole, least)
    problems = undo.write(Store.of_user(), choice.outcomes)
    failed = {problem.path for problem in problems}
    written = tuple(outcome.path for outcome in choice.outcomes if outcome.path not in failed)
    left_out = (*report.left_out, *choice.left_out)
    return replace(report, left_out=left_out, written=written, unwritten=choice.why_not), problems


def _of_last_fixes(whole: Plan) -> Plan | None:
    """The plan to time what was written last in this project, where that is kept and still there."""
    from speedlint import undo
    from speedlint.verify.plan import of_last_fixes

    outcomes, problems = undo.back(Store.of_user()) or ((), ())
    return None if problems else of_last_fixes(whole, outcomes)


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _command(interpreter: str, script: str | None, arguments: tuple[str, ...], module: str | None, launch: str) -> Command:
    if module is not None and script is not None:
        arguments = (script, *arguments)
    from speedlint.verify.plan import Command

    try:
        launcher = tuple(shlex.split(launch))
    except ValueError as error:
        raise UserError(f"--launch: {error}") from error
    return Command(interpreter, module or script or "", module is not None, arguments, launcher, Path.cwd())


def _misplaced(ctx: click.Context, arguments: tuple[str, ...], files: tuple[Path, ...]) -> list[str]:
    """The script's arguments that are options of verify and are named in none of the script's files."""
    own = {name for parameter in ctx.command.params for name in parameter.opts if name.startswith("--")}
    given = [each for each in dict.fromkeys(word.partition("=")[0] for word in arguments) if each in own]
    texts = [path.read_bytes() for path in files] if given else []
    return [each for each in given if not any(each.encode() in text for text in texts)]


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror})") from error
