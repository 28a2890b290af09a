"""Which names a file derives classes from, read from its bytes without parsing them."""

from __future__ import annotations

import re

_HEADER = re.compile(rb"class\s+\w{1,99}\s{0,99}\(((?:[^()]|\([^()]*\)){1,4000})\)")
_NAME = re.compile(rb"[^\W\d]\w*")
_LAST_NAME = re.compile(rb"\w+$")


def bases(data: bytes) -> tuple[str, ...]:
    """The names that stand in the headers of classes, and those that get another name, which may stand there; in order."""
    found = {name for header in _HEADER.findall(data) for name in _NAME.findall(header)}
    if found:
        renamed = (_LAST_NAME.search(before[-99:].rstrip()) for before in data.split(b" as ")[:-1])
        found |= {each.group() for each in renamed if each is not None}
    return tuple(sorted(name.decode("utf-8", "replace") for name in found))
