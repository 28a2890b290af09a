"""String literals taken apart: the tokens of an implicit concatenation, and the replacement fields of f-strings.

The standard library's tree joins concatenated strings, and before Python 3.12 it places the nodes of f-strings wrongly, so
the text itself is read. All offsets are bytes of the text in UTF-8.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_GAP = re.compile(rb"(?:[\s\\]|#[^\r\n]*)*")
_OPEN = re.compile(rb"([A-Za-z]{0,2})(\"\"\"|'''|\"|')")
_PLAIN = {
    b'"""': re.compile(rb'(?:[^\\"]|\\.|"(?!""))*"""', re.DOTALL),
    b"'''": re.compile(rb"(?:[^\\']|\\.|'(?!''))*'''", re.DOTALL),
    b'"': re.compile(rb'(?:[^\\"]|\\.)*"', re.DOTALL),
    b"'": re.compile(rb"(?:[^\\']|\\.)*'", re.DOTALL),
}
_IN_TEXT = re.compile(rb"\\N\{[^}]*\}|\\[^{}]|\{\{|\}\}|[{}]|\"\"\"|'''|[\"']", re.DOTALL)
_IN_RAW_TEXT = re.compile(rb"\\[\"'\\]|\{\{|\}\}|[{}]|\"\"\"|'''|[\"']")
_IN_SPEC = re.compile(rb"[{}]")
_IN_FIELD = re.compile(rb"#[^\r\n]*|[A-Za-z]{0,2}(?:\"\"\"|'''|\"|')|\w+|[\[({\])}]|[!=<>:]=|[=!:]")
_AFTER_EQUAL = re.compile(rb"\s*(?=[!:}])")


class StringError(Exception):
    """Text that is no string literal after all."""


@dataclass(slots=True)
class Field:
    """A replacement field.

    Attributes:
        start, end: with its braces.
        expression: where its expression begins and ends.
        marks: ``"="`` where it is written ``{x=}``, then the conversion's letter.
        spec: the fields within its format specification.
    """

    start: int
    end: int
    expression: tuple[int, int]
    marks: str
    spec: list[Field] = field(default_factory=list)


@dataclass(slots=True)
class Token:
    """One string token; ``fields`` is None where it is no f-string or t-string."""

    start: int
    end: int
    fields: list[Field] | None
    is_template: bool = False


def plain_end(data: bytes, start: int) -> int:
    """Where the string token that begins at ``start`` ends, if it has no replacement fields; else -1."""
    opened = _OPEN.match(data, start)
    if opened is None or (not opened[1].isalpha() and opened[1]):
        return -1
    if opened[1] and opened[1].lower().strip(b"rbu"):
        return -1
    closed = _PLAIN[opened[2]].match(data, opened.end())
    return closed.end() if closed else -1


def tokens(data: bytes, start: int, end: int) -> Iterator[Token]:
    """The string tokens from ``start`` to ``end``. Raises StringError."""
    while start < end:
        plain = plain_end(data, start)
        token = Token(start, plain, None) if plain >= 0 else _formatted(data, start)
        yield token
        gap = _GAP.match(data, token.end, end)
        start = gap.end() if gap else token.end


def _formatted(data: bytes, start: int) -> Token:
    opened = _OPEN.match(data, start)
    if opened is None:
        raise StringError
    prefix, quote = opened[1].lower(), opened[2]
    pattern = _IN_RAW_TEXT if b"r" in prefix else _IN_TEXT
    found: list[Field] = []
    at = opened.end()
    while True:
        mark = pattern.search(data, at)
        if mark is None:
            raise StringError
        at = mark.end()
        if mark[0] == b"{":
            found.append(_field(data, mark.start()))
            at = found[-1].end
        elif mark[0] == quote or (len(quote) == 1 and mark[0] == quote * 3):
            return Token(start, mark.start() + len(quote), found, b"t" in prefix)
        elif mark[0] in (b'"""', b"'''") and len(quote) == 1:
            at = mark.start() + 1


def _field(data: bytes, start: int) -> Field:
    """The replacement field whose brace is at ``start``."""
    depth, at, marks = 0, start + 1, ""
    while True:
        found = _IN_FIELD.search(data, at)
        if found is None:
            raise StringError
        text, at = found[0], found.end()
        if text[-1:] in b"\"'":
            at = next(tokens(data, found.start(), len(data))).end
        elif text in (b"[", b"(", b"{"):
            depth += 1
        elif text in (b"]", b")") or (text == b"}" and depth):
            depth -= 1
        elif not depth and text == b"=" and _AFTER_EQUAL.match(data, at):
            marks, stop = "=", found.start()
            break
        elif not depth and (text in (b"}", b"!") or text[:1] == b":"):
            stop, at = found.start(), found.start()
            break
    expression = (start + 1, stop)
    at += len(_GAP.match(data, at)[0])  # type: ignore[index]
    if data[at : at + 1] == b"!":
        letter = re.compile(rb"!\s*(\w+)\s*").match(data, at)
        if letter is None:
            raise StringError
        marks, at = marks + letter[1].decode(), letter.end()
    result = Field(start, 0, expression, marks)
    if data[at : at + 1] == b":":
        at = _spec(data, at + 1, result.spec)
    if data[at : at + 1] != b"}":
        raise StringError
    result.end = at + 1
    return result


def _spec(data: bytes, at: int, found: list[Field]) -> int:
    """Where a format specification ends; its fields are added to ``found``."""
    while True:
        mark = _IN_SPEC.search(data, at)
        if mark is None:
            raise StringError
        if mark[0] == b"}":
            return mark.start()
        found.append(_field(data, mark.start()))
        at = found[-1].end
