"""The command line: one file per command."""

from __future__ import annotations

import contextlib
import importlib
import io
import sys
from typing import Any

import click

from speedlint import __version__
from speedlint.errors import UserError
from speedlint.output.terminal import visible

INTERRUPTED = 130


_COMMANDS = ("check", "fix", "verify", "doctor", "explain", "rules", "ask", "questions", "new-rule", "clean")
"""The commands; each is what its file in this folder names so, with an underscore for a hyphen, and is imported when it is
asked for."""


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
        return found

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
    speedlint verify train.py         whether the changes make it faster, measured
    speedlint doctor                  what the machine, torch and the environment leave of its speed
    speedlint explain item-in-loop    a rule's documentation
    speedlint ask train.py:96         what is known of a line, how often it runs, and why
    """


def _never_fail_to_print() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with contextlib.suppress(OSError, ValueError):
                stream.reconfigure(errors="backslashreplace")
