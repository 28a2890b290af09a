"""``speedlint schema``."""

from __future__ import annotations

import click

from speedlint import schemas


@click.command()
@click.argument("name", type=click.Choice(schemas.NAMES))
def schema(name: str) -> None:
    """Prints a JSON schema: of what `check --format json` prints, or of the configuration."""
    click.echo(schemas.text(name), nl=False)
