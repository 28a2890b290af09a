"""What completes in a shell beside commands, options and files: the rules."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from speedlint import config
from speedlint.docs import summary
from speedlint.errors import UserError
from speedlint.facts.store import Store
from speedlint.registry import Registry

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def rules(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The codes, or the names, that begin as the last of some comma-separated words does; none where the configuration of
    the current folder is wrong."""
    from click.shell_completion import CompletionItem

    store = Store.of_user()
    try:
        every = Registry.load(config.load((Path(),)).rule_paths, store).rules
    except UserError:
        return []
    store.flush()
    before, comma, word = incomplete.rpartition(",")
    found = [(rule.code, rule) for rule in every if rule.code.startswith(word.upper())]
    found += [(rule.name, rule) for rule in every if word and rule.name.startswith(word.lower())]
    return [CompletionItem(f"{before}{comma}{each}", help=summary(rule.docs)) for each, rule in found]
