"""Code that surely raises an error where it stands, so that nothing behind it runs: what no run as shipped gets past.

Only what Python itself decides, whatever the machine, the data and the installed packages: a name that nothing binds, an
option that the parser does not have or has already, a module that a folder of the project lacks, arguments that a function
of the project does not take, a result of two values that is taken apart into three, an object of a class that lacks an
abstract method. And a list where torch, in all releases, takes a tensor.
"""

from __future__ import annotations

import argparse
import builtins
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from speedlint.facts import syntax
from speedlint.solve import heirs
from speedlint.solve.flow import listed_once, once
from speedlint.solve.names import Binding, Kind, last_name
from speedlint.solve.terms import Definition
from speedlint.solve.values import returned
from speedlint.source import is_name, is_target
from speedlint.torch.library import FORWARD_HOOKS
from speedlint.torch.words import Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_FINDS_BY_ITSELF = (b"sys.path", b"__path__", b"exec(", b"globals()", b"locals()", b"get_ipython", b"builtins")
_BINDS_BY_ITSELF = (
    *(*_FINDS_BY_ITSELF, b"__getattr__", b"setattr", b"__dict__", b"sys.modules", b"vars(", b"f_globals"),
    *(b"__globals__", b"global_enum", b"ctypes", re.compile(rb"(?<![\w.])(?:eval|compile)\(")),
)
"""What may bind a module's name without writing it."""
_BUILTINS = frozenset(dir(builtins)).union(
    "__file__ __path__ __annotations__ __builtins__ __cached__ __class__ __module__ __qualname__ WindowsError".split()
)
_OF_PYTHON_2 = frozenset("basestring cmp execfile file long raw_input reduce reload unichr unicode xrange".split())
_ELSEWHERE = (syntax.Lambda, syntax.Try, syntax.Import, syntax.ImportFrom, syntax.Annotation)
"""In what a name is read at another time, or not at all, or where the error is caught."""
_CAUGHT = (syntax.Lambda, syntax.Try)
_OF_TENSORS = tuple(
    f"torch.{name}" for name in "abs argmax argmin exp log max mean median min prod sqrt std sum var".split()
)
"""What raises a TypeError for a list in each release, of tensors too."""
_PARSER = "argparse.ArgumentParser"
_OF_PARSER = frozenset(dir(argparse.ArgumentParser()))
_OF_NAMESPACE = frozenset(dir(argparse.Namespace()))
_NOT_OF_LISTS = frozenset(
    "to cuda cpu float double half long size shape view detach numpy max min mean sum argmax squeeze softmax item".split()
)
"""What tensors have, and lists and tuples have not."""
_READ_ONLY = frozenset({"print", "str", "repr", "vars", "type", "isinstance", "json.dumps", "pprint.pprint", "wandb.init"})
"""What is handed the parsed options and sets none."""
_READS = frozenset({"items", "keys", "values", "get", "copy"})
"""Methods of a dict that leave it as it is."""
_SETS_BY_NAME = (b"setattr", b"__dict__", b"__setattr__", b"Namespace", b"exec(", b"globals(")
_BINDS_MODULES = (*_SETS_BY_NAME, b"vars(", b"sys.modules", b"runpy", b"builtins")
"""What may bind a module's name from elsewhere, by its text or by an object that is the module."""
_PLAIN = frozenset({"object", "abc.ABC"})
_ABSTRACT = frozenset({"abc.abstractmethod", "abc.abstractproperty"})
_MOST_BASES = 16


_Base = Definition | str | None


class Stop(NamedTuple):
    """What surely raises, why, in a clause, and where the error is: in what a call runs, of another script perhaps."""

    node: syntax.Node
    why: str
    place: Script
    cause: syntax.Node


_Picked = Callable[[syntax.Node], bool]


@listed_once
def within(script: Script) -> Iterator[Stop]:
    """What surely raises in a script where it is run."""
    yield from _found(script, script.source.module, lambda _: True)


