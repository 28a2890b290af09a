"""``questions --format markdown``: every question that a rule may ask, as one page."""

from __future__ import annotations

from collections.abc import Iterable

from speedlint.questions import Room

_HEAD = """# The questions that a rule may ask

Written by `speedlint questions --format markdown`, from the code that answers them. A rule is handed a `script`: what stands
first is asked of it and of its parts. The modules after them answer what one family of rules needs; they are imported, as in
`from speedlint.shapes.sync import reads`. Two functions that answer the same question are a defect: look here before you
write one."""


def render(rooms: Iterable[Room]) -> str:
    """Each room with its questions."""
    return "\n\n".join((_HEAD, *map(_room, rooms))) + "\n"


def _room(room: Room) -> str:
    questions = (f"- `{each.call}`: {each.answer}" for each in room.questions)
    return "\n".join((f"## {room.name}", "", room.about, "", *questions))
