"""What IPython understands and Python does not, hidden from the parser: magics, ``!`` commands and questions for help.

Each hidden character stays in its place, so that every other one keeps its line, its column and its byte.
"""

from __future__ import annotations

import ast
import re
import warnings

_NAMES = "cat cd conda cp ls mamba man mkdir more mv pip rm rmdir uv"
"""The magics that IPython takes without a ``%`` as well, of those that notebooks use."""
_LINE = re.compile(
    rf"[ \t]*(?:[%!?]|(?:{'|'.join(_NAMES.split())})(?:[ \t]+[\w./~-].*)?$|[\w.*]+\?\??[ \t]*$|[,;/][A-Za-z_])"
)
_ASSIGNED = re.compile(r"[ \t]*[^\W\d][\w.,\[\] \t]*=[ \t]*(?=!|%[A-Za-z_])")
_MAY_HOLD = re.compile(rf"(?m)^(?:{_LINE.pattern}|{_ASSIGNED.pattern})")
_CELL_MAGIC = re.compile(r"\s*%%([\w.]*)")
_OF_PYTHON = {"capture", "debug", "prun", "time", "timeit"}
"""The cell magics that run the rest of their cell as part of the notebook."""
_TOKEN = re.compile(r"""#.*|(?P<long>\"{3}|'{3})|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|(?P<open>[(\[{])|(?P<close>[)\]}])""")


def hidden(code: str) -> str:
    """The code of a cell, or of a script in cells, as Python that has its length; as it is where it holds no magics."""
    if not _MAY_HOLD.search(code) or _is_python(code):
        return code
    lines = code.split("\n")
    cell = _CELL_MAGIC.match(code)
    if cell is None:
        return "\n".join(_without_line_magics(lines))
    if cell[1] not in _OF_PYTHON:
        return "\n".join(map(_comment, lines))
    begins = code.count("\n", 0, cell.start(1))
    head, body = lines[: begins + 1], lines[begins + 1 :]
    return "\n".join([*map(_comment, head), *_without_line_magics(body)])


def _is_python(code: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(code)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


def _without_line_magics(lines: list[str]) -> list[str]:
    state = _State()
    found, goes_on = [], False
    for line in lines:
        if goes_on:
            found.append(_comment(line))
        elif not state.is_open and (match := _ASSIGNED.match(line)):
            found.append(line[: match.end()] + _expression(line[match.end() :]))
        elif not state.is_open and _LINE.match(line):
            found.append(_statement(line))
        else:
            found.append(line)
            state.read(line)
            continue
        goes_on = line.rstrip("\r").endswith("\\")
    return found


class _State:
    """Whether the next line goes on with what the lines so far have begun."""

    def __init__(self) -> None:
        self._quote, self._depth, self._is_continued = "", 0, False

    @property
    def is_open(self) -> bool:
        """Whether a string, a bracket or a line that ends with a backslash is open."""
        return bool(self._quote) or self._depth > 0 or self._is_continued

    def read(self, line: str) -> None:
        """Takes the next line."""
        at = 0
        while True:
            if self._quote:
                end = line.find(self._quote, at)
                if end < 0:
                    break
                at, self._quote = end + 3, ""
            found = _TOKEN.search(line, at)
            if found is None:
                break
            at, self._quote = found.end(), found["long"] or ""
            self._depth = max(0, self._depth + bool(found["open"]) - bool(found["close"]))
        self._is_continued = line.rstrip("\r").endswith("\\")


def _comment(line: str) -> str:
    """A line as a comment: its first character goes, where it has one."""
    indent = len(line) - len(line.lstrip())
    return f"{line[:indent]}#{line[indent + 1 :]}" if line[indent : indent + 1].isascii() and line.strip() else line


def _statement(line: str) -> str:
    """A line as a comment; as a statement where it is indented, since its block may need one, or begins with a letter of
    several bytes, in whose place no ``#`` fits."""
    indent = len(line) - len(line.lstrip())
    return line[:indent] + _expression(line[indent:]) if indent or not line[:1].isascii() else _comment(line)


def _expression(text: str) -> str:
    """A name that says nothing, and a comment, in the place of ``text``; a first letter of several bytes is the name."""
    name = "_" if text[:1].isascii() else text[:1]
    return name + "".join("#" if each.isascii() and each != "\r" else each for each in text[1:])
