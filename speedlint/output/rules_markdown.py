"""``rules --format markdown``: the documentation of all rules as one page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from speedlint.docs import page, summary
from speedlint.families import FAMILIES
from speedlint.rule import Rule

_TITLES = dict(FAMILIES.values())
_HEAD = """# The rules

Written by `speedlint rules --format markdown`, from the rules' own documentation. The gains quoted are those of the sources
named; `speedlint verify` measures yours. What a finding is worth is its share of a training step's time, or of an epoch's
for what runs once in it: `high` is a tenth or more, `medium` a fiftieth or more, `low` half a percent or more; what is less
is a note. These are estimates for a recent GPU, from the sources named, where nothing more is known of the script."""


def render(rules: Sequence[Rule]) -> str:
    """A table of all rules, then each rule's documentation under its family."""
    families = [(name, list(group)) for name, group in groupby(rules, _family)]
    parts = [_HEAD, *(_table(name, group) for name, group in families)]
    parts += [_rule(rule) for _, group in families for rule in group]
    return "\n\n".join(parts) + "\n"


def _family(rule: Rule) -> str:
    return _TITLES.get(rule.code[:4], "Others")


def _table(family: str, rules: Iterable[Rule]) -> str:
    rows = (f"| [{rule.code}](#{_anchor(rule)}) | {rule.name} | {_cell(rule)} |" for rule in rules)
    return "\n".join((f"## {family}", "", "| code | name | what is slow |", "|---|---|---|", *rows))


def _cell(rule: Rule) -> str:
    text = summary(rule.docs).replace("|", "\\|")
    return f"{text} Only when selected." if rule.off else text


def _anchor(rule: Rule) -> str:
    return f"{rule.code} {rule.name}".lower().replace(" ", "-")


def _rule(rule: Rule) -> str:
    docs = re.sub(r"(?m)^## ", "#### ", page(rule))
    return f"### {rule.code} {rule.name}\n\n{docs}"
