"""Calls `.item()`.

## Why it is slow
The CPU waits for the GPU.

This is not shown.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from speedlint.rule import Edit, Finding, Fix, Level, Risk, Rule
from speedlint.semantics.script import Script


def check(call: cst.Call, script: Script) -> Iterator[Finding]:
    match call:
        case cst.Call(func=cst.Attribute(attr=cst.Name("item") as name)):
            start, end = script.source.span(name)
            fix = Fix((Edit(script.source.path, start, end, "detach"),), Risk.NUMERIC)
            message = f"`{script.source.text(call)}` is slow"
            yield Finding(call, message, fix=fix, advice="write something else", level=Level.WARNING)


RULE = Rule("TOY301", on=cst.Call, check=check, triggers=(b"item(",))
