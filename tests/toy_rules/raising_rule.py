"""Raises an exception."""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Finding, Rule


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    match call:
        case syntax.Call(func=syntax.Name("crash")):
            raise KeyError(script.source.text(call))
            yield


RULE = Rule("TOY304", on=syntax.Call, check=check, triggers=(b"crash(",))
