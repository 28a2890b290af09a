"""``ask --format json``: what is known of a line as one object."""

from __future__ import annotations

import json
from typing import Any

from speedlint.diagnostic import Place
from speedlint.known import Known, Line
from speedlint.output.formats.json import VERSION
from speedlint.output.terminal import shown


def render(line: Line) -> str:
    """The text of a JSON object. A frequency is null where the line holds no code, a value where it is not known."""
    found = {
        "version": VERSION,
        "path": shown(line.path),
        "line": line.number,
        "text": line.text,
        "frequency": line.frequency.name.lower() if line.frequency is not None else None,
        "why": [_place(each) for each in line.why],
        "callers": [_place(each) for each in line.callers],
        "on_gpu": line.on_gpu,
        "expressions": [_expression(each) for each in line.expressions],
    }
    return json.dumps(found, indent=2)


def _expression(known: Known) -> dict[str, Any]:
    return {
        "text": known.text,
        "line": known.line,
        "column": known.column,
        "end_line": known.end_line,
        "end_column": known.end_column,
        "role": known.role.value,
        "place": known.place.value,
        "value": _value(known),
        "name": known.name,
        "definition": _place(known.definition) if known.definition is not None else None,
        "made": _place(known.made) if known.made is not None else None,
        "frequency": known.frequency.name.lower(),
    }


def _value(known: Known) -> dict[str, Any] | None:
    """A known value as Python writes it, since JSON cannot write each of them, and where it is set."""
    if not known.constant:
        return None
    return {"repr": repr(known.constant[0]), "set": _place(known.set_at) if known.set_at is not None else None}


def _place(place: Place) -> dict[str, Any]:
    return {"path": shown(place.path), "line": place.line, "message": place.message}
