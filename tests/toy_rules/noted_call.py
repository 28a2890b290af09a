"""Calls `noted`."""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Edit, Finding, Fix, Level, Risk, Rule


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    match call:
        case syntax.Call(func=syntax.Name("noted") as name):
            start, end = script.source.span(name)
            fix = Fix((Edit(script.source.path, start, end, "len"),), Risk.EXACT)
            message = f"`{script.source.text(call)}` is slow"
            yield Finding(call, message, fix=fix, advice="write something else", level=Level.NOTE)


RULE = Rule("TOY302", on=syntax.Call, check=check, triggers=(b"noted(",))
