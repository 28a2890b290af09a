"""Which lines of a script wait for the GPU, as torch tells on the GPU itself, and how often each line runs."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import torch

SYNCHRONISES = "called a synchronizing CUDA operation"
"""What torch warns of (``c10/cuda/CUDAFunctions.cpp``): waits of its own operations, not those of ``synchronize()``."""
Lines = dict[str, dict[int, int]]
"""Counts by file, relative to the script's folder, and by line."""


class Watch:
    """Counts waits and runs of the lines below a folder, from now to the end of this process.

    A wait counts for the innermost line, which calls the library that waits, and ``through`` each line that led there.
    Raises RuntimeError where there is no GPU.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder) + "/"
        self._waits, self._through, self._runs = (Counter[tuple[str, int]]() for _ in range(3))
        self._show: Callable[..., Any] = warnings.showwarning
        torch.cuda.set_sync_debug_mode("warn")
        warnings.filterwarnings("always", message=".*" + SYNCHRONISES)
        warnings.showwarning = self._shown
        sys.settrace(self._traced)

    def counts(self) -> dict[str, Lines]:
        """What was counted: ``waits``, ``through`` and ``runs``."""
        sys.settrace(None)
        torch.cuda.set_sync_debug_mode("default")
        warnings.showwarning = self._show
        counted = {"waits": self._waits, "through": self._through, "runs": self._runs}
        return {name: self._by_file(counts) for name, counts in counted.items()}

    def _shown(self, message: Warning | str, *rest: Any, **options: Any) -> None:
        if SYNCHRONISES not in str(message):
            self._show(message, *rest, **options)
            return
        lines = []
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if self._is_own(frame):
                lines.append((frame.f_code.co_filename, frame.f_lineno))
            frame = frame.f_back
        self._waits.update(lines[:1])
        self._through.update(set(lines))

    def _traced(self, frame: FrameType, event: str, _argument: Any) -> Any:
        if not self._is_own(frame):
            return None
        if event == "line":
            self._runs[frame.f_code.co_filename, frame.f_lineno] += 1
        return self._traced

    def _is_own(self, frame: FrameType) -> bool:
        return frame.f_code.co_filename.startswith(self._folder)

    def _by_file(self, counts: Counter[tuple[str, int]]) -> Lines:
        lines: Lines = {}
        for (name, line), count in sorted(counts.items()):
            lines.setdefault(name.removeprefix(self._folder), {})[line] = count
        return lines
