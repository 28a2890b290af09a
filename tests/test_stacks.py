"""Calls within calls: what they return, what they raise, and how deep they go."""

from __future__ import annotations

import sys
import threading

import pytest

from speedlint import stacks


def _depth(left: int) -> int:
    return 1 + _depth(left - 1) if left else 0


def test_what_runs_with_room_returns_and_raises_as_it_would_without() -> None:
    assert stacks.with_room(lambda: 42) == 42
    with pytest.raises(ZeroDivisionError):
        stacks.with_room(lambda: 1 // 0)


def test_room_stands_within_room_and_goes_as_deep_as_python_goes() -> None:
    deep = sys.getrecursionlimit() - 200
    assert stacks.on_a_new_one(lambda: stacks.with_room(lambda: stacks.with_room(lambda: _depth(deep)))) == deep
    with pytest.raises(RecursionError):
        stacks.on_a_new_one(lambda: _depth(sys.getrecursionlimit()))


def test_a_new_stack_is_another_thread_and_hands_on_what_it_raises() -> None:
    here = threading.get_ident()
    assert stacks.on_a_new_one(threading.get_ident) != here
    with pytest.raises(ZeroDivisionError):
        stacks.on_a_new_one(lambda: 1 // 0)
