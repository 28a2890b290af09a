"""How a project's scripts are started, as far as its own shell scripts, READMEs and launch configurations tell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from speedlint.semantics.script import Script

_PATTERNS = ("*.sh", "*.md", "*.yaml", "*.yml", "*.rst", "Makefile")
_MOST = 60
"""Files of one folder that are looked into."""
_LONGEST = 300_000


def chooses_precision(script: Script) -> bool:
    """Whether a file beside the script, or above it in its project, passes ``mixed_precision`` to ``accelerate launch``."""
    return any(b"mixed_precision" in data or b"mixed-precision" in data for data in _texts(script))


def _texts(script: Script) -> Iterator[bytes]:
    return iter(script.once("launch texts", lambda: tuple(_read(script)), ()))


def _read(script: Script) -> Iterator[bytes]:
    folder, root = script.path.absolute().parent, script.program.root(script.path)
    folders = [each for each in (folder, *folder.parents) if each == root or root in each.parents] or [folder]
    for each in folders:
        paths = [path for pattern in _PATTERNS for path in sorted(each.glob(pattern))]
        for path in paths[:_MOST]:
            yield from _bytes(path)


def _bytes(path: Path) -> Iterator[bytes]:
    try:
        if path.is_file() and path.stat().st_size <= _LONGEST:
            yield path.read_bytes()
    except OSError:
        return
