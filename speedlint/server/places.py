"""Places in a document as editors count them: lines and code units from 0, of UTF-8, UTF-16 or UTF-32."""

from __future__ import annotations

import bisect
import difflib
import io
import itertools
import re
import tokenize
from collections.abc import Iterator

from lsprotocol.types import Position, PositionEncodingKind, Range, TextEdit

from speedlint import reading

_LINE_END = re.compile(r"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"
_UNITS = {PositionEncodingKind.Utf8: ("utf-8", 1), PositionEncodingKind.Utf16: ("utf-16-le", 2)}


class Text:
    """A document's text, with the bytes that it is saved as."""

    def __init__(self, text: str, units: PositionEncodingKind | str, encoding: str = "", mark: bytes = b"") -> None:
        """``units`` is what the client counts a line's characters in. The text has its ``encoding``, or the one that it
        declares. ``mark`` stands before it in the file, and in no editor."""
        self.text = text
        body, self.encoding = (text.encode(encoding, "surrogatepass"), encoding) if encoding else reading.encoded(text)
        self.data = mark + body
        self._units, self._given, self._mark = units, encoding, mark
        self._starts = [0, *(match.end() for match in _LINE_END.finditer(text))]

    @classmethod
    def of_file(cls, data: bytes, units: PositionEncodingKind | str) -> Text:
        """The text that an editor makes of a file. Raises SyntaxError, LookupError or ValueError where it is none."""
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        encoding = "utf-8" if encoding == "utf-8-sig" else encoding
        mark = _BOM if data.startswith(_BOM) else b""
        return cls(data[len(mark) :].decode(encoding), units, encoding, mark)

    @property
    def newline(self) -> str:
        """The first line break of the text."""
        found = _LINE_END.search(self.text)
        return found[0] if found else "\n"

    def at_byte(self, offset: int) -> Position:
        """The position of a byte of the file."""
        return self._position(len(self.data[len(self._mark) : offset].decode(self.encoding, "replace")))

    def at(self, line: int, column: int) -> Position:
        """The position of a line and a column, both counted from 1, the column in characters."""
        line = min(max(line, 1), len(self._starts))
        return self._position(min(self._starts[line - 1] + max(column, 1) - 1, self._end(line - 1)))

    def again(self, text: str) -> Text:
        """Another text of the same client."""
        return Text(text, self._units, self._given, self._mark)

    def replaced(self, place: Range, text: str) -> Text:
        """The text with another one in a range."""
        start, end = sorted((self._character(place.start), self._character(place.end)))
        return self.again(self.text[:start] + text + self.text[end:])

    def byte(self, position: Position) -> int:
        """The byte at a position; one beyond its line or the text is at the end of these."""
        before = self.text[: self._character(position)]
        return len(self._mark) + len(before.encode(self.encoding, "surrogatepass"))

    def _character(self, position: Position) -> int:
        if position.line >= len(self._starts):
            return len(self.text)
        start, end = self._starts[position.line], self._end(position.line)
        sizes = itertools.accumulate((self._size(character) for character in self.text[start:end]), initial=0)
        column = bisect.bisect_right(list(sizes), position.character) - 1
        return start + max(0, column)

    def edit(self, start: int, end: int, text: str) -> TextEdit:
        """The edit of some bytes, with the text's own line breaks."""
        return TextEdit(Range(self.at_byte(start), self.at_byte(end)), text.replace("\n", self.newline))

    def edits(self, after: str) -> Iterator[TextEdit]:
        """The edits, by whole lines, that make this text another one."""
        mine, others = (re.findall(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+", text) for text in (self.text, after))
        starts = list(itertools.accumulate(map(len, mine), initial=0))
        for kind, first, last, begin, end in difflib.SequenceMatcher(None, mine, others).get_opcodes():
            if kind != "equal":
                place = Range(self._position(starts[first]), self._position(starts[last]))
                yield TextEdit(place, "".join(others[begin:end]))

    def _position(self, character: int) -> Position:
        line = bisect.bisect_right(self._starts, character) - 1
        return Position(line, self._size(self.text[self._starts[line] : character]))

    def _end(self, line: int) -> int:
        """Where a line's characters end, without its line break."""
        end = self._starts[line + 1] if line + 1 < len(self._starts) else len(self.text)
        return self._starts[line] + len(self.text[self._starts[line] : end].rstrip("\r\n"))

    def _size(self, text: str) -> int:
        """The code units that some characters take."""
        encoding, width = _UNITS.get(PositionEncodingKind(self._units), ("", 0))
        return len(text.encode(encoding, "surrogatepass")) // width if width else len(text)
