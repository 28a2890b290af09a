"""Classes that derive from another one of the project, and the methods that one leaves to them.

Trainers often have the loop in one class, ``for batch in loader: self.train_step(batch)``, and the step in another, which
derives from it: the call runs what the heirs define, since the class itself leaves the method open.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.solve.flow import listed_once, once
from speedlint.solve.names import last_name
from speedlint.solve.terms import Definition, Value
from speedlint.solve.unpacking import all_written
from speedlint.source import is_name, is_none
from speedlint.torch import library
from speedlint.torch.words import Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_OF_LIBRARIES = frozenset(
    "__call__ __init__ action act add append apply call clear close compute copy count cpu cuda debug decode encode eval "
    "extend fit format forward backward get index info insert item items join keys load load_state_dict log mean modules "
    "open parameters pop predict put read remove render reset reset_parameters reverse run sample save score set shape size "
    "sort split start state_dict step stop sum to train transform update values write zero_grad".split()
)
"""Methods that objects of libraries have too, so that a name alone does not tell whose one is."""
FAMILY = 3
"""Classes that define a method of a name, from which on one of them is a base that is meant to be derived from."""
_FEW_READ = 12
"""Files that may derive from a class, up to which its heirs are looked for to find who calls what they inherit."""
_MOST_DERIVING = 64
"""Files that may derive from a class, up to which its heirs are looked for at all: where there are more it is what the
classes of a library have in common, and an object of it may be anything."""
_TOO_MANY = f"classes that derive from another one were not looked for where more than {_MOST_DERIVING} files may hold one"
_MAY_TRAIN = re.compile(rb"\.backward\(|DataLoader|(?:train|val|valid|test|data)_?loader")
_EMPTY = frozenset({"object", "abc.ABC"})
"""Classes of the library that bring no methods."""
_FORWARD = "forward"
_WITHOUT_FORWARD = library.LIGHTNING_MODULES | {"torch.nn.Module", "torch.nn.modules.module.Module"}
"""Modules whose ``forward`` only raises an error."""
_CALLS_ITSELF = b"self("
_MOST_READ = 64
"""Files that define a method of a name: each is read."""


def derived(owner: Definition) -> list[Definition] | None:
    """The classes of the program that derive from a class, through others too, nearest first; None where too many files may
    hold one."""
    assert isinstance(owner.node, syntax.ClassDef)
    return _derived(owner.script, owner.node)


def inheriting(owner: Definition) -> list[Definition]:
    """The same of a class that may hold a training, by what its file says; none where many files may hold an heir."""
    script = owner.script
    if not script.program.holding([script.key], _MAY_TRAIN) or len(script.program.deriving(script, owner.name)) > _FEW_READ:
        return []
    return derived(owner) or []


@once([])
def _derived(script: Script, klass: syntax.ClassDef) -> list[Definition] | None:
    found, seen = [Definition(script, klass)], {klass}
    for owner in found:
        if len(script.program.deriving(owner.script, owner.name)) > _MOST_DERIVING:
            script.program.bound(script, _TOO_MANY)
            return None
        for place in may_derive(owner.script, owner.name):
            for node in place.source.of(syntax.ClassDef):
                if node not in seen and any(_is_base(place, base, owner) for base in node.bases):
                    seen.add(node)
                    found.append(Definition(place, node))
    return found[1:]


def may_derive(script: Script, name: str) -> Iterator[Script]:
    """The scripts of a script's programs that may derive a class from one of a name."""
    for path in script.program.deriving(script, name):
        found = script if path == script.key else script.program.reached(path)
        if found is not None:
            yield found


def _is_base(script: Script, base: syntax.Arg, owner: Definition) -> bool:
    found = base_class(script, base)
    return found is not None and found.node is owner.node


def base_class(script: Script, base: syntax.Arg) -> Definition | None:
    """The first-party class that a class derives from by one of its bases, also by ``Base[int]``."""
    return script.definition(base.value.value if isinstance(base.value, syntax.Subscript) else base.value)


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
        case syntax.Return(value=value):
            return value is None or is_none(value) or _is_empty(value)
    return isinstance(statement, syntax.Pass | syntax.Raise | syntax.Assert)


def _is_empty(value: syntax.BaseExpression) -> bool:
    """Whether an expression is a dict or a list without anything in it."""
    match value:
        case syntax.Dict(elements=elements) | syntax.List(elements=elements):
            return not elements
        case syntax.Call(func=func, args=args):
            return not args and last_name(func) in ("dict", "list", "OrderedDict")
    return False


@listed_once
def defined(script: Script, call: syntax.Call) -> Iterator[Definition]:
    """The methods that a call runs of an object whose class leaves the method open, those that its heirs define; for
    ``self(x)`` in a module without one, their ``forward``."""
    match call.func:
        case syntax.Attribute(value=value, attr=syntax.Name(value=name)) if (klass := _class_of(script, value)) is not None:
            if _leaves_open(klass, name):
                yield from _overriding(klass, name)
            elif may_override(script.value(value)) and derived(klass) is not None:
                own = klass.script.roles.calls.method(klass, name)
                yield from (*((own,) if own is not None else ()), *_overriding(klass, name))
        case syntax.Name("self") as value if (klass := _class_of(script, value)) is not None and _lacks_forward(klass):
            yield from _overriding(klass, _FORWARD)


def _lacks_forward(klass: Definition) -> bool:
    """Whether a class is a module without a ``forward``, as one that holds the steps of a training for its heirs."""
    calls = klass.script.roles.calls
    bases = list(calls.foreign_bases(klass))
    is_module = any(base in _WITHOUT_FORWARD for base in bases)
    if not is_module or any(base not in _EMPTY and base not in _WITHOUT_FORWARD for base in bases):
        return False
    own = calls.method(klass, _FORWARD)
    return calls.method(klass, "__call__") is None and (own is None or _is_open(own))


