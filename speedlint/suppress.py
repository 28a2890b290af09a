"""Comments that silence findings, those of them that silence none, and how they are added.

``# speedlint: ignore[SPD301, SPD303] reason`` and ``# noqa: SPD301`` silence these rules in the statement that they stand
in, ``# speedlint: ignore`` every rule; ``# speedlint: ignore-file[SPD301]`` silences in the whole file. A ``# noqa`` without
one of our codes was written for another tool.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from speedlint.diagnostic import Unused
from speedlint.errors import did_you_mean
from speedlint.registry import Registry, covers
from speedlint.rule import Edit
from speedlint.source import Source

_OURS = re.compile(r"#\s*speedlint:\s*ignore(?P<file>-file)?(?![\w-])(?:\s*\[(?P<words>[^\]]*)\])?[^#]*")
_NOQA = re.compile(r"#\s*noqa\s*:\s*(?P<words>[A-Z]+[0-9]+(?:[\s,]+[A-Z]+[0-9]+)*)[^#]*", re.IGNORECASE)
_WORD = re.compile(r"[^\s,]+")
_CODE = re.compile(r"([A-Z]+)[0-9]+", re.IGNORECASE)
_LAYOUT = (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT)


@dataclass
class _Ignore:
    """One comment: the lines that it speaks of, none where it stands alone, and its words; all rules are the empty word.

    Attributes:
        start: the byte where it begins.
        text: as written, up to the next comment of its line.
        at: where its words begin in its text, and where they end; -1 where it has none.
    """

    lines: range
    line: int
    start: int
    text: str
    words: tuple[str, ...]
    at: tuple[int, int]
    of_file: bool
    used: set[str] = field(default_factory=set)


class Suppressions:
    """The comments of one file. A ``# noqa`` means the rules of ``registry`` whose codes begin as its words do."""

    def __init__(self, source: Source, registry: Registry) -> None:
        self._source, self._rules = source, registry.rules
        self._ignores = list(_ignores(source, registry.letters)) if mentions(source.data, registry.letters) else []

    def silence(self, line: int, code: str, name: str) -> bool:
        """Whether the rule is silenced for a finding that begins on ``line``."""
        is_silent = False
        for ignore in self._ignores:
            if ignore.of_file or line in ignore.lines:
                used = {word for word in ignore.words if covers(word, code, name)}
                ignore.used |= used
                is_silent = is_silent or bool(used)
        return is_silent

    def unused(self, looked: Collection[str], is_needed: Callable[[range], bool]) -> Iterator[Unused]:
        """The comments with words that name no rule, or have silenced nothing though all their rules, whose codes are
        ``looked``, have looked. ``is_needed`` says of lines that they may be told of where other files are asked for."""
        for ignore in self._ignores:
            why = {word: said for word in ignore.words if (said := self._why_unused(word, ignore, looked, is_needed))}
            if why:
                place = (self._source.path, ignore.line)
                yield Unused(*place, "; ".join(dict.fromkeys(why.values())), (_without(self._source, ignore, why.keys()),))

    def _why_unused(self, word: str, ignore: _Ignore, looked: Collection[str], is_needed: Callable[[range], bool]) -> str:
        covered = [rule for rule in self._rules if covers(word, rule.code, rule.name)]
        if not covered:
            return f"`{word}` names no rule{did_you_mean(word, [rule.code for rule in self._rules])}"
        meant = [rule for rule in covered if not rule.off or rule.code == word.upper() or rule.name == word]
        if word in ignore.used or not meant or not all(rule.code in looked for rule in meant):
            return ""
        if is_needed(ignore.lines):
            return ""
        return f"there is nothing for `{word}` to silence" if word else "there is nothing to silence"


def mentions(data: bytes, letters: Iterable[str]) -> bool:
    """Whether a file may hold comments that silence rules whose codes begin so."""
    text = data.lower()
    return b"speedlint:" in text or (b"noqa" in text and any(each.lower().encode() in text for each in letters))


