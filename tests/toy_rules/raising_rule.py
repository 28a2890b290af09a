"""Raises an exception."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from speedlint.rule import Finding, Rule
from speedlint.semantics.script import Script


def check(call: cst.Call, script: Script) -> Iterator[Finding]:
    match call:
        case cst.Call(func=cst.Name("crash")):
            raise KeyError(script.source.text(call))
            yield


RULE = Rule("TOY304", on=cst.Call, check=check, triggers=(b"crash(",))
