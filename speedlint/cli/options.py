"""Options that several commands share."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from speedlint import config, files
from speedlint.cli import completing
from speedlint.facts.store import Store
from speedlint.registry import Registry, for_files

_PLACE = re.compile(r"(?s)(.+?):(\d{1,9})(?::\d+)?")
"""A line of a file, or a place in it, as ``check`` prints it."""
F = TypeVar("F", bound=Callable[..., Any])


def words(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """The comma-separated words of an option that may be given several times; one of them, if it is given."""
    every = itertools.chain.from_iterable(value.split(",") for value in values)
    found = tuple(word.strip() for word in every if word.strip())
    if values and not found:
        raise click.BadParameter("names no rule; write codes, such as SPD301, or leave it out")
    return found


def _release(_ctx: click.Context, _param: click.Parameter, value: str | None) -> tuple[int, int] | None:
    try:
        return config.release(value) if value else None
    except ValueError:
        raise click.BadParameter(f"`{value}` is no torch release, such as 2.4") from None


def _colour(ctx: click.Context, _param: click.Parameter, value: str) -> None:
    ctx.color = {"always": True, "never": False}.get(value)


colour = click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    callback=_colour,
    expose_value=False,
    help="When to colour what is printed (default: on terminals, unless the environment says otherwise).",
)
"""Sets what ``coloured`` answers while the command runs."""

_SHARED = (
    click.argument("paths", nargs=-1, type=click.Path(path_type=Path)),
    click.option(
        "--select",
        multiple=True,
        callback=words,
        shell_complete=completing.rules,
        metavar="CODE,...",
        help="Only rules with these names or code prefixes.",
    ),
    click.option(
        "--ignore",
        multiple=True,
        callback=words,
        shell_complete=completing.rules,
        metavar="CODE,...",
        help="No rules with these names or code prefixes.",
    ),
    click.option(
        "--extend-select",
        multiple=True,
        callback=words,
        shell_complete=completing.rules,
        metavar="CODE,...",
        help="These rules too, beside the selected ones.",
    ),
    click.option("--exclude", multiple=True, metavar="PATTERN", help="Leave out files that match, as in a .gitignore file."),
    click.option("--force-exclude", is_flag=True, help="Leave out excluded files and tests that are named, too."),
    click.option("--torch", callback=_release, metavar="RELEASE", help="The torch release that will be used, such as 2.4."),
    click.option("--amp", type=click.Choice(config.AMP), help="The half precision that fixes bring in (default: fp16)."),
    click.option("--config", type=click.Path(path_type=Path), help="The configuration file to use."),
    click.option("--no-cache", is_flag=True, help="Neither read nor write what earlier runs have kept."),
    colour,
)


def shared(command: F) -> F:
    """Adds the paths and the options that say what to check and how."""
    for option in reversed(_SHARED):
        command = option(command)
    return command


_CHOOSING = (
    click.option("--baseline", type=click.Path(path_type=Path), metavar="FILE", help="Leave out the findings it knows."),
    click.option(
        "--changed",
        is_flag=False,
        flag_value="",
        metavar="[REV]",
        help="Only what is on lines changed since REV (default: since HEAD left the main branch).",
    ),
)


def choosing(command: F) -> F:
    """Adds the options that say which findings are meant."""
    for option in reversed(_CHOOSING):
        command = option(command)
    return command


def revision(changed: str | None, paths: tuple[Path, ...]) -> tuple[str | None, tuple[Path, ...]]:
    """The revision that ``--changed`` names, and the paths: a word after it that is a path and no revision is one of these.
    Raises UserError."""
    if not changed or not Path(changed).exists():
        return changed, paths
    from speedlint import git

    path = Path(changed)
    return (changed, paths) if git.names_commit(changed, config.common_folder((path,))) else ("", (path, *paths))


def prepare(paths: tuple[Path, ...], **options: Any) -> tuple[config.Settings, Registry, Store | None]:
    """The settings for these paths, the rules, and the store if one is to be used; every code in the settings is one that
    exists. Raises UserError."""
    store = None if options.pop("no_cache", True) else Store.of_user()
    settings = config.load(paths, options.pop("config"), **options)
    registry = Registry.load(settings.rule_paths, store)
    registry.choose(*(options.get(name, ()) for name in ("select", "ignore", "extend_select")))
    registry.validate(settings)
    return settings, registry, store


def discover(
    paths: tuple[Path, ...], settings: config.Settings, registry: Registry, store: Store | None
) -> tuple[files.Discovery, config.Settings, Registry]:
    """The files that the paths mean, and the settings and rules with the rule folders of all their configurations. Raises
    UserError."""
    nearest = config.Nearest(settings)
    found = files.discover(paths or (Path(),), nearest.exclusion, tests=settings.tests, force=settings.force_exclude)
    return found, *for_files(found.paths, settings, registry, lambda folders: Registry.load(folders, store))


def codes(settings: config.Settings, registry: Registry) -> Callable[[Path], frozenset[str]]:
    """The codes of the rules that look at a file."""
    nearest = config.Nearest(settings)
    return lambda path: frozenset(rule.code for rule in registry.chosen(nearest.of(path)))


def places(paths: tuple[Path, ...]) -> tuple[tuple[Path, ...], dict[str, frozenset[int]]]:
    """The paths without the lines that they name, as in ``train.py:12``, and these lines by the real path of their file."""
    files, lines = [], dict[str, set[int]]()
    for path in paths:
        named = None if path.exists() else _PLACE.fullmatch(str(path))
        files.append(Path(named[1]) if named else path)
        if named:
            lines.setdefault(os.path.realpath(named[1]), set()).add(int(named[2]))
    return tuple(dict.fromkeys(files)), {path: frozenset(each) for path, each in lines.items()}
