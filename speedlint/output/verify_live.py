"""What ``verify`` is doing, while it does it."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import TextIO

from rich.console import Console, RenderableType
from rich.progress import Progress, SpinnerColumn, TextColumn

from speedlint.output.terminal import coloured, shown, visible
from speedlint.output.text import count
from speedlint.output.verify_words import interval, minutes
from speedlint.verify.budget import Budget
from speedlint.verify.timing import Timing

_EVERY = 8.0
"""Seconds after which another line follows where there is no terminal: under the ten after which people wonder."""
_LOOK = 0.5
"""Seconds between two looks at whether a line is due."""


class Live:
    """On standard error: one line that changes, where that is a terminal, else a line for each part and every eight seconds.

    It says the phase, the run, the estimate so far, and the time left.
    """

    def __init__(self, budget: Budget, stream: TextIO | None = None) -> None:
        self.budget = budget
        self._stream = stream or sys.stderr
        self._is_terminal = self._stream.isatty()
        self._phase, self._found, self._running = "planning", "", ""
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            console=Console(file=self._stream),
            transient=True,
            disable=not self._is_terminal,
        )
        self._task = self._progress.add_task(self._phase, total=None)
        self._said_at = budget.clock()
        self._over = threading.Event()
        self._ticking = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> Live:
        self._progress.start()
        if not self._is_terminal:
            self._ticking.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._over.set()
        self._progress.stop()

    def say(self, line: str) -> None:
        """A line that stays."""
        self._said_at = self.budget.clock()
        self._progress.console.print(visible(line), markup=False, highlight=False, soft_wrap=True)

    def planning(self, path: Path) -> None:
        """A file is looked at."""
        self._running = shown(path)
        self._draw()

    def phase(self, name: str) -> None:
        """A new part begins."""
        self._phase, self._found, self._running = name, "", ""
        self._draw()
        if not self._is_terminal:
            self.say(self.line)

    def timing(self, timing: Timing) -> None:
        """A pair is done."""
        if timing.pairs:
            self._found = count(len(timing.pairs), "pair")
        if timing.has_ratio:
            found = timing.estimate
            self._found += f": {found.ratio:.2f}x ({interval(found)})"
        self._draw()

    def running(self, seconds: float, steps: int) -> None:
        """A run goes on."""
        self._running = f"run of {seconds:.0f} s, step {steps}"
        self._draw()

    def show(self, what: RenderableType) -> None:
        """Prints the result on standard output."""
        plain = not coloured(sys.stdout)
        Console(no_color=plain, highlight=False, width=None if sys.stdout.isatty() else 120).print(what)

    @property
    def line(self) -> str:
        """All of it in one line."""
        parts = [self._phase, self._found, self._running, f"at most {minutes(self.budget.left)} left"]
        return "; ".join(part for part in parts if part)

    def remind(self) -> None:
        """Says what goes on if nothing was said for eight seconds."""
        if self.budget.clock() - self._said_at >= _EVERY:
            self.say(self.line)

    def _tick(self) -> None:
        while not self._over.wait(_LOOK):
            self.remind()

    def _draw(self) -> None:
        if self._is_terminal:
            self._progress.update(self._task, description=visible(self.line))
