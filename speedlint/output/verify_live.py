"""What ``verify`` is doing, while it does it."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from rich.console import Console, RenderableType
from rich.progress import Progress, SpinnerColumn, TextColumn

from speedlint.output.terminal import coloured
from speedlint.verify.timing import Timing


class Live:
    """One line on standard error, where that is a terminal: the phase, the run, the estimate so far, and the time left."""

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self._phase, self._found, self._running = "copying the project", "", ""
        console = Console(stderr=True)
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            console=console,
            transient=True,
            disable=not sys.stderr.isatty(),
        )
        self._task = self._progress.add_task(self._phase, total=None)

    def __enter__(self) -> Live:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._progress.stop()

    def phase(self, name: str) -> None:
        """A new part begins."""
        self._phase, self._found = name, ""
        self._draw()

    def timing(self, timing: Timing) -> None:
        """A pair is done."""
        if timing.pairs:
            found = timing.estimate
            self._found = f"{len(timing.pairs)} pairs: {found.ratio:.2f}x"
            if len(timing.pairs) > 1:
                self._found += f" ({found.low:.2f} to {found.high:.2f})"
        self._draw()

    def running(self, seconds: float, steps: int) -> None:
        """A run goes on."""
        self._running = f"run of {seconds:.0f} s, step {steps}"
        self._draw()

    def show(self, what: RenderableType) -> None:
        """Prints the result on standard output."""
        plain = not coloured(sys.stdout)
        Console(no_color=plain, highlight=False, width=None if sys.stdout.isatty() else 120).print(what)

    def _draw(self) -> None:
        left = max(0.0, self.deadline - time.monotonic())
        parts = [self._phase, self._found, self._running, f"at most {left:.0f} s left"]
        self._progress.update(self._task, description="; ".join(part for part in parts if part))
