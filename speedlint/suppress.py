"""Comments that silence findings: ``# speedlint: ignore`` and ``# speedlint: ignore[SPD301, SPD303] reason``."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator

from speedlint.registry import covers
from speedlint.source import Source

_COMMENT = re.compile(r"#\s*speedlint:\s*ignore\b(?:\s*\[([^\]]*)\])?")
_LAYOUT = (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT)


class Suppressions:
    """The lines of one file on which codes are silenced: all lines of a statement, or of a compound statement's header."""

    def __init__(self, source: Source) -> None:
        self._words: dict[int, list[str]] = {}
        if b"speedlint:" in source.data:
            for first, last, comment in _comments(source.text_):
                words = _silenced(comment)
                for line in range(first, last + 1):
                    self._words.setdefault(line, []).extend(words)

    def silence(self, line: int, code: str, name: str) -> bool:
        """Whether the rule is silenced for a finding that begins on ``line``."""
        return any(covers(word, code, name) for word in self._words.get(line, ()))


def _silenced(comment: str) -> list[str]:
    """The codes and names in the comment's brackets; without brackets the empty prefix, which all codes begin with."""
    words: list[str] = []
    for match in _COMMENT.finditer(comment):
        words += [word for word in re.split(r"[\s,]+", match[1]) if word] if match[1] is not None else [""]
    return words


def _comments(text: str) -> Iterator[tuple[int, int, str]]:
    """Each comment with the first and last line of the statement it stands in; decorators belong to their function."""
    first, begins, decorator, comments = 0, True, False, list[str]()
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline=None).readline):
            if token.type == tokenize.COMMENT and first:
                comments.append(token.string)
            elif token.type == tokenize.NEWLINE:
                begins = True
                if not decorator:
                    yield from ((first, token.start[0], comment) for comment in comments)
                    first, comments = 0, []
            elif begins and token.type not in _LAYOUT:
                first, begins, decorator = first or token.start[0], False, token.string == "@"
    except (tokenize.TokenError, SyntaxError):
        return
