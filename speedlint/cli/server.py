"""``speedlint server``."""

from __future__ import annotations

import contextlib
import gc
import os
import sys

import click

from speedlint.errors import UserError


@click.command()
@click.option("--stdio", is_flag=True, help="Speak over standard input and output, as is done in any case.")
def server(stdio: bool) -> None:
    """Speaks the Language Server Protocol with an editor, over standard input and output.

    Shows findings as you type, with quick fixes. docs/editors.md says how editors start it.
    """
    try:
        from speedlint.server import service
    except ImportError as error:
        raise UserError(f"the server needs `{error.name}`; install it with `pip install 'speedlint[server]'`") from None
    gc.enable()
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a rule of the user's prints must not reach the editor
    with contextlib.redirect_stdout(sys.stderr):
        service.made().start_io(stdout=out)
