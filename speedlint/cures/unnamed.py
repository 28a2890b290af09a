"""Who may read a function, a class or a variable of a module by a way on which its name is not seen: ``getattr`` and
``__dict__`` of a module, ``globals()``, ``sys.modules``, ``importlib``; and of a variable, other files at all."""

from __future__ import annotations

import re

from speedlint.ask.script import Script
from speedlint.disk import Mark
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.solve.names import Kind
from speedlint.solve.unpacking import key_of, written
from speedlint.solve.values import returned

_ALL_OF = frozenset({"vars", "dir", "inspect.getmembers"})
_ASKS = _ALL_OF | {"getattr", "hasattr", "importlib.reload"}
_EVALUATES = frozenset({"eval", "exec"})
_IMPORTS = frozenset({"importlib.import_module", "__import__", "importlib.__import__"})
_MARKS: tuple[Mark, ...] = (
    (b"getattr", re.compile(rb"getattr\(\s*(?!self\b|cls\b|args\b)[^,\n]+,\s*(?:[^\"'\s]|[\"'][^\"'\n]*[\"']\s*[^,)\s])")),
    (b"__dict__", re.compile(rb"(?<!self)\.__dict__")),
    (b"vars(", re.compile(rb"\bvars\(\s*(?!self\b|args\b|opt\b)\w")),
    (b"dir(", re.compile(rb"\bdir\(\w")),
    b"getmembers",
)
"""How a file may ask for what it computes the name of; what files with the name itself do is looked at anyway."""
_BEGINS_WITH = re.compile(r"""[rRfF]*["']+(\w+)\.""")
_DEEPEST = 4


def check(script: Script, name: str) -> None:
    """Raises CannotEdit where anything may ask for a function or class of a module by a text."""
    place = re.compile(rf"(?:^|[.:/]){re.escape(script.path.stem)}[.:]{re.escape(name)}$")
    for other in script.everywhere(name.encode()):
        for found in other.source.of(syntax.Attribute):
            if found.attr.value == name and other.definition(found) is None and _may_be(other, found.value, script, name):
                _refuse(other, found, name)
        for string in other.source.of(syntax.SimpleString):
            if isinstance(text := string.evaluated_value, str) and place.search(text):
                _refuse(other, string, name)
        if name in other.names.module.bindings or other.names.module.stars:
            _check_globals(other, name)
    for other in script.everywhere(*_MARKS):
        _check_texts(other, script, name)
    stem = re.escape(script.path.stem.encode())
    for other in script.everywhere((script.path.stem.encode(), re.compile(rb"\bimport\b[^\n]*\b" + stem + rb"\b"))):
        _check_handed(other, script, name)


def check_variable(script: Script, target: syntax.Name) -> None:
    """Raises CannotEdit where another file may read a variable of a module, which is no number there any more."""
    name = target.value
    if script.names.scope(target) is not script.names.module:
        return
    if script.program.is_imported(script) and not script.program.is_whole(script):
        raise CannotEdit(f"who else reads `{name}` is not seen in so large a program")
    for other in script.everywhere(name.encode()):
        if other is not script and _reads(other, script, name):
            raise CannotEdit(f"`{name}` is read in {other.path.name}")
        _check_texts(other, script, name)
    for other in script.everywhere(*_MARKS):
        _check_texts(other, script, name)


def _reads(other: Script, script: Script, name: str) -> bool:
    imported = any(
        dotted == f"__main__.{name}" or other.program.module(other, dotted) == (script.key, name)
        for _, dotted in other.names.imports
    )
    starred = any(other.program.module(other, star) == (script.key, "") for star in other.names.module.stars)
    return (
        imported
        or (starred and any(use.value == name for use in other.source.of(syntax.Name)))
        or any(
            found.attr.value == name and _may_be(other, found.value, script, name)
            for found in other.source.of(syntax.Attribute)
        )
    )


def _check_texts(other: Script, script: Script, name: str) -> None:
    """Raises CannotEdit where a file takes what it computes the name of out of a module."""
    for call in (each for called in ("getattr", "vars", "dir", "getmembers") for each in other.written_calls(called)):
        match call.args:
            case [syntax.Arg(value=module), syntax.Arg(value=asked), *_] if other.is_call_to(call, "getattr"):
                written_out = asked.evaluated_value if isinstance(asked, syntax.SimpleString) else name
                if written_out == name and _may_be(other, module, script, name):
                    _refuse(other, call, name)
            case [syntax.Arg(value=module), *_] if other.name(call.func) in _ALL_OF:
                if _may_be(other, module, script, name) and not _is_other_entry(other, call, name):
                    _refuse(other, call, name)
    for found in other.source.of(syntax.Attribute):
        is_dict = found.attr.value == "__dict__" and not _is_other_entry(other, found, name)
        if is_dict and _may_be(other, found.value, script, name):
            _refuse(other, found, name)


