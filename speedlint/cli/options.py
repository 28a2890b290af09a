"""Options that several commands share."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from speedlint import config
from speedlint.facts.store import Store
from speedlint.registry import Registry

F = TypeVar("F", bound=Callable[..., Any])


def words(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """The comma-separated words of an option that may be given several times."""
    found = itertools.chain.from_iterable(value.split(",") for value in values)
    return tuple(word.strip() for word in found if word.strip())


def _release(_ctx: click.Context, _param: click.Parameter, value: str | None) -> tuple[int, int] | None:
    try:
        return config.release(value) if value else None
    except ValueError:
        raise click.BadParameter(f"`{value}` is no torch release, such as 2.4") from None


_SHARED = (
    click.argument("paths", nargs=-1, type=click.Path(path_type=Path)),
    click.option(
        "--select", multiple=True, callback=words, metavar="CODE,...", help="Only rules with these names or code prefixes."
    ),
    click.option(
        "--ignore", multiple=True, callback=words, metavar="CODE,...", help="No rules with these names or code prefixes."
    ),
    click.option("--exclude", multiple=True, metavar="PATTERN", help="Leave out files that match, as in a .gitignore file."),
    click.option("--torch", callback=_release, metavar="RELEASE", help="The torch release that will be used, such as 2.4."),
    click.option("--amp", type=click.Choice(config.AMP), help="The half precision that fixes bring in (default: fp16)."),
    click.option("--config", type=click.Path(path_type=Path), help="The configuration file to use."),
    click.option("--no-cache", is_flag=True, help="Neither read nor write what earlier runs have kept."),
)


def shared(command: F) -> F:
    """Adds the paths and the options that say what to check and how."""
    for option in reversed(_SHARED):
        command = option(command)
    return command


def prepare(paths: tuple[Path, ...], **options: Any) -> tuple[config.Settings, Registry, Store | None]:
    """The settings for these paths, the rules, and the store if one is to be used; every code in the settings is one that
    exists. Raises UserError."""
    store = None if options.pop("no_cache", True) else Store.of_user()
    settings = config.load(paths, options.pop("config"), **options)
    registry = Registry.load(settings.rule_paths, store)
    registry.choose(settings.select, settings.ignore)
    for _, words in settings.per_file_ignores:
        registry.choose((), words)
    return settings, registry, store
