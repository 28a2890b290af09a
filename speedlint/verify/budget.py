"""The time that one ``verify`` may take, planning, losses and pairs together."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

FOR_LOSSES = 0.6
"""What part of the time after planning the losses may take; what they leave is for the pairs."""
Clock = Callable[[], float]


class BudgetError(Exception):
    """What was to be done does not fit into the time that is left. ``str()`` is one line."""


class HungError(BudgetError):
    """A run was ended for the time, and had come to no step for many times as long as others take for all of theirs."""


class _OutOfTime(BaseException):
    """Ends work that knows nothing of time; no ``except Exception`` on the way holds it."""


@dataclass
class Budget:
    """Seconds for everything, from the moment this is made.

    Attributes:
        clock: the seconds since some moment, the same in all processes of the machine.
    """

    seconds: float
    clock: Clock = time.monotonic
    began: float = field(init=False)

    def __post_init__(self) -> None:
        self.began = self.clock()

    @property
    def deadline(self) -> float:
        """The reading of the clock at which it is spent."""
        return self.began + self.seconds

    @property
    def spent(self) -> float:
        """The seconds since it began."""
        return self.clock() - self.began

    @property
    def left(self) -> float:
        """The seconds that are left, 0 where none are."""
        return max(0.0, self.seconds - self.spent)

    def share(self, part: float) -> float:
        """The reading of the clock at which a part of what is left now is spent."""
        return self.deadline - (1 - part) * self.left


@contextlib.contextmanager
def bounded(seconds: float, why: str) -> Iterator[None]:
    """Ends the block after some seconds, wherever it is. Raises BudgetError with ``why``.

    Where there is no interval timer, as on Windows and beside the main thread, the block goes on until it ends.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    is_over = False

    def ring(_number: int, _frame: object) -> None:
        if not is_over:
            raise _OutOfTime

    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3))  # 0 would be no timer at all
        yield
    except _OutOfTime:
        raise BudgetError(why) from None
    finally:
        is_over = True
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
