"""Whether a script is where a program starts, and where its first statement goes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.disk import words
from speedlint.facts import syntax
from speedlint.solve import heirs, off
from speedlint.solve.flow import once
from speedlint.solve.terms import Definition

_BY_NAME = (
    re.compile(rb"(?<![\w.])(?:getattr|vars|locals|globals|eval|exec|dir)\("),
    re.compile(rb"__dict__|\bfire\b|jsonargparse"),
)
"""What calls a method by a name that is not written out."""
_INSTALLS = ("setup.py", "setup.cfg", "pyproject.toml")


def main_guard(script: Script) -> syntax.If | None:
    """The ``if __name__ == "__main__":`` of a script, with nothing else in its condition."""
    return next((each for each in _guards(script) if _is_plain(script, each.test)), None)


def _guards(script: Script) -> Iterator[syntax.If]:
    for statement in script.source.module.body:
        if isinstance(statement, syntax.If):
            test = script.text(statement.test)
            if "__name__" in test and "__main__" in test and "!=" not in test and "not " not in test:
                yield statement


def _is_plain(script: Script, test: syntax.BaseExpression) -> bool:
    match test:
        case syntax.Comparison(comparisons=[syntax.ComparisonTarget(operator=syntax.Equal())]):
            return "".join(script.text(test).split()).strip("()").replace("'", '"') in (
                '__name__=="__main__"',
                '"__main__"==__name__',
            )
    return False


def is_entry(script: Script) -> bool:
    """Whether a script is run, not imported: it has a main guard, or works at its top level and nothing imports it."""
    if next(_guards(script), None) is not None:
        return True
    return not script.program.is_imported(script) and any(_works(statement) for statement in script.source.module.body)


def is_of_self_test(script: Script, node: syntax.Node) -> bool:
    """Whether a node of a module that others import runs only where the module itself is the script."""
    guard = main_guard(script)
    if guard is None or not script.program.is_imported(script):
        return False
    function = script.function(node)
    sites = script.call_sites(function) if function is not None else [(script, node)]
    return bool(sites) and all(one is script and script.source.contains(guard, site) for one, site in sites)


def starts(script: Script) -> list[Script]:
    """The scripts in which the programs start that a script is part of; none for a library's module."""
    return [each for each in script.program.possible_starts(script) if is_entry(each)]


def is_never_called(script: Script, node: syntax.Node) -> bool:
    """Whether a node stands in a function that no code of its program names, or in a module of a program, not of a library,
    that none reaches: left over, or for somebody else to import."""
    module = script.source.module
    around = [up for up in script.source.ancestors(node) if script.source.parents.get(up) is module]
    function = around[0] if around else node
    if isinstance(function, syntax.ClassDef) and (
        _is_of_unnamed_method(script, function, node) or _is_unnamed_class(script, function)
    ):
        return True
    if not isinstance(function, syntax.FunctionDef) or function.decorators:
        return is_left_out(script) and not _is_installed(script)
    if is_left_out(script):
        return True
    name = function.name.value
    uses = (each for each in script.source.of(syntax.Name) if each.value == name and each is not function.name)
    if any(not isinstance(script.source.parents[use], syntax.Attribute) for use in uses):
        return False
    if any(string.evaluated_value == name for string in script.source.of(syntax.SimpleString)):
        return False
    if not script.program.is_imported(script):
        return is_entry(script) or script.program.is_for_notebooks(script, name) is False
    importers = list(script.program.importers(script))
    if not importers:  # too many to look into
        return script.program.is_whole(script) and next(script.program.others(script, name.encode()), None) is None
    return not any(_names(other, function) for other in importers)


def _is_of_unnamed_method(script: Script, owner: syntax.ClassDef, node: syntax.Node) -> bool:
    """Whether a node stands in a method that nothing in its programs names, of a class of the project's own that starts
    where it stands: by a call or otherwise, as a text, or by a name that is computed; or in one of a class that nothing
    makes, and all whose heirs have another in its place."""
    method = node
    for up in script.source.ancestors(node):
        if isinstance(up, syntax.FunctionDef) and script.source.parents[up] is owner.body:
            method = up
    if not isinstance(method, syntax.FunctionDef) or method.decorators or method.name.value.startswith("__"):
        return False
    return _is_unnamed(script, method) or _is_overridden(script, method)


