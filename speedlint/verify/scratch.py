"""A copy of the project for each version, in which a run may do what it likes.

Source and configuration are copied; everything else is a symbolic link to the user's file, which the run may read and not
write (``probe/speedlint_guard.py`` replaces a link by a copy first). Folders of nothing but data are one link.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from speedlint.errors import UserError
from speedlint.verify import confine

_COPIED = frozenset(".py .pyi .toml .cfg .ini .json .yaml .yml .txt .md .rst .sh .env .conf .csv .ipynb".split())
_PREFIX = "speedlint-"
LARGEST = 1 << 20
"""Bytes of a file that is copied for its name; one of these kinds that is larger is data, and a link."""
_SKIPPED = frozenset({"__pycache__", ".venv", "venv", "node_modules", ".mypy_cache", ".ruff_cache", ".pytest_cache"})
_REPOSITORY = ".git"
"""Is one link, since scripts note their commit; left out where the kernel does not keep git from writing to it."""
_MOST_ENTRIES = 2_000
_MOST_COPIES = 20_000


class Scratch:
    """The folders of one ``verify``: removed when it ends, however it ends.

    Attributes:
        folder: holds all of them.
        temporary: holds the runs' temporary files. Its path is short, wherever the copies are kept: the sockets of loaders'
            workers lie there, and a socket's path has at most 108 bytes.
        allowed: the user's folders that a run may write to: they are never copied.
    """

    def __init__(self, folder: Path, temporary: Path, allowed: tuple[Path, ...] = ()) -> None:
        self.folder, self.temporary, self.allowed = folder, temporary, allowed
        self._made = 0

    def version(self, name: str, base: Path, real: tuple[Path, ...], changed: Mapping[Path, bytes | None]) -> Path:
        """A copy of ``base`` in which the folders of ``real`` are copied and those on the way to them are made.

        ``changed`` gives other bytes for some files, by their path in the user's project; None leaves the file out.
        Raises UserError where the disk is full.
        """
        target = self.folder / name
        try:
            self._made = 0
            self._way(base, target, real)
            for path, data in changed.items():
                place = target / path.relative_to(base)
                _own(place.parent, target)
                place.unlink(missing_ok=True)
                if data is not None:
                    place.write_bytes(data)
        except OSError as error:
            where = error.filename or target
            raise UserError(f"{where}: cannot make a copy to run in, {error.strerror or error}") from error
        return target

    def empty(self, name: str) -> Path:
        """A folder of its own, for what is no part of the project."""
        target = self.folder / name
        target.mkdir(parents=True, exist_ok=True)
        return target

    def remove(self, name: str) -> None:
        """Removes one version's folder."""
        shutil.rmtree(self.folder / name, ignore_errors=True)

    def _way(self, source: Path, target: Path, real: tuple[Path, ...]) -> None:
        """Links what lies beside the way to the project's folders."""
        if source in real:
            self._copy(source, target)
            return
        target.mkdir(parents=True, exist_ok=True)
        for entry in _entries(source):
            inner = source / entry.name
            if inner == self.folder:
                continue
            if any(inner == each or inner in each.parents for each in real):
                self._way(inner, target / entry.name, real)
            else:
                (target / entry.name).symlink_to(inner)

    def _copy(self, source: Path, target: Path) -> None:
        target.mkdir(parents=True, exist_ok=True)
        for entry in _entries(source):
            inner, place = source / entry.name, target / entry.name
            is_skipped = entry.name in _SKIPPED or (entry.name == _REPOSITORY and not confine.prefix())
            if is_skipped or inner == self.folder:
                continue
            if entry.is_dir(follow_symlinks=False):
                is_linked = entry.name == _REPOSITORY or is_environment(inner) or not _is_of_project(inner)
                if is_linked or inner.resolve() in self.allowed:
                    place.symlink_to(inner)
                else:
                    self._copy(inner, place)
            elif entry.is_file(follow_symlinks=False) and self._is_copied(entry):
                self._made += 1
                shutil.copy2(inner, place)
            else:
                place.symlink_to(Path(os.path.realpath(inner)) if entry.is_symlink() else inner)

    def _is_copied(self, entry: os.DirEntry[str]) -> bool:
        small = entry.stat().st_size <= LARGEST and self._made < _MOST_COPIES
        return entry.name.endswith((".py", ".pyi")) or (Path(entry.name).suffix in _COPIED and small)


@contextmanager
def scratch(keep: Path | None, allowed: tuple[Path, ...] = ()) -> Iterator[Scratch]:
    """A new scratch folder, in ``keep`` if it is to be kept; ``allowed`` are folders that runs may write to as well.

    Raises UserError.
    """
    for each in allowed:
        if not each.is_dir():
            raise UserError(f"--allow-write {each}: there is no such folder")
    if keep is not None:
        if keep.exists() and any(keep.iterdir()):
            raise UserError(f"{keep}: is not empty; name a new folder to keep the copies in")
        keep.mkdir(parents=True, exist_ok=True)
    _sweep(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-")).resolve()
    try:
        yield Scratch(folder if keep is None else keep.resolve(), folder / "tmp", tuple(each.resolve() for each in allowed))
    finally:
        _remove(folder)


def _sweep(temporary: Path) -> None:
    """Removes what a killed ``verify`` of the same user could not."""
    for folder in temporary.glob(f"{_PREFIX}*-*"):
        owner = folder.name.removeprefix(_PREFIX).partition("-")[0]
        try:
            is_mine = not hasattr(os, "getuid") or folder.lstat().st_uid == os.getuid()
            if owner.isdigit() and is_mine and not folder.is_symlink() and not _is_alive(int(owner)):
                _remove(folder)
        except OSError:
            continue


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _remove(folder: Path) -> None:
    """Removes a folder whose parts a run may have made unreadable."""

    def again(function: object, path: str, _: object) -> None:
        os.chmod(os.path.dirname(path), 0o700)  # noqa: PTH101, PTH120
        if callable(function):
            function(path)

    shutil.rmtree(folder, onerror=again)
    shutil.rmtree(folder, ignore_errors=True)


def _own(folder: Path, top: Path) -> None:
    """Makes a real folder, below ``top``: what is a link on the way becomes a folder of links, so that a file is never
    replaced where a link leads to."""
    if folder != top:
        _own(folder.parent, top)
    if not folder.is_symlink():
        folder.mkdir(exist_ok=True)
        return
    linked = folder.resolve()
    folder.unlink()
    folder.mkdir()
    for entry in _entries(linked):
        (folder / entry.name).symlink_to(linked / entry.name)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda entry: entry.name)
    except PermissionError:
        return []


def is_environment(folder: Path) -> bool:
    """Whether a folder holds a virtual environment or one of conda's."""
    return (folder / "pyvenv.cfg").is_file() or (folder / "conda-meta").is_dir()


def _is_of_project(folder: Path) -> bool:
    """Whether a folder is walked into: it holds few entries, or code."""
    entries = _entries(folder)
    return len(entries) <= _MOST_ENTRIES or any(entry.name.endswith(".py") for entry in entries)
