"""Loops that end with their first batch: they take it apart into more or fewer parts than an item has, or ask a list of
parts for what a tensor has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.shapes.data import loaders
from speedlint.solve.flow import listed_once
from speedlint.solve.stops import Stop, asked_as_tensor, is_rebound, sizes
from speedlint.solve.unpacking import gone_over

if TYPE_CHECKING:
    from speedlint.ask.script import Script


@listed_once
def within(script: Script) -> Iterator[Stop]:
    """The loops of a script that raise with their first batch, whichever loader they go over, at what they bind."""
    made = {loader.call: loader for loader in loaders.near(script)}
    for loop in script.source.of(syntax.For) if made else ():
        match list(gone_over(script, loop)):
            case [(syntax.Tuple(elements=names) as target, iterated)]:
                if any(isinstance(each, syntax.StarredElement) for each in names):
                    continue
                given = [_parts(made[node]) if node in made else set() for _, node in script.roles.origins(iterated)]
                if given and all(given) and not any(len(names) in parts for parts in given):
                    has = " or ".join(map(str, sorted(set().union(*given))))
                    yield Stop(target, f"an item has {has} parts, which are taken apart into {len(names)}", script, target)
            case [(syntax.Name() as batch, iterated)]:
                given = [_parts(made[node]) if node in made else set() for _, node in script.roles.origins(iterated)]
                if given and all(given) and (moved := asked_as_tensor(script, batch)) is not None:
                    yield Stop(
                        moved,
                        f"`{batch.value}` is a list of the parts of its items, which has no such method",
                        script,
                        moved,
                    )


def _parts(loader: loaders.Loader) -> set[int]:
    """How many parts a batch of a loader has, one for each part of an item; none where that is not known."""
    if not loader.is_torch or loader.hides_arguments or loader.parameter("collate_fn") is not None or not loader.origins:
        return set()
    if any(is_rebound(loader.script, name) for name in ("collate_fn", "__getitem__", "__getitems__")):
        return set()
    found = set[int | None]()
    for origin in loader.origins:
        made = origin.definition
        calls = made.script.roles.calls if made is not None and origin.is_known else None
        is_by_item = made is not None and calls is not None and calls.method(made, "__getitems__") is None
        item = calls.method(made, "__getitem__") if made is not None and calls is not None and is_by_item else None
        found |= sizes(item) if item is not None else {None}
    return set() if None in found else {each for each in found if each is not None}
