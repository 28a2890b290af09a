"""What a file imports, read from its bytes without parsing them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

_FROM = re.compile(rb"from[ \t]+([.\w\x80-\xff]+)[ \t]+import[ \t]*(\([^)]*\)|(?:\\\r?\n|[^#\n;])*)")
_PLAIN = re.compile(rb"import[ \t]+((?:\\\r?\n|[^#\n;])+)")
_WORD = re.compile(rb"[\w\x80-\xff]+")
"""A name in UTF-8 may hold any byte above ASCII."""
_DOTTED = re.compile(r"[.\w]+")
_BY_NAME = (b"import_module", b"__import__")
_PUT_TOGETHER = (
    re.compile(rb"""["'](?P<package>(?:\w+\.)+)["'][ \t]*\+[ \t]*[\w.\[\]"']+(?:[ \t]*\+[ \t]*["'](?P<end>\w*)["'])?"""),
    re.compile(rb"""["'](?P<package>(?:\w+\.)+)(?:%s|\{[^}"']*\})(?P<end>\w*)["']"""),
    re.compile(rb"""f["']\{__(?:name|package)__\}(?P<package>\.)\{[^}"']*\}(?P<end>\w*)["']"""),
)
"""How the name of a module of a package is put together: ``"models." + name + "_model"``, ``f"models.{name}"``,
``"models.%s" % name``, ``f"{__name__}.{name}"``."""

_WRITTEN_OUT = re.compile(rb"""(?:import_module|__import__)[ \t]*\([ \t]*["'](\w+)["']|["']((?:\w+\.)+\w+)["']""")
"""The name of a module that is handed over, or stands in a table of modules with the names of its packages."""


def imported_names(data: bytes) -> tuple[str, ...]:
    """The dotted names that a file's import statements may mean, ``a.b`` and ``a.b.c`` for ``from a.b import c``.

    Then, where it imports modules by name: those that are written out and, as ``a.*`` or ``a.*_b``, those of a package that
    are put together."""
    found: dict[str, None] = {}
    at = data.find(b"import")
    while at >= 0:
        begin = max(data.rfind(b"\n", 0, at), data.rfind(b";", 0, at)) + 1
        before = data[begin:at].strip(b" \t")
        if not before:
            statement = _PLAIN.match(data, at)
            if statement is not None:
                parts = (part.split(b" as ")[0].strip(b" \t\r\n\\") for part in statement[1].split(b","))
                found.update(dict.fromkeys(part.decode("utf-8", "replace") for part in parts))
        elif before.startswith(b"from"):
            statement = _FROM.match(data, begin + len(data[begin:at]) - len(data[begin:at].lstrip(b" \t")))
            if statement is not None:
                base = statement[1].decode("utf-8", "replace")
                found[base] = None
                base = base if base.endswith(".") else f"{base}."
                found.update(dict.fromkeys(base + name.decode("utf-8", "replace") for name in _WORD.findall(statement[2])))
        at = data.find(b"import", at + 6)
    return tuple(sys.intern(name) for name in (*filter(_DOTTED.fullmatch, found), *_by_name(data)))


def _by_name(data: bytes) -> Iterator[str]:
    """What may be imported by a name that is written out, or of a package by one that is put together, ``package.*end``."""
    if any(mark in data for mark in _BY_NAME):
        written = ((found[1] or found[2]).decode("utf-8", "replace") for found in _WRITTEN_OUT.finditer(data))
        yield from dict.fromkeys(written)
        for pattern in _PUT_TOGETHER:
            for found in pattern.finditer(data):
                yield (found["package"] + b"*" + (found["end"] or b"")).decode("utf-8", "replace")
