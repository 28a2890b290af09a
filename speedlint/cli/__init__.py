"""The command line: one file per command."""

from __future__ import annotations

import contextlib
import errno
import importlib
import io
import os
import sys
from pathlib import Path
from typing import Any

import click

from speedlint import __version__
from speedlint.errors import UserError, did_you_mean
from speedlint.output.terminal import visible

INTERRUPTED = 130
"""The exit code of a run that Ctrl-C has ended, as shells have it: 128 and the signal's number."""
NAME, COMPLETE = "speedlint", "_SPEEDLINT_COMPLETE"
"""What a shell calls, and the variable by which it asks what completes a command line."""
_COMMANDS = {
    "check": "Finds what slows down training scripts.",
    "fix": "Shows the changes as a diff, or writes them with --apply.",
    "verify": "Times a script before and after its fixes.",
    "doctor": "Looks at the machine: torch, GPUs, cores, memory, storage.",
    "explain": "Prints the documentation of rules.",
    "ask": "Says what is known of a line, how often it runs, and why.",
    "questions": "Lists the questions that a rule may ask of a script.",
    "new-rule": "Writes the skeleton of a rule into a clone of speedlint.",
    "schema": "Prints a JSON schema of a report or of the configuration.",
    "server": "Speaks the Language Server Protocol with an editor.",
    "baseline": "Writes down what is found now, so that `check` tells what is new.",
    "undo": "Takes back the fixes that were written last.",
    "completion": "Prints what makes a shell complete commands, options and codes.",
    "rules": "Lists the rules: code, name, and the pattern each one finds.",
    "clean": "Takes away what earlier runs have kept in the cache.",
}
"""The commands and what each does, in a line; a command is what its file in this folder names so, with an underscore for a
hyphen, and is imported when it is asked for."""


class _Group(click.Group):
    """Turns what the user got wrong into one line and exit code 2, and Ctrl-C into exit code 130."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands."""
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name."""
        if cmd_name not in _COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        found: click.Command = getattr(importlib.import_module(f"speedlint.cli.{name}"), name)
        found.short_help = _COMMANDS[cmd_name]
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the commands, none of which is imported for that."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(_COMMANDS.items()))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first word names, and what is left for it. Raises UserError where there is none."""
        word = args[0]
        if word in _COMMANDS or word.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        raise UserError(f"there is no command `{word}`{_meant(word)}; `speedlint --help` lists them")

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Runs the command line, and ends it in one line and with exit code 2 where standard output takes no more.

        Where the reader of standard output has gone, as in ``| head``, nothing is said and the exit code is 1.
        """
        options.setdefault("complete_var", COMPLETE)
        try:
            try:
                return super().main(*arguments, **options)
            finally:
                if sys.stdout is not None:
                    sys.stdout.flush()
        except OSError as error:
            if error.filename is not None:  # of a file, not of a stream
                raise
            _drop_output()
            if error.errno == errno.EPIPE:
                sys.exit(1)
            click.echo(f"error: standard output cannot be written ({error.strerror})", err=True)
            sys.exit(2)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command."""
        _never_fail_to_print()
        try:
            return super().invoke(ctx)
        except UserError as error:
            click.echo(f"error: {visible(str(error))}", err=True)
            ctx.exit(2)
        except KeyboardInterrupt:
            click.echo("interrupted; files that were not reached are as they were", err=True)
            ctx.exit(INTERRUPTED)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="speedlint %(version)s")
def main() -> None:
    """Finds what slows down PyTorch training scripts, and rewrites it.

    \b
    speedlint check train.py          what is slow, why, and what to do
    speedlint fix train.py            the changes as a diff; --apply writes them
    speedlint undo                    takes back what fix has written last
    speedlint verify train.py         whether the changes make it faster, measured
    speedlint doctor                  what the machine and the environment cost
    speedlint explain item-in-loop    a rule's documentation
    speedlint ask train.py:96         what is known of a line, and why
    """


def _meant(word: str) -> str:
    """What was meant by a word that is no command: another command, or the check of a file."""
    if Path(word).exists() or word.endswith((".py", ".ipynb")):
        return f" (did you mean `speedlint check {word}`?)"
    return did_you_mean(word, _COMMANDS)


def _drop_output() -> None:
    """Lets what is still to be printed vanish, so that Python does not fail on it once more when it ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _never_fail_to_print() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with contextlib.suppress(OSError, ValueError):
                stream.reconfigure(errors="backslashreplace")