def _found(script: Script, part: syntax.Node, is_picked: _Picked) -> Iterator[Stop]:
    """What surely raises in a part of a script where it is run, among the nodes that are picked."""
    if script.source.cells is not None:
        return
    if not any(mark in script.source.data for mark in _FINDS_BY_ITSELF):
        for name in _unbound(script):
            if script.source.contains(part, name) and is_picked(name):
                yield Stop(name, f"nothing has bound `{name.value}`, which it reads", script, name)
    for node, why in (
        *_lacking(script, part),
        *_unnamed(script, part),
        *_undeclared(script, part),
        *_declared_twice(script, part),
        *_unfit(script, part, is_picked),
        *_lists(script, part),
    ):
        if is_picked(node) and _is_plain(script, node):
            yield Stop(node, why, script, node)
    for call in script.source.inside(part, syntax.Call):
        if isinstance(call.func, syntax.Name) and is_picked(call) and _is_plain(script, call):
            inner = _in_call(script, call)
            if inner is not None:
                yield Stop(call, inner.why, inner.place, inner.cause)


def never_made(script: Script, klass: syntax.ClassDef) -> Stop | None:
    """Why no object of a class can be made, nor of one that derives from it, though the program makes some."""
    made = Definition(script, klass)
    if heirs.derived(made) != []:
        return None
    if (why := _abstract(made)) is not None:
        calls = ((place, call) for place in script.everywhere(made.name.encode()) for call in place.written_calls(made.name))
        called = next(((place, call) for place, call in calls if _exact(place, call.func) == made), None)
        return Stop(called[1], why, *called) if called is not None else None
    constructor = _constructor(made)
    return _in_function(Definition(script, constructor)) if constructor is not None else None


def _in_call(script: Script, call: syntax.Call) -> Stop | None:
    """What surely stops a function or constructor of the project that a call runs."""
    made = _written(script, call.func)
    if made is None:
        return None
    if not isinstance(made.node, syntax.FunctionDef):
        constructor = _constructor(made)
        if constructor is None:
            return None
        made = Definition(made.script, constructor)
    stop = _in_function(made)
    return stop if stop is not None and _exact(script, call.func) is not None else None


@once(None)
def _in_function(made: Definition) -> Stop | None:
    """What stops a function in each of its runs."""
    script, function = made.script, made.node
    if not _runs_at_once(made):
        return None
    return next(
        _found(
            script, function, lambda node: script.function(node) is function and script.order.always_runs(node, function)
        ),
        None,
    )


def _is_plain(script: Script, node: syntax.Node) -> bool:
    """Whether an error of a node is neither caught nor swallowed by what it stands in, nor raised at another time."""
    up = script.source.enclosing(node, *_CAUGHT, syntax.With, syntax.FunctionDef, syntax.ClassDef)
    while isinstance(up, syntax.With):
        if not all(lets_errors_through(script, item.item) for item in up.items):
            return False
        up = script.source.enclosing(up, *_CAUGHT, syntax.With, syntax.FunctionDef, syntax.ClassDef)
    return not isinstance(up, _CAUGHT)


def lets_errors_through(script: Script, manager: syntax.BaseExpression) -> bool:
    """Whether a context manager is a library's that swallows no error."""
    name = script.name(manager.func) if isinstance(manager, syntax.Call) else script.name(manager)
    return name is not None and not name.endswith(("suppress", "raises", "assertRaises", "catch_errors", "ExitStack"))


# Names that nothing binds


@listed_once
def _unbound(script: Script) -> Iterator[syntax.Name]:
    """The names that the module's own code reads before anything can have bound them, and those that a function reads which
    nothing binds at all; none of an excerpt, which imports nothing."""
    is_excerpt = not any(True for kind in (syntax.Import, syntax.ImportFrom) for _ in script.source.of(kind))
    starred = _starred(script)
    if is_excerpt or starred is None:
        return
    module = script.names.scope(script.source.module)
    for name in script.source.of(syntax.Name):
        scope = script.names.scope(name)
        if name.value in _BUILTINS or (scope is not module and scope.lookup(name.value) is not None):
            continue
        if not _is_read(script, name) or script.source.enclosing(name, *_ELSEWHERE) is not None:
            continue
        if any(_may_give(script, each, name.value) for each in starred):
            continue
        if script.function(name) is not None and scope is not module:
            if not _is_given(script, name.value):
                yield name
        elif scope is module:
            bound = scope.bindings.get(name.value, [])
            if not any(script.order.may_run_before(each.node, name) for each in bound):
                yield name


