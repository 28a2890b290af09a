"""``--format json``: one object, the same on every run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import repeat
from typing import Any

from speedlint.diagnostic import Diagnostic, Proposal
from speedlint.files import Problem
from speedlint.output.results import Results
from speedlint.output.terminal import shown
from speedlint.rule import Edit

VERSION = 1


def render(results: Results) -> Iterator[str]:
    """The report as one JSON object. Findings of one file with the same ``cause`` are one, at several places."""
    report = {
        "version": VERSION,
        "findings": [finding(each, cause) for each, cause in results.with_causes],
        "errors": [error(each) for each in results.problems],
    }
    yield json.dumps(report, indent=2)


def finding(diagnostic: Diagnostic, cause: str) -> dict[str, Any]:
    """A finding as an object; findings with the same ``cause`` in the same file are one."""
    return {
        "code": diagnostic.code,
        "rule": diagnostic.rule,
        "message": diagnostic.message,
        "path": shown(diagnostic.path),
        **_cell(diagnostic.cell),
        "line": diagnostic.line,
        "column": diagnostic.column,
        "end_line": diagnostic.end_line,
        "end_column": diagnostic.end_column,
        "level": diagnostic.level.value,
        "worth": diagnostic.worth.worth.value,
        "because": diagnostic.worth.because,
        "cause": cause,
        "frequency": diagnostic.frequency,
        "related": [
            {"path": shown(each.path), **_cell(each.cell), "line": each.line, "message": each.message}
            for each in diagnostic.related
        ],
        "fix": diagnostic.fix and _fix(diagnostic.fix),
    }


def error(problem: Problem) -> dict[str, Any]:
    """What kept speedlint from a file, as an object."""
    return {"path": shown(problem.path), **_cell(problem.cell), "line": problem.line, "message": problem.what}


def _cell(cell: int | None) -> dict[str, int]:
    """What says which cell of a notebook lines and bytes are those of."""
    return {"cell": cell} if cell else {}


def _fix(fix: Proposal) -> dict[str, Any]:
    return {
        "risk": fix.risk.name.lower(),
        "applicable": fix.applicable,
        "edits": [_edit(edit, *place) for edit, place in zip(fix.edits, fix.cells or repeat((None, 0)), strict=False)],
    }


def _edit(edit: Edit, cell: int | None, begins: int) -> dict[str, Any]:
    """An edit; in a notebook its bytes are those of its cell's code."""
    return {
        "path": shown(edit.path),
        **_cell(cell),
        "start": edit.start - begins,
        "end": edit.end - begins,
        "text": edit.text,
    }
