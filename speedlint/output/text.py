"""Words that several formats share."""

from __future__ import annotations

from speedlint.rule import Risk

RISKS = {
    Risk.EXACT: "the same training, bit for bit",
    Risk.NUMERIC: "rounding or the random stream may differ",
    Risk.BEHAVIOR: "what is computed, logged or saved may change",
}


def count(number: int, noun: str, plural: str = "") -> str:
    """``1 file``, ``2 files``."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"