@once(None)
def _starred(script: Script) -> tuple[Script, ...] | None:
    """The modules of the project that ``from module import *`` takes names from, through others too; None where one of them
    is out of sight, or binds names that cannot be told."""
    found: list[Script] = []
    todo = [script]
    while todo:
        place = todo.pop()
        for star in place.names.module.stars:
            leads = place.program.module(place, star)
            other = place.program.reached(leads[0]) if leads is not None and not leads[1] else None
            if other is None or any(mark in other.source.data for mark in _FINDS_BY_ITSELF):
                return None
            if other not in found:
                found.append(other)
                todo.append(other)
    return tuple(found)


def _may_give(script: Script, starred: Script, name: str) -> bool:
    """Whether a module that all names are taken from, or another of its name, may have one; a package has its modules."""
    return (
        name in starred.names.module.bindings
        or (starred.path.name == "__init__.py" and starred.program.module(starred, f".{name}") is not None)
        or _may_be_another(script, starred, name)
    )


def _is_given(script: Script, name: str) -> bool:
    """Whether a name of a module may be bound from outside: as ``module.name = x``, which ``self.name = x`` is not, or by
    Python 2."""
    if name in _OF_PYTHON_2:
        return True
    targets = (
        target.target for place in script.everywhere(f".{name}".encode()) for target in place.source.of(syntax.AssignTarget)
    )
    set_here = [each for each in targets if isinstance(each, syntax.Attribute) and each.attr.value == name]
    if not set_here or not all(is_name(each.value, "self") for each in set_here):
        return bool(set_here)
    return any(script.program.mentions(script, mark) for mark in _BINDS_MODULES)


def _is_read(script: Script, name: syntax.Name) -> bool:
    """Whether an expression takes the value of a name: that of ``x.y``, ``x[0]``, ``x(...)`` or ``f(x)``."""
    match script.source.parents[name]:
        case syntax.Attribute(value=value) | syntax.Subscript(value=value) | syntax.Arg(value=value):
            return value is name
        case syntax.Param(default=default):
            return default is name
        case syntax.Call(func=func):
            return func is name
    return False


# Modules that the project does not have


def _lacking(script: Script, part: syntax.Node) -> Iterator[tuple[syntax.Node, str]]:
    """The imports of modules that would stand in a folder of the project which has none of their name."""
    for statement in script.source.inside(part, syntax.ImportFrom):
        dotted = statement.relative + (script.text(statement.module) if statement.module is not None else "")
        if (lacking := script.program.lacking(script, dotted)) is not None:
            yield statement, f"the project has no module `{lacking}`"
    for plain in script.source.inside(part, syntax.Import):
        for alias in plain.names:
            if (lacking := script.program.lacking(script, script.text(alias.name))) is not None:
                yield plain, f"the project has no module `{lacking}`"


@listed_once
def _unnamed(script: Script, part: syntax.Node) -> Iterator[tuple[syntax.Node, str]]:
    """The imports of names that nothing binds in the module of the project that they are taken from."""
    for statement in script.source.inside(part, syntax.ImportFrom):
        module = statement.relative + (script.text(statement.module) if statement.module is not None else "")
        if "." not in module and script.program.is_imported(script):
            continue  # which folder a module by itself is looked for in hangs on the program
        for alias in statement.aliases:
            name = script.text(alias.name)
            leads = script.program.module(script, f"{module}.{name}")
            if leads is not None and leads[1] == name and _binds_nothing(script, leads[0], module, name):
                yield statement, f"`{module}` has no `{name}`"


def _binds_nothing(script: Script, path: Path, module: str, name: str) -> bool:
    """Whether a module of the project surely has no such name; none that is a package, which may have more out of sight."""
    other = script.program.reached(path) if path.name != "__init__.py" else None
    if other is None or name in other.names.module.bindings or name.startswith("__"):
        return False
    if _may_be_found_elsewhere(script, path, module):
        return False
    starred = _starred(other)
    if starred is None or any(_may_give(other, each, name) for each in starred):
        return False
    disk = script.program.disk
    packages = [folder / "__init__.py" for folder in path.parents if disk.exists(str(folder / "__init__.py"))]
    if any(disk.mentions(str(each), mark) for each in (path, script.key, *packages) for mark in _BINDS_BY_ITSELF):
        return False
    beside = (each for each in (*script.program.around(script.path), *packages) if each not in (path, script.key))
    return not any(disk.mentions(str(each), name.encode()) for each in beside)