@once(False)
def _is_unnamed_class(script: Script, owner: syntax.ClassDef) -> bool:
    """Whether nothing in its programs names a class of a script that starts where it stands, but what stands in it, and no
    other project may import it."""
    name = owner.name.value
    if not _is_start(script) or script.program.is_for_notebooks(script, name):
        return False
    if owner.decorators or _is_installed(script) or off.may_be_looked_up(script):
        return False
    if any(each is not script for each in script.everywhere(words([name]))):
        return False
    written = [each for each in script.source.of(syntax.Name) if each.value == name and each is not owner.name]
    texts = (each for each in script.source.of(syntax.SimpleString) if name in str(each.evaluated_value))
    return all(script.source.contains(owner, each) for each in (*written, *texts))


@once(False)
def _is_start(script: Script) -> bool:
    """Whether a script that nothing imports is surely run: not one that only sets up a library at its top, as a module does
    that a start reaches by a path of its own, ``plt.switch_backend("agg")``."""
    if script.program.is_imported(script):
        return False
    return next(_guards(script), None) is not None or any(_drives(script, each) for each in script.source.module.body)


def _drives(script: Script, statement: syntax.Node) -> bool:
    """Whether a top-level statement works, and is no call of a library's function."""
    match statement:
        case syntax.SimpleStatementLine(body=[syntax.Expr(value=syntax.Call(func=func))]):
            return script.name(func) is None
    return _works(statement)


@once(False)
def _is_unnamed(script: Script, method: syntax.FunctionDef) -> bool:
    name, owner = method.name.value, script.names.owner(method)
    bases = [script.name(base.value) for base in owner.bases] if owner is not None else [None]
    if name == "forward" or any(base not in ("object", "torch.nn.Module") for base in bases):
        return False
    if not _is_start(script) or script.program.is_for_notebooks(script, name):
        return False
    if any(script.program.mentions(script, mark) for mark in _BY_NAME):
        return False
    named = (each for each in script.source.of(syntax.Attribute) if each.attr.value == name)
    texts = (each for each in script.source.of(syntax.SimpleString) if name in str(each.evaluated_value))
    names = (each for each in script.source.of(syntax.Name) if each.value == name and each is not method.name)
    return not any(True for found in (named, texts, names) for _ in found)


@once(False)
def _is_overridden(script: Script, method: syntax.FunctionDef) -> bool:
    owner, name = script.names.owner(method), method.name.value
    derived = heirs.derived(Definition(script, owner)) if owner is not None and not _is_installed(script) else None
    if owner is None or not derived or any(script.program.mentions(script, mark) for mark in _BY_NAME):
        return False
    for place in script.everywhere(owner.name.value.encode()):
        for call in place.written_calls(owner.name.value):
            made = place.definition(call.func)
            if made is None or made.node is owner:
                return False
    own = [each.script.roles.calls.method(each, name) for each in derived]
    return all(each is not None and each.node is not method and not _asks_base(each.script, each.node, name) for each in own)


def _asks_base(script: Script, node: syntax.Node, name: str) -> bool:
    """Whether a method of an heir runs the one of its base, ``super().name()`` or ``Base.name(self)``."""
    return any(each.attr.value == name for each in script.source.inside(node, syntax.Attribute))


@once(False)
def is_left_out(script: Script) -> bool:
    """Whether no program reaches a module that does not start itself, though its package is in use: a copy kept aside."""
    return not is_entry(script) and script.program.is_left_out(script)


def _is_installed(script: Script) -> bool:
    """Whether a script's project may be a library, which other programs import."""
    root = script.program.root(script.path)
    return any(script.program.disk.is_file(str(root / name)) for name in _INSTALLS)


def _names(script: Script, function: syntax.FunctionDef) -> bool:
    """Whether a script that imports a function's module may name the function."""
    if script.names.module.stars:
        return True
    bound = (dotted for _, dotted in script.names.imports)
    if any(dotted.rpartition(".")[2] == function.name.value for dotted in bound):
        return True
    attributes = (each for each in script.source.of(syntax.Attribute) if each.attr.value == function.name.value)
    return any((found := script.definition(each)) is not None and found.node is function for each in attributes)


def _works(statement: syntax.Node) -> bool:
    """Whether a top-level statement is a loop, or a call for its effect."""
    if isinstance(statement, (syntax.For, syntax.While)):
        return True
    match statement:
        case syntax.SimpleStatementLine(body=[syntax.Expr(value=syntax.Call())]):
            return True
    return False
