"""How findings are printed: one module for each format, with a ``render`` that is handed the results of a check.

A module is imported when its format is asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from speedlint.output.results import Results

FULL, CONCISE = "full", "concise"
_FEW = 3
"""Up to so many findings are told in full where no format is asked for, if they fit on a screen."""
_SCREEN_LINES, _SCREEN_COLUMNS = 36, 80
"""What findings in full may take: the lines of a screen of 40 without the closing ones."""


class Format(NamedTuple):
    """What is known of a format before its module is imported.

    ``for_people`` formats may be coloured. ``has_problems`` formats hold what kept speedlint from a file; beside the others
    that goes to standard error. ``of_files`` formats know the lines of files and no cells of notebooks.
    """

    module: str
    for_people: bool = False
    has_problems: bool = True
    of_files: bool = False

    def render(self, results: Results) -> Iterator[str]:
        """The results in this format, in pieces that end with a line break each once printed."""
        pieces: Iterator[str] = importlib.import_module(f"{__name__}.{self.module}").render(
            results.in_files() if self.of_files else results
        )
        return pieces


FORMATS = {
    CONCISE: Format("concise", for_people=True, has_problems=False),
    FULL: Format("full", for_people=True, has_problems=False),
    "grouped": Format("grouped", for_people=True, has_problems=False),
    "json": Format("json"),
    "json-lines": Format("json_lines"),
    "sarif": Format("sarif", of_files=True),
    "github": Format("github", of_files=True),
    "gitlab": Format("gitlab", of_files=True),
    "junit": Format("junit", of_files=True),
    "azure": Format("azure", of_files=True),
    "rdjson": Format("rdjson", of_files=True),
}
"""By the name that ``--format`` takes."""


def choose(name: str | None, results: Results) -> Format:
    """The format of a name; without one, ``full`` for a few findings that fit on a screen and ``concise`` for more."""
    return FORMATS[name or (FULL if _fits(results) else CONCISE)]


def _fits(results: Results) -> bool:
    """Whether the findings in full fit on a screen, which is as wide for all, so that a pipe gets what a terminal does."""
    if len(results.causes) > _FEW:
        return False
    on_screen = replace(results, columns=_SCREEN_COLUMNS, links=False, closes=False)
    return sum(piece.count("\n") + 1 for piece in FORMATS[FULL].render(on_screen)) <= _SCREEN_LINES
