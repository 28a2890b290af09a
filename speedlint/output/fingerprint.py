"""Names for findings that stay the same while the lines around them move."""

from __future__ import annotations

import collections
import hashlib
from collections.abc import Iterable

from speedlint.diagnostic import Diagnostic
from speedlint.output.terminal import shown

_LENGTH = 32
"""Hexadecimal digits: 128 bits, so that no two of any number of findings meet by chance."""


def fingerprints(diagnostics: Iterable[Diagnostic]) -> list[str]:
    """A name for each finding, given in order of position: made of its file, and of what a baseline knows it by.

    Where these are the same for several findings they are counted.
    """
    met: collections.Counter[tuple[str, ...]] = collections.Counter()
    names = []
    for each in diagnostics:
        key = (shown(each.path), *each.lasting)
        names.append(digest(*key, str(met[key])))
        met[key] += 1
    return names


def digest(*parts: str) -> str:
    """A name made of some texts."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:_LENGTH]
