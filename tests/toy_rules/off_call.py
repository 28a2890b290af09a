"""Calls `off`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from speedlint.rule import Finding, Level, Rule
from speedlint.semantics.script import Script


def check(call: cst.Call, script: Script) -> Iterator[Finding]:
    match call:
        case cst.Call(func=cst.Name("off")):
            yield Finding(call, f"`{script.source.text(call)}` is slow", advice="write something else", level=Level.WARNING)


RULE = Rule("TOY305", on=cst.Call, check=check, triggers=(b"off(",), off=True)
