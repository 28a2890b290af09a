"""Jupyter notebooks as one script, and what edits leave of that script as a notebook again.

The script holds the code cells in order, each below a comment that says which cell it is. Edits leave these comments where
they are, so that the script tells by itself whose a line is. Cells are numbered from 1, those of text counted as well.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from json import JSONDecoder

_MARK = "# coding: utf-8, notebook cell {}\n"
"""It says the encoding so that a cell's first line, which may look like a declaration, never does."""
_SCRIPT = re.compile(rb"# coding: utf-8, notebook cell \d+\n")
_MARKS = re.compile(r"(?m)^# coding: utf-8, notebook cell (\d+)\n")
_FORMAT = 4
_BLANK = re.compile(r"[ \t\r\n]*")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


class NotebookError(OSError):
    """A notebook that cannot be read. ``what`` is one line that says what to do; ``line`` is that of the file, or None."""

    def __init__(self, what: str, line: int | None = None) -> None:
        super().__init__(what)
        self.what, self.line = what, line


class OtherLanguageError(NotebookError):
    """A notebook whose code is not Python."""


class Place(NamedTuple):
    """The 1-based cell that a line of the script is in, and the line within the cell's code."""

    cell: int
    line: int


class _Cell(NamedTuple):
    """A code cell: its number, its code, and where the value of its ``source`` stands in the text of the notebook."""

    number: int
    code: str
    start: int
    end: int


def is_notebook(path: Path) -> bool:
    """Whether a file is a notebook, by its name."""
    return path.suffix == ".ipynb"


def script(data: bytes) -> bytes:
    """The script that a notebook's code cells make, also where ``data`` is that script. Raises NotebookError."""
    if _SCRIPT.match(data):
        return data
    return joined((cell.number, cell.code) for cell in _code_cells(_decoded(data)))


def joined(cells: Iterable[tuple[int, str]]) -> bytes:
    """The script of code cells, given with their numbers. Raises NotebookError."""
    parts = []
    for number, code in cells:
        if _MARKS.search(f"{code}\n"):
            raise NotebookError(f"cell {number} holds a comment that speedlint marks cells with; remove it")
        parts.append(marked(number, code))
    try:
        return "".join(parts).encode()
    except UnicodeEncodeError:
        raise NotebookError("holds half a surrogate pair, which is no text; remove it") from None


def marked(number: int, code: str) -> str:
    """A cell's code as it stands in the script."""
    return f"{_MARK.format(number)}{code}\n"


def marks(script: bytes) -> list[str]:
    """The numbers of the cells of a script, in order: what edits must leave as it is."""
    return _MARKS.findall(script.decode())


def replaced(data: bytes, script: bytes) -> bytes:
    """The notebook with its code cells as in ``script``; all else, and cells that are the same, keep their bytes.

    Raises NotebookError.
    """
    text = _decoded(data)
    codes = dict(split(script.decode()))
    pieces, at = [], 0
    for cell in _code_cells(text):
        if codes[cell.number] != cell.code:
            pieces += [text[at : cell.start], _source(text[cell.start : cell.end], codes[cell.number], text.isascii())]
            at = cell.end
    return "".join([*pieces, text[at:]]).encode()


def split(script: str) -> Iterator[tuple[int, str]]:
    """The cells of a script: their numbers and their code."""
    _, *parts = _MARKS.split(script)
    for number, code in zip(parts[::2], parts[1::2], strict=True):
        yield int(number), code.removesuffix("\n")


class Cells:
    """Which cell each line and byte of a script is in."""

    def __init__(self, script: bytes) -> None:
        text = script.decode()
        found = list(_MARKS.finditer(text))
        self._numbers = [int(match[1]) for match in found]
        self._lines = [_lines_before(text, match.end()) for match in found]
        self._starts = [len(text[: match.end()].encode()) for match in found]

    def place(self, line: int) -> Place:
        """Where a 1-based line of the script stands."""
        at = max(0, bisect.bisect_left(self._lines, line) - 1)
        return Place(self._numbers[at], line - self._lines[at])

    def line(self, cell: int, line: int) -> int:
        """The 1-based line of the script that is a line of a cell."""
        return self._lines[self._numbers.index(cell)] + line

    def start(self, cell: int) -> int:
        """The byte of the script at which the code of a cell begins."""
        return self._starts[self._numbers.index(cell)]

    def cell_at(self, offset: int) -> int:
        """The cell that a byte of the script is in."""
        return self._numbers[max(0, bisect.bisect_right(self._starts, offset) - 1)]


def _lines_before(text: str, end: int) -> int:
    """The lines that end before ``end``, with LF, CRLF or a lone CR."""
    return text.count("\n", 0, end) + text.count("\r", 0, end) - text.count("\r\n", 0, end)


# Reading


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise NotebookError("is no notebook: it is not UTF-8; open and save it with Jupyter, or exclude it") from None


