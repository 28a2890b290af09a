"""What a check says."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Level(enum.Enum):
    """How much it matters: a warning costs time in most trainings, a note in some."""

    FINE = "ok"
    NOTE = "note"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Advice:
    """One line of the doctor's: what was looked at, what was found, and what to do about it."""

    topic: str
    level: Level
    what: str
    advice: str = ""


def fine(topic: str, what: str) -> Advice:
    """Nothing to do."""
    return Advice(topic, Level.FINE, what)


def note(topic: str, what: str, advice: str) -> Advice:
    """It may cost time."""
    return Advice(topic, Level.NOTE, what, advice)


def warning(topic: str, what: str, advice: str) -> Advice:
    """It costs time, or the training does not run."""
    return Advice(topic, Level.WARNING, what, advice)


def size(amount: float) -> str:
    """Bytes for people: ``64 MiB``, ``1.5 GiB``, ``139 GiB``."""
    if amount < 1 << 30:
        return f"{amount / 2**20:.0f} MiB"
    return f"{amount / 2**30:.0f} GiB" if amount >= 10 << 30 else f"{amount / 2**30:.1f} GiB"


def counted(number: float, noun: str) -> str:
    """``1 core``, ``4 cores``, ``1.5 cores``."""
    return f"{number:g} {noun}" if number == 1 else f"{number:g} {noun}s"
