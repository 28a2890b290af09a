"""What git says of files: whether their text is one that it holds, and which lines have changed.

No filter, hook, transport or other program that a repository names is run, and nothing is fetched.
"""

from __future__ import annotations

import collections
import difflib
import hashlib
import itertools
import os
import re
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from speedlint import notebook
from speedlint.errors import UserError

_SECONDS = 10
"""How long git may take to look files up in its index, which takes it milliseconds."""
_GIT = ("git", "-c", "core.fsmonitor=false", "-c", "protocol.allow=never")
_COMMAND = (*_GIT, "ls-files", "--stage", "-z", "--")
"""Reads the index alone."""
_MAIN = ("origin/HEAD", "origin/main", "origin/master", "@{upstream}", "main", "master")
"""What a branch is taken to have left, the first that there is."""
_UNSHALLOW = "the clone is shallow; `git fetch --unshallow` completes it"
_SHORT = 9
"""Letters of a commit's name that are shown; git itself shows seven or more."""
_LINE_END = re.compile(rb"\r\n|\n|\r")


def unsaved(paths: Iterable[Path]) -> list[Path]:
    """The files that git tracks and whose text is neither committed nor staged; none where git or its answer is missing."""
    return [path for path in paths if (held := _held(path)) is not None and held not in _names(path, len(held))]


def _held(path: Path) -> str | None:
    """The name of the text that git's index has of a file; None where it has none."""
    try:
        done = subprocess.run(
            (*_COMMAND, path.name), cwd=path.parent, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError, UnicodeError):
        return None
    fields = done.stdout.split()
    return fields[1] if done.returncode == 0 and len(fields) > 1 else None


def _names(path: Path, length: int) -> list[str]:
    """The names, of 40 or 64 letters, that git may give to a file's text: as it is, or with the line ends that it stores."""
    try:
        data = path.read_bytes()
    except OSError:
        return []
    digest = hashlib.sha256 if length == hashlib.sha256().digest_size * 2 else hashlib.sha1
    texts = (data, data.replace(b"\r\n", b"\n"))
    return [digest(b"blob %d\0" % len(text) + text).hexdigest() for text in texts]


@dataclass(frozen=True)
class Changed:
    """The lines that differ from those of a commit; ``since`` says which it is, ``read`` gives a file as it is now."""

    top: Path
    commit: str
    since: str
    read: Callable[[Path], bytes] = Path.read_bytes
    _known: dict[Path, frozenset[int] | None] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, revision: str, folder: Path) -> Changed:
        """The changes since HEAD left ``revision``; where that is empty, since it left the main branch. Raises UserError."""
        top = Path(_top(next(up for up in (folder, *folder.parents) if up.is_dir())))
        head = _commit("HEAD", top)
        if head is None:
            raise UserError(f"{top}: has no commit yet to have changed since; leave `--changed` out")
        if revision:
            return cls(top, *_since(revision, _named(revision, top), top))
        for name in _MAIN:
            if (commit := _commit(name, top)) is not None:
                base, since = _since(name, commit, top)
                return cls(top, base, "HEAD: what is not committed" if base == head else since)
        if _is_shallow(top):
            raise UserError(f"{top}: has no main branch that HEAD could have left, and {_UNSHALLOW}; or name a revision")
        return cls(top, head, "HEAD: what is not committed")

    def touches(self, path: Path, first: int, last: int, cell: int | None = None) -> bool:
        """Whether one of the lines ``first`` to ``last`` of a file, counted from 1, has changed, or the code of a notebook's
        ``cell``."""
        real = Path(os.path.realpath(path))
        if real not in self._known:
            self._known[real] = self._lines(real)
        changed = self._known[real]
        return changed is None or any(each in changed for each in (range(first, last + 1) if cell is None else (cell,)))

    def _lines(self, path: Path) -> frozenset[int] | None:
        """The changed lines of a file, or cells of a notebook; None where the commit does not have it."""
        if not path.is_relative_to(self.top):
            return None
        before = _run(self.top, "cat-file", "blob", f"{self.commit}:{path.relative_to(self.top).as_posix()}")
        if before.returncode != 0:
            return None
        try:
            now = self.read(path)
            if notebook.is_notebook(path):
                return changed_cells(notebook.script(before.stdout), notebook.script(now))
        except OSError:
            return None
        return changed_lines(before.stdout, now)


def names_commit(revision: str, folder: Path) -> bool:
    """Whether a word is a revision of the repository around a folder. Raises UserError where there is none."""
    return _commit(revision, Path(_top(folder))) is not None


def changed_lines(before: bytes, now: bytes) -> frozenset[int]:
    """The lines of ``now``, counted from 1, that are not those of ``before``; how lines end makes no difference."""
    old, new = _LINE_END.split(before), _LINE_END.split(now)
    same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    matcher = difflib.SequenceMatcher(None, old[same:], new[same:], autojunk=False)
    changes = (range(first, last) for tag, _, _, first, last in matcher.get_opcodes() if tag != "equal")
    return frozenset(same + line + 1 for lines in changes for line in lines)


def changed_cells(before: bytes, now: bytes) -> frozenset[int]:
    """The cells of a notebook's script whose code no cell of the one before has; where they stand makes no difference."""
    left = collections.Counter(code for _, code in notebook.split(before.decode()))
    changed = set()
    for number, code in notebook.split(now.decode()):
        left[code] -= 1
        if left[code] < 0:
            changed.add(number)
    return frozenset(changed)


def _top(folder: Path) -> str:
    done = _run(folder, "rev-parse", "--show-toplevel")
    if done.returncode != 0:
        why = os.fsdecode(done.stderr).partition("\n")[0].removeprefix("fatal: ")
        raise UserError(f"{folder}: `--changed` needs a git repository ({why}); leave it out, or name paths in one")
    return os.path.realpath(os.fsdecode(done.stdout).removesuffix("\n"))


def _named(revision: str, top: Path) -> str:
    """The commit that the user names. Raises UserError."""
    commit = _commit(revision, top)
    if commit is not None:
        return commit
    if _is_shallow(top):
        raise UserError(f"`{revision}` names no commit of {top}, and {_UNSHALLOW}")
    raise UserError(f"`{revision}` names no commit of {top}; check the spelling, or fetch it")


def _since(revision: str, commit: str, top: Path) -> tuple[str, str]:
    """The commit where the branch left another one, and how it is called. Raises UserError."""
    done = _run(top, "merge-base", commit, "HEAD")
    if done.returncode == 0:
        base = os.fsdecode(done.stdout).strip()
        return base, f"{base[:_SHORT]}, {revision}" if base == commit else f"{base[:_SHORT]}, where HEAD left {revision}"
    if _is_shallow(top):
        raise UserError(f"it is not known where HEAD left {revision}: {_UNSHALLOW}")
    return commit, f"{commit[:_SHORT]}, {revision}, which has no history with HEAD in common"


def _is_shallow(top: Path) -> bool:
    return _run(top, "rev-parse", "--is-shallow-repository").stdout.startswith(b"true")


def _commit(revision: str, top: Path) -> str | None:
    done = _run(top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    return os.fsdecode(done.stdout).strip() if done.returncode == 0 else None


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Runs git. Raises UserError where that is not possible."""
    env = {**os.environ, "LC_ALL": "C", "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0"}
    try:
        return subprocess.run((*_GIT, *arguments), cwd=folder, env=env, capture_output=True, timeout=_SECONDS, check=False)
    except FileNotFoundError:
        raise UserError("`--changed` needs git, and there is none on the path") from None
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise UserError(f"git cannot say what has changed ({error})") from None
