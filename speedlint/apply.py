"""Edits in the bytes of files: applied, checked for collisions, and read as if they had been written."""

from __future__ import annotations

import bisect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from speedlint.edits import CannotEdit
from speedlint.rule import Edit
from speedlint.source import Source, SourceError

Read = Callable[[Path], bytes]


def apply_edits(source: Source, edits: Iterable[Edit]) -> bytes:
    """The file's bytes with ``edits`` in place; insertions at one place keep the order given, identical edits are one.

    Raises CannotEdit where edits overlap or the file's encoding lacks a character.
    """
    pieces, at = [], 0
    for edit in sorted(dict.fromkeys(edits), key=place):
        if not at <= edit.start <= edit.end <= len(source.data):
            raise CannotEdit("its edits overlap")
        pieces += [source.data[at : edit.start], _encoded(source, edit.text)]
        at = edit.end
    return b"".join([*pieces, source.data[at:]])


def place(edit: Edit) -> tuple[int, int]:
    """What edits are ordered by; a key, since insertions at one place must keep their order."""
    return edit.start, edit.end


def _encoded(source: Source, text: str) -> bytes:
    try:
        return text.replace("\r\n", "\n").replace("\n", source.newline).encode(source.encoding)
    except UnicodeEncodeError:
        raise CannotEdit(f"the file's encoding {source.encoding} lacks a character of it") from None


def collides(edit: Edit, taken: Sequence[Edit]) -> bool:
    """Whether the edit overlaps or touches one of ``taken``, sorted, without being the same."""
    at, same = (bisect.bisect_left(taken, place(edit), key=place), bisect.bisect_right(taken, place(edit), key=place))
    if edit in taken[at:same]:
        return False
    return any(other.start <= edit.end and edit.start <= other.end for other in taken[max(at - 1, 0) : at + 1])


def written(source: Source, edits: Sequence[Edit]) -> list[tuple[int, int, str]]:
    """Where in the new bytes the texts of ``edits``, sorted, come to stand."""
    places, shift = [], 0
    for edit in edits:
        size = len(_encoded(source, edit.text))
        places.append((edit.start + shift, edit.start + shift + size, edit.text))
        shift += size - (edit.end - edit.start)
    return places


class Overlay:
    """Files as edited so far. Two spellings of a path are one file; what was read once is not read again."""

    def __init__(self, read: Read) -> None:
        """``read`` gives the bytes on disk."""
        self._read = read
        self._keys: dict[Path, str] = {}
        self._sources: dict[str, Source] = {}
        self.paths: dict[str, Path] = {}
        self.originals: dict[str, bytes] = {}
        self.become({})

    def key(self, path: Path) -> str:
        """What identifies the file."""
        if path not in self._keys:
            self._keys[path] = os.path.realpath(path)
            self.paths.setdefault(self._keys[path], path)
        return self._keys[path]

    def become(self, edited: Mapping[str, bytes]) -> None:
        """Sets which files have been edited, and to what; a new reader shows them."""
        self.edited = edited
        self.read: Read = lambda path: edited[key] if (key := self.key(path)) in edited else self.original(path)

    def original(self, path: Path) -> bytes:
        """The file's bytes before any edit."""
        key = self.key(path)
        if key not in self.originals:
            self.originals[key] = self._read(path)
        return self.originals[key]

    def source(self, key: str) -> Source:
        """The file as it is now, parsed. Raises CannotEdit where it cannot be read."""
        try:
            data = self.read(self.paths[key])
            if key not in self._sources or self._sources[key].data is not data:
                self._sources[key] = Source.parse(self.paths[key], data)
        except (SourceError, OSError) as error:
            raise CannotEdit(str(error)) from None
        return self._sources[key]