def _code_cells(text: str) -> list[_Cell]:
    held = _loaded(text)
    _refuse_others(held)
    start, _ = _member(text, _after_blank(text, 0), "cells")
    cells = zip(itertools.count(1), held["cells"], _items(text, start), strict=False)
    return [_cell(text, number, place) for number, cell, (place, _) in cells if _is_code(cell)]


def _loaded(text: str) -> dict[str, Any]:
    import json

    try:
        held = json.loads(text)
    except json.JSONDecodeError as error:
        raise NotebookError(f"is no notebook: broken JSON ({error.msg}); mend or exclude it", error.lineno) from None
    except RecursionError:
        raise NotebookError("is no notebook: nested too deeply; exclude it") from None
    except ValueError:
        raise NotebookError("is no notebook: it holds a number of more digits than Python reads; exclude it") from None
    if not isinstance(held, dict) or not (held.get("cells") or "worksheets" in held or "nbformat" in held):
        raise NotebookError("is no notebook: it holds no cells; exclude it")
    if held.get("nbformat", _FORMAT) != _FORMAT or not isinstance(held.get("cells"), list):
        raise NotebookError(f"is of a notebook format other than {_FORMAT}; open and save it with Jupyter")
    return held


def _refuse_others(held: dict[str, Any]) -> None:
    metadata = held.get("metadata") or {}
    told = (("language_info", "name"), ("kernelspec", "language"))
    try:
        names = (str(metadata[table][name]) for table, name in told if metadata.get(table, {}).get(name))
        language = next(names, "python")
    except (TypeError, AttributeError):
        language = "python"
    if language.lower() not in ("python", "ipython"):
        raise OtherLanguageError(f"is a notebook of {' '.join(language.split())[:40]}, not Python; not looked at")


def _is_code(cell: Any) -> bool:
    """Whether a cell holds Python: its editor may say that it holds another language."""
    if not isinstance(cell, dict) or "source" not in cell or cell.get("cell_type", "code") != "code":
        return False
    try:
        return bool(cell["metadata"]["vscode"]["languageId"] == "python")
    except (KeyError, TypeError):
        return True


def _cell(text: str, number: int, at: int) -> _Cell:
    start, end = _member(text, at, "source")
    source, _ = _value(text, start)
    lines = source if isinstance(source, list) else [source]
    if not all(isinstance(line, str) for line in lines):
        raise NotebookError(f"cell {number} has a source that is no text; open and save it with Jupyter")
    return _Cell(number, "".join(lines), start, end)


def _member(text: str, at: int, wanted: str) -> tuple[int, int]:
    """The span of the value of a key, the last one of several as in ``json``, of the object that begins at ``at``."""
    return [span for key, span in _members(text, at) if key == wanted][-1]


def _members(text: str, at: int) -> Iterator[tuple[str, tuple[int, int]]]:
    """The keys of the object that begins at ``at``, with the spans of their values; the text is known to be JSON."""
    at = _after_blank(text, at + 1)
    while text[at] != "}":
        key, at = _value(text, at)
        start = _after_blank(text, _after_blank(text, at) + 1)
        _, end = _value(text, start)
        yield key, (start, end)
        at = _after_comma(text, end)


def _items(text: str, at: int) -> Iterator[tuple[int, int]]:
    """The spans of the items of the array that begins at ``at``; the text is known to be JSON."""
    at = _after_blank(text, at + 1)
    while text[at] != "]":
        _, end = _value(text, at)
        yield at, end
        at = _after_comma(text, end)


def _value(text: str, at: int) -> tuple[Any, int]:
    """The value that begins at ``at``, and where it ends."""
    return _decoder().raw_decode(text, at)


@functools.cache
def _decoder() -> JSONDecoder:
    from json import JSONDecoder  # what checks no notebook need not wait for it

    return JSONDecoder()


def _after_blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _after_comma(text: str, at: int) -> int:
    at = _after_blank(text, at)
    return _after_blank(text, at + 1) if text[at] == "," else at


# Writing


def _source(held: str, code: str, ascii_only: bool) -> str:
    """The value of ``source`` for new code: text or a list of lines, laid out, and its old lines spelled, as ``held`` is."""
    import json

    if held[0] != "[":
        return json.dumps(code, ensure_ascii=ascii_only)
    spans = list(_items(held, 0))
    spelled = {_value(held, start)[0]: held[start:end] for start, end in spans}
    lines = [spelled.get(line) or json.dumps(line, ensure_ascii=ascii_only) for line in _LINE.findall(code)]
    if not lines or not spans:
        return f"[{', '.join(lines)}]"
    before, after = held[1 : spans[0][0]], held[spans[-1][1] : -1]
    between = held[spans[0][1] : spans[1][0]] if len(spans) > 1 else f",{before or ' '}"
    return f"[{before}{between.join(lines)}{after}]"
