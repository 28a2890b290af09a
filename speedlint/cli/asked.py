"""What a command looks at: files and folders, or a text from standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from speedlint import files, reading, run
from speedlint.cli.options import F, discover, prepare
from speedlint.config import Nearest, Settings
from speedlint.diagnostic import Report
from speedlint.errors import UserError
from speedlint.facts.store import Store
from speedlint.reading import Read
from speedlint.registry import Registry

STDIN = Path("-")
"""The path that means standard input."""
_UNNAMED = Path("stdin.py")
"""What the text from standard input is called where nothing names it."""


def from_stdin(command: F) -> F:
    """Adds the option that names the text from standard input, which the path ``-`` means."""
    option = click.option(
        "--stdin-filename", type=click.Path(path_type=Path), metavar="FILE", help="What file the text read from `-` is of."
    )
    return option(command)


@dataclass(frozen=True)
class Asked:
    """The files that are meant, and how they are looked at.

    Attributes:
        text: the bytes of the one file that is read from standard input.
    """

    found: files.Discovery
    settings: Settings
    registry: Registry
    store: Store | None
    text: bytes | None = None

    @classmethod
    def of(cls, paths: tuple[Path, ...], stdin_filename: Path | None, **options: Any) -> Asked:
        """What the command line asks for. Raises UserError."""
        is_text = STDIN in paths
        if is_text and len(paths) > 1:
            raise UserError("`-` is standard input and stands alone; name the other files in a run of their own")
        if stdin_filename is not None and not is_text:
            raise UserError("--stdin-filename names what is read from `-`; add `-`, or leave it out")
        path = stdin_filename or _UNNAMED
        settings, registry, store = prepare((path.parent,) if is_text else paths, **options)
        if not is_text:
            found, settings, registry = discover(paths, settings, registry, store)
            return cls(found, settings, registry, store)
        if sys.stdin is None:
            raise UserError("`-` is standard input, which is closed; give it the text, or name a file")
        text = sys.stdin.buffer.read()
        if stdin_filename is None and text.lstrip().startswith(b"{") and b'"nbformat"' in text:
            raise UserError("what is read from `-` looks like a notebook; say so with `--stdin-filename notebook.ipynb`")
        is_out = settings.force_exclude and files.is_left_out(path, Nearest(settings).exclusion, settings.tests)
        return cls(files.Discovery(() if is_out else (path,), ()), settings, registry, store, text)

    def reports(self, jobs: int | None) -> Iterator[Report]:
        """The report on each file."""
        if self.text is None:
            return run.check(self.found.paths, self.settings, self.registry, self.store, jobs)
        texts = dict.fromkeys(self.found.paths, self.text)
        return (run.check_as(texts, path, self.settings, self.registry, self.store) for path in self.found.paths)

    @property
    def read(self) -> Read:
        """Gives a file's bytes, the text's for its file."""
        return reading.read if self.text is None else reading.over({self.path: self.text})

    @property
    def path(self) -> Path:
        """The file that the text is of."""
        return self.found.paths[0] if self.found.paths else _UNNAMED
