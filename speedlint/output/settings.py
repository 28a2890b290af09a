"""``--show-settings``: what a check goes by, as a configuration file would say it."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path

from speedlint import target
from speedlint.config import Settings
from speedlint.output.terminal import shown, visible

_NO_KEYS = ("root", "torch", "torch_from", "without", "file", "given")


def render(settings: Settings) -> Iterator[str]:
    """A line for each setting, as TOML, and the target release with where it was found."""
    yield f"# patterns and folders are relative to {visible(str(settings.root))}"
    for each in fields(settings):
        value = getattr(settings, each.name)
        if each.name not in _NO_KEYS and value not in (None, ""):
            yield f"{each.name.replace('_', '-')} = {_table(value) if each.name.startswith('per_file') else _toml(value)}"
    found = target.find(settings)
    origin = shown(Path(found.origin)) if Path(found.origin).is_absolute() else found.origin
    release = ".".join(map(str, found.release)) if found.release else ""
    yield f"torch = {_toml(release)}  # from {visible(origin)}"


def _table(pairs: Iterable[tuple[str, object]]) -> str:
    return "{" + ", ".join(f"{_toml(key)} = {_toml(value)}" for key, value in pairs) + "}"


def _toml(value: object) -> str:
    if isinstance(value, enum.Enum):
        return _toml(value.name.lower())
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return visible(json.dumps(value, ensure_ascii=False, default=str))
