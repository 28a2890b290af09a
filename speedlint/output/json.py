"""``--format json``: one object, the same on every run."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from speedlint.causes import together
from speedlint.diagnostic import Diagnostic, Proposal
from speedlint.files import Problem
from speedlint.output.terminal import shown

VERSION = 1


def render(diagnostics: Iterable[Diagnostic], problems: Iterable[Problem]) -> str:
    """The report as the text of a JSON object. Findings of one file with the same ``cause`` are one, at several places."""
    found = list(diagnostics)
    causes = together(found)
    names = {(each.path, each.key): cause.name for cause in causes for each in (cause.first, *cause.others)}
    report = {
        "version": VERSION,
        "findings": [_finding(each, names[each.path, each.key]) for each in found],
        "errors": [{"path": shown(each.path), "line": each.line, "message": each.what} for each in problems],
    }
    return json.dumps(report, indent=2)


def _finding(diagnostic: Diagnostic, cause: str) -> dict[str, Any]:
    return {
        "code": diagnostic.code,
        "rule": diagnostic.rule,
        "message": diagnostic.message,
        "path": shown(diagnostic.path),
        "line": diagnostic.line,
        "column": diagnostic.column,
        "end_line": diagnostic.end_line,
        "end_column": diagnostic.end_column,
        "level": diagnostic.level.value,
        "worth": diagnostic.worth.worth.value,
        "because": diagnostic.worth.because,
        "cause": cause,
        "frequency": diagnostic.frequency,
        "related": [{"path": shown(each.path), "line": each.line, "message": each.message} for each in diagnostic.related],
        "fix": diagnostic.fix and _fix(diagnostic.fix),
    }


def _fix(fix: Proposal) -> dict[str, Any]:
    return {
        "risk": fix.risk.name.lower(),
        "applicable": fix.applicable,
        "edits": [{"path": shown(edit.path), "start": edit.start, "end": edit.end, "text": edit.text} for edit in fix.edits],
    }
