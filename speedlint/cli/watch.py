"""``speedlint check --watch``."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import click

from speedlint import files
from speedlint.cli import INTERRUPTED
from speedlint.config import common_folder
from speedlint.disk import Disk
from speedlint.errors import UserError
from speedlint.output.terminal import shown, visible
from speedlint.program.imports import Imports, Known, absolute

_PAUSE = 0.5
"""Seconds between two looks: a change is answered within what feels like at once, and 2,000 files take 20 ms to look at."""
_SETTINGS = ("speedlint.toml", "pyproject.toml")
_MOST_NAMED = 3

_State = Mapping[str, tuple[int, int]]
"""Of each file its size and when it was changed."""


def watch(once: Callable[[], int], paths: Iterable[Path]) -> None:
    """Calls ``once``, and again whenever a file of the programs that ``paths`` belong to, or a configuration, has changed;
    until Ctrl-C. What goes wrong the first time is raised, later it is said."""
    watched = tuple(paths) or (Path(),)
    with contextlib.suppress(KeyboardInterrupt):
        state = _state(watched)
        code = once()
        while code != INTERRUPTED:
            click.echo("watching; Ctrl-C ends", err=True)
            state = _changed(watched, state)
            try:
                code = once()
            except UserError as error:
                click.echo(f"error: {visible(str(error))}", err=True)


def _changed(paths: tuple[Path, ...], before: _State) -> _State:
    """Waits until something has changed. Returns what is there then."""
    while True:
        now = _state(paths)
        changed = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
        if changed:
            names = ", ".join(visible(shown(Path(name))) for name in changed[:_MOST_NAMED])
            more = f" and {len(changed) - _MOST_NAMED} more" if len(changed) > _MOST_NAMED else ""
            click.echo(f"\n{time.strftime('%H:%M:%S')} {names}{more} changed\n", err=True)
            return now
        time.sleep(_PAUSE)


def _state(paths: tuple[Path, ...]) -> _State:
    disk = Disk()
    imports = Imports(disk, Known())
    asked = [absolute(path) for path in files.discover(paths).paths]
    roots = {imports.root(path) for path in asked}
    names = {str(path) for path in asked}.union(*(disk.listing(str(root)).readable for root in roots))
    above = {up for folder in (common_folder(paths), *(path.parent for path in asked)) for up in (folder, *folder.parents)}
    names |= {str(folder / name) for folder in above for name in _SETTINGS}
    return {name: stamp for name in names if (stamp := _stamp(name)) is not None}


def _stamp(name: str) -> tuple[int, int] | None:
    try:
        status = os.stat(name)  # noqa: PTH116 (Path takes ten times as long)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns
