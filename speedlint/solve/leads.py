"""Which functions may take training steps, told by names alone: a bound from above that needs no values.

Most code of a library leads to no training step, and most files of a training hold none. What a function does hangs on the
functions that it calls, these on what its arguments are; here a call may lead to whatever has the name that it is written
with, so that only the few files that speak of such a name are read.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from speedlint.disk import Mark, words
from speedlint.facts import syntax
from speedlint.solve.calls import CALLED_AS, SAME_MODULE
from speedlint.solve.names import Kind, last_name
from speedlint.solve.terms import Definition
from speedlint.torch import library

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_STEPS = (
    (b"backward", re.compile(rb"backward\s{0,9}\(")),
    (b"step", re.compile(rb"\.\s{0,9}step\s{0,9}\(")),
)
UPDATERS = (b"Scaler", re.compile(rb"(?:Native|Apex)Scaler\b"))
"""What a file says that makes one of ``library.UPDATERS``."""
_MOST_READ = 16
"""Files that speak of what leads to a step: where there are more, most of the program is about training."""
_KEEP = SAME_MODULE | {"to", "cuda", "cpu"}
"""Methods of an object that return it."""
_TARGETS = (syntax.AssignTarget, syntax.For, syntax.CompFor)
_NOTHING_GIVEN = (
    syntax.AssignTarget, syntax.AugAssign, syntax.Annotation, syntax.Comparison, syntax.ComparisonTarget, syntax.Expr,
    syntax.If, syntax.While, syntax.UnaryOperation, syntax.NameItem, syntax.Del, syntax.ImportAlias, syntax.AsName,
    syntax.ImportFrom, syntax.FunctionDef, syntax.ClassDef,
)  # fmt: skip
"""Where an object stands that is asked about, bound or dropped, and handed to nobody."""
_VARIABLES = frozenset({Kind.ASSIGN, Kind.AUGMENT, Kind.PARAMETER, Kind.FOR, Kind.WITH, Kind.OTHER})


@dataclass(slots=True)
class Leads:
    """What may lead to a training step in the programs around a script.

    Attributes:
        names: the last names, as written at a call, of what may, wherever that is: methods, and objects that are called.
        within: the names of functions and classes, by the file that may know them: its own, and those that import it.
        is_open: whether some of it is handed on, as an argument or in a variable, so that any call may be one of it.
        functions: those that may.
    """

    names: set[str] = field(default_factory=set)
    within: dict[str, set[str]] = field(default_factory=dict)
    is_open: bool = False
    functions: set[syntax.Node] = field(default_factory=set)

    def may(self, call: syntax.Call) -> bool:
        """Whether a call may lead to it."""
        name = last_name(call.func)
        return self.is_open or name in self.names or name in self.within.get(call.tree.path, ())


_NONE = Leads()


class _How(enum.Enum):
    """What a name stands for."""

    KNOWN = enum.auto()
    """A function or class, for a file and those that import it."""
    MAKER = enum.auto()
    """The same, and what it makes leads to a step where it is called."""
    NESTED = enum.auto()
    """A function within another one, for its file."""
    METHOD = enum.auto()
    """What is taken from an object."""
    OBJECT = enum.auto()
    """An object that leads to a step where it is called."""


class _Name(NamedTuple):
    """A name that something is called by, the file that gives it, and the function that leads to a step, if its own."""

    name: str
    how: _How
    path: Path
    function: syntax.Node | None = None


def around(script: Script) -> Leads:
    """See ``Leads``."""
    question = ("leads", script.program.together(script))
    return script.program.flow.ask(question, lambda: _find(script), _NONE)


def _find(script: Script) -> Leads:
    found, done = Leads(), set[_Name]()
    if not script.program.is_whole(script):
        found.is_open = True
        return found
    marks: list[Mark] = [*_STEPS]
    if script.program.mentions(script, UPDATERS):
        held = of_updaters(script)
        found.is_open = held.is_open
        marks += [UPDATERS, words(held.names)]
    todo = set(_lead(found, ((each, call) for each in script.everywhere(*marks) for call in each.loops.steps)))
    while todo and not found.is_open:
        done |= todo
        speaking = _speaking(script, todo, found)
        if len(speaking) > _MOST_READ:
            found.is_open = True
            break
        todo = {new for each, said in speaking for new in _spread(each, said, found)} - done
    return found


def _speaking(script: Script, names: set[_Name], found: Leads) -> list[tuple[Script, set[_Name]]]:
    """The files that speak of some names which they may know, and these; no more than one above what is read."""
    program = script.program
    knowing: dict[Path, frozenset[Path]] = {}
    for each in names:
        if each.how in (_How.KNOWN, _How.MAKER) and each.path not in knowing:
            place = program.reached(each.path)
            knowing[each.path] = frozenset(program.upward_files(place)) if place is not None else frozenset()
    speaking: list[tuple[Script, set[_Name]]] = []
    for path in program.holding(program.around(script.path), words(each.name for each in names)):
        known = {each for each in names if path == each.path or _is_known(path, each, knowing)}
        said = {each for each in known if program.holding([path], _mark(path, each))}
        place = program.reached(path) if said else None
        if place is not None:
            found.within.setdefault(place.source.tree.path, set()).update(each.name for each in said)
            speaking.append((place, said))
        if len(speaking) > _MOST_READ:
            break
    found.names |= {each.name for each in names if each.how in (_How.METHOD, _How.OBJECT)}
    return speaking


def _is_known(path: Path, name: _Name, knowing: dict[Path, frozenset[Path]]) -> bool:
    """Whether another file than the one that gives a name may mean the same by it."""
    return name.how in (_How.METHOD, _How.OBJECT) or (name.how is not _How.NESTED and path in knowing[name.path])


def _mark(path: Path, name: _Name) -> Mark:
    """What a file holds that speaks of a name; a method stands behind a dot, but in its own class."""
    if name.how is not _How.METHOD or path == name.path:
        return words([name.name])
    return (words([name.name]), re.compile(rb"\.[\s\\]{0,99}" + re.escape(name.name.encode()) + rb"\b"))


def of_updaters(script: Script) -> Leads:
    """What may be called where an object of a library's is that takes the step of the optimizer which a call hands to it."""
    question = ("held updaters", script.program.together(script))
    return script.program.flow.ask(question, lambda: _find_updaters(script), _NONE)


