"""What files hold: as they are on disk, or as an editor or a caller has them."""

from __future__ import annotations

import io
import os
import tokenize
from collections.abc import Callable, Mapping
from pathlib import Path

from speedlint import notebook

Read = Callable[[Path], bytes]


def read(path: Path) -> bytes:
    """The bytes of a file on disk; those of the script that a notebook makes. Raises OSError."""
    return code(path, path.read_bytes())


def code(path: Path, data: bytes) -> bytes:
    """The code of a file that holds ``data``: a notebook's cells, or all of it. Raises NotebookError."""
    return notebook.script(data) if notebook.is_notebook(path) else data


def encoded(text: str) -> tuple[bytes, str]:
    """The bytes that a text is saved as, by the encoding that it declares, and the encoding; UTF-8 where it declares none
    that it can be saved in."""
    data = text.encode("utf-8", "surrogatepass")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        encoding = "utf-8" if encoding == "utf-8-sig" else encoding  # a mark is a character of the text
        return text.encode(encoding), encoding
    except (SyntaxError, UnicodeError, LookupError):
        return data, "utf-8"


def over(texts: Mapping[Path, bytes]) -> Read:
    """A reader of files that hold ``texts``, whatever is on disk under their names; they need not be on disk."""
    held = {os.path.realpath(path): (path, data) for path, data in texts.items()}

    def reader(path: Path) -> bytes:
        found = held.get(os.path.realpath(path))
        return read(path) if found is None else code(*found)

    return reader
