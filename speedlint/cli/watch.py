"""``speedlint check --watch``."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import click

from speedlint import config, files, requirements
from speedlint.cli import INTERRUPTED
from speedlint.config import Nearest, Settings, common_folder
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


def watch(once: Callable[[], int], paths: Iterable[Path], load: Callable[[], Settings]) -> None:
    """Calls ``once``, and again whenever something has changed that its answer hangs on, until Ctrl-C.

    That is a file of the programs that ``paths`` belong to, what they require and how they are run, a configuration (that of
    ``load`` holds over each), a baseline, a rule. What goes wrong the first time is raised, later it is said.
    """
    watched = _Watched(tuple(paths) or (Path(),), load)
    with contextlib.suppress(KeyboardInterrupt):
        state = watched.state()
        code = once()
        while code != INTERRUPTED:
            click.echo("watching; Ctrl-C ends", err=True)
            state = _changed(watched, state)
            try:
                code = once()
            except UserError as error:
                click.echo(f"error: {visible(str(error))}", err=True)


class _Watched:
    """The files that an answer hangs on."""

    def __init__(self, paths: tuple[Path, ...], load: Callable[[], Settings]) -> None:
        self._paths = paths
        self._load = load
        self._settled: frozenset[Path] = frozenset()
        """Those that the settings led to when they last could be read."""

    def state(self) -> _State:
        """The files as they are now."""
        disk = Disk()
        imports = Imports(disk, Known())
        asked = [absolute(path) for path in files.discover(self._paths).paths]
        listings = [disk.listing(str(root)) for root in {imports.root(path) for path in asked}]
        names = {str(path) for path in asked}.union(*((*each.readable, *each.texts) for each in listings))
        folders = {path.parent for path in asked}
        names.update(map(str, _configurations({common_folder(self._paths), *folders})))
        with contextlib.suppress(UserError):
            self._settled = frozenset(_settled(self._load(), folders, disk))
        names.update(map(str, self._settled))
        return {name: stamp for name in names if (stamp := _stamp(name)) is not None}


def _changed(watched: _Watched, before: _State) -> _State:
    """Waits until something has changed. Returns what is there then."""
    while True:
        now = watched.state()
        changed = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
        if changed:
            names = ", ".join(visible(shown(Path(name))) for name in changed[:_MOST_NAMED])
            more = f" and {len(changed) - _MOST_NAMED} more" if len(changed) > _MOST_NAMED else ""
            click.echo(f"\n{time.strftime('%H:%M:%S')} {names}{more} changed\n", err=True)
            return now
        time.sleep(_PAUSE)


def _configurations(folders: Iterable[Path]) -> Iterator[Path]:
    """The configuration files of folders, and those that they extend."""
    for above in {up for folder in folders for up in (folder, *folder.parents)}:
        for name in _SETTINGS:
            yield from config.files(above / name)


def _settled(given: Settings, folders: Iterable[Path], disk: Disk) -> Iterator[Path]:
    """The files that the settings of folders lead to, and those of what is required there. Raises UserError."""
    nearest = Nearest(given)
    if given.file is not None:
        yield from config.files(given.file)
    for folder in folders:
        own = nearest.within(folder)
        yield from filter(None, (given.baseline, own.baseline))
        yield from (file for rules in own.rule_paths for file in rules.rglob("*.py"))
        yield from requirements.files(folder, own.root, disk)


def _stamp(name: str) -> tuple[int, int] | None:
    try:
        status = os.stat(name)  # noqa: PTH116 (Path takes ten times as long)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns
