"""The open documents: scripts, and notebooks with a document for each cell."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lsprotocol import types as lsp
from pygls import uris

from speedlint import notebook
from speedlint.server.analysis import Checked
from speedlint.server.places import Text


@dataclass
class Part:
    """What an editor has as one text: a script, or a cell."""

    uri: str
    text: Text
    version: int | None

    def change(self, changes: Iterable[lsp.TextDocumentContentChangeEvent], version: int | None) -> None:
        """Takes what was typed."""
        for each in changes:
            if isinstance(each, lsp.TextDocumentContentChangePartial):
                self.text = self.text.replaced(each.range, each.text)
            else:
                self.text = self.text.again(each.text)
        self.version = version


@dataclass
class Document:
    """An open script or notebook, and what was found in it.

    ``parts`` are its texts by cell; a script is one, under None. ``sound`` says of findings, by their keys, whether their
    fixes leave sound files.
    """

    path: Path
    parts: dict[int | None, Part]
    checked: Checked | None = None
    sound: dict[tuple[object, ...], bool] = field(default_factory=dict)
    task: asyncio.Task[None] | None = None

    @property
    def data(self) -> bytes:
        """The bytes of the script, or of the one that the cells make. Raises NotebookError."""
        if None in self.parts:
            return self.parts[None].text.data
        return notebook.joined((cell, part.text.text) for cell, part in self.parts.items() if cell is not None)

    def rest(self) -> None:
        """Ends what looks at the document."""
        if self.task is not None:
            self.task.cancel()
        self.task = None

    def order(self, cells: Sequence[str], others: Iterable[Part] = ()) -> list[Part]:
        """Makes the cells those with these URIs, in this order; returns those that are gone."""
        known = {part.uri: part for part in (*self.parts.values(), *others)}
        self.parts = {number: known[uri] for number, uri in enumerate(cells, 1) if uri in known}
        return [part for uri, part in known.items() if uri not in cells]


def path_of(uri: str, suffix: str) -> Path | None:
    """The file that a URI names, where it ends in ``suffix``; None for any other document."""
    if not uri.startswith("file:"):
        return None
    with contextlib.suppress(ValueError):
        path = uris.to_fs_path(uri)
        return Path(path) if path and path.endswith(suffix) else None
    return None


def uri_of(path: Path) -> str:
    """The URI of a file."""
    return uris.from_fs_path(str(path.absolute())) or path.absolute().as_uri()
