"""``speedlint questions``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from speedlint.errors import UserError

if TYPE_CHECKING:
    from speedlint.questions import Room


@click.command()
@click.argument("word", default="")
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "markdown"]),
    default="text",
    help="How to print them; markdown is a page.",
)
def questions(word: str, style: str) -> None:
    """Lists the questions that a rule may ask of a script; those only that speak of WORD, if one is given."""
    from speedlint.questions import rooms

    found = [kept for room in rooms() if (kept := _about(room, word)).questions]
    if not found:
        raise UserError(f"no question speaks of `{word}`; `speedlint questions` lists them")
    if style == "markdown":
        from speedlint.output import questions_markdown

        click.echo(questions_markdown.render(found), nl=False)
        return
    for room in found:
        click.echo(click.style(room.name, bold=True))
        for each in room.questions:
            click.echo(f"    {each.call}\n        {each.answer}")


def _about(room: Room, word: str) -> Room:
    kept = (each for each in room.questions if word.lower() in f"{each.call} {each.answer}".lower())
    return replace(room, questions=tuple(kept))
