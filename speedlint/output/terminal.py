"""What a terminal may be given: text from files is made harmless, and colours go to terminals only."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path
from typing import IO, Any


def coloured(stream: IO[Any]) -> bool:
    """Whether colours may be written: only to a terminal, and not where NO_COLOR is set."""
    return stream.isatty() and not os.environ.get("NO_COLOR")


def visible(text: str) -> str:
    """``text`` with everything that does not print, such as an escape sequence, written as ``\\x1b``."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _escape(c) for c in text)


def width(text: str) -> int:
    """How many columns the text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF") for c in text)


def shown(path: Path) -> str:
    """The path relative to the current folder where it lies in it, else absolute."""
    absolute = path.absolute()
    here = Path.cwd()
    return str(absolute.relative_to(here) if absolute.is_relative_to(here) else absolute)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
