"""Leads a script soon through all that it does: each pass over a loader ends after a few batches.

So evaluation, schedulers, logging and saving come within seconds. Standard library and torch only; Python 3.8, torch 1.13
and later.
"""

import time
from typing import Any, Callable, Optional

BATCHES = 2
SECONDS = 10.0
"""How long it goes on after the first batch."""


class Rehearsal:
    """One run with short passes.

    Attributes:
        evaluations: the passes over a loader in which no backward pass ran.
        backward: set by the probe: how many backward passes have begun.
    """

    def __init__(self, finish: Callable[[], None]) -> None:
        self.finish = finish
        self.evaluations = self.backward = 0
        self._until: Optional[float] = None

    def look(self) -> None:
        """Ends the script when its time is over."""
        if self._until is None:
            self._until = time.monotonic() + SECONDS
        if time.monotonic() > self._until:
            self.finish()

    def hook(self) -> None:
        """Shortens the loaders."""
        from torch.utils.data import dataloader

        base = dataloader._BaseDataLoaderIter
        following = base.__next__

        def __next__(iterator: Any) -> Any:
            self.look()
            if iterator._num_yielded == 0:
                iterator.speedlint_began = self.backward
            if iterator._num_yielded < BATCHES:
                try:
                    return following(iterator)
                except StopIteration:
                    pass
            self.evaluations += self.backward == getattr(iterator, "speedlint_began", -1)
            raise StopIteration

        base.__next__ = __next__  # type: ignore[method-assign,assignment]
