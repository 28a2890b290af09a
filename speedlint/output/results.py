"""What a check has to say: the one value that each format is handed."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from speedlint.causes import Cause, by_worth, together
from speedlint.config import Settings
from speedlint.diagnostic import Diagnostic, Place
from speedlint.files import Problem
from speedlint.output.terminal import UNLIMITED, link, shown, visible
from speedlint.registry import Registry

if TYPE_CHECKING:
    from speedlint.output.positions import Positions


@dataclass(frozen=True)
class Results:
    """The findings that are told, and what else a format may say of the run.

    Attributes:
        diagnostics: the findings that are told, ordered by path and position.
        hidden: how many notes are not told.
        files: the files that were checked.
        problems: what kept speedlint from a file.
        asked: the files and folders that the user named.
        options: the options that the user gave and that the next command needs too.
        columns: how wide a line for people may be.
        links: whether codes may be links.
        read: gives the bytes of a file as it was checked.
        closes: whether the closing lines are told.
        is_brief: whether findings take a line each though nobody asked for that.
    """

    diagnostics: Sequence[Diagnostic]
    hidden: int
    files: Sequence[Path]
    problems: Sequence[Problem]
    settings: Settings
    registry: Registry
    asked: Sequence[Path] = field(default=())
    options: Sequence[str] = field(default=())
    columns: int = UNLIMITED
    links: bool = False
    read: Callable[[Path], bytes] = Path.read_bytes
    closes: bool = True
    is_brief: bool = False

    @cached_property
    def causes(self) -> Sequence[Cause]:
        """The findings by their causes, what is worth most first."""
        return by_worth(together(self.diagnostics))

    @cached_property
    def with_causes(self) -> Sequence[tuple[Diagnostic, str]]:
        """Each finding with the name of its cause, in the order of their places."""
        names = {(each.path, each.key): cause.name for cause in self.causes for each in (cause.first, *cause.others)}
        return [(each, names[each.path, each.key]) for each in self.diagnostics]

    @cached_property
    def positions(self) -> Positions:
        """The places of edits in the files."""
        from speedlint.output.positions import Positions

        return Positions(self.read)

    def in_files(self) -> Results:
        """The same, with what stands in a cell at the first line of its notebook, whose own lines are not known."""
        found = [_in_file(each) for each in self.diagnostics]
        return replace(self, diagnostics=found, problems=[_problem_in_file(each) for each in self.problems])

    def code(self, code: str) -> str:
        """A rule's code as it is printed: a link to its page where links are understood."""
        if not self.links:
            return code
        from speedlint import docs

        return link(code, docs.rule_url(code))


def _in_file(found: Diagnostic) -> Diagnostic:
    if found.cell is None:
        return found
    message = f"{_cell(found)}: {found.message}"
    related = tuple(
        each._replace(line=1, message=f"{_cell(each)}: {each.message}") if each.cell else each for each in found.related
    )
    return found._replace(line=1, column=1, end_line=1, end_column=1, message=message, related=related, fix=None)


def _problem_in_file(problem: Problem) -> Problem:
    return problem._replace(line=1, what=f"{_cell(problem)}: {problem.what}") if problem.cell else problem


def _cell(place: Diagnostic | Place | Problem) -> str:
    return f"cell {place.cell}, line {place.line}"


def sentence(found: Diagnostic) -> str:
    """What is slow and what to do about it, on one line that prints."""
    return visible(f"{found.message}. Instead: {found.advice}" if found.advice else found.message)


def portable(path: Path) -> str:
    """The path as reports are read elsewhere: relative to the current folder, with slashes, in valid Unicode."""
    return shown(path).replace(os.sep, "/").encode("utf-8", "surrogateescape").decode("utf-8", "replace")
