"""Files are replaced whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from speedlint import notebook, reading
from speedlint.files import Problem

if TYPE_CHECKING:
    from speedlint.fixer import Outcome

_NEW_FILE = 0o644
"""The mode of a file that was not there: everyone may read it."""


class ChangedError(Exception):
    """A file no longer holds what was read from it."""


class Replacement:
    """New contents of a file, complete on disk beside it, waiting to take its place.

    A notebook's contents are the script of its cells; what else it holds stays as it is.
    Mode and, where allowed, ownership are the old file's; a symbolic link stays, its target is replaced.
    """

    def __init__(self, path: Path, before: bytes, after: bytes) -> None:
        """Writes ``after`` beside the file. Raises OSError, and ChangedError where the file no longer holds ``before``."""
        self.target = Path(os.path.realpath(path))
        held = self.target.read_bytes()
        if reading.code(path, held) != before:
            raise ChangedError("changed on disk since it was read, left as it is; run speedlint again")
        if notebook.is_notebook(path):
            after = notebook.replaced(held, after)
        if not os.access(self.target, os.W_OK):
            raise PermissionError(errno.EACCES, "it is read-only")
        handle, name = tempfile.mkstemp(dir=self.target.parent, prefix=f".{self.target.name[:100]}.", suffix=".speedlint")
        self.temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(after)
                file.flush()
                os.fsync(file.fileno())
            _copy_owner_and_mode(self.target, self.temporary)
        except BaseException:
            self.discard()
            raise

    def commit(self) -> None:
        """Takes the file's place, in one step. Raises OSError."""
        self.temporary.replace(self.target)

    def discard(self) -> None:
        """Removes what was written; after a commit there is nothing to remove."""
        with contextlib.suppress(OSError):
            self.temporary.unlink()


def put(path: Path, data: bytes) -> None:
    """Writes a whole file, new or in place of what is there. Raises OSError, and leaves then what was there."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.", suffix=".speedlint")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        temporary.chmod(stat.S_IMODE(path.stat().st_mode) if path.exists() else _NEW_FILE)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _copy_owner_and_mode(source: Path, target: Path) -> None:
    status = source.stat()
    if hasattr(os, "chown"):
        with contextlib.suppress(OSError):
            os.chown(target, status.st_uid, status.st_gid)
    target.chmod(stat.S_IMODE(status.st_mode))


def write_all(outcomes: Iterable[Outcome]) -> list[Problem]:
    """Writes the changed files and returns what went wrong. Files that share a fix are written all or none.

    All new contents are complete on disk, beside their files, before the first one takes its place.
    """
    problems: list[Problem] = []
    with contextlib.ExitStack() as stack:
        ready = [prepared for group in _groups(outcomes) if (prepared := _prepare(group, stack, problems))]
        for prepared in ready:
            _commit(prepared, problems)
    return problems


_Prepared = list[tuple["Outcome", Replacement]]


def _prepare(group: Sequence[Outcome], stack: contextlib.ExitStack, problems: list[Problem]) -> _Prepared:
    prepared: _Prepared = []
    for outcome in group:
        try:
            replacement = Replacement(outcome.path, outcome.before, outcome.after)
        except (OSError, ChangedError) as error:
            problems.append(_not_written(outcome.path, error))
            problems += [_left(other.path, outcome.path) for other in group if other is not outcome]
            return []
        stack.callback(replacement.discard)
        prepared.append((outcome, replacement))
    return prepared


def _commit(prepared: _Prepared, problems: list[Problem]) -> None:
    done: list[Outcome] = []
    try:
        for outcome, replacement in prepared:
            replacement.commit()
            done.append(outcome)
    except BaseException as error:
        for other in done:
            with contextlib.suppress(OSError, ChangedError):
                Replacement(other.path, other.after, other.before).commit()
        if not isinstance(error, OSError):
            raise
        problems.append(_not_written(outcome.path, error))
        problems += [_left(other.path, outcome.path) for other, _ in prepared if other is not outcome]


def _not_written(path: Path, error: OSError | ChangedError) -> Problem:
    if isinstance(error, ChangedError):
        return Problem(path, None, str(error))
    return Problem(path, None, f"cannot be written ({error.strerror or error}), left as it was; correct that and run again")


def _left(path: Path, other: Path) -> Problem:
    return Problem(
        path, None, f"left as it was, since it shares a fix with {other}; correct that file's problem and run again"
    )


def _groups(outcomes: Iterable[Outcome]) -> list[list[Outcome]]:
    """The outcomes, together with those they share a fix with."""
    groups: list[list[Outcome]] = []
    for outcome in outcomes:
        fixes = set(outcome.applied)
        linked = [group for group in groups if any(fixes & {*other.applied} for other in group)]
        groups = [group for group in groups if group not in linked]
        groups.append([*(other for group in linked for other in group), outcome])
    return groups
