"""What git says of files: whether their text is one that it holds."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterable
from pathlib import Path

_SECONDS = 10
"""How long git may take to look files up in its index, which takes it milliseconds."""
_COMMAND = ("git", "-c", "core.fsmonitor=false", "ls-files", "--stage", "-z", "--")
"""Reads the index alone: no filter, hook or other program that a repository names is run."""


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
