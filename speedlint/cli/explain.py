"""``speedlint explain``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from speedlint import config, docs
from speedlint.cli import completing
from speedlint.cli.options import colour, words
from speedlint.output.terminal import coloured, columns, console
from speedlint.registry import Registry

_WIDEST = 100
"""The columns of running text: longer lines are hard to read."""


@click.command()
@click.argument("rules", nargs=-1, required=True, callback=words, shell_complete=completing.rules)
@colour
def explain(rules: tuple[str, ...]) -> None:
    """Prints the documentation of RULES: codes such as SPD301, families such as SPD3, or names; several, with spaces or
    commas between."""
    registry = Registry.load(config.load((Path(),)).rule_paths)
    found = dict.fromkeys(rule for word in rules for rule in registry.covered(word))
    text = "\n".join(f"# {rule.code} {rule.name}\n\n{docs.page(registry.loaded(rule))}\n" for rule in found)
    if not coloured(sys.stdout):
        click.echo(text, nl=False)
        return
    from rich.markdown import Markdown

    console(width=min(columns(sys.stdout), _WIDEST)).print(Markdown(text))
