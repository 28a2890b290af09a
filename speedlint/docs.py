"""A rule's documentation: a summary line, then sections of Markdown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from speedlint.families import FAMILIES

if TYPE_CHECKING:
    from speedlint.rule import Rule

SITE = "https://speedlint.readthedocs.io/"
"""Where the documentation is served."""
HEADINGS = ("What it does", "Why it is slow", "Example", "Use instead", "Fix safety", "Sources")
_SHORT = 240
_SOURCE = re.compile(r"(?m)^- \[([^\]]+)\]\((https://[^\s()]+)\)$")
_SENTENCE = re.compile(r"(?<=[.!?]) +(?=[A-Z`])")


def rule_url(code: str) -> str | None:
    """The page of one of speedlint's own rules; None for a code of a user's rule, which has none."""
    is_own = any(re.fullmatch(rf"{family.prefix}\d\d", code) for family in FAMILIES.values())
    return f"{SITE}rules/{code}/" if is_own else None


def summary(docs: str) -> str:
    """The first line."""
    return docs.partition("\n")[0]


def sections(docs: str) -> dict[str, str]:
    """The text under each ``## heading``, in order."""
    parts = re.split(r"(?m)^## +(.+?)[ \t]*$", docs)
    return {heading: text.strip() for heading, text in zip(parts[1::2], parts[2::2], strict=True)}


def why(docs: str, case: str = "") -> str:
    """The first sentences of why the pattern is slow, on one line; of a ``case``, what its item ``- `case`: ...`` says."""
    section = sections(docs).get("Why it is slow", "")
    item = re.search(rf"(?ms)^- `{re.escape(case)}`: (.+?)(?=^- |\n\n|\Z)", section) if case else None
    paragraph = " ".join((item[1] if item else section.partition("\n\n")[0]).split())
    first, *more = _SENTENCE.split(paragraph)
    while more and len(first) + len(more[0]) < _SHORT:
        first = f"{first} {more.pop(0)}"
    return first


def sources(docs: str) -> dict[str, str]:
    """The pages under "Sources" by their titles: its lines ``- [title](URL)``."""
    return dict(_SOURCE.findall(sections(docs).get("Sources", "")))


def first_sentence(docs: str) -> str:
    """The first sentence of a docstring, on one line, with its code quoted as Markdown does."""
    paragraph = " ".join(docs.partition("\n\n")[0].split()).replace("``", "`")
    return _SENTENCE.split(paragraph)[0]


def page(rule: Rule) -> str:
    """All that is said of a rule: its documentation, and what its findings are worth where nothing more is known."""
    share = rule.worth
    return f"{rule.docs}\n\n## Worth\n{share.worth.value}: {share.because}." if share.because else rule.docs
