"""The laws of ``join``, and what it says of everyday pairs."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speedlint.solve.terms import (
    ARRAY,
    CONFLICT,
    NONE,
    NUMBER,
    STRING,
    TENSOR,
    UNKNOWN,
    Definition,
    Made,
    Value,
    at,
    bounded,
    join,
)
from speedlint.torch.words import Place, Role

LITERAL = Value(Role.NUMBER, Place.HOST, literal=True)
BATCH = Value(Role.BATCH, Place.HOST)
_MADE = [Made(cast(Any, "train.py"), cast(Any, call)) for call in ("first", "second")]
_DEFINED = [Definition(cast(Any, "train.py"), cast(Any, node)) for node in ("first", "second")]


def _value(**parts: Any) -> Value:
    """What hypothesis is given to build: of a named tuple it would fill in the fields that are left out, too."""
    return Value(**parts)


def _values(parts: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
    several = st.lists(parts, max_size=2).map(tuple)
    return st.builds(
        _value,
        role=st.sampled_from(Role),
        place=st.sampled_from(Place),
        items=several,
        element=st.none() | parts,
        keys=several.flatmap(lambda held: st.permutations("ab").map(lambda names: tuple(zip(names, held, strict=False)))),
        made=st.none() | st.sampled_from(_MADE),
        definition=st.none() | st.sampled_from(_DEFINED),
        literal=st.booleans(),
        assumed=st.booleans(),
    )


_plain = st.builds(_value, role=st.sampled_from(Role), place=st.sampled_from(Place), literal=st.booleans())
_everyday = st.sampled_from(
    (ARRAY, BATCH, CONFLICT, LITERAL, NONE, NUMBER, STRING, TENSOR, UNKNOWN, at(CONFLICT, Place.HOST))
)
values = st.recursive(_plain | _everyday, _values, max_leaves=4)
answers = st.none() | values


@given(answers, answers, answers)
@settings(max_examples=400, deadline=None)
def test_associative(a: Value | None, b: Value | None, c: Value | None) -> None:
    assert join((join((a, b)), c)) == join((a, join((b, c)))) == join((a, b, c))


@given(answers, answers)
@settings(max_examples=200, deadline=None)
def test_commutative(a: Value | None, b: Value | None) -> None:
    assert join((a, b)) == join((b, a))


@given(answers, answers)
def test_idempotent(a: Value | None, b: Value | None) -> None:
    assert join((a, a)) == a
    assert join((join((a, b)), b)) == join((a, b))


@given(answers)
def test_nothing_known_yet_is_neutral(a: Value | None) -> None:
    assert join((None, a)) == join((a, None)) == join((a,)) == a
    assert join(()) is None


@given(values.filter(lambda value: value.role is not Role.UNKNOWN))
def test_unknown_is_above_all_that_is_known(a: Value) -> None:
    assert join((a, UNKNOWN)) == UNKNOWN
    assert join((a, CONFLICT)) == CONFLICT


def test_nothing_yet_and_unknown_and_conflict_are_three_things() -> None:
    assert join((TENSOR, NUMBER)) == CONFLICT != UNKNOWN
    assert join((CONFLICT, UNKNOWN)) == UNKNOWN
    assert CONFLICT.role is UNKNOWN.role is Role.UNKNOWN


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((NONE, TENSOR), TENSOR),
        ((NONE, UNKNOWN), UNKNOWN),
        ((LITERAL, TENSOR), TENSOR),
        ((LITERAL, NUMBER), NUMBER),
        ((LITERAL, BATCH), BATCH),
        ((LITERAL, STRING), CONFLICT),
        ((BATCH, TENSOR), TENSOR),
        ((BATCH, LITERAL, at(TENSOR, Place.HOST)), at(TENSOR, Place.HOST)),
        ((at(TENSOR, Place.GPU), at(TENSOR, Place.HOST)), TENSOR),
        ((TENSOR, Value(Role.MAPPING, element=TENSOR)), Value(Role.MAPPING, element=TENSOR)),
        ((TENSOR, Value(Role.MAPPING, element=STRING)), Value(Role.MAPPING, element=CONFLICT)),
        ((Value(Role.SEQUENCE), Value(Role.SEQUENCE, element=TENSOR)), Value(Role.SEQUENCE, element=TENSOR)),
        (
            (Value(Role.SEQUENCE, items=(NUMBER, TENSOR)), Value(Role.SEQUENCE, items=(NUMBER, ARRAY))),
            Value(Role.SEQUENCE, items=(NUMBER, CONFLICT)),
        ),
    ],
)
def test_everyday_pairs(values: tuple[Value, ...], expected: Value) -> None:
    assert join(values) == join(reversed(values)) == expected


@given(answers)
@settings(max_examples=200, deadline=None)
def test_what_is_bounded_stays_as_it_is(a: Value | None) -> None:
    deep = a
    for _ in range(12):
        deep = Value(Role.SEQUENCE, items=(deep, deep), element=deep)
    cut = bounded(deep)
    assert cut is not None
    assert bounded(cut) == cut
    assert _levels(cut) <= 7
    assert bounded(a) == a


def _levels(value: Value | None) -> int:
    if value is None or value == UNKNOWN:
        return 0
    parts = (*value.items, value.element, *(part for _, part in value.keys))
    return 1 + max(map(_levels, parts), default=0)
