"""What a run reports: plain values that a worker process can send and every output format can print."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from speedlint.files import Problem
from speedlint.rule import Edit, Estimate, Level, Risk


@dataclass(frozen=True, slots=True)
class Place:
    """A related place: where a value is set, which call reaches the line."""

    path: Path
    line: int
    message: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """A fix as it is offered: ``withheld`` says why it is only shown; it is empty where the fix can be applied."""

    risk: Risk
    edits: tuple[Edit, ...]
    withheld: str = ""

    @property
    def applicable(self) -> bool:
        """Whether ``speedlint fix`` may apply it, if its risk is allowed."""
        return not self.withheld


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A finding without its syntax tree. Lines and columns count from 1; the end column is the one after the last character.

    ``excerpt`` holds the first lines of the node, as far as they are short enough to be shown. Findings in one file with the
    same ``cause``, which is not empty, are one.
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

    @property
    def key(self) -> tuple[int, int, int, int, str]:
        """Where it is and which rule says it: what two reports of the same finding share, and the order within a file."""
        return (self.line, self.column, self.end_line, self.end_column, self.code)


@dataclass(frozen=True, slots=True)
class Report:
    """What was found in some files, and what kept speedlint from reading them.

    ``bounds`` says in a sentence each where speedlint stopped looking because there was too much.
    """

    diagnostics: tuple[Diagnostic, ...] = ()
    problems: tuple[Problem, ...] = ()
    bounds: tuple[str, ...] = ()
