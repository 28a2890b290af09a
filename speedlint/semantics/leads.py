"""Which functions may take training steps, told by names alone: a bound from above that needs no values.

Most code of a library leads to no training step, and most files of a training hold none. What a function does hangs on the
functions that it calls, these on what its arguments are; here a call may lead to whatever has the name that it is written
with, so that only the few files that speak of such a name are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from speedlint.disk import words
from speedlint.facts import syntax
from speedlint.semantics import library
from speedlint.semantics.calls import CALLED_AS
from speedlint.semantics.names import Kind, last_name
from speedlint.semantics.terms import Definition

if TYPE_CHECKING:
    from speedlint.semantics.script import Script

_STEPS = re.compile(rb"backward\s{0,9}\(|\.\s{0,9}step\s{0,9}\(|scaler\s{0,9}\(")
UPDATERS = re.compile(rb"(?:Native|Apex)Scaler\b")
"""What a file says that makes one of ``library.UPDATERS``."""
_MOST_READ = 16
"""Files that speak of what leads to a step: where there are more, most of the program is about training."""
_VARIABLES = frozenset({Kind.ASSIGN, Kind.AUGMENT, Kind.PARAMETER, Kind.FOR, Kind.WITH, Kind.OTHER})


@dataclass(slots=True)
class Leads:
    """What may lead to a training step in the programs around a script.

    Attributes:
        names: the last names, as written at a call, of what may.
        is_open: whether some of it is handed on, as an argument or in a variable, so that any call may be one of it.
        functions: those that may.
    """

    names: set[str] = field(default_factory=set)
    is_open: bool = False
    functions: set[syntax.Node] = field(default_factory=set)

    def may(self, call: syntax.Call) -> bool:
        """Whether a call may lead to it."""
        return self.is_open or last_name(call.func) in self.names


_NONE = Leads()


def around(script: Script) -> Leads:
    """See ``Leads``."""
    question = ("leads", script.program.together(script))
    return script.program.flow.ask(question, lambda: _find(script), _NONE)


def _find(script: Script) -> Leads:
    found = Leads()
    if not script.program.is_whole(script):
        found.is_open = True
        return found
    todo = set(_lead(found, ((each, call) for each in script.everywhere(_STEPS) for call in each.loops.steps)))
    while todo and not found.is_open:
        found.names |= todo
        spoken = words(todo)
        if script.program.number_of_others(script, spoken) > _MOST_READ:
            found.is_open = True
            break
        todo = {name for each in script.everywhere(spoken) for name in _spread(each, frozenset(todo), found)} - found.names
    return found


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
    for bindings in script.names.all_bindings():
        yield from (each.name for each in bindings if each.dotted and each.dotted.rpartition(".")[2] in names)
    for name in script.source.of(syntax.Name):
        if name.value in names:
            up = script.source.parents[name]
            yield from _given(script, up if isinstance(up, syntax.Attribute) and up.attr is name else name, found)


def _given(script: Script, value: syntax.Node, found: Leads) -> Iterator[str]:
    """The names that a value is given where it stands."""
    up = script.source.parents[value]
    if isinstance(up, syntax.Element):
        while isinstance(up, (syntax.Element, syntax.Tuple, syntax.List)):
            up = script.source.parents[up]
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


def _lead(found: Leads, places: Iterable[tuple[Script, syntax.Node]]) -> Iterator[str]:
    """Adds the functions around some places; yields the names that these are called by."""
    for script, place in places:
        for up in script.source.ancestors(place):
            if isinstance(up, syntax.FunctionDef) and up not in found.functions:
                found.functions.add(up)
                owner, name = script.names.owner(up), up.name.value
                yield name
                if owner is not None and (name in CALLED_AS or name.startswith("__")):
                    yield owner.name.value


def _spread(script: Script, names: frozenset[str], found: Leads) -> Iterator[str]:
    """Adds what speaks of one of the names in a script; yields what this is called by."""
    for bindings in script.names.all_bindings():
        for binding in bindings:
            if binding.dotted is not None and binding.dotted.rpartition(".")[2] in names:
                yield binding.name
    for name in script.source.of(syntax.Name):
        if name.value in names and (said := _said(script, name)) is not None:
            yield from _lead(found, [(script, said)])
            yield from _through(script, said, found)


def _through(script: Script, said: syntax.Node, found: Leads) -> Iterator[str]:
    """The names that what is spoken of in one place is called by because of that."""
    up = script.source.parents[said]
    above = script.source.parents.get(up)
    match up, above:
        case syntax.Call(), _ if up.func is said:
            found.is_open |= _makes_callable(script, said, found)
        case syntax.Attribute(), _:
            pass
        case syntax.Arg(), syntax.ClassDef(name=heir):
            yield heir.value
        case syntax.Arg(), syntax.Call(func=func):
            found.is_open |= _is_first_party(script, func)
        case syntax.Assign(targets=targets), _:
            for target in targets:
                if (name := last_name(target.target)) is not None:
                    yield name
                else:
                    found.is_open = True
        case _:
            found.is_open = True


def _is_first_party(script: Script, func: syntax.BaseExpression) -> bool:
    """Whether what is called may be a function or class of the project, by its name."""
    dotted = script.name(func)
    if dotted is not None:
        return script.program.module(script, dotted) is not None
    written = last_name(func)
    if written is None:
        return True
    made = re.compile(rb"(?:def|class)\s+" + re.escape(written.encode()) + rb"\b")
    return any(True for _ in script.everywhere((words([written]), made)))


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
