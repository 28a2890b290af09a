"""Comments that mark slow lines: ``# SPD301``, ``# SPD301 note, SPD303``, ``# SPD311 program``, ``# SPD506 off``,
``# SPD209 alone``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from speedlint.diagnostic import Diagnostic
from speedlint.rule import Level

_COMMENT = re.compile(r"#\s*SPD\d{3}\b.*")
_CODE = re.compile(r"(SPD\d{3})\b((?: +(?:note|program|off|alone)\b)*)")


class Expected(NamedTuple):
    """A finding as a mark, or a run, has it."""

    line: int
    code: str
    level: str


class Mark(NamedTuple):
    """One code of a mark; ``words`` are what follows it: note, program, off, alone."""

    line: int
    code: str
    words: frozenset[str]

    @property
    def expected(self) -> Expected:
        """The finding that the mark asks for."""
        return Expected(self.line, self.code, (Level.NOTE if "note" in self.words else Level.WARNING).value)


def marks(text: str) -> list[Mark]:
    """The marks of a file, by line."""
    return [
        Mark(number, code, frozenset(words.split()))
        for number, line in enumerate(text.splitlines(), 1)
        if (comment := _COMMENT.search(line))
        for code, words in _CODE.findall(comment[0])
    ]


def found(diagnostics: Iterable[Diagnostic]) -> list[Expected]:
    """What was found, as marks would have it."""
    return sorted({Expected(each.line, each.code, each.level.value) for each in diagnostics})


def difference(path: str, text: str, wanted: Iterable[Expected], got: Iterable[Expected]) -> list[str]:
    """One readable line for each finding that is missing or was not asked for."""
    lines, wanted, got = text.splitlines(), set(wanted), set(got)
    return [
        f"{'missing' if each in wanted else 'unasked'} {each.code} {each.level} {path}:{each.line}: "
        f"{lines[each.line - 1].strip()}"
        for each in sorted(wanted ^ got)
    ]