def _may_be_found_elsewhere(script: Script, path: Path, module: str) -> bool:
    """Whether Python may take another module of a name: one of its own, a compiled one or a package beside it, or one in a
    folder above the script's, where it is started from there."""
    parts = module.split(".") if not module.startswith(".") else []
    if parts and parts[0] in sys.stdlib_module_names:
        return True
    disk, stem = script.program.disk, path.stem
    if any(each != path.name and not each.endswith(".pyi") for each in disk.names(str(path.parent), stem, f"{stem}.*")):
        return True
    places = [folder.joinpath(*parts) for folder in script.key.parents] if parts else []
    found = [each.with_suffix(".py") for each in places] + [each / "__init__.py" for each in places]
    return any(each != path and disk.exists(str(each)) for each in found)


# Lists where torch takes a tensor


def _lists(script: Script, part: syntax.Node) -> Iterator[tuple[syntax.Node, str]]:
    """The calls that hand a written list to a function of torch's that takes tensors alone, as NumPy's takes lists."""
    for call in script.calls(*_OF_TENSORS):
        is_list = bool(call.args) and isinstance(call.args[0].value, syntax.List | syntax.ListComp)
        if is_list and call.args[0].keyword is None and script.source.contains(part, call):
            yield call, f"`{script.text(call.func)}` takes a tensor, and is passed a list"


# Options that the parser does not have


def _undeclared(script: Script, part: syntax.Node) -> Iterator[tuple[syntax.Node, str]]:
    """What is read of a parser of options, or of what it has parsed, that neither has."""
    for call in script.source.inside(part, syntax.Call) if any(True for _ in script.calls(_PARSER)) else ():
        match call.func:
            case syntax.Attribute(value=syntax.Name() as parser, attr=syntax.Name(value=method)) if (
                method not in _OF_PARSER and _is_call_of(_only_value(script, parser), script, _PARSER)
            ):
                yield (call, f"an `{_PARSER}` has no `{method}`")
    for assign in script.source.inside(part, syntax.Assign):
        match assign:
            case syntax.Assign(targets=[syntax.AssignTarget(target=syntax.Name() as name)]):
                options = _options_of(script, assign.value) if _only_value(script, name) is assign.value else None
                if options is not None and _only_shown(script, name):
                    yield from _beyond(script, name, options)


def _declared_twice(script: Script, part: syntax.Node) -> Iterator[tuple[syntax.Node, str]]:
    """The options that a parser is told of a second time, on which it raises."""
    seen: dict[tuple[str, object], syntax.Call] = {}
    for call in script.source.inside(part, syntax.Call) if any(True for _ in script.calls(_PARSER)) else ():
        match call.func:
            case syntax.Attribute(value=syntax.Name() as parser, attr=syntax.Name("add_argument")) if (
                _is_call_of(made := _only_value(script, parser), script, _PARSER)
                and script.argument(made, "conflict_handler") is None
            ):
                known = (script.constant(arg.value) for arg in call.args if arg.keyword is None and not arg.star)
                for flag in (each.value for each in known if each is not None and str(each.value).startswith("-")):
                    first = seen.setdefault((parser.value, flag), call)
                    if first is not call and script.order.always_runs(first, script.function(call) or script.source.module):
                        yield call, f"the parser has the option `{flag}` already"


def _beyond(script: Script, parsed: syntax.Name, options: frozenset[str]) -> Iterator[tuple[syntax.Node, str]]:
    """What is read of parsed options that is none of ``options``, and that nothing sets."""
    for use in script.names.uses(parsed):
        read = script.source.parents[use]
        if not isinstance(read, syntax.Attribute) or read.value is not use:
            continue
        name = read.attr.value
        if name not in options and name not in _OF_NAMESPACE and not _may_be_set(script, name):
            yield (read, f"`{script.text(read)}` is no option of its parser")


def _may_be_set(script: Script, name: str) -> bool:
    """Whether something in the program may give an object an attribute, by its name or by a text."""
    if any(script.program.mentions(script, mark) for mark in _SETS_BY_NAME):
        return True
    if any(place.values.is_assigned(name) for place in script.everywhere(name.encode())):
        return True
    return _is_set_on_objects(script, name, _is_target)


