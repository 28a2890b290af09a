"""Calls `frequently`, where training runs it again and again."""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Finding, Rule


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    match call:
        case syntax.Call(func=syntax.Name("frequently")):
            yield Finding(call, "this is slow", advice="write something else; not rewritten, since this is a toy")


RULE = Rule("TOY401", on=syntax.Call, check=check, triggers=(b"frequently(",), often=True)