def _find_updaters(script: Script) -> Leads:
    """Follows the objects by the names that they are given, as ``Roles.origins`` follows values back."""
    found = Leads()
    if not script.program.mentions(script, UPDATERS):
        return found
    found.is_open = not script.program.is_whole(script)
    made = ((each, call) for each in script.everywhere(UPDATERS) for call in each.calls(*library.UPDATERS))
    todo = {name for each, call in made for name in _given(each, call, found)}
    while todo and not found.is_open:
        found.names |= todo
        spoken = words(todo)
        if script.program.number_of_others(script, spoken) > _MOST_READ:
            found.is_open = True
            break
        todo = {name for each in script.everywhere(spoken) for name in _spread_value(each, todo, found)} - found.names
    return found


def _spread_value(script: Script, names: set[str], found: Leads) -> Iterator[str]:
    """The names that what has one of some names is given in a script."""
    yield from (name for name, dotted in script.names.imports if dotted.rpartition(".")[2] in names)
    for name in script.source.tree.named(names):
        up = script.source.parents[name]
        yield from _given(script, up if isinstance(up, syntax.Attribute) and up.attr is name else name, found)


def _given(script: Script, value: syntax.Node, found: Leads) -> Iterator[str]:
    """The names that a value is given where it stands."""
    up = script.source.parents[value]
    if isinstance(up, syntax.Element):
        up = _around_elements(script, up)
        found.is_open |= not isinstance(up, syntax.Assign)
    match up:
        case syntax.Assign(targets=targets):
            written = (name for each in targets for name in script.source.inside(each, syntax.Name))
            yield from (name.value for name in written if not _is_base(script, name))
        case syntax.AnnAssign(target=target) | syntax.NamedExpr(target=target):
            yield from filter(None, [last_name(target)])
        case syntax.Param(name=name):
            yield name.value
        case syntax.DictElement(key=syntax.SimpleString() as key):
            yield str(key.evaluated_value)
        case syntax.Arg(keyword=syntax.Name(name)):
            yield name
        case syntax.Arg(star=star) if star or not _is_of_library(script, script.source.parents[up]):
            found.is_open = True


