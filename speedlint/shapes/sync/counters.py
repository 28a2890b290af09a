"""Variables that count the training steps: by the index of the loop that takes them, or by adding one in each."""

from __future__ import annotations

from typing import NamedTuple


class Counter(NamedTuple):
    """A variable that counts the steps, and its value where it is asked in the first one."""

    name: str
    first: int
