"""What a project says of its precision outside of a framework's own options, and of how its scripts are started."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from speedlint.semantics.script import Script

_HALF = re.compile(
    rb"float16|\.half\(\)|load_in_[48]bit|BitsAndBytes|quantization_config|torch_dtype|\bdtype\s*=\s*[\"']|GPTQ|fp8|[Dd]eep[Ss]peed|"
    rb"MIXED_PRECISION"
)
_PATTERNS = ("*.sh", "*.md", "*.yaml", "*.yml", "*.rst", "Makefile")
_MOST = 60
"""Files of one folder that are looked into."""
_LONGEST = 300_000


def chooses_precision(script: Script) -> bool:
    """Whether the program chooses a precision for its model by itself, or is launched with one.

    Its own text speaks of half types, quantization or DeepSpeed, or a file beside the script, or above it in its project,
    of the ``mixed_precision`` that ``accelerate launch`` takes.
    """
    if script.program.mentions(script, _HALF):
        return True
    return any(b"mixed_precision" in data or b"mixed-precision" in data for data in _texts(script))


def _texts(script: Script) -> list[bytes]:
    return script.once("launch texts", lambda: list(_read(script)), [])


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
