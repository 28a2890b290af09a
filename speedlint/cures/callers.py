"""Who calls a helper whose result is a number: all of them must agree to get a tensor."""

from __future__ import annotations

from speedlint.ask.script import Script
from speedlint.cures import unnamed
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.solve.gradients import switches


def of_helper(script: Script, result: syntax.Return) -> list[tuple[Script, syntax.Call]]:
    """All calls of the function that returns ``result`` and nothing else. Raises CannotEdit where not all are seen."""
    function = script.function(result)
    if function is None or script.names.scope(function).parent is not None:
        raise CannotEdit("what it is returned to is not seen")
    name = function.name.value
    inner = script.source.inside
    returns = [each for each in inner(function.body, syntax.Return) if script.function(each) is function]
    if len(returns) > 1 or any(inner(function.body, syntax.Yield)) or function.asynchronous:
        raise CannotEdit(f"`{name}` may return something else")
    if any(switches(script, each.decorator) is not True for each in function.decorators):
        raise CannotEdit(f"what the decorators of `{name}` make of it is not known")
    sites = script.call_sites(function)
    if not sites:
        raise CannotEdit(f"who calls `{name}` is not seen")
    for other, call in sites:
        if isinstance(call.func, syntax.Name) and len(other.names.reaching(call.func)) > 1:
            raise CannotEdit(f"`{name}` may be another function on line {other.source.line(call)} of {other.path.name}")
    check_named_only_by(script, function, sites)
    return sites


def check_named_only_by(
    script: Script, defined: syntax.FunctionDef | syntax.ClassDef, calls: list[tuple[Script, syntax.Call]]
) -> None:
    """Raises CannotEdit where anything but some calls speaks of a function or class of the top of a module."""
    name = defined.name.value
    if not script.program.is_whole(script):
        raise CannotEdit(f"who else calls `{name}` is not seen in so large a program")
    if len(script.names.module.bindings.get(name, ())) > 1:
        raise CannotEdit(f"`{name}` is defined more than once")
    called = {call.func for _, call in calls}
    for other in script.everywhere(name.encode()):
        for found in other.source.of(syntax.Name):
            if found.value != name or found is defined.name:
                continue
            parent = other.source.parents[found]
            whole = parent if isinstance(parent, syntax.Attribute) and parent.attr is found else found
            if (
                whole in called
                or _is_no_value(parent, found)
                or other.source.enclosing(found, syntax.Annotation) is not None
            ):
                continue
            if isinstance(parent, syntax.ImportAlias):
                if parent.asname is not None and parent.asname.name is not found:
                    raise CannotEdit(f"`{name}` has another name on line {other.source.line(found)} of {other.path.name}")
                continue
            definition = other.definition(whole)
            if definition is not None and definition.node is defined:
                raise CannotEdit(f"`{name}` is not called on line {other.source.line(found)} of {other.path.name}")
        for string in other.source.of(syntax.SimpleString):
            call = other.source.parents[other.source.parents[string]]
            if string.evaluated_value == name and other.is_call_to(call, "getattr"):
                raise CannotEdit(f"`{name}` is asked for as a text on line {other.source.line(string)} of {other.path.name}")
    unnamed.check(script, name)


def _is_no_value(parent: syntax.Node, name: syntax.Name) -> bool:
    """Whether a name stands for no variable there: a keyword, a parameter, what a definition is called."""
    return isinstance(parent, syntax.Param | syntax.FunctionDef | syntax.ClassDef) or (
        isinstance(parent, syntax.Arg) and parent.keyword is name
    )
