"""A progress bar on standard error, for long runs on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")

_LONG = 24


def tracked(items: Iterable[T], total: int, what: str) -> Iterable[T]:
    """``items`` as they are, with a bar while they come if there are many and somebody is looking."""
    if total <= _LONG or not sys.stderr.isatty():
        return items
    from rich.console import Console
    from rich.progress import track

    return track(items, description=what, total=total, console=Console(stderr=True), transient=True)
