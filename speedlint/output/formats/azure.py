"""``--format azure``: logging commands, which Azure Pipelines lists as the issues of a run.

https://learn.microsoft.com/azure/devops/pipelines/scripts/logging-commands
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.diagnostic import Diagnostic
from speedlint.files import Problem
from speedlint.output.results import Results, portable, sentence
from speedlint.output.terminal import visible

_DATA = {"%": "%AZP25", "\r": "%0D", "\n": "%0A"}
_PROPERTY = str.maketrans({**_DATA, ";": "%3B", "]": "%5D"})
_MESSAGE = str.maketrans(_DATA)


def render(results: Results) -> Iterator[str]:
    """A command for each finding and each error."""
    yield from map(_warning, results.diagnostics)
    yield from map(_error, results.problems)


def _warning(found: Diagnostic) -> str:
    place = {"sourcepath": portable(found.path), "linenumber": found.line, "columnnumber": found.column}
    return _command("warning", {**place, "code": found.code}, f"{found.rule}: {sentence(found)}")


def _error(problem: Problem) -> str:
    return _command("error", {"sourcepath": portable(problem.path), "linenumber": problem.line or 1}, problem.what)


def _command(kind: str, properties: dict[str, object], message: str) -> str:
    listed = "".join(f"{key}={visible(str(value)).translate(_PROPERTY)};" for key, value in properties.items())
    return f"##vso[task.logissue type={kind};{listed}]{visible(message).translate(_MESSAGE)}"