def _is_set_on_objects(script: Script, name: str, is_set: Callable[[Script, syntax.Attribute], bool]) -> bool:
    """Whether the program sets an attribute of a name, or has its name as a text."""
    return any(
        any(each.attr.value == name and is_set(place, each) for each in place.source.of(syntax.Attribute))
        or any(text.evaluated_value == name for text in place.source.of(syntax.SimpleString))
        for place in script.everywhere(name.encode())
    )


def _is_target(script: Script, attribute: syntax.Attribute) -> bool:
    """Whether an attribute is set where it is written, alone or among others; ``self.x = x`` is of another object, and a
    library's switch is none of an object."""
    child: syntax.Node = attribute
    up = script.source.parents[child]
    while isinstance(up, (syntax.Element, syntax.StarredElement, syntax.Tuple, syntax.List)):
        child, up = up, script.source.parents[up]
    if child is attribute and (is_name(attribute.value, "self") or script.name(attribute) is not None):
        return False
    return isinstance(up, (syntax.AssignTarget, syntax.AsName)) or getattr(up, "target", None) is child


def _only_shown(script: Script, parsed: syntax.Name) -> bool:
    """Whether parsed options are read one by one, and handed as a whole to code of the project, or to what sets none."""
    return all(_keeps(script, use) for use in script.names.uses(parsed))


def _keeps(script: Script, use: syntax.Node) -> bool:
    up = script.source.parents[use]
    match up:
        case syntax.Attribute(value=value):
            return value is use
        case syntax.AssignTarget() | syntax.Return() | syntax.FormattedStringExpression():
            return True
        case syntax.Arg(star=""):
            call = script.source.parents[up]
            if not isinstance(call, syntax.Call):
                return False
            if script.name(call.func) == "vars":
                around = script.source.parents[call]
                is_read = isinstance(around, syntax.Attribute) and around.attr.value in _READS
                return is_read or (isinstance(around, syntax.Arg) and _keeps(script, call))
            return script.name(call.func) in _READ_ONLY or script.definition(call.func) is not None
    return False


@once(None)
def _options_of(script: Script, parsed: syntax.BaseExpression) -> frozenset[str] | None:
    """The names under which a parser keeps its options, where ``parsed`` is a call that parses them; None where there may be
    more of them."""
    match parsed:
        case syntax.Call(func=syntax.Attribute(value=syntax.Name() as parser, attr=syntax.Name("parse_args"))):
            return _options(script, parser) if script.argument(parsed, "namespace", 1) is None else None
        case syntax.Call(func=func):
            made = _written(script, func)
            if made is None or not isinstance(made.node, syntax.FunctionDef) or not _runs_at_once(made):
                return None
            found = [_options_of_result(made.script, result) for result in returned(made)]
            return found[0] if len(found) == 1 and found[0] is not None and _exact(script, func) is not None else None
    return None


def _options_of_result(script: Script, result: syntax.BaseExpression) -> frozenset[str] | None:
    if isinstance(result, syntax.Name):
        value = _only_value(script, result) if _only_shown(script, result) else None
        return _options_of(script, value) if value is not None else None
    return _options_of(script, result)


def _options(script: Script, parser: syntax.Name) -> frozenset[str] | None:
    """The names under which a parser keeps its options; None where it may get others than those that are written here."""
    made = _only_value(script, parser)
    if not _is_call_of(made, script, _PARSER) or any(
        arg.keyword is None or arg.keyword.value == "parents" for arg in made.args
    ):
        return None
    found: set[str] = set()
    todo = [parser]
    while todo:
        for use in script.names.uses(todo.pop()):
            up = script.source.parents[use]
            if isinstance(up, syntax.AssignTarget):
                continue
            call = script.source.parents[up]
            if not (
                isinstance(up, syntax.Attribute) and up.value is use and isinstance(call, syntax.Call) and call.func is up
            ):
                return None
            match up.attr.value:
                case "add_argument":
                    if any(arg.star for arg in call.args) or (name := script.values.destination(call)) is None:
                        return None
                    found.add(name)
                case "add_argument_group" | "add_mutually_exclusive_group":
                    match script.source.parents[call]:
                        case syntax.Assign(targets=[syntax.AssignTarget(target=syntax.Name() as group)]) if (
                            _only_value(script, group) is call
                        ):
                            todo.append(group)
                        case _:
                            return None
                case "parse_args" | "print_help" | "print_usage" | "error" | "format_help" | "parse_known_args":
                    pass
                case _:
                    return None
    return frozenset(found)


