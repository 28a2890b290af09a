"""Keeps what a run writes inside its scratch copy: a linked file is replaced by a copy before it is opened for writing.

The links of the scratch folder lead into the user's project; a link to a folder becomes a folder of links before something
is written in it. Where the kernel confines the process too, a write that does not pass through here is refused; elsewhere
this hook alone refuses writes into the project. What is refused is noted beside the results.
"""

import os
import shutil
import sys
from typing import Any, Optional

from speedlint_copy import is_in

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC
_LARGEST_COPY = 1 << 30
_MOST_LINKS = 100_000
_SYSTEM = ("/dev", "/proc", "/sys")
_BYTECODE = "__pycache__"
"""Python does without it, and says nothing, where it cannot write."""
_REMOVALS = frozenset(("os.remove", "os.rename", "os.rmdir", "os.mkdir", "shutil.rmtree"))
_OPENINGS = frozenset(("os.truncate", "os.chmod", "os.chown", "os.utime", "sqlite3.connect"))
WATCHED = frozenset(("open",)) | _REMOVALS | _OPENINGS


class Guard:
    """What the audit hook of one process does.

    Attributes:
        scratch: the folder that the run may write to.
        projects: the folders that it must not change, symbolic links resolved.
        writable: the folders that it may write to, the scratch folder among them.
        confined: whether the kernel refuses writes elsewhere.
        notes: the file in which what is refused is noted.
    """

    def __init__(
        self, scratch: str, projects: "list[str]", writable: "list[str]", confined: bool, notes: "Optional[str]" = None
    ) -> None:
        self.scratch, self.projects, self.writable = scratch, projects, writable
        self.confined, self.notes = confined, notes
        self.noted = set()  # type: set[str]

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
                    whole = os.path.abspath(os.fsdecode(path))
                    self._spread_links(os.path.join(whole, "") if event == "shutil.rmtree" else whole)
                    if os.path.lexists(whole) != (event == "os.mkdir"):  # else it fails by itself, whoever may write there
                        self._check(os.path.realpath(os.path.dirname(whole)), whole)

    def prepare(self, path: str, keeps: bool) -> None:
        """Replaces a link of the scratch folder by a copy of its file. Raises PermissionError for files of the project."""
        path = os.path.abspath(path)
        self._spread_links(path)
        inside = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        if os.path.islink(inside) and is_in(inside, self.scratch):
            target = os.path.realpath(inside)
            if self._is_of_project(target) and not os.path.isdir(target):
                if os.path.exists(target) and keeps and os.path.getsize(target) > _LARGEST_COPY:
                    self._refuse(inside)
                os.unlink(inside)
                if keeps and os.path.exists(target):
                    shutil.copy2(target, inside)
                return
        self._check(os.path.realpath(path), path)

    def _spread_links(self, path: str) -> None:
        """Makes folders of links out of the links to folders of the project that lie on the way to a file."""
        folder = os.path.dirname(path)
        if not is_in(folder, self.scratch):
            return
        at = self.scratch
        for part in os.path.relpath(folder, self.scratch).split(os.sep):
            at = os.path.join(at, part)
            if os.path.islink(at) and os.path.isdir(at) and self._is_of_project(os.path.realpath(at)):
                self._spread(at)

    def _spread(self, link: str) -> None:
        target, made = os.path.realpath(link), "%s.speedlint-%d" % (link, os.getpid())
        names = os.listdir(target)
        if len(names) > _MOST_LINKS:
            self._refuse(link)
        os.mkdir(made)
        for name in names:
            os.symlink(os.path.join(target, name), os.path.join(made, name))
        try:
            os.unlink(link)
            os.rename(made, link)
        except OSError:  # another process of the run was faster
            shutil.rmtree(made, ignore_errors=True)

    def _is_of_project(self, real: str) -> bool:
        is_written = any(is_in(real, folder) for folder in (*self.writable, *_SYSTEM))
        return not is_written and any(is_in(real, project) for project in self.projects)

    def _check(self, real: str, path: str) -> None:
        if self._is_of_project(real):
            self._refuse(path)
        is_elsewhere = not any(is_in(real, folder) for folder in (*self.writable, *_SYSTEM))
        if self.confined and is_elsewhere and os.path.isdir(os.path.dirname(path)):
            self._note(path)

    def _refuse(self, path: str) -> None:
        self._note(path)
        raise PermissionError(13, "speedlint verify runs in a copy and may not write here (--allow-write)", path)

    def _note(self, path: str) -> None:
        if self.notes is None or path in self.noted or _BYTECODE in path.split(os.sep):
            return
        self.noted.add(path)
        with open(self.notes, "a", errors="surrogateescape") as file:
            file.write(path + "\n")


def _is_write(mode: Optional[str], flags: int) -> bool:
    if mode is not None:
        return any(letter in mode for letter in "wax+")
    return bool(flags & _WRITES)


GUARD: Optional[Guard] = None


def install(settings: "dict[str, Any]") -> None:
    """Installs the hook."""
    global GUARD
    notes = os.path.join(settings["results"], "refused-%d" % os.getpid())
    guard = GUARD = Guard(settings["scratch"], settings["projects"], settings["writable"], settings["confined"], notes)

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
