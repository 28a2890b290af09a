"""What the user got wrong, said in one line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """A wrong option, setting or rule file. ``str()`` is one line that says what to do about it."""


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """`` (did you mean `x`?)`` for the choice nearest to ``word``, or nothing when none is near."""
    near = difflib.get_close_matches(word, sorted(choices), n=1, cutoff=0.5)
    return f" (did you mean `{near[0]}`?)" if near else ""