def _only_value(script: Script, name: syntax.Name) -> syntax.BaseExpression | None:
    """The one value that a variable of this file ever has; None where there may be others."""
    scope = script.names.scope(name).lookup(name.value)
    bindings = scope.bindings.get(name.value, []) if scope is not None else []
    is_assigned = len(bindings) == 1 and bindings[0].kind is Kind.ASSIGN and not bindings[0].path
    is_assigned = is_assigned and _is_alone(script, bindings[0])
    return bindings[0].value if is_assigned else None


def _is_alone(script: Script, binding: Binding) -> bool:
    """Whether a variable is bound in one place alone, and by no ``from module import *``."""
    owner, starred = script.names.scope(binding.node).lookup(binding.name), _starred(script)
    if owner is None or starred is None or len(owner.bindings.get(binding.name, ())) != 1:
        return False
    return owner is not script.names.module or not any(_may_give(script, each, binding.name) for each in starred)


def _is_call_of(made: syntax.BaseExpression | None, script: Script, name: str) -> TypeGuard[syntax.Call]:
    return isinstance(made, syntax.Call) and script.is_call_to(made, name)


# Calls that a function or class of the project does not take


def _exact(script: Script, expression: syntax.Node) -> Definition | None:
    """The function or class that a name stands for, where it is bound once, as it is written, and by no other file."""
    made = _written(script, expression)
    return made if isinstance(expression, syntax.Name) and not _is_given(script, expression.value) else None


@once(None)
def _written(script: Script, expression: syntax.Node) -> Definition | None:
    """The function or class that a name stands for, where this file binds it once, as it is written; another file may yet
    bind it anew, which takes longer to rule out."""
    if not isinstance(expression, syntax.Name):
        return None
    bindings = script.names.reaching(expression)
    if len(bindings) != 1 or not _is_alone(script, bindings[0]):
        return None
    binding, place = bindings[0], script
    if binding.kind is Kind.IMPORT and binding.dotted is not None and _is_plain(script, binding.node):
        leads, other = script.imported_binding(binding.dotted)
        if leads is None or other is None or not _is_alone(other, leads) or _may_be_another(script, other, leads.name):
            return None
        binding, place = leads, other
    node = binding.node
    if not isinstance(node, (syntax.FunctionDef, syntax.ClassDef)) or node.decorators:
        return None
    return Definition(place, node) if next(place.order.under(node), None) is None else None


def _may_be_another(script: Script, other: Script, name: str) -> bool:
    """Whether a file of the program with the same name as an imported one binds a name too: which of them is meant hangs on
    where the program starts."""
    same = [path for path in script.program.around(script.path) if path.name == other.path.name and path != other.key]
    return any(script.program.disk.mentions(str(path), name.encode()) for path in same)


def _runs_at_once(definition: Definition) -> bool:
    """Whether a call of a function runs its body: it is no generator, and not asynchronous."""
    node, source = definition.node, definition.script.source
    yields = source.inside(node, syntax.Yield)
    is_generator = any(source.enclosing(each, syntax.FunctionDef, syntax.Lambda) is node for each in yields)
    return isinstance(node, syntax.FunctionDef) and not node.asynchronous and not is_generator


def _unfit(script: Script, part: syntax.Node, is_picked: _Picked) -> Iterator[tuple[syntax.Node, str]]:
    """The calls that a function or class of the project does not take, and the results that do not fit their names."""
    for call in script.source.inside(part, syntax.Call):
        why = _misfit(script, call) if isinstance(call.func, syntax.Name) and is_picked(call) else None
        if why is not None and _exact(script, call.func) is not None:
            yield call, why
    for assign in script.source.inside(part, syntax.Assign):
        if isinstance(assign.value, syntax.Call) and is_picked(assign):
            why = _miscounted(script, assign)
            if why is not None:
                yield assign, why
            yield from _tuples_as_tensors(script, assign)


def _misfit(script: Script, call: syntax.Call) -> str | None:
    """Why a call of a function or class raises before it runs anything of it, if that is what its name stands for."""
    made = _written(script, call.func)
    if made is None:
        return None
    if isinstance(made.node, syntax.FunctionDef):
        return _unmatched(made.node, call, 0)
    constructor = _constructor(made)
    return _abstract(made) or (_unmatched(constructor, call, 1) if constructor is not None else None)


