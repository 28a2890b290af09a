"""What the user got wrong, said in one line."""

from __future__ import annotations

import re
from collections.abc import Iterable

_CODE = r"[A-Z]+\d+"
"""A rule's code, or the prefix of some."""


class UserError(Exception):
    """A wrong option, setting or rule file. ``str()`` is one line that says what to do about it."""


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """`` (did you mean `x`?)`` for the choice nearest to ``word``, or nothing when none is near."""
    import difflib

    likely = sorted(choice for choice in choices if _may_be(word, choice))
    near = difflib.get_close_matches(word, likely, n=1, cutoff=0.5)
    return f" (did you mean `{near[0]}`?)" if near else ""


def _may_be(word: str, choice: str) -> bool:
    """Whether ``choice`` may be meant: of two codes of rules only where the family, or else the number, is the same."""
    if not (re.fullmatch(_CODE, word) and re.fullmatch(_CODE, choice)):
        return True
    return word.startswith(choice[:-2]) or word[-3:] == choice[-3:]
