"""What the loops of training drive: the functions that run in them, from the loops down.

Few loops drive a training, and most functions are reached from none. Asking each function for its callers, and these for
theirs, reads all that may call it; going down from the loops reads what they run.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.solve import heirs, operations
from speedlint.solve.flow import listed_once, once
from speedlint.solve.gradients import gradients_off
from speedlint.torch.words import Role

if TYPE_CHECKING:
    from pathlib import Path

    from speedlint.ask.program import Program
    from speedlint.ask.script import Script

Sites = dict[syntax.FunctionDef, list[tuple["Script", syntax.Call]]]
_Called = tuple[syntax.Call, "Script", syntax.FunctionDef]
"""A call, and the function that it runs, with its script."""
_BACKWARD = b".backward("
_MOST_BYTES = 200_000
"""Of the files whose loops may run one script's functions: half of those that train, half of the others."""
_TOO_MANY = "loops were looked for in the nearest of the files that may run a module's functions, where these are too many"
_MAY_DRIVE = re.compile(
    rb"torch|model|net\w*\(|oader|atch|backward|\.(?:step|to|cuda|eval|train|fit)\(|no_grad|inference_mode|_step|rainer|ightning"
)
"""What a file says somewhere that loops over the batches of a loader, steps or evaluates."""


class Among(enum.Enum):
    """Which of the files that may call a function are looked at, the first that matter first: one way may say enough."""

    ASKED = enum.auto()
    """Those that findings are reported in."""
    TRAININGS = enum.auto()
    """Those that speak of backward passes."""
    ALL = enum.auto()


def sites(script: Script, function: syntax.FunctionDef, among: Among = Among.ALL) -> list[tuple[Script, syntax.Call]]:
    """The calls of one of a script's functions that loops of training drive, by way of other functions too."""
    nothing: Sites = {}
    question = ("driven", script.path, among)
    return script.program.flow.ask(question, lambda: _find(script, among), nothing).get(function, [])


def _find(script: Script, among: Among) -> Sites:
    found: Sites = {}
    starts = {start: _drivers(start) for start in _starts(script)}
    around = frozenset().union(*(each.around for each in starts.values()))
    drivers = dict.fromkeys(each for start, own in starts.items() for each in _readable(start, own, among))
    # Have: a test that goes over the ways to make an object, and trains one step with each.
    todo = [(each, body) for each in drivers if script.is_test or not each.is_test for body in each.loops.driving]
    for other, region in todo:
        for call, place, callee in _run_in(other, region):
            if place.key not in around and not _hands_function(other, call, around):
                continue
            if callee not in found:
                todo.append((place, callee.body))
            known = found.setdefault(callee, [])
            if all(site is not call for _, site in known):
                known.append((other, call))
            if (backward := operations.backward_of(place, callee)) is not None and _is_differentiated(other, call):
                if backward not in found:
                    todo.append((place, backward.body))
                found.setdefault(backward, []).append((other, call))
    return found


def _is_differentiated(script: Script, call: syntax.Call) -> bool:
    """Whether a backward pass may go through what an operation gives: not where gradients are off, nor in the backward pass
    of another one, which is not differentiated again."""
    function = script.function(call)
    if function is not None and operations.is_backward(script, function):
        return False
    return gradients_off(script, call) is not True


def _hands_function(script: Script, call: syntax.Call, around: frozenset[Path]) -> bool:
    """Whether a call hands a function of some files to what it calls, which may call it: ``timed(train_step)``."""
    named = (arg.value for arg in call.args if isinstance(arg.value, (syntax.Name, syntax.Attribute)))
    given = (script.value(each).definition for each in named if script.role(each) is Role.FUNCTION)
    return any(each is not None and each.script.key in around for each in given)


def _starts(script: Script) -> Iterator[Script]:
    """The script, and those that may train with its objects: these, and what imports them, may call what it defines."""
    yield script
    functions = script.source.of(syntax.FunctionDef)
    yield from script.roles.calls.beside([each.name.value for each in functions if script.names.owner(each) is not None])


@dataclass(frozen=True, slots=True)
class _Drivers:
    """The files whose loops may run a script's functions.

    Attributes:
        paths: those that hold such loops, the script itself left out, nearest first.
        around: all that the way from a loop to the script may lead through.
    """

    paths: tuple[Path, ...] = ()
    around: frozenset[Path] = frozenset()


@once(_Drivers())
def _drivers(script: Script) -> _Drivers:
    program = script.program
    upward = [*program.upward_files(script), *(each.key for each in heirs.openers(script))]
    paths = _may_drive(script, upward)
    if program.fitting(paths, _MOST_BYTES) == len(paths):
        return _Drivers(tuple(paths), frozenset(upward))
    program.bound(script, _TOO_MANY)
    distances = program.distances(script)
    nearest = _may_drive(script, distances)
    nearest += [path for path in paths if path not in distances]
    trainings = program.holding(nearest, _BACKWARD)
    apart = set(trainings)
    others = [path for path in nearest if path not in apart]
    chosen = (*_first(program, trainings, _MOST_BYTES // 2), *_first(program, others, _MOST_BYTES // 2))
    return _Drivers(chosen, frozenset((*upward, *distances)))


def _may_drive(script: Script, paths: Iterable[Path]) -> list[Path]:
    program = script.program
    others = (path for path in paths if path != script.key and (script.is_test or not program.is_among_tests(path)))
    return program.holding(others, _MAY_DRIVE)


def _first(program: Program, paths: list[Path], most: int) -> list[Path]:
    """The first of some files, as far as they hold no more than so many bytes together."""
    return paths[: program.fitting(paths, most)]


def _readable(script: Script, drivers: _Drivers, among: Among) -> Iterator[Script]:
    """The script, and those of the files that may drive it, which hold what is looked for."""
    yield script
    program = script.program
    for path in drivers.paths:
        if among is Among.ASKED and not program.is_asked(path):
            continue
        if among is not Among.TRAININGS or program.holding([path], _BACKWARD):
            found = program.reached(path)
            if found is not None:
                yield found


@listed_once
def _run_in(script: Script, region: syntax.Node) -> Iterator[_Called]:
    """The calls of first-party functions that run whenever a region does, or may, and these functions."""
    function = script.function(region)
    for call in script.source.inside(region, syntax.Call):
        if script.function(call) is function and script.order.is_run(call):
            for callee in script.roles.calls.behind(call):
                if isinstance(callee.node, syntax.FunctionDef):
                    yield call, callee.script, callee.node
