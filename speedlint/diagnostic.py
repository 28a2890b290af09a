"""What a run reports: plain values that a worker process can send and every output format can print."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from speedlint.files import Problem
from speedlint.rule import Edit, Estimate, Level, Risk


class Place(NamedTuple):
    """A related place: where a value is set, which call reaches the line."""

    path: Path
    line: int
    message: str
    cell: int | None = None


class Proposal(NamedTuple):
    """A fix as it is offered: ``withheld`` says why it is only shown; it is empty where the fix can be applied.

    The edits of a notebook are in the script that its cells make; ``cells`` has the cell of each, and the byte of the script
    at which that cell's code begins.
    """

    risk: Risk
    edits: tuple[Edit, ...]
    withheld: str = ""
    cells: tuple[tuple[int, int], ...] = ()

    @property
    def applicable(self) -> bool:
        """Whether ``speedlint fix`` may apply it, if its risk is allowed."""
        return not self.withheld


class Diagnostic(NamedTuple):
    """A finding without its syntax tree. Lines and columns count from 1; the end column is the one after the last character.

    ``start`` and ``end`` are byte offsets in the file. In a notebook lines and bytes are those of the code of ``cell``.
    ``excerpt`` holds the first lines of the node, as far as they are short enough to be shown. Findings in one file with the
    same ``cause``, which is not empty, are one. ``case`` is the finding's: which of its rule's reasons is its own. ``scope``
    and ``text`` say where it is without line numbers: the dotted names of the classes and functions around it, and the
    expression or the first line of the statement, with single spaces.
    """

    path: Path
    line: int
    column: int
    end_line: int
    end_column: int
    code: str
    rule: str
    message: str
    advice: str
    level: Level
    worth: Estimate
    cause: str
    frequency: str
    related: tuple[Place, ...]
    fix: Proposal | None
    excerpt: tuple[str, ...]
    start: int
    end: int
    case: str = ""
    scope: str = ""
    text: str = ""
    cell: int | None = None

    @property
    def key(self) -> tuple[int, int, int, int, int, str]:
        """Where it is and which rule says it: what two reports of the same finding share, and the order within a file."""
        return (self.cell or 0, self.line, self.column, self.end_line, self.end_column, self.code)

    @property
    def lasting(self) -> tuple[str, str, str]:
        """What stays the same while the lines around it move: the rule, the function around it, and its text."""
        return (self.code, self.scope, self.text)


class Unused(NamedTuple):
    """A comment that silences nothing or names no rule: why, and the edits that take it away."""

    path: Path
    line: int
    why: str
    edits: tuple[Edit, ...]


class Report(NamedTuple):
    """What was found in some files, and what kept speedlint from reading them.

    ``bounds`` says in a sentence each where speedlint stopped looking because there was too much; ``unused`` are the
    comments that were written to silence findings and do not.
    """

    diagnostics: tuple[Diagnostic, ...] = ()
    problems: tuple[Problem, ...] = ()
    bounds: tuple[str, ...] = ()
    unused: tuple[Unused, ...] = ()