def additions(source: Source, codes: Mapping[int, Collection[str]]) -> tuple[list[Edit], set[int]]:
    """The edits that silence rules, by their codes, for what begins on some lines; and the lines of no statement."""
    ignores = [each for each in _ignores(source, frozenset()) if not each.of_file and each.at[0] >= 0]
    edits, left = [], set(codes)
    for lines, _ in _statements(source.text_):
        if wanted := {code for line in codes.keys() & lines for code in codes[line]}:
            edits.append(_addition(source, lines, wanted, next((each for each in ignores if each.lines == lines), None)))
            left -= set(lines)
    return edits, left


def _addition(source: Source, lines: range, codes: Collection[str], held: _Ignore | None) -> Edit:
    """The edit that adds codes to the statement's comment, or such a comment at its end."""
    if held is not None:
        at = held.start + len(held.text[: held.at[1]].encode(source.encoding))
        return Edit(source.path, at, at, (", " if held.words else "") + ", ".join(sorted(codes)))
    start, end = source.line_span(lines.stop - 1)
    end_of_code = start + len(source.data[start:end].rstrip(b" \t"))
    return Edit(source.path, end_of_code, end, f"  # speedlint: ignore[{', '.join(sorted(codes))}]")


def _ignores(source: Source, letters: Collection[str]) -> Iterator[_Ignore]:
    for lines, comments in _statements(source.text_):
        for token in comments:
            row, column = token.start
            before = source.line_span(row).start + len(source.line_text(row)[:column].encode(source.encoding))
            for match in _OURS.finditer(token.string):
                words = tuple(_WORD.findall(match["words"])) if match["words"] is not None else ("",)
                yield _ignore(source, lines, row, before, match, words, bool(match["file"]))
            for match in _NOQA.finditer(token.string):
                words = tuple(word for word in _WORD.findall(match["words"]) if _is_ours(word, letters))
                if words:
                    yield _ignore(source, lines, row, before, match, words, False)


def _ignore(
    source: Source, lines: range, row: int, before: int, match: re.Match[str], words: tuple[str, ...], of_file: bool
) -> _Ignore:
    start = before + len(match.string[: match.start()].encode(source.encoding))
    first, last = match.span("words")
    at = (first - match.start(), last - match.start()) if first >= 0 else (-1, -1)
    return _Ignore(lines, row, start, match[0], words, at, of_file)


def _is_ours(word: str, letters: Collection[str]) -> bool:
    match = _CODE.fullmatch(word)
    return match is not None and match[1].upper() in letters


def _without(source: Source, ignore: _Ignore, words: Collection[str]) -> Edit:
    """The edit that takes words out of a comment, or the comment, or the line that holds nothing else."""
    first, last = ignore.at
    left = [word for word in _WORD.findall(ignore.text[first:last]) if word not in words] if first >= 0 else []
    if left:
        start = ignore.start + len(ignore.text[:first].encode(source.encoding))
        return Edit(source.path, start, start + len(ignore.text[first:last].encode(source.encoding)), ", ".join(left))
    begins, ends = source.line_span(ignore.line)
    start, end = ignore.start, ignore.start + len(ignore.text.encode(source.encoding))
    before = source.data[begins:start].rstrip(b" \t")
    if end < ends:
        return Edit(source.path, start, end, "")
    if before:
        return Edit(source.path, begins + len(before), ends, "")
    return Edit(source.path, begins, source.line_starts[ignore.line] if ignore.line < len(source.line_starts) else ends, "")


def _statements(text: str) -> Iterator[tuple[range, list[tokenize.TokenInfo]]]:
    """The lines of each statement, or of a compound statement's header, with its comments; decorators belong to their
    function, and comments between statements to no lines."""
    first, begins, decorator, comments = 0, True, False, list[tokenize.TokenInfo]()
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline=None).readline):
            if token.type == tokenize.COMMENT and first:
                comments.append(token)
            elif token.type == tokenize.COMMENT:
                yield range(0), [token]
            elif token.type == tokenize.NEWLINE:
                begins = True
                if not decorator:
                    yield range(first, token.start[0] + 1), comments
                    first, comments = 0, []
            elif begins and token.type not in _LAYOUT:
                first, begins, decorator = first or token.start[0], False, token.string == "@"
    except (tokenize.TokenError, SyntaxError):
        return