def _unmatched(function: syntax.FunctionDef, call: syntax.Call, bound: int) -> str | None:
    """Why a function does not take the arguments of a call; ``bound`` are the parameters that are passed by themselves."""
    if any(arg.star for arg in call.args):
        return None
    params = function.params
    written = [each.name.value for each in (*params.posonly_params, *params.params)]
    by_position = written[bound:]
    passed = sum(arg.keyword is None for arg in call.args)
    called = last_name(call.func)
    if passed > len(by_position) and not isinstance(params.star_arg, syntax.Param):
        return f"`{called}` takes {len(by_position)} arguments by position, and is passed {passed}"
    keywords = [arg.keyword.value for arg in call.args if arg.keyword is not None]
    named = {each.name.value for each in (*params.params, *params.kwonly_params)} - set(written[:bound])
    unknown = next((each for each in keywords if each not in named), None)
    if unknown is not None and params.star_kwarg is None:
        return f"`{called}` takes no `{unknown}`"
    required = [
        each.name.value
        for each in (*(*params.posonly_params, *params.params)[bound:][passed:], *params.kwonly_params)
        if each.default is None
    ]
    lacking = next((each for each in required if each not in keywords), None)
    return f"`{called}` needs `{lacking}`, which is not passed" if lacking is not None else None


def _constructor(made: Definition) -> syntax.FunctionDef | None:
    """The ``__init__`` that a class defines itself, where nothing else decides what a call of the class takes."""
    scope = made.script.names.scope(made.node.body)
    bound = scope.bindings.get("__init__", [])
    if len(bound) != 1 or not isinstance(bound[0].node, syntax.FunctionDef) or bound[0].node.decorators:
        return None
    if next(made.script.order.under(bound[0].node), None) is not None:
        return None
    return bound[0].node if all(map(_is_made_plainly, _bases(made))) else None


def _is_made_plainly(base: _Base) -> bool:
    """Whether a base of a class, or the class itself, leaves it to ``__init__`` what a call of the class takes."""
    if isinstance(base, str):
        return base in _PLAIN or base.startswith("torch.")
    if base is None or not isinstance(base.node, syntax.ClassDef) or base.node.keywords or base.node.decorators:
        return False
    return "__new__" not in base.script.names.scope(base.node.body).bindings


def _bases(made: Definition) -> Iterator[_Base]:
    """A class and all its bases: the project's, the names of a library's, and None for what is out of sight."""
    todo: list[Definition] = [made]
    seen: set[syntax.Node] = set()
    while todo:
        klass = todo.pop()
        if klass.node in seen or len(seen) > _MOST_BASES or not isinstance(klass.node, syntax.ClassDef):
            yield None
            continue
        seen.add(klass.node)
        yield klass
        for base in klass.node.bases:
            found = klass.script.definition(base.value)
            if found is not None:
                todo.append(found)
            else:
                yield klass.script.name(base.value)


def _abstract(made: Definition) -> str | None:
    """Why no object can be made of a class: it has an abstract method that none of its classes defines otherwise."""
    bases = list(_bases(made))
    if not all(isinstance(each, Definition) or each in _PLAIN for each in bases) or "abc.ABC" not in bases:
        return None
    classes = [each for each in bases if isinstance(each, Definition)]
    abstract: dict[str, str] = {}
    defined: set[str] = set()
    for klass in classes:
        for written, bound in klass.script.names.scope(klass.node.body).bindings.items():
            own = (
                f"_{klass.name.lstrip('_')}{written}" if written.startswith("__") and not written.endswith("__") else written
            )
            if all(_is_abstract(klass.script, each) for each in bound):
                abstract[own] = written
            else:
                defined.add(own)
        if any(each.star for each in klass.node.bases) or klass.node.keywords:
            return None
    lacking = next((each for each in sorted(abstract) if each not in defined), None)
    return f"`{made.name}` defines no `{abstract[lacking]}`, which is abstract" if lacking is not None else None


def _is_abstract(script: Script, binding: Binding) -> bool:
    node = binding.node
    return isinstance(node, syntax.FunctionDef) and any(script.name(each.decorator) in _ABSTRACT for each in node.decorators)


