"""Classes that derive from another one of the project, and the methods that one leaves to them.

Trainers often have the loop in one class, ``for batch in loader: self.train_step(batch)``, and the step in another, which
derives from it: the call runs what the heirs define, since the class itself leaves the method open.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.solve.flow import listed_once, once
from speedlint.solve.terms import Definition
from speedlint.source import is_name

if TYPE_CHECKING:
    from speedlint.ask.script import Script


def derived(owner: Definition) -> list[Definition]:
    """The classes of the program that derive from a class, through others too, nearest first."""
    assert isinstance(owner.node, syntax.ClassDef)
    return _derived(owner.script, owner.node)


@listed_once
def _derived(script: Script, klass: syntax.ClassDef) -> Iterator[Definition]:
    todo, seen = [Definition(script, klass)], {klass}
    while todo:
        owner = todo.pop(0)
        for place in owner.script.everywhere(owner.name.encode()):
            for node in place.source.of(syntax.ClassDef):
                if node not in seen and any(_is_base(place, base, owner) for base in node.bases):
                    seen.add(node)
                    todo.append(Definition(place, node))
                    yield todo[-1]


def _is_base(script: Script, base: syntax.Arg, owner: Definition) -> bool:
    found = script.definition(base.value)
    return found is not None and found.node is owner.node


@once(False)
def _is_left_open(script: Script, function: syntax.FunctionDef) -> bool:
    """Whether a method does nothing: it is there for heirs to define."""
    return all(map(_does_nothing, function.body.body))


def _does_nothing(statement: syntax.Node) -> bool:
    match statement:
        case syntax.SimpleStatementLine(body=parts):
            return all(map(_does_nothing, parts))
        case syntax.Expr(value=value):
            return isinstance(value, syntax.SimpleString | syntax.ConcatenatedString | syntax.Ellipsis)
    return isinstance(statement, syntax.Pass | syntax.Raise)


@listed_once
def defined(script: Script, call: syntax.Call) -> Iterator[Definition]:
    """The methods that a call on ``self`` runs of a class which leaves the method open: those that its heirs define."""
    match call.func:
        case syntax.Attribute(value=value, attr=syntax.Name(value=name)) if is_name(value, "self"):
            klass = script.source.enclosing(call, syntax.ClassDef)
            if not isinstance(klass, syntax.ClassDef):
                return
            own = script.roles.calls.method(Definition(script, klass), name)
            if own is None or not isinstance(own.node, syntax.FunctionDef) or not _is_left_open(own.script, own.node):
                return
            for heir in derived(Definition(script, klass)):
                method = heir.script.roles.calls.method(heir, name)
                if (
                    method is not None
                    and isinstance(method.node, syntax.FunctionDef)
                    and method.script.names.owner(method.node) is heir.node
                ):
                    yield method


@listed_once
def openers(script: Script) -> Iterator[Script]:
    """The other scripts that have a base of a class of this one which leaves open a method that it defines."""
    found: dict[Script, None] = {}
    for klass in script.source.of(syntax.ClassDef):
        bases = [each for each in script.roles.calls.lineage(Definition(script, klass)) if each.script is not script]
        for base in bases if klass.bases else ():
            assert isinstance(base.node, syntax.ClassDef)
            for function in base.script.source.inside(base.node, syntax.FunctionDef):
                is_own = base.script.names.owner(function) is base.node and _is_left_open(base.script, function)
                if is_own and function.name.value in script.names.scope(klass.body).bindings:
                    found.update(dict.fromkeys(each.script for each in bases))
    yield from found
