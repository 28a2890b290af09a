"""The families of speedlint's own rules: the folder of each, what its codes begin with, and its title."""

from __future__ import annotations

from typing import NamedTuple


class Family(NamedTuple):
    """What the codes of a family begin with, and what it is called in the documentation."""

    prefix: str
    title: str


FAMILIES = {
    "precision": Family("SPD1", "Precision"),
    "data": Family("SPD2", "Data"),
    "sync": Family("SPD3", "Synchronisation"),
    "backend": Family("SPD4", "Backend and debug switches"),
    "optimizer": Family("SPD5", "Optimizer and gradients"),
    "model": Family("SPD6", "Model and parallelism"),
    "schedule": Family("SPD7", "Schedule"),
    "frameworks": Family("SPD8", "Frameworks"),
}
"""By the name of the folder under ``rules/``."""
