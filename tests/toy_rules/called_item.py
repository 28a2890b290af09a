"""Calls `.item()`.

## Why it is slow
The CPU waits for the GPU.

This is not shown.
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Edit, Finding, Fix, Level, Risk, Rule


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    match call:
        case syntax.Call(func=syntax.Attribute(attr=syntax.Name("item") as name)):
            start, end = script.source.span(name)
            fix = Fix((Edit(script.source.path, start, end, "detach"),), Risk.NUMERIC)
            message = f"`{script.source.text(call)}` is slow"
            yield Finding(call, message, fix=fix, advice="write something else", level=Level.WARNING)


RULE = Rule("TOY301", on=syntax.Call, check=check, triggers=(b"item(",))
