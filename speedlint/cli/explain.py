"""``speedlint explain``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from speedlint import config, docs
from speedlint.output.terminal import coloured
from speedlint.registry import Registry


@click.command()
@click.argument("rule")
def explain(rule: str) -> None:
    """Prints the documentation of RULE: a code such as SPD301, or a name."""
    found = Registry.load(config.load((Path(),)).rule_paths).find(rule)
    text = f"# {found.code} {found.name}\n\n{docs.page(found)}\n"
    if not coloured(sys.stdout):
        click.echo(text, nl=False)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console(width=min(Console().width, 100)).print(Markdown(text))
