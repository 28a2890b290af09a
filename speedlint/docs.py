"""A rule's documentation: a summary line, then sections of Markdown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from speedlint.rule import Rule

HEADINGS = ("What it does", "Why it is slow", "Example", "Use instead", "Fix safety", "Sources")
_SHORT = 240
_SENTENCE = re.compile(r"(?<=[.!?]) +(?=[A-Z`])")


def summary(docs: str) -> str:
    """The first line."""
    return docs.partition("\n")[0]


def sections(docs: str) -> dict[str, str]:
    """The text under each ``## heading``, in order."""
    parts = re.split(r"(?m)^## +(.+?)[ \t]*$", docs)
    return {heading: text.strip() for heading, text in zip(parts[1::2], parts[2::2], strict=True)}


def why(docs: str) -> str:
    """The first sentences of why the pattern is slow, on one line."""
    paragraph = " ".join(sections(docs).get("Why it is slow", "").partition("\n\n")[0].split())
    first, *more = _SENTENCE.split(paragraph)
    while more and len(first) + len(more[0]) < _SHORT:
        first = f"{first} {more.pop(0)}"
    return first


def first_sentence(docs: str) -> str:
    """The first sentence of a docstring, on one line, with its code quoted as Markdown does."""
    paragraph = " ".join(docs.partition("\n\n")[0].split()).replace("``", "`")
    return _SENTENCE.split(paragraph)[0]


def page(rule: Rule) -> str:
    """All that is said of a rule: its documentation, and what its findings are worth where nothing more is known."""
    share = rule.worth
    return f"{rule.docs}\n\n## Worth\n{share.worth.value}: {share.because}." if share.because else rule.docs
