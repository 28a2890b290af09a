"""Which methods a file defines, or leaves open for other classes to define, read from its bytes without parsing them."""

from __future__ import annotations

import re

_LEFT_OPEN = re.compile(
    rb"def (\w{1,99})\(self\b[^()]{0,400}\)[^:\n]{0,200}:\s{0,99}"
    rb'(?:[rRuU]?"""(?:[^"]|"(?!""))*"""\s*|[rRuU]?\'\'\'(?:[^\']|\'(?!\'\'))*\'\'\'\s*)?'
    rb"(?:assert\b[^\n]{1,200}\n\s{0,99}){0,3}"
    rb"(?:pass\b|\.\.\.|raise NotImplementedError|return(?:[ \t]+(?:None|\{\}|\[\]|dict\(\)|list\(\)|"
    rb"(?:collections\.)?OrderedDict\(\)))?[ \t]*(?:#[^\n]*)?$)",
    re.MULTILINE,
)
"""It begins with literal bytes, which a search finds five times as fast."""
_METHOD = re.compile(rb"def (\w{1,99})\(self\b")


def left_open(data: bytes) -> tuple[str, ...]:
    """The names of the methods that do nothing but raise ``NotImplementedError``, ``pass`` or give an empty dict."""
    return tuple(sorted({name.decode() for name in _LEFT_OPEN.findall(data)}))


def methods(data: bytes) -> tuple[str, ...]:
    """The names of all methods, in order, as often as they are defined."""
    return tuple(sorted(name.decode() for name in _METHOD.findall(data)))
