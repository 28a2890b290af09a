"""``--format rdjson``: the Reviewdog Diagnostic Format, for review comments with suggestions.

https://github.com/reviewdog/reviewdog/tree/master/proto/rdf
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from speedlint import docs
from speedlint.diagnostic import Diagnostic
from speedlint.files import Problem
from speedlint.output.positions import Position
from speedlint.output.results import Results, portable, sentence
from speedlint.output.terminal import visible
from speedlint.rule import Edit, Level

_SEVERITIES = {Level.WARNING: "WARNING", Level.NOTE: "INFO"}


def render(results: Results) -> Iterator[str]:
    """One object with a diagnostic for each finding and each error."""
    told = [*(_finding(each, results) for each in results.diagnostics), *map(_error, results.problems)]
    yield json.dumps({"source": {"name": "speedlint", "url": docs.SITE}, "diagnostics": told}, indent=2)


def _finding(found: Diagnostic, results: Results) -> dict[str, Any]:
    start = results.positions.of(found.path, found.line, found.column)
    end = results.positions.of(found.path, found.end_line, found.end_column)
    url = docs.rule_url(found.code)
    told: dict[str, Any] = {
        "message": sentence(found),
        "location": {
            "path": portable(found.path),
            "range": _range(start, end) if start and end else {"start": {"line": found.line}},
        },
        "severity": _SEVERITIES[found.level],
        "code": {"value": found.code, **({"url": url} if url else {})},
    }
    if (suggestion := _suggestion(found, results)) is not None:
        told["suggestions"] = [suggestion]
    return told


def _suggestion(found: Diagnostic, results: Results) -> dict[str, Any] | None:
    """The fix, if it is one edit of the finding's own file: a part of a fix must not be taken alone."""
    if found.fix is None or not found.fix.applicable or len(found.fix.edits) != 1:
        return None
    edit: Edit = found.fix.edits[0]
    start, end = (results.positions.at(edit.path, offset) for offset in (edit.start, edit.end))
    if portable(edit.path) != portable(found.path) or start is None or end is None:
        return None
    return {"range": _range(start, end), "text": edit.text}


def _error(problem: Problem) -> dict[str, Any]:
    place = {"path": portable(problem.path), "range": {"start": {"line": problem.line or 1}}}
    return {"message": visible(problem.what), "location": place, "severity": "ERROR"}


def _range(start: Position, end: Position) -> dict[str, Any]:
    return {name: {"line": each.line, "column": each.utf8} for name, each in (("start", start), ("end", end))}