def _is_base(script: Script, name: syntax.Name) -> bool:
    up = script.source.parents[name]
    return isinstance(up, syntax.Attribute) and up.value is name


def _is_of_library(script: Script, call: syntax.Node) -> bool:
    dotted = script.name(call.func) if isinstance(call, syntax.Call) else None
    return dotted is not None and script.program.module(script, dotted) is None


def _lead(found: Leads, places: Iterable[tuple[Script, syntax.Node]]) -> Iterator[_Name]:
    """Adds the functions around some places; yields the names that these are called by."""
    for script, place in places:
        for up in script.source.ancestors(place):
            if isinstance(up, syntax.FunctionDef) and up not in found.functions:
                found.functions.add(up)
                owner, name = script.names.owner(up), up.name.value
                if owner is None:
                    is_nested = script.function(up) is not None
                    yield _Name(name, _How.NESTED if is_nested else _How.KNOWN, script.key)
                else:
                    yield _Name(name, _How.METHOD, script.key, up)
                    if name in CALLED_AS or name.startswith("__"):
                        yield _Name(owner.name.value, _How.MAKER if name in CALLED_AS else _How.KNOWN, script.key, up)


def _spread(script: Script, names: set[_Name], found: Leads) -> Iterator[_Name]:
    """Adds what speaks of one of the names in a script; yields what this is called by."""
    by_name: dict[str, set[_Name]] = {}
    for each in names:
        by_name.setdefault(each.name, set()).add(each)
    for bound, dotted in script.names.imports:
        imported = by_name.get(dotted.rpartition(".")[2], ())
        yield from (each._replace(name=bound, path=script.key) for each in imported)
    how_by_name = {name: {each.how for each in known} for name, known in by_name.items()}
    for name in script.source.tree.named(by_name):
        hows = how_by_name[name.value]
        if _How.OBJECT in hows:
            yield from _called_or_given(script, name, found)
        said = _said(script, name) if hows - {_How.OBJECT} else None
        if said is not None and (hows - {_How.OBJECT, _How.METHOD} or not _runs_another(script, said, found)):
            yield from _lead(found, [(script, said)])
            yield from _through(script, said, found)


def _runs_another(script: Script, said: syntax.Node, found: Leads) -> bool:
    """Whether a call of a method is of another one of the same name, or of none that is known."""
    call = script.source.parents[said]
    if not isinstance(call, syntax.Call) or call.func is not said:
        return False
    return all(callee.node not in found.functions for callee in script.roles.calls.called(call))


def _called_or_given(script: Script, name: syntax.Name, found: Leads) -> Iterator[_Name]:
    """Adds what calls an object by its name; yields the names that it is given."""
    up = script.source.parents[name]
    value = up if isinstance(up, syntax.Attribute) and up.attr is name else name
    match script.source.parents[value]:
        case syntax.Call(func=func) as call if func is value:
            yield from _lead(found, [(script, call)])
        case syntax.Arg(keyword=keyword) if keyword is value:
            pass
        case _:
            yield from _handed(script, value, found)


