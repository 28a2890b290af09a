"""``speedlint clean``."""

from __future__ import annotations

import click

from speedlint.errors import UserError
from speedlint.facts import store


@click.command()
def clean() -> None:
    """Takes away what earlier runs have kept in the cache."""
    try:
        size = store.clean()
    except OSError as error:
        raise UserError(f"{store.folder()}: cannot be emptied ({error.strerror}); check its permissions") from None
    click.echo(f"{store.folder()}: {size / 1e6:.1f} MB taken away" if size else f"{store.folder()}: is empty")
