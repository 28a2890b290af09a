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
    """A name for each finding, given in order of position: made of its file, and of what a baseline knows it by."""
    return names((shown(each.path), *each.lasting) for each in diagnostics)


def names(keys: Iterable[tuple[str, ...]]) -> list[str]:
    """A name for each key; keys that are the same are counted, so that no two names are."""
    met: collections.Counter[tuple[str, ...]] = collections.Counter()
    found = []
    for key in keys:
        found.append(_digest(*key, str(met[key])))
        met[key] += 1
    return found


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:_LENGTH]
