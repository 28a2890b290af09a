"""Script: the one thing a rule is handed: one source with its meaning, and the program around it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import libcst as cst

from speedlint.semantics.loops import Frequency
from speedlint.source import Source


@dataclass(frozen=True, slots=True)
class Options:
    """What the user chose that rules must know.

    Attributes:
        torch: the target release, such as ``(2, 4)``, or None where it is unknown.
        amp: ``"fp16"`` or ``"bf16"``.
    """

    torch: tuple[int, int] | None = None
    amp: str = "fp16"


class Script:
    """One source with its meaning. Made by Program, never by hand."""

    path: Path
    source: Source
    options: Options

    def frequency(self, node: cst.CSTNode) -> Frequency: ...
