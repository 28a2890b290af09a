"""The values that the solver speaks in: what is known of an expression, definitions, constants."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from speedlint.facts import syntax
from speedlint.torch.words import Place, Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script
    from speedlint.solve.configs import Entry


class Definition(NamedTuple):
    """A first-party function or class."""

    script: Script
    node: syntax.FunctionDef | syntax.ClassDef

    @property
    def name(self) -> str:
        """Its name, without its module's."""
        return self.node.name.value


class Made(NamedTuple):
    """The call that made an object."""

    script: Script
    call: syntax.Call


class Value(NamedTuple):
    """What is known of an expression's value.

    Attributes:
        place: where a tensor, module or device is.
        items: the elements of a sequence of known length; None for one of which nothing is known yet.
        element: what iterating over or indexing the value yields; None where nothing is known to be in it.
        keys: the entries of a mapping with constant string keys; None as in ``items``.
        made: the call that constructed it; for tensors and batches, the loader they came from.
        definition: the first-party class of an instance or module, or the function or class itself.
        literal: a number or None written out in the source.
        assumed: a tensor only because a module's ``forward`` takes it, or because ``.item()`` reads what a function out of
            sight gives; a call of a tensor's own methods would show it. Of a class or an object: it may be of any heir of
            the class that is known. Of ``*args``: any of them may be a tensor, where a call hands it one.
        differs: its role is unknown because values of several roles are known to meet here.
    """

    role: Role
    place: Place = Place.EITHER
    items: tuple[Value | None, ...] = ()
    element: Value | None = None
    keys: tuple[tuple[str, Value | None], ...] = ()
    made: Made | None = None
    definition: Definition | None = None
    literal: bool = False
    assumed: bool = False
    differs: bool = False


UNKNOWN = Value(Role.UNKNOWN)
CONFLICT = Value(Role.UNKNOWN, differs=True)
NUMBER = Value(Role.NUMBER, Place.HOST)
STRING = Value(Role.STRING, Place.HOST)
NONE = Value(Role.NONE, Place.HOST, literal=True)
ARRAY = Value(Role.ARRAY, Place.HOST)
TENSOR = Value(Role.TENSOR)


_DEEPEST = 6
"""Sequences and mappings within each other that are told apart: those that are made of themselves, ``x = [x, x]`` in a loop,
would go on for ever."""


def bounded(value: Value | None) -> Value | None:
    """A value of whose parts nothing is told below so many of them within each other."""
    return value if value is None or _is_shallow(value, _DEEPEST) else _cut(value, _DEEPEST)


def _is_shallow(value: Value, depth: int) -> bool:
    if not value.items and not value.keys and (value.element is None or value.element is UNKNOWN):
        return True
    return depth > 0 and all(part is None or _is_shallow(part, depth - 1) for part in _parts(value))


def _parts(value: Value) -> tuple[Value | None, ...]:
    return (*value.items, value.element, *(part for _, part in value.keys))


def _cut(value: Value, depth: int) -> Value:
    if _is_shallow(value, 0):
        return value
    if not depth:
        return value._replace(items=(), element=UNKNOWN, keys=())
    items = tuple(_below(part, depth) for part in value.items)
    keys = tuple((name, _below(part, depth)) for name, part in value.keys)
    return value._replace(items=items, element=_below(value.element, depth), keys=keys)


def _below(part: Value | None, depth: int) -> Value | None:
    return None if part is None else _cut(part, depth - 1)


def at(value: Value, place: Place) -> Value:
    """The value on another place."""
    return value._replace(place=place)


def join_places(places: Iterable[Place]) -> Place:
    """One place where all agree, else EITHER."""
    found = set(places)
    return found.pop() if len(found) == 1 else Place.EITHER


def join(values: Iterable[Value | None]) -> Value | None:
    """The least that holds of a value that is one of ``values``, in whatever order they come.

    From below: None (nothing known yet) and the literal None, which do not count beside others; a literal number, which
    does not count beside tensors and dicts (``total = 0`` before ``total += loss``); a batch, which beside a tensor is one;
    a tensor, which beside a dict is one of its entries, since what a module returns counts as a tensor though it may be a
    dict of them; values of one role, part by part; then CONFLICT, where roles differ; then UNKNOWN.
    """
    found: Value | None = None
    for value in values:
        if value is not None and value is not found:
            found = value if found is None or found == value else _joined(found, value)
    return found


def _joined(one: Value, other: Value) -> Value:
    low, high = (one, other) if _HEIGHTS[one.role] <= _HEIGHTS[other.role] else (other, one)
    if high.role is Role.UNKNOWN:
        return _not_known(low, high)
    if low.role is high.role:
        return _part_by_part(low, high)
    if low.role is Role.NONE or (low.literal and low.role is Role.NUMBER and high.role in _ABOVE_LITERALS):
        return high
    if low.role is Role.BATCH and high.role is Role.TENSOR:
        return _part_by_part(low._replace(role=Role.TENSOR), high)
    if low.role in _ENTRIES and high.role is Role.MAPPING:
        return _part_by_part(Value(Role.MAPPING, element=low), high)
    return CONFLICT


_ABOVE_LITERALS = frozenset({Role.BATCH, Role.TENSOR, Role.MAPPING})
_ENTRIES = frozenset({Role.BATCH, Role.TENSOR})
_HEIGHTS = dict.fromkeys(Role, 2) | {
    Role.NONE: 0,
    Role.NUMBER: 1,
    Role.BATCH: 3,
    Role.TENSOR: 4,
    Role.MAPPING: 5,
    Role.UNKNOWN: 6,
}


def _not_known(low: Value, high: Value) -> Value:
    """Two different values, one of no role; only where both have none does a place hold for both."""
    if low.role is Role.NONE:
        return high
    if low.role is not Role.UNKNOWN:
        return CONFLICT if high.differs else UNKNOWN
    return Value(Role.UNKNOWN, join_places((low.place, high.place)), differs=low.differs and high.differs)


def _part_by_part(one: Value, other: Value) -> Value:
    """Two values of one role."""
    same_length = len(one.items) == len(other.items)
    keys = zip(one.keys, other.keys, strict=True) if [*dict(one.keys)] == [*dict(other.keys)] else ()
    return Value(
        one.role,
        one.place if one.place is other.place else Place.EITHER,
        items=tuple(map(_column, one.items, other.items)) if same_length else (),
        element=_column(one.element, other.element),
        keys=tuple((name, _column(first, second)) for (name, first), (_, second) in keys),
        made=one.made if one.made == other.made else None,
        definition=one.definition if one.definition == other.definition else None,
        literal=one.literal and other.literal,
        assumed=one.assumed and other.assumed,
    )


def _column(one: Value | None, other: Value | None) -> Value | None:
    return join((one, other))


class Constant(NamedTuple):
    """A value known before the script runs, and the node that sets it (a literal, a default, an option).

    ``entry`` is the entry of a YAML or JSON file that sets it; the node is then the call that loads the file.
    """

    value: object
    script: Script
    node: syntax.Node
    entry: Entry | None = None

    def equals(self, other: Constant) -> bool:
        """Whether both are the same value of the same type."""
        return type(self.value) is type(other.value) and self.value == other.value
