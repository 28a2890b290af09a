"""``speedlint rules``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from speedlint import config
from speedlint.cli.options import colour
from speedlint.docs import summary
from speedlint.output import rules_markdown
from speedlint.output.terminal import console
from speedlint.registry import Registry


@click.command()
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    help="How to print them; markdown is the whole documentation.",
)
@colour
def rules(style: str) -> None:
    """Lists the rules: code, name, and the pattern each one finds."""
    registry = Registry.load(config.load((Path(),)).rule_paths)
    every = registry.rules
    if style == "json":
        rows = [{"code": r.code, "name": r.name, "summary": summary(r.docs), "off": r.off} for r in every]
        click.echo(json.dumps(rows, indent=2))
        return
    if style == "markdown":
        click.echo(rules_markdown.render([*map(registry.loaded, every)]), nl=False)
        return
    from rich.table import Table
    from rich.text import Text

    table = Table("code", "name", "what is slow", box=None, pad_edge=False, header_style="bold")
    for rule in every:
        off = Text(" (only when selected)", "dim") if rule.off else Text()
        table.add_row(rule.code, rule.name, Text(summary(rule.docs)) + off)
    console().print(table)