def _miscounted(script: Script, assign: syntax.Assign) -> str | None:
    """Why the result of a call cannot be taken apart into the names that it is assigned to."""
    match assign:
        case syntax.Assign(targets=[syntax.AssignTarget(target=syntax.Tuple(elements=names))], value=syntax.Call() as call):
            if any(isinstance(each, syntax.StarredElement) for each in names):
                return None
            made = _certain(script, call)
            found = [sizes(each) for each in made]
            counts = {size for each in found for size in each}
            if counts and all(found) and None not in counts and len(names) not in counts:
                given = " or ".join(map(str, sorted(count for count in counts if count is not None)))
                return f"`{script.text(call.func)}` returns {given} values, which are taken apart into {len(names)}"
    return None


def _tuples_as_tensors(script: Script, assign: syntax.Assign) -> Iterator[tuple[syntax.Node, str]]:
    """Where a method of tensors is asked of what holds a tuple, as a network's ``forward`` returns it."""
    match assign:
        case syntax.Assign(targets=[syntax.AssignTarget(target=syntax.Name() as name)], value=syntax.Call() as call):
            asked = asked_as_tensor(script, name)
            found = [sizes(each) for each in _certain(script, call)] if asked is not None else []
            if asked is not None and found and all(each and None not in each for each in found):
                yield asked, f"`{script.text(call.func)}` returns a tuple, which has no `{asked.attr.value}`"


def asked_as_tensor(script: Script, bound: syntax.Name) -> syntax.Attribute | None:
    """Where a method that tensors have, and lists and tuples have not, is asked of what is bound by a name, and by it
    alone."""
    for use in script.names.uses(bound):
        asked = script.source.parents[use]
        if not isinstance(asked, syntax.Attribute) or asked.value is not use or asked.attr.value not in _NOT_OF_LISTS:
            continue
        if [each.node for each in script.names.reaching(use)] == [bound]:
            return asked
    return None


def _certain(script: Script, call: syntax.Call) -> list[Definition]:
    """The functions of the project one of which a call surely runs: what its name stands for, or the methods of the objects
    that it may be called on."""
    made = _written(script, call.func)
    if made is not None:
        return [made] if _exact(script, call.func) is not None else []
    is_module = script.role(call.func) is Role.MODULE
    if is_module and (script.program.mentions(script, FORWARD_HOOKS) or _calls_itself(script, call)):
        return []
    found = script.roles.calls.may_run(call) if is_module or isinstance(call.func, syntax.Attribute) else []
    holder = call.func.value if isinstance(call.func, syntax.Attribute) else call.func
    if any(is_rebound(script, each.name) or _is_assigned(script, holder, each) for each in found):
        return []
    return found


def _is_assigned(script: Script, holder: syntax.BaseExpression, method: Definition) -> bool:
    """Whether a class of what a method is called on, or the method's own, binds its name, or that of the call, otherwise:
    ``forward = first``."""
    owner = method.script.names.owner(method.node) if isinstance(method.node, syntax.FunctionDef) else None
    kinds = [script.value(holder).definition, Definition(method.script, owner) if owner is not None else None]
    return any(
        binding.kind is not Kind.FUNCTION
        for kind in kinds
        if kind is not None and isinstance(kind.node, syntax.ClassDef)
        for each in kind.script.roles.calls.lineage(kind)
        for name in (method.name, "__call__", "_call_impl")
        for binding in each.script.names.scope(each.node.body).bindings.get(name, ())
    )


def _calls_itself(script: Script, call: syntax.Call) -> bool:
    """Whether a class of the project's says itself what a call of its module gives."""
    made = script.value(call.func).definition
    is_own = made is None or made.script.roles.calls.method(made, "__call__") is not None
    return is_own or is_rebound(script, "__call__")


@once(True)
def is_rebound(script: Script, name: str) -> bool:
    """Whether the program gives an object or a class another attribute of a name, as far as that is written."""
    return _is_set_on_objects(script, name, lambda place, each: is_target(place.source, each))


def sizes(function: Definition) -> set[int | None]:
    """How many values a function's results have, None of one that is no written tuple; none where it has no results."""
    node = function.node
    if not isinstance(node, syntax.FunctionDef) or node.decorators or not _runs_at_once(function):
        return {None}
    return {_size(result) for result in returned(function)}


def _size(result: syntax.BaseExpression) -> int | None:
    """How many values a written tuple has."""
    if not isinstance(result, syntax.Tuple) or any(isinstance(each, syntax.StarredElement) for each in result.elements):
        return None
    return len(result.elements)
