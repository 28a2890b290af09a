"""Loaders that a function of the project makes in a file that is not checked: they are told of where it is called."""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes.data import loaders
from speedlint.shapes.data.loaders import Loader
from speedlint.solve.flow import once
from speedlint.solve.terms import Value
from speedlint.solve.unpacking import advanced
from speedlint.source import is_target
from speedlint.torch.words import FREQUENT, Role

_DEEPEST = 3
"""How many functions may stand between a call and a loader."""
_SETTINGS = frozenset("dataset batch_size sampler batch_sampler num_workers collate_fn drop_last".split())
"""Attributes of a loader that tell what it was made with."""


def behind(script: Script, call: syntax.Call) -> list[Loader]:
    """The loaders that a call is given by a function in a file which is not checked; none that are made anew in each step,
    which workers would not outlive."""
    found = _given(script).get(call, [])
    return found if found and script.frequency(call) not in FREQUENT else []


def is_of_one_call(script: Script, made: Loader) -> bool:
    """Whether one call alone is given a loader, so that what is known of how it is read holds there."""
    return len(set(_ends(script, made.script, made.call, _DEEPEST))) == 1


def _ends(script: Script, place: Script, node: syntax.Node, depth: int) -> Iterator[syntax.Node]:
    """The calls by which a node runs that no function is around, or one that is checked; what nothing calls does not run."""
    function = place.function(node)
    for caller, call in place.call_sites(function) if function is not None and depth else ():
        if caller.function(call) is None or script.is_reported(caller):
            yield call
        else:
            yield from _ends(script, caller, call, depth - 1)


@once({})
def _given(script: Script) -> dict[syntax.Call, list[Loader]]:
    """The loaders in files that are not checked, by the calls of a script that are given them."""
    found: dict[syntax.Call, list[Loader]] = {}
    for each in loaders.near(script):
        if not script.is_reported(each.script):
            for call in dict.fromkeys(_leading(script, each.script, each.call, _DEEPEST)):
                if _gives(script.value(call), each) and _is_taken_on(script, call, each):
                    found.setdefault(call, []).append(each)
    return found


def _is_taken_on(script: Script, call: syntax.Call, made: Loader) -> bool:
    """Whether what a call gives may be read as a loader: kept somewhere, handed on or gone over, not only asked for its
    length or its dataset."""
    assign = script.source.parents[call]
    if not isinstance(assign, syntax.Assign):
        return not _only_asks(script, call) and not _only_peeks(script, call)
    for target in (name for each in assign.targets for name in script.source.inside(each, syntax.Name)):
        if isinstance(script.source.parents[target], syntax.Attribute):
            return True
        uses = (use for use in script.names.uses(target) if not is_target(script.source, use))
        if any(_gives(script.value(use), made) and not _only_asks(script, use) for use in uses):
            return True
    return False


def _only_peeks(script: Script, call: syntax.Call) -> bool:
    """Whether it is ``next(iter(loaders()))``, which takes one batch."""
    parents = script.source.parents
    around = parents[parents[call]] if isinstance(parents[call], syntax.Arg) else None
    if around is None or not script.is_call_to(around, "iter"):
        return False
    return advanced(script, parents[parents[around]]) is around


def _only_asks(script: Script, use: syntax.BaseExpression) -> bool:
    match up := script.source.parents[use]:
        case syntax.Attribute(value=value, attr=syntax.Name(value=asked)):
            return value is use and asked in _SETTINGS
        case syntax.Arg():
            call = script.source.parents[up]
            return isinstance(call, syntax.Call) and script.name(call.func) == "len"
    return False


def _leading(script: Script, place: Script, node: syntax.Node, depth: int) -> Iterator[syntax.Call]:
    """The calls of a script by which a node of another file runs, with nothing between that is checked itself."""
    function = place.function(node)
    for caller, call in place.call_sites(function) if function is not None and depth else ():
        if caller is script:
            yield call
        elif not script.is_reported(caller):
            yield from _leading(script, caller, call, depth - 1)


def _gives(value: Value, made: Loader) -> bool:
    """Whether a value is a loader, or holds it."""
    parts = (value, *value.items, value.element, *(entry for _, entry in value.keys))
    return any(
        each is not None and each.role is Role.LOADER and each.made is not None and each.made.call is made.call
        for each in parts
    )
