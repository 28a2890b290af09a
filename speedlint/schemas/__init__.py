"""JSON schemas of what speedlint prints and of what it is configured with."""

from __future__ import annotations

from importlib import resources

NAMES = ("check", "config")
"""``check`` describes the output of ``check --format json``, ``config`` the configuration."""


def text(name: str) -> str:
    """The schema of a name, as it is shipped."""
    return (resources.files(__name__) / f"{name}.json").read_text("utf-8")
