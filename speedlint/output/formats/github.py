"""``--format github``: workflow commands, which GitHub shows as annotations in the changed files.

https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.diagnostic import Diagnostic
from speedlint.files import Problem
from speedlint.output.results import Results, portable, sentence
from speedlint.output.terminal import visible
from speedlint.rule import Level

_COMMANDS = {Level.WARNING: "warning", Level.NOTE: "notice"}
_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY = str.maketrans({**_DATA, ":": "%3A", ",": "%2C"})
_MESSAGE = str.maketrans(_DATA)


def render(results: Results) -> Iterator[str]:
    """A command for each finding and each error."""
    yield from map(_warning, results.diagnostics)
    yield from map(_error, results.problems)


def _warning(found: Diagnostic) -> str:
    place = {"file": portable(found.path), "line": found.line, "endLine": found.end_line}
    if found.line == found.end_line:  # else GitHub refuses columns
        place |= {"col": found.column, "endColumn": found.end_column}
    return _command(_COMMANDS[found.level], {**place, "title": f"{found.code} {found.rule}"}, sentence(found))


def _error(problem: Problem) -> str:
    return _command("error", {"file": portable(problem.path), "line": problem.line or 1, "title": "speedlint"}, problem.what)


def _command(name: str, properties: dict[str, object], message: str) -> str:
    listed = ",".join(f"{key}={visible(str(value)).translate(_PROPERTY)}" for key, value in properties.items())
    return f"::{name} {listed}::{visible(message).translate(_MESSAGE)}"
