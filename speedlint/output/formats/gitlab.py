"""``--format gitlab``: a Code Quality report, which GitLab shows in merge requests.

https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from speedlint.diagnostic import Diagnostic
from speedlint.files import Problem
from speedlint.output.fingerprint import fingerprints, names
from speedlint.output.results import Results, portable
from speedlint.output.terminal import visible
from speedlint.rule import Level, Worth

_SEVERITIES = {Worth.HIGH: "major", Worth.MEDIUM: "minor", Worth.LOW: "info", Worth.UNKNOWN: "info"}


def render(results: Results) -> Iterator[str]:
    """A list of issues."""
    found, problems = results.diagnostics, results.problems
    of_problems = names((portable(each.path), each.what) for each in problems)
    yield json.dumps([*map(_finding, found, fingerprints(found)), *map(_error, problems, of_problems)], indent=2)


def _finding(found: Diagnostic, fingerprint: str) -> dict[str, Any]:
    severity = "info" if found.level is Level.NOTE else _SEVERITIES[found.worth.worth]
    lines = {"begin": found.line, "end": found.end_line}
    return _issue(f"{found.rule}: {found.message}", found.code, fingerprint, severity, portable(found.path), lines)


def _error(problem: Problem, fingerprint: str) -> dict[str, Any]:
    path, lines = portable(problem.path), {"begin": problem.line or 1}
    return _issue(problem.what, "speedlint-error", fingerprint, "critical", path, lines)


def _issue(
    description: str, check: str, fingerprint: str, severity: str, path: str, lines: dict[str, int]
) -> dict[str, Any]:
    return {
        "description": visible(description),
        "check_name": check,
        "categories": ["Performance"],
        "fingerprint": fingerprint,
        "severity": severity,
        "location": {"path": path, "lines": lines},
    }
