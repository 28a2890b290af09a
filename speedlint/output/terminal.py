"""What a terminal may be given: text from files is made harmless, colours and links go where they are understood."""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from speedlint.rule import Level, Worth

if TYPE_CHECKING:
    from rich.console import Console

UNLIMITED = 1_000_000
"""The columns of what is no terminal: more than any line has."""
_COLOURS = {Worth.HIGH: "red", Worth.MEDIUM: "magenta"}
"""Red and magenta can be read on a black and on a white ground; yellow, cyan and blue vanish on one of them."""


def coloured(stream: IO[Any] | None) -> bool:
    """Whether colours may be written: as ``--color`` says, else as the environment does, else to terminals only.

    NO_COLOR (https://no-color.org) and ``CLICOLOR=0`` forbid them, FORCE_COLOR and CLICOLOR_FORCE
    (https://bixense.com/clicolors) ask for them; where they disagree NO_COLOR holds. A terminal that calls itself ``dumb``
    gets none.
    """
    context = click.get_current_context(silent=True)
    if context is not None and context.color is not None:
        return context.color
    said = os.environ.get
    if said("NO_COLOR"):
        return False
    if said("FORCE_COLOR", "0") not in ("", "0") or said("CLICOLOR_FORCE", "0") not in ("", "0"):
        return True
    return _is_terminal(stream) and said("CLICOLOR") != "0" and said("TERM") != "dumb"


def linked(stream: IO[Any] | None) -> bool:
    """Whether links may be written: to terminals that get colours, or as FORCE_HYPERLINK says.

    Terminals that know no links ignore them; the Linux console prints them.
    """
    if forced := os.environ.get("FORCE_HYPERLINK"):
        return forced != "0"
    return _is_terminal(stream) and coloured(stream) and os.environ.get("TERM") != "linux"


def link(text: str, url: str | None) -> str:
    """``text`` as a link (OSC 8); as it is without a URL."""
    return f"\x1b]8;;{url}\x1b\\{text}\x1b]8;;\x1b\\" if url else text


def emphasised(text: str, level: Level, worth: Worth) -> str:
    """``text`` in the colour of a finding: the more it is worth, the more it stands out. A note is as all else is."""
    return text if level is Level.NOTE else click.style(text, fg=_COLOURS.get(worth), bold=True)


def console(**options: Any) -> Console:
    """Rich's console on standard output, with colours where ``coloured`` says so."""
    from rich.console import Console

    if coloured(sys.stdout):
        return Console(force_terminal=True, no_color=False, highlight=False, **options)
    return Console(color_system=None, highlight=False, **options)


def visible(text: str) -> str:
    """``text`` with everything that does not print, such as an escape sequence, written as ``\\x1b``."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _escape(c) for c in text)


def width(text: str) -> int:
    """How many columns the text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF") for c in text)


def columns(stream: IO[Any] | None) -> int:
    """How many columns a line may take: COLUMNS, else those of the terminal, else UNLIMITED."""
    if _is_terminal(stream) or os.environ.get("COLUMNS"):
        import shutil

        return shutil.get_terminal_size().columns
    return UNLIMITED


def folded(words: Sequence[str], first: int, rest: int) -> list[str]:
    """Lines of whole words: the first of at most ``first`` columns, the others of ``rest``, or of one longer word."""
    lines = [""]
    for word in words:
        room = first if len(lines) == 1 else rest
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if width(longer) <= room or (not lines[-1] and len(lines) > 1):
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def shown(path: Path) -> str:
    """The path relative to the current folder where it lies in it, else absolute."""
    absolute = path.absolute()
    here = Path.cwd()
    return str(absolute.relative_to(here) if absolute.is_relative_to(here) else absolute)


def located(path: Path, line: int | None, column: int | None = None, cell: int | None = None) -> str:
    """A place as one writes it: ``train.py:12:5``, in a notebook ``train.ipynb:cell 3:12:5``."""
    numbers = ":".join(str(each) for each in (line, column) if each)
    return f"{shown(path)}:{in_cell(cell)}{numbers}".rstrip(":")


def in_cell(cell: int | None) -> str:
    """What stands before a line of a notebook."""
    return f"cell {cell}:" if cell else ""


def _is_terminal(stream: IO[Any] | None) -> bool:
    """Whether somebody is looking; a stream that was closed before the start is None."""
    return stream is not None and stream.isatty()


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
