"""Calls `levelled`."""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Finding, Rule


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    match call:
        case syntax.Call(func=syntax.Name("levelled")):
            yield Finding(call, f"`{script.source.text(call)}` is slow", advice="write something else")


RULE = Rule("TOY307", on=syntax.Call, check=check, triggers=(b"levelled(",))
