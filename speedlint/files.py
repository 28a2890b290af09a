"""Which files: those asked for and those in the folders asked for."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from speedlint.disk import MAX_BYTES

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_SKIPPED_FOLDERS = {"__pycache__", "node_modules", "site-packages"}


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """Something that kept speedlint from its work. ``str()`` is one line: ``path:line: what, what to do``."""

    path: Path
    line: int | None
    what: str

    def __str__(self) -> str:
        """One line; without a line number where the whole file is meant."""
        return f"{self.path}:{self.line}: {self.what}" if self.line else f"{self.path}: {self.what}"


@dataclass(frozen=True, slots=True)
class Discovery:
    """The files to look at, in order and each once, and what could not be looked at."""

    paths: tuple[Path, ...]
    problems: tuple[Problem, ...]


def discover(
    paths: Iterable[Path], exclude: Sequence[str] = (), root: Path | None = None, gitignore: bool = True
) -> Discovery:
    """The Python files that ``paths`` mean: files as named, folders walked for ``*.py``.

    What is named is taken whatever the patterns say. In folders are skipped: what matches ``exclude`` (gitignore-style,
    relative to ``root``, by default the current folder) or a ``.gitignore``, hidden folders, virtual environments,
    ``node_modules``, and files above MAX_BYTES, which are reported.
    """
    walk = _Walk(exclude, (root or Path()).absolute(), gitignore)
    for path in paths:
        walk.take(path)
    return Discovery(tuple(walk.found.values()), tuple(walk.problems))


class _Walk:
    def __init__(self, patterns: Sequence[str], root: Path, gitignore: bool) -> None:
        self.patterns, self.root, self.gitignore = patterns, root, gitignore
        self.found: dict[str, Path] = {}
        self.folders: set[str] = set()
        self.met = 0
        self.problems: list[Problem] = []

    @cached_property
    def exclude(self) -> GitIgnoreSpec:
        return _spec(self.patterns)

    def take(self, path: Path) -> None:
        """Takes a path that the user has named."""
        try:
            mode = path.stat().st_mode
        except OSError as error:
            self._report(path, _why_not(path, error))
            return
        if stat.S_ISDIR(mode):
            self._take_folder(path)
        elif path.suffix == ".ipynb":
            self._report(path, "is a notebook, not Python; convert it with `jupyter nbconvert --to script`")
        elif not stat.S_ISREG(mode):
            self._report(path, "is not a file or folder; name a Python file")
        else:
            self._add(path)

    def _take_folder(self, path: Path) -> None:
        before = self.met + len(self.problems)
        self._walk(path, self._ignores_above(path))
        if self.met + len(self.problems) == before:
            self._report(path, "holds no Python files that are not ignored; name a file or another folder")

    def _walk(self, folder: Path, ignores: tuple[_Ignore, ...]) -> None:
        real = os.path.realpath(folder)
        if real in self.folders:
            self.met += 1
            return
        self.folders.add(real)
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            self._report(folder, f"cannot be read ({error.strerror}); check its permissions")
            return
        if self.gitignore and any(entry.name == ".gitignore" for entry in entries):
            ignores = (*ignores, *self._read_ignore(folder))
        for entry in entries:
            try:
                self._visit(folder / entry.name, entry, ignores)
            except OSError as error:
                self._report(folder / entry.name, _why_not(folder / entry.name, error))

    def _visit(self, path: Path, entry: os.DirEntry[str], ignores: tuple[_Ignore, ...]) -> None:
        if entry.is_dir():
            if not self._is_skipped(path) and not self._is_ignored(path, ignores, "/"):
                self._walk(path, ignores)
        elif path.suffix == ".py" and not self._is_ignored(path, ignores, ""):
            self._add_found(path, entry)

    def _add_found(self, path: Path, entry: os.DirEntry[str]) -> None:
        status = entry.stat()
        if stat.S_ISREG(status.st_mode) and status.st_size > MAX_BYTES:
            self._report(path, "larger than 1 MB: looks generated, skipped; pass it by name to check it anyway")
        elif stat.S_ISREG(status.st_mode):
            self._add(path)

    def _add(self, path: Path) -> None:
        self.met += 1
        self.found.setdefault(os.path.realpath(path), path)

    def _is_skipped(self, folder: Path) -> bool:
        name = folder.name
        return name.startswith(".") or name in _SKIPPED_FOLDERS or (folder / "pyvenv.cfg").is_file()

    def _is_ignored(self, path: Path, ignores: tuple[_Ignore, ...], suffix: str) -> bool:
        inside = os.path.relpath(path.absolute(), self.root)
        if not inside.startswith("..") and self.exclude.match_file(inside.replace(os.sep, "/") + suffix):
            return True
        for ignore in reversed(ignores):
            verdict = ignore.verdict(path, suffix)
            if verdict is not None:
                return verdict
        return False

    def _ignores_above(self, folder: Path) -> tuple[_Ignore, ...]:
        """The ``.gitignore`` files above ``folder``, from its repository's root; none outside a repository."""
        if not self.gitignore:
            return ()
        above = [folder.resolve(), *folder.resolve().parents]
        root = next((depth for depth, up in enumerate(above) if (up / ".git").exists()), 0)
        return tuple(ignore for up in reversed(above[1 : root + 1]) for ignore in self._read_ignore(up))

    def _read_ignore(self, folder: Path) -> list[_Ignore]:
        try:
            text = (folder / ".gitignore").read_text("utf-8-sig", "replace")
            return [_Ignore(folder.resolve(), _spec(text.splitlines()))]
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            self._report(folder / ".gitignore", f"cannot be used ({error}), so nothing is ignored because of it")
            return []

    def _report(self, path: Path, what: str) -> None:
        self.problems.append(Problem(path, None, what))


def _spec(lines: Iterable[str]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec  # 30 ms, which a file named on the command line need not pay

    return GitIgnoreSpec.from_lines(lines)


@dataclass(frozen=True)
class _Ignore:
    """One ``.gitignore`` file and the folder it speaks about."""

    folder: Path
    spec: GitIgnoreSpec

    def verdict(self, path: Path, suffix: str) -> bool | None:
        """Whether this file ignores ``path``, or None where it does not mention it."""
        inside = os.path.relpath(path.parent.resolve() / path.name, self.folder)
        return self.spec.check_file(inside.replace(os.sep, "/") + suffix).include


def _why_not(path: Path, error: OSError) -> str:
    if not isinstance(error, FileNotFoundError):
        return f"cannot be read ({error.strerror}); check the path and its permissions"
    if path.is_symlink():
        return f"is a symbolic link to {path.readlink()}, which does not exist; correct or remove it"
    return "does not exist; check the spelling"
