"""Byte offsets of edits as lines and columns, for formats that know no bytes."""

from __future__ import annotations

import bisect
import io
import re
import tokenize
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r\n|\r|\n")


class Position(NamedTuple):
    """A place in a file, counted from 1; ``column`` counts characters, ``utf8`` the bytes that they take in UTF-8."""

    line: int
    column: int
    utf8: int


class Positions:
    """The places of offsets and columns in files, each of which is read once."""

    def __init__(self, read: Callable[[Path], bytes]) -> None:
        self._read = read
        self._files: dict[Path, _Lines | None] = {}

    def at(self, path: Path, offset: int) -> Position | None:
        """The place of a byte offset; None where the file cannot be read, or has become another one since."""
        lines = self._lines(path)
        return lines.position(offset) if lines is not None and offset <= len(lines.data) else None

    def of(self, path: Path, line: int, column: int) -> Position | None:
        """The place of a line and a column in characters; None where the file cannot be read or is shorter now."""
        lines = self._lines(path)
        return Position(line, column, lines.utf8(line, column)) if lines is not None and line <= len(lines.starts) else None

    def _lines(self, path: Path) -> _Lines | None:
        if path not in self._files:
            try:
                self._files[path] = _Lines(self._read(path))
            except (OSError, SyntaxError, ValueError, LookupError):
                self._files[path] = None
        return self._files[path]


class _Lines:
    """Raises SyntaxError or ValueError where the bytes are no text."""

    def __init__(self, data: bytes) -> None:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        self.encoding = "utf-8" if encoding == "utf-8-sig" else encoding
        self.data = data
        begin = len(_BOM) if data.startswith(_BOM) else 0
        self.starts = [begin, *(end.end() for end in _LINE_END.finditer(data))]
        data[begin:].decode(self.encoding)

    def position(self, offset: int) -> Position:
        line = max(1, bisect.bisect_right(self.starts, offset))
        before = self.data[self.starts[line - 1] : offset].decode(self.encoding, "replace")
        return Position(line, len(before) + 1, len(before.encode()) + 1)

    def utf8(self, line: int, column: int) -> int:
        start = self.starts[line - 1]
        end = self.starts[line] if line < len(self.starts) else len(self.data)
        return len(self.data[start:end].decode(self.encoding)[: column - 1].encode()) + 1