def _handed(script: Script, value: syntax.Node, found: Leads) -> Iterator[_Name]:
    """The names that an object is given where it stands, which leads to a step where it is called."""
    up = script.source.parents[value]
    match up:
        case syntax.Element() if isinstance(_around_elements(script, up), _TARGETS):
            return
        case syntax.Attribute(attr=method):
            call = script.source.parents[up]
            if method.value in _KEEP and isinstance(call, syntax.Call) and call.func is up:
                yield from _handed(script, call, found)
        case syntax.Assign() | syntax.AnnAssign() | syntax.NamedExpr() | syntax.Param() | syntax.Arg() | syntax.Element():
            yield from (_Name(name, _How.OBJECT, script.key) for name in _given(script, value, found))
        case syntax.DictElement(key=syntax.SimpleString()):
            yield from (_Name(name, _How.OBJECT, script.key) for name in _given(script, value, found))
        case syntax.IfExp(test=test) if test is not value:
            yield from _handed(script, up, found)
        case syntax.BooleanOperation():
            yield from _handed(script, up, found)
        case _ if not isinstance(up, (*_NOTHING_GIVEN, syntax.IfExp)):
            found.is_open = True


def _around_elements(script: Script, up: syntax.Node) -> syntax.Node:
    while isinstance(up, (syntax.Element, syntax.Tuple, syntax.List)):
        up = script.source.parents[up]
    return up


def _through(script: Script, said: syntax.Node, found: Leads) -> Iterator[_Name]:
    """The names that what is spoken of in one place is called by because of that."""
    up = script.source.parents[said]
    above = script.source.parents.get(up)
    match up, above:
        case syntax.Call(), _ if up.func is said:
            if _makes_callable(script, said, found):
                yield from _handed(script, up, found)
        case syntax.Attribute(), _:
            pass
        case syntax.Arg(), syntax.ClassDef(name=heir):
            yield _Name(heir.value, _How.MAKER, script.key)
        case syntax.Arg(), syntax.Call() as call:
            found.is_open |= _is_first_party(script, call)
        case syntax.Assign(targets=targets), _:
            for target in targets:
                if (name := last_name(target.target)) is not None:
                    is_kept = isinstance(target.target, syntax.Attribute)
                    yield _Name(name, _How.METHOD if is_kept else _How.MAKER, script.key)
                else:
                    found.is_open = True
        case _:
            found.is_open = True


def _is_first_party(script: Script, call: syntax.Call) -> bool:
    """Whether what is called may be a function or class of the project: what is not seen to be one hands nothing on."""
    if last_name(call.func) is None:
        return True
    known = script.callee(call) or script.definition(call.func) or script.value(call.func).definition
    return known is not None


def _said(script: Script, name: syntax.Name) -> syntax.Node | None:
    """The expression that stands for what has the name; None where something else is meant."""
    up = script.source.parents[name]
    match up:
        case syntax.Attribute() if up.attr is name:
            target = script.source.parents[up]
            return None if isinstance(target, (syntax.AssignTarget, syntax.AugAssign)) else up
        case syntax.FunctionDef() | syntax.ClassDef() | syntax.ImportAlias() | syntax.AsName() | syntax.ImportFrom():
            return None
        case syntax.Param() | syntax.AssignTarget() | syntax.Annotation() | syntax.AnnAssign():
            return None
        case syntax.Arg() if up.keyword is name:
            return None
        case syntax.Attribute() if script.source.enclosing(name, syntax.ImportFrom, syntax.Import, syntax.Annotation):
            return None
    scope = script.names.scope(name).lookup(name.value)
    kinds = {binding.kind for binding in scope.bindings[name.value]} if scope is not None else set()
    return None if kinds and kinds <= _VARIABLES else name


def _makes_callable(script: Script, called: syntax.Node, found: Leads) -> bool:
    """Whether what is called is a class whose objects lead to a step when they are called."""
    made = script.definition(called)
    if made is None or not isinstance(made.node, syntax.ClassDef):
        return False
    methods = (made.script.roles.calls.method(Definition(made.script, made.node), each) for each in CALLED_AS)
    return any(method is not None and method.node in found.functions for method in methods)
