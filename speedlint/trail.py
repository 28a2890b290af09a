"""Which line of a file a line of its fixed text was, through all edits between the two."""

from __future__ import annotations

import bisect
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

_LINE_END = re.compile(rb"\r\n|\n|\r")


class Change(NamedTuple):
    """Bytes of the text before, and those that stand in their place after."""

    start: int
    end: int
    new_start: int
    new_end: int


class Trail:
    """What has become of texts, by the texts themselves: what is undone, or done again, needs no mention."""

    def __init__(self) -> None:
        self._steps: dict[bytes, _Step] = {}

    def add(self, before: bytes, after: bytes, changes: Sequence[Change]) -> None:
        """Notes that changes, in order, have made a text another one."""
        if after != before:
            self._steps.setdefault(after, _Step(before, after, changes))

    def line(self, number: int, now: bytes, first: bytes) -> int:
        """The 1-based line of ``first`` that a line of ``now`` was; the same where it is not known how that became this."""
        at, met = number, set[bytes]()
        while now != first:
            step = self._steps.get(now)
            if step is None or now in met:
                return number
            met.add(now)
            at, now = step.lines[min(at, len(step.lines)) - 1], step.before
        return at


@dataclass(frozen=True)
class _Step:
    before: bytes
    after: bytes
    changes: Sequence[Change]

    @cached_property
    def lines(self) -> list[int]:
        """For each line after, the one before; a line that is new was the one at which it was written."""
        before, found = _starts(self.before), []
        at = shift = 0
        for start in _starts(self.after):
            while at < len(self.changes) and self.changes[at].new_end <= start:
                change = self.changes[at]
                shift += (change.end - change.start) - (change.new_end - change.new_start)
                at += 1
            if at < len(self.changes) and (change := self.changes[at]).new_start < start:
                within = len(_LINE_END.findall(self.after, change.new_start, start))
                line = bisect.bisect_right(before, change.start) + within
                found.append(min(line, bisect.bisect_right(before, change.end)))
            else:
                found.append(bisect.bisect_right(before, start + shift))
        return found


def _starts(text: bytes) -> list[int]:
    return [0, *(match.end() for match in _LINE_END.finditer(text))]
