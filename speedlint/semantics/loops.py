"""How often a line runs."""

from __future__ import annotations

import enum


class Frequency(enum.IntEnum):
    """How often a line runs; a higher value runs more often."""

    ONCE = 0
    EPOCH = 1
    THROTTLED = 2
    EVAL_STEP = 3
    STEP = 4