def _check_handed(other: Script, script: Script, name: str) -> None:
    """Raises CannotEdit where a file does anything else with a script's module but take what it names."""
    modules = {bound for bound, dotted in other.names.imports if dotted and _leads(other, dotted, script, name)}
    for found in other.source.of(syntax.Name) if modules else ():
        match parent := other.source.parents[found]:
            case syntax.Arg(value=value) if value is found:
                is_handed = not other.is_call_to(other.source.parents[parent], *_ASKS)
            case syntax.Element() | syntax.DictElement():
                is_handed = True
            case syntax.Assign(value=value):
                is_handed = value is found
            case _:
                is_handed = False
        if is_handed and found.value in modules and _may_be(other, found, script, name):
            _refuse(other, found, name)


def _check_globals(other: Script, name: str) -> None:
    """Raises CannotEdit where a file that has the name takes what it computes the name of out of its own variables."""
    for call in (each for called in ("eval", "exec", "globals") for each in other.written_calls(called)):
        called = other.name(call.func)
        if called in _EVALUATES and call.args and not isinstance(call.args[0].value, syntax.SimpleString):
            _refuse(other, call, name)
        if called == "globals" and not _is_other_entry(other, call, name):
            _refuse(other, call, name)


def _is_other_entry(script: Script, names: syntax.BaseExpression, name: str) -> bool:
    """Whether of a dict of names only one is asked for that is written out, another one, or whether it is there."""
    match script.source.parents[names]:
        case syntax.Subscript(value=value) as entry if value is names:
            key = key_of(entry)
            return isinstance(key, str) and key != name
        case syntax.ComparisonTarget(operator=syntax.In() | syntax.NotIn()):
            return True
        case syntax.Attribute(attr=syntax.Name("update" | "setdefault")):
            return True
    return False


def _refuse(script: Script, node: syntax.Node, name: str) -> None:
    where = f"line {script.source.line(node)} of {script.path.name}"
    raise CannotEdit(f"`{name}` may be what is asked for by a name on {where}")


def _may_be(place: Script, node: syntax.BaseExpression, script: Script, name: str, depth: int = _DEEPEST) -> bool:
    """Whether an expression may be a script's module, or another one that hands on a name."""
    if not depth:
        return False
    if (dotted := place.dotted(node)) is not None:
        return dotted == "__main__" or _leads(place, dotted, script, name)
    match node:
        case syntax.Call(args=[syntax.Arg(value=module), *_]) if place.name(node.func) in _IMPORTS:
            return _may_name(place, module, script, name)
        case syntax.Call(
            func=syntax.Attribute(value=held, attr=syntax.Name("get")), args=[syntax.Arg(value=module), *_]
        ) if place.name(held) == "sys.modules":
            return _may_name(place, module, script, name)
        case syntax.Subscript(value=held, slice=[syntax.SubscriptElement(slice=syntax.Index(value=module))]) if (
            place.name(held) == "sys.modules"
        ):
            return _may_name(place, module, script, name)
        case syntax.Call():
            callee = place.callee(node)
            results = returned(callee) if callee is not None and isinstance(callee.node, syntax.FunctionDef) else ()
            return any(_may_be(callee.script, result, script, name, depth - 1) for result in results if callee is not None)
        case syntax.IfExp(body=body, orelse=orelse):
            return any(_may_be(place, each, script, name, depth - 1) for each in (body, orelse))
        case syntax.Name():
            return any(
                _may_be(where, value, script, name, depth - 1)
                for binding in place.names.reaching(node)
                for where, value in (
                    place.values.passed(binding.node)
                    if isinstance(binding.node, syntax.Param)
                    else [(place, written(binding))]
                    if binding.kind is Kind.ASSIGN
                    else ()
                )
                if value is not None
            )
        case syntax.Attribute():
            return any(
                value is not node and _may_be(where, value, script, name, depth - 1)
                for where, value in place.roles.origins(node)
            )
    return False


def _leads(place: Script, dotted: str, script: Script, name: str) -> bool:
    """Whether a dotted name is that of a script's module, or of one that hands on a name."""
    found = place.program.module(place, dotted)
    if found is None or found[1]:
        return False
    reached = place.program.reached(found[0])
    return reached is None or reached is script or name in reached.names.module.bindings or bool(reached.names.module.stars)


def _may_name(place: Script, module: syntax.BaseExpression, script: Script, name: str) -> bool:
    """Whether a text that names a module may name the script's, or one that hands on a name."""
    match module:
        case syntax.SimpleString() if isinstance(text := module.evaluated_value, str):
            return text == "__main__" or text.startswith(".") or _leads(place, text, script, name)
        case syntax.Name("__name__"):
            return place is script or name in place.names.module.bindings
        case syntax.FormattedString() | syntax.BinaryOperation(left=syntax.SimpleString(), operator=syntax.Add()):
            begin = _BEGINS_WITH.match(place.text(module))
            folders = {script.path.stem, *(each.name for each in script.key.parents)}
            return begin is None or begin[1] in folders
    return True
