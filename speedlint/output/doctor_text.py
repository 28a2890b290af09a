"""``doctor`` for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

import click

from speedlint.doctor.advice import Advice, Level, counted
from speedlint.output.terminal import visible, width

_COLOURS = {Level.FINE: "green", Level.NOTE: "cyan", Level.WARNING: "yellow"}


def render(advice: Sequence[Advice]) -> str:
    """A line for each check, what to do below it, and a closing line that counts."""
    topics = max(width(each.topic) for each in advice)
    levels = max(len(level.value) for level in Level)
    lines = []
    for each in advice:
        level = click.style(f"{each.level.value:{levels}}", fg=_COLOURS[each.level])
        lines.append(f"{level}  {each.topic:{topics}}  {visible(each.what)}")
        if each.advice:
            lines.append(f"{'':{levels}}  {'':{topics}}  = do: {visible(each.advice)}")
    return "\n".join((*lines, "", _closing(advice)))


def _closing(advice: Sequence[Advice]) -> str:
    counts = ((level.value, sum(each.level is level for each in advice)) for level in (Level.WARNING, Level.NOTE))
    parts = [counted(count, noun) for noun, count in counts if count]
    return f"{' and '.join(parts)}." if parts else "Nothing stands in the way of a fast training."
