"""Calls `off`."""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Finding, Level, Rule


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    match call:
        case syntax.Call(func=syntax.Name("off")):
            yield Finding(call, f"`{script.source.text(call)}` is slow", advice="write something else", level=Level.WARNING)


RULE = Rule("TOY305", on=syntax.Call, check=check, triggers=(b"off(",), off=True)
