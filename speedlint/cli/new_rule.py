"""``speedlint new-rule``."""

from __future__ import annotations

import click

from speedlint import skeleton
from speedlint.errors import UserError
from speedlint.families import FAMILIES
from speedlint.output.terminal import shown
from speedlint.registry import Registry, own_rules

_NEXT = """
It passes the tests as it is. Next:
1. write the slow lines and their look-alikes into the fixture, each slow one with `# {code}` at its end
2. write the rule: `speedlint questions WORD` finds what a script can be asked, `speedlint ask FILE:LINE` shows the answers
3. pytest --bless tests/test_rules.py tests/test_cli_explain.py
4. pytest, and read CONTRIBUTING.md for what makes a rule a good one"""


@click.command("new-rule")
@click.argument("name")
@click.option("--family", type=click.Choice(list(FAMILIES)), help="The folder under rules/ that it belongs to.")
def new_rule(name: str, family: str | None) -> None:
    """Writes the skeleton of a rule NAME, such as `item-in-loop`, and of its fixture, into a clone of speedlint.

    Its code is the next free one of its family.
    """
    if family is None:
        raise UserError(f"say with --family where it belongs: {', '.join(FAMILIES)}")
    made = skeleton.write(own_rules().parent, name, family, Registry.load())
    click.echo(f"{made.code}: {shown(made.rule)}, {shown(made.fixture)}")
    click.echo(_NEXT.format(code=made.code))
