"""What scripts ask of a machine: how many workers their loaders start."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from speedlint.ask.program import Program
from speedlint.ask.script import Options
from speedlint.doctor.facts import Loading
from speedlint.facts import syntax
from speedlint.files import Problem
from speedlint.shapes.data.loaders import loader
from speedlint.source import SourceError


def loaders(paths: Iterable[Path]) -> tuple[list[Loading], list[Problem]]:
    """The loaders of these files whose number of workers is known, and the files that cannot be read."""
    program, found, problems = Program(Options()), [], []
    for path in paths:
        try:
            if b"Loader" not in path.read_bytes():
                continue
            script = program.script(path)
        except SourceError as error:
            problems.append(Problem(error.path, error.line, error.what))
            continue
        except OSError as error:
            problems.append(Problem(path, None, f"cannot be read ({error.strerror or error})"))
            continue
        for call in script.source.of(syntax.Call):
            made = loader(script, call)
            value = made.setting("num_workers").value if made else None
            if value is not None and type(value.value) is int:
                found.append(Loading(path, script.source.line(call), value.value))
    return found, problems
