"""How a loader's parameter is shown and written in each place where its value is set."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from speedlint import edits
from speedlint.facts import syntax
from speedlint.rule import Edit, Related
from speedlint.shapes.data.loader_settings import Setting, label, places

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_HINTS = {
    "num_workers": re.compile("work|thread|proc|cpu|job|nw|loader", re.IGNORECASE),
    "pin_memory": re.compile("pin", re.IGNORECASE),
    "prefetch_factor": re.compile("prefetch", re.IGNORECASE),
}

Spell = Callable[["Script", syntax.Node], tuple[str, tuple[Edit, ...]]]
"""How a value is written where a node stands, and the edits that import what it names."""


def set_at(script: Script, setting: Setting, told: str) -> tuple[Related, ...]:
    """The places beside the call where the value of a setting is written, as a finding shows them with what is ``told``; of
    one that a configuration has, where that is read."""
    return tuple(
        Related(
            place.script.source,
            place.node,
            told if (entry := place.entry) is None else f"it is read here, from {entry.path.name}, line {entry.line}",
        )
        for place in places(script, setting)
        if place.node is not setting.expression
    )


def set_where_set(script: Script, setting: Setting, spell: Spell) -> tuple[Edit, ...]:
    """The edits that write what ``spell`` says in each place a setting is set.

    Raises CannotEdit where a place is no literal, or not one that is only about this setting.
    """
    found: list[Edit] = []
    for place in places(script, setting):
        if place.entry is not None:
            raise edits.CannotEdit(f"it is set in {place.entry.path.name}, line {place.entry.line}: write it there")
        literal = isinstance(place.node, syntax.Integer) or (
            isinstance(place.node, syntax.Name) and place.node.value == "False"
        )
        if not literal:
            raise edits.CannotEdit("its value is not written out where it is set")
        if not _HINTS[setting.name].search(label(place.script, place.node)):
            raise edits.CannotEdit("its value may also be used for something else")
        text, imports = spell(place.script, place.node)
        found += (*imports, edits.replace(place.script.source, place.node, text))
    return tuple(dict.fromkeys(found))
