"""A file's syntax as columns of ints and one list of strings: what is kept on disk, and what nodes are views of."""

from __future__ import annotations

import hashlib
import marshal
import struct
import sys
import zlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from speedlint.facts.syntax import KINDS

_FORMAT = 2
"""Raised when what the columns mean changes; a change of the kinds or their fields is seen by itself."""
_KINDS = zlib.crc32(" ".join(f"{kind.__name__}{kind.fields}" for kind in KINDS).encode())
MEANING = f"{_FORMAT}-{_KINDS:x}-{sys.byteorder}-{sys.version_info[0]}.{sys.version_info[1]}"
"""What the bytes of rows mean, and which Python read them: it decides what is Python."""

_MARSHAL = 2
"""The version without references, so that equal rows give equal bytes."""


def column(numbers: Sequence[int]) -> array[int]:
    """Some numbers as a column: three times as fast as ``array`` takes them one by one."""
    found = array("i")
    found.frombytes(struct.pack(f"{len(numbers)}i", *numbers))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """One row for each node, in pre-order; a row's children follow it directly.

    Attributes:
        kind: its place in ``syntax.KINDS``, one byte.
        slot: which of its parent's fields it is (part of), one byte.
        parent: the row above; -1 for the module.
        last: the last row within it.
        start, end: byte offsets into the file, without own parentheses but for tuples and generators.
        text: its place in ``strings``: a name, a number, an operator as written; 0, the empty string, where it has none.
        strings: each once.
    """

    kind: bytes
    slot: bytes
    parent: array[int]
    last: array[int]
    start: array[int]
    end: array[int]
    text: array[int]
    strings: list[str]

    def of(self, kind: int) -> list[int]:
        """The rows of one kind, in order."""
        kinds, found, at = self.kind, [], self.kind.find(kind)
        while at >= 0:
            found.append(at)
            at = kinds.find(kind, at + 1)
        return found

    def meaning(self) -> str:
        """The name of what is written, wherever in the file it stands: comments and spaces leave it as it is."""
        texts = marshal.dumps(self.strings, _MARSHAL)
        columns = (self.kind, self.slot, self.parent.tobytes(), self.text.tobytes(), texts)
        return hashlib.sha256(b"".join(columns)).hexdigest()

    def dump(self) -> bytes:
        """The columns as bytes; ``load`` reads them on a machine of the same byte order."""
        columns = [column.tobytes() for column in (self.parent, self.last, self.start, self.end, self.text)]
        return marshal.dumps((self.kind, self.slot, *columns, self.strings), _MARSHAL)

    @classmethod
    def load(cls, data: bytes) -> Rows:
        """What ``dump`` wrote. Raises ValueError, EOFError or TypeError for anything else."""
        kind, slot, *columns, strings = marshal.loads(data)
        parent, last, start, end, text = (array("i", column) for column in columns)
        return cls(kind, slot, parent, last, start, end, text, strings)
