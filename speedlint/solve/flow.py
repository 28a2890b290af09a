"""Answers that depend on each other: each computed once, cycles solved, whatever is asked first."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from speedlint import stacks

Answer = TypeVar("Answer")
Arguments = ParamSpec("Arguments")
Question = TypeVar("Question", bound=Callable[..., Any])
_NOT_ANSWERED = object()


class Layer(IntEnum):
    """What holds while others are found: those of a lower layer are found anew where an answer of a higher one changes."""

    VALUE = 0
    CALLS = 1
    """Which functions the calls of a script run."""
    SITES = 2
    """Which calls run a function."""


@dataclass(eq=False, slots=True)
class _Open:
    """A question whose cycle is not solved yet.

    Attributes:
        found: its answer so far.
        cut: the number of the question that its cycle runs back to.
        readers: the questions whose answers rest on ``found``.
        is_stale: whether something that the answer rests on has changed.
        is_settled: whether it is answered for good.
        changes: how often the answer has changed.
    """

    question: Hashable
    answer: Callable[[], Any]
    bottom: Any
    unknown: Any
    layer: Layer
    found: Any = None
    cut: int = 0
    readers: set[_Open] = field(default_factory=set)
    is_stale: bool = True
    is_settled: bool = False
    changes: int = 0

    def reset(self) -> None:
        """Forgets what was found."""
        self.found, self.is_stale, self.is_settled, self.changes = self.bottom, True, False, 0


class Flow:
    """Answers that depend on each other, across the scripts of one program, each computed once.

    A question asked again while it is being answered (``x = f(x)`` in a loop, a recursive function) gets its bottom. When
    the question that all of its cycles run back to is answered, all questions on them are solved together: from their
    bottoms, each is answered again until nothing that its answer rests on changes. Where the equations are monotone that is
    their least solution, and it does not hang on which question was asked first. Who calls whom is held fixed while values
    are found, and values are found from the beginning where it has changed: what holds of a function that nobody calls is no
    step on the way to what holds of one that is called.
    """

    _NEVER = 1 << 30
    _MOST_CHANGES = 24
    """Changes of one answer, far above what the height of what is answered allows; then it is ``unknown``."""
    _ON_ONE_STACK = 200
    """Questions within questions that Python's stack holds with certainty."""
    _DEEPEST = 64 * _ON_ONE_STACK

    def __init__(self, order: Callable[[Hashable], Any] | None = None) -> None:
        self._order = order
        self.answers: dict[Hashable, Any] = {}
        """What is answered for good, by question."""
        self._open: dict[Hashable, _Open] = {}
        self._members: list[_Open] = []
        self._active: dict[Hashable, int] = {}
        """What is being answered, numbered as it was begun; a number is never given again."""
        self._begun = 0
        self._cut = self._NEVER
        self._reader: _Open | None = None

    def __len__(self) -> int:
        """How many questions are answered for good."""
        return len(self.answers)

    def clear(self) -> None:
        """Forgets all answers."""
        self.answers.clear()

    def ask(
        self,
        question: Hashable,
        answer: Callable[[], Answer],
        bottom: Answer,
        *,
        unknown: Answer | None = None,
        layer: Layer = Layer.VALUE,
    ) -> Answer:
        """The answer to ``question``, computed by ``answer`` unless it is known.

        ``bottom`` is the answer as long as nothing is known; where nothing is in the end, or nothing settles, it is
        ``unknown``, if that is given.
        """
        answered = self.answers.get(question, _NOT_ANSWERED)
        if answered is not _NOT_ANSWERED:
            return answered  # type: ignore[no-any-return]
        known = self._open.get(question)
        if known is not None:
            self._cut = min(self._cut, known.cut)
            if self._reader is not None:
                known.readers.add(self._reader)
            return known.found  # type: ignore[no-any-return]
        number = self._active.get(question)
        if number is not None:
            self._cut = min(self._cut, number)
            return bottom
        unknown = bottom if unknown is None else unknown
        return self._compute(question, answer, bottom, unknown, layer) if len(self._active) < self._DEEPEST else unknown

    def _compute(
        self, question: Hashable, answer: Callable[[], Answer], bottom: Answer, unknown: Answer, layer: Layer
    ) -> Answer:
        self._begun += 1
        number, before, first, reader = self._begun, self._cut, len(self._members), self._reader
        one = _Open(question, answer, bottom, unknown, layer) if reader is not None else None
        self._active[question], self._cut, self._reader = number, self._NEVER, one
        try:
            found = answer() if len(self._active) % self._ON_ONE_STACK else stacks.on_a_new_one(answer)
            if self._cut <= number:
                one = one or _Open(question, answer, bottom, unknown, layer)
                found = self._hold(one, found, first, number, is_solving=reader is not None)
        except BaseException:
            self._forget(first)
            raise
        finally:
            del self._active[question]
            cut, self._cut, self._reader = self._cut, before, reader
        if cut > number:
            found = self.answers[question] = unknown if found is bottom else found
        elif one is not None:
            self._cut = min(before, cut)
            if reader is not None:
                one.readers.add(reader)
        return found

    def _hold(self, one: _Open, found: Any, first: int, number: int, *, is_solving: bool) -> Any:
        """Keeps an answer until its cycle is solved, which it is here where it runs back to this question."""
        self._open[one.question] = one
        self._members.append(one)
        one.cut, one.found = self._cut, found if one.layer is Layer.VALUE else one.bottom
        if self._cut == number and self._solve(first, number):
            return self._close(first, one)
        return one.found if is_solving else found

    # Cycles

    def _solve(self, first: int, number: int) -> bool:
        """Answers the open questions from ``first`` on; False where they turn out to be part of a cycle around this one."""
        for one in self._members[first:]:
            one.cut = number
            one.reset()
            one.readers.clear()
        is_solved = True
        while is_solved and any(one.is_stale for one in self._members[first:]):
            is_solved = self._find_values(first, number) and self._find_calls(first, number)
        is_solved = is_solved and self._settle(first, number)
        if not is_solved:
            for one in self._members[first:]:
                one.cut = self._cut
                one.reset()
        return is_solved

    def _find_values(self, first: int, number: int) -> bool:
        """Answers anew what rests on something that has changed, until nothing does."""
        while stale := self._stale(first, Layer.VALUE):
            for one in stale:
                if one.is_stale:
                    self._change(one, self._again(one))
                    if self._cut < number:
                        return False
        return True

    def _stale(self, first: int, layer: Layer) -> list[_Open]:
        """What is to be answered anew, in the order of the source: where an equation is not monotone, that order decides."""
        found = [one for one in self._members[first:] if one.is_stale and one.layer is layer and not one.is_settled]
        order = self._order
        return found if order is None else sorted(found, key=lambda one: order(one.question))

    def _find_calls(self, first: int, number: int) -> bool:
        """Answers anew who calls whom; where that changes, values that rest on it begin at bottom again."""
        changed = []
        for layer in (Layer.CALLS, Layer.SITES):
            for one, found in [(one, self._again(one)) for one in self._stale(first, layer)]:
                if found != one.found and one.changes < self._MOST_CHANGES:
                    self._change(one, found)
                    changed.append(one)
            if self._cut < number:
                return False
        while changed:
            for reader in changed.pop().readers:
                if reader.layer is not Layer.VALUE:
                    reader.is_stale = True
                elif reader.found is not reader.bottom or reader.changes:
                    reader.reset()
                    changed.append(reader)
        return True

    def _settle(self, first: int, number: int) -> bool:
        """Answers anew, as unknown at most, what hangs on nothing but itself and so has no answer."""
        for one in self._members[first:]:
            one.is_settled = one.found is not one.bottom or one.unknown is one.bottom
            if not one.is_settled:
                one.found, one.is_stale, one.changes = one.unknown, True, 0
        return self._find_values(first, number)

    def _again(self, one: _Open) -> Any:
        one.is_stale, self._reader = False, one
        return one.answer()

    def _change(self, one: _Open, found: Any) -> None:
        if one.changes >= self._MOST_CHANGES:
            found = one.unknown
        if found == one.found:
            return
        one.found, one.changes = found, one.changes + 1
        for reader in one.readers:
            reader.is_stale = True

    def _close(self, first: int, asked: _Open) -> Any:
        for one in self._members[first:]:
            self.answers[one.question] = one.unknown if one.found is one.bottom else one.found
        self._forget(first)
        self._cut = self._NEVER
        return self.answers[asked.question]

    def _forget(self, first: int) -> None:
        for one in self._members[first:]:
            del self._open[one.question]
            one.readers.clear()
        del self._members[first:]


def once(bottom: Any) -> Callable[[Question], Question]:
    """Makes a function a question to the flow: answered when first asked, ``bottom`` where it depends on itself.

    The question is the function and all that it is handed, by position: what has a ``script``, as a script itself, and more.
    """

    def question(answer: Any) -> Any:
        @wraps(answer)
        def asked(about: Any, *more: Any) -> Any:
            flow: Flow = about.script.program.flow
            asked_for = (answer, about, *more)
            found = flow.answers.get(asked_for, _NOT_ANSWERED)
            return flow.ask(asked_for, lambda: answer(about, *more), bottom) if found is _NOT_ANSWERED else found

        return asked

    return question


def listed_once(answer: Callable[Arguments, Iterator[Answer]]) -> Callable[Arguments, list[Answer]]:
    """The same for all that a function yields, as a list."""

    @once([])
    @wraps(answer)
    def listed(*about: Arguments.args, **named: Arguments.kwargs) -> list[Answer]:
        return list(answer(*about, **named))

    return listed
