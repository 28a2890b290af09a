"""Keeps what a run writes inside its scratch copy: a linked file is replaced by a copy before it is opened for writing.

The links of the scratch folder lead into the user's project. Where the kernel confines the process too, a write that does
not pass through here is refused; elsewhere this hook alone refuses writes into the project.
"""

import json
import os
import shutil
import sys
from typing import Any, Optional

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC
_LARGEST_COPY = 1 << 30
_REMOVALS = frozenset(("os.remove", "os.rename", "os.rmdir", "os.mkdir", "shutil.rmtree"))
_OPENINGS = frozenset(("os.truncate", "sqlite3.connect"))
WATCHED = frozenset(("open",)) | _REMOVALS | _OPENINGS


class Guard:
    """What the audit hook of one process does.

    Attributes:
        scratch: the folder that the run may write to.
        projects: the folders that it must not change, symbolic links resolved.
    """

    def __init__(self, scratch: str, projects: "list[str]") -> None:
        self.scratch, self.projects = scratch, projects

    def __call__(self, event: str, args: "tuple[Any, ...]") -> None:
        """Called before each operation that is watched."""
        if event == "open":
            path, mode, flags = args
            if isinstance(path, (str, bytes, os.PathLike)) and _is_write(mode, flags):
                self.prepare(os.fsdecode(path), keeps="w" not in (mode or "") and not flags & os.O_TRUNC)
        elif event in _OPENINGS and isinstance(args[0], (str, bytes, os.PathLike)):
            self.prepare(os.fsdecode(args[0]), keeps=True)
        elif event in _REMOVALS:
            for path in args[: 2 if event == "os.rename" else 1]:
                if isinstance(path, (str, bytes, os.PathLike)):
                    folder = os.path.dirname(os.path.abspath(os.fsdecode(path)))
                    self._check(os.path.realpath(folder), path)

    def prepare(self, path: str, keeps: bool) -> None:
        """Replaces a link of the scratch folder by a copy of its file. Raises PermissionError for files of the project."""
        path = os.path.abspath(path)
        inside = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        if os.path.islink(inside) and _is_in(inside, self.scratch):
            target = os.path.realpath(inside)
            if any(_is_in(target, project) for project in self.projects) and not os.path.isdir(target):
                if os.path.exists(target) and keeps and os.path.getsize(target) > _LARGEST_COPY:
                    self._refuse(inside)
                os.unlink(inside)
                if keeps and os.path.exists(target):
                    shutil.copy2(target, inside)
                return
        self._check(os.path.realpath(path), path)

    def _check(self, real: str, path: Any) -> None:
        if any(_is_in(real, project) for project in self.projects) and not _is_in(real, self.scratch):
            self._refuse(os.fsdecode(path))

    def _refuse(self, path: str) -> None:
        raise PermissionError(13, "speedlint verify runs in a copy and may not write here", path)


def _is_write(mode: Optional[str], flags: int) -> bool:
    if mode is not None:
        return any(letter in mode for letter in "wax+")
    return bool(flags & _WRITES)


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


GUARD: Optional[Guard] = None


def install() -> None:
    """Installs the hook that the environment asks for."""
    global GUARD
    with open(os.environ["SPEEDLINT_PROBE"]) as file:
        settings = json.load(file)
    guard = GUARD = Guard(settings["scratch"], settings["projects"])

    def hook(event: str, args: "tuple[Any, ...]") -> None:
        if event in WATCHED:  # an optimizer's step calls `id`, which is audited, many times
            guard(event, args)

    sys.addaudithook(hook)


def around_save(torch: Any) -> None:
    """``torch.save`` writes from C++, where no audit event tells of the file."""
    save = torch.save

    def guarded(obj: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
        if GUARD is not None and isinstance(f, (str, os.PathLike)):
            GUARD.prepare(os.fsdecode(f), keeps=False)
        return save(obj, f, *args, **kwargs)

    guarded.__wrapped__ = save  # type: ignore[attr-defined]
    torch.save = guarded
