"""``doctor --format json``: the facts and what was made of them."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from speedlint.doctor.advice import Advice
from speedlint.doctor.facts import Facts
from speedlint.files import Problem
from speedlint.output.terminal import shown

VERSION = 1


def render(facts: Facts, advice: Iterable[Advice], problems: Iterable[Problem]) -> str:
    """One object; of the environment only what the findings name, since the rest is the user's own."""
    known = {field.name: getattr(facts, field.name) for field in dataclasses.fields(facts) if field.name != "environment"}
    report = {
        "version": VERSION,
        "facts": _plain(known),
        "findings": [
            {"topic": each.topic, "level": each.level.value, "message": each.what, "advice": each.advice} for each in advice
        ],
        "errors": [{"path": shown(each.path), "line": each.line, "message": each.what} for each in problems],
    }
    return json.dumps(report, indent=2, allow_nan=False)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    if isinstance(value, Path):
        return shown(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value