def in_place_of(script: Script, call: syntax.Call) -> Iterator[Definition]:
    """The methods that heirs have in the place of one that a class calls on ``self``."""
    match call.func:
        case syntax.Attribute(value=value, attr=syntax.Name(value=name)) if is_name(value, "self"):
            klass = _class_of(script, value)
            yield from _overriding(klass, name) if klass is not None else ()


def _overriding(klass: Definition, name: str) -> Iterator[Definition]:
    """The methods of a name that the heirs of a class have in the place of its own, or of none."""
    own = klass.script.roles.calls.method(klass, name)
    for heir in derived(klass) or ():
        method = heir.script.roles.calls.method(heir, name)
        if (
            method is not None
            and isinstance(method.node, syntax.FunctionDef)
            and (own is None or method.node is not own.node)
        ):
            yield method


def may_override(value: Value) -> bool:
    """Whether an object may be of an heir of the class that is known of it, and have other methods."""
    return value.assumed and value.definition is not None and isinstance(value.definition.node, syntax.ClassDef)


def _class_of(script: Script, value: syntax.BaseExpression) -> Definition | None:
    """The first-party class of the object that a method is called on."""
    if is_name(value, "self"):
        around = script.source.enclosing(value, syntax.ClassDef)
        return Definition(script, around) if isinstance(around, syntax.ClassDef) else None
    if script.name(value) is not None:
        return None
    known = script.value(value)
    return known.definition if known.role in (Role.INSTANCE, Role.MODULE) else None


def _leaves_open(klass: Definition, name: str) -> bool:
    """Whether a class has no method of a name that does something, nor may inherit one of a library's."""
    own = klass.script.roles.calls.method(klass, name)
    if own is not None:
        return _is_open(own)
    return all(base in _EMPTY for base in klass.script.roles.calls.foreign_bases(klass))


def by_name(script: Script, call: syntax.Call) -> list[Definition]:
    """The methods that a call runs of an object that is out of sight, where one class of the program leaves its name open,
    or several override it, and all that define it derive from that one: ``model.optimize_parameters()`` of a model chosen
    by an option."""
    match call.func:
        case syntax.Attribute(value=value, attr=syntax.Name(value=name)) if (
            name not in _OF_LIBRARIES and name in script.program.left_open(script) and script.name(call.func) is None
        ):
            known = script.value(value)
            is_hidden = known.role is Role.UNKNOWN and known.definition is None and not is_name(value, "self")
            if is_hidden and not _is_of_library(script, value):
                return _family(script, name)
    return []


def _is_of_library(script: Script, holder: syntax.BaseExpression) -> bool:
    """Whether a variable or an attribute is given what a library makes."""
    made = all_written(script.names.reaching(holder)) if isinstance(holder, syntax.Name) else []
    given = [(script, each) for each in made] + list(script.roles.origins(holder))
    calls = ((place, each.func) for place, each in given if isinstance(each, syntax.Call))
    names = (place.name(func) for place, func in calls if place.definition(func) is None)
    return any(name is not None and "." in name for name in names)


@listed_once
def _family(script: Script, name: str) -> Iterator[Definition]:
    if script.program.number_of_others(script, b"def " + name.encode() + b"(") > _MOST_READ:
        return
    methods = [
        (Definition(place, owner), Definition(place, function))
        for place in script.everywhere(b"def " + name.encode() + b"(")
        for function in place.source.of(syntax.FunctionDef)
        if function.name.value == name and (owner := place.names.owner(function)) is not None
    ]
    left = [owner for owner, method in methods if _is_open(method)]
    if not left and len(methods) >= FAMILY:
        left = [owner for owner, _ in methods if all(_descends(other, owner) for other, _ in methods)]
    if len(left) == 1 and all(_descends(owner, left[0]) for owner, _ in methods):
        yield from (method for _, method in methods if not _is_open(method))


def _descends(owner: Definition, base: Definition) -> bool:
    return any(each.node is base.node for each in owner.script.roles.calls.lineage(owner))


def _is_open(method: Definition) -> bool:
    return isinstance(method.node, syntax.FunctionDef) and _is_left_open(method.script, method.node)


def is_left_to(owner: Definition, name: str) -> bool:
    """Whether a base of a class leaves a method of the name open, so that it is called by that name wherever it is."""
    if name not in owner.script.program.left_open(owner.script):
        return False
    bases = [each for each in owner.script.roles.calls.lineage(owner) if each.node is not owner.node]
    methods = (base.script.roles.calls.method(base, name) for base in bases)
    return any(method is not None and _is_open(method) for method in methods)


@listed_once
def openers(script: Script) -> Iterator[Script]:
    """The other scripts that have a base of a class of this one which leaves open a method that it defines, or calls itself
    without a ``forward``."""
    found: dict[Script, None] = {}
    for klass in script.source.of(syntax.ClassDef):
        bases = [each for each in script.roles.calls.lineage(Definition(script, klass)) if each.script is not script]
        for base in bases if klass.bases else ():
            assert isinstance(base.node, syntax.ClassDef)
            for function in base.script.source.inside(base.node, syntax.FunctionDef):
                is_own = base.script.names.owner(function) is base.node and _is_left_open(base.script, function)
                if is_own and function.name.value in script.names.scope(klass.body).bindings:
                    found.update(dict.fromkeys(each.script for each in bases))
            calls_itself = base.script.program.holding([base.script.key], _CALLS_ITSELF)
            if calls_itself and _FORWARD in script.names.scope(klass.body).bindings and _lacks_forward(base):
                found.update(dict.fromkeys(each.script for each in bases))
    yield from found
