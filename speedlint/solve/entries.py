"""What a program may put into a dict that it writes out, under one key: where that is made, and wherever it is changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from speedlint.disk import words
from speedlint.facts import syntax
from speedlint.solve import heirs
from speedlint.solve.flow import once
from speedlint.solve.names import Binding, Kind
from speedlint.solve.unpacking import key_of, written
from speedlint.source import is_name, is_target
from speedlint.torch.words import Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script

Made = tuple["Script", syntax.BaseExpression]
"""An expression, with its script."""
Put = tuple["Script", syntax.BaseExpression | None]
"""The same of what is put under a key; None for what is not known."""
_CHANGES = ("update", "setdefault", "pop", "popitem", "clear", "__setitem__", "__delitem__", "__ior__")
_DICTS = (Role.MAPPING, Role.UNKNOWN)
_NO_DICTS = (Role.NUMBER, Role.TENSOR, Role.BATCH, Role.ARRAY, Role.NONE)
_LEAVE = frozenset("print len str repr sorted list tuple dict set type isinstance iter any all".split())
_LEAVING = tuple(f"{name}." for name in "json yaml copy pprint wandb logging torch numpy math os pickle mlflow".split())
"""What is handed a dict and leaves it as it is: builtins, and the functions of some packages."""
_MOST_FILES = 16
"""Files that are handed a dict, beyond which it may be changed anywhere."""


@once(None)
def put(script: Script, holder: syntax.BaseExpression, key: str) -> list[Put] | None:
    """All that may be put under a key of the dict that an expression stands for, where each dict that it may be is written
    out; None of any other."""
    made = _made(script, holder, frozenset())
    if not made:
        return None
    found: list[Put] = []
    for place, node in made:
        entries = place.values.written_entries(node)
        if entries is None:
            return None
        if key in entries:
            found.append((place, entries[key]))
    nodes = frozenset(node for _, node in made)
    places = _handed_to([script, *(place for place, _ in made), *script.everywhere(words([key]))], nodes)
    if places is None:
        return [*found, (script, None)]
    return [*found, *((place, value) for place in places for value in _set_under(place, key, nodes))]


def _made(script: Script, node: syntax.BaseExpression, seen: frozenset[syntax.Node]) -> list[Made] | None:
    """The expressions that make what one stands for; None where one of them may be out of sight."""
    if node in seen:
        return []
    seen |= {node}
    if isinstance(node, syntax.Name):
        return _all([_bound(script, each, seen) for each in script.names.reaching(node)] or [_imported(script, node, seen)])
    if isinstance(node, syntax.Attribute):
        owner = script.value(node.value).definition
        if owner is None or not isinstance(owner.node, syntax.ClassDef):
            return _imported(script, node, seen)
        name = node.attr.value
        if any(mark in owner.script.source.data for mark in (b"setattr(", b"__dict__", b"vars(self")):
            return None
        derived = heirs.derived(owner)
        if derived is None or _is_set_on_others(script, name):
            return None
        kept = [each for klass in (owner, *derived) for each in script.roles.assigned_on_self(klass, name)]
        return _all([_made(place, value, seen) if not path else None for place, value, path in kept])
    if isinstance(node, syntax.BooleanOperation | syntax.IfExp):
        both = (node.left, node.right) if isinstance(node, syntax.BooleanOperation) else (node.body, node.orelse)
        return _all([_made(script, each, seen) for each in both])
    is_made = script.values.written_entries(node) is not None or isinstance(
        node, syntax.DictComp | syntax.List | syntax.ListComp
    )
    is_library = isinstance(node, syntax.Call) and script.name(node.func) is not None
    return [(script, node)] if is_made or is_library else None


@once(True)
def _is_set_on_others(script: Script, name: str) -> bool:
    """Whether a program sets an attribute of a name on an object other than ``self``."""
    return any(
        each.attr.value == name and not is_name(each.value, "self") and is_target(place.source, each)
        for place in script.everywhere(words([name]))
        for each in place.source.of(syntax.Attribute)
    )


def _bound(script: Script, binding: Binding, seen: frozenset[syntax.Node]) -> list[Made] | None:
    if binding.kind is Kind.IMPORT and binding.dotted is not None:
        other, place = script.imported_binding(binding.dotted)
        return _of_module(place, other, seen) if other is not None and place is not None else None
    if binding.kind is Kind.PARAMETER and isinstance(binding.node, syntax.Param):
        return _passed(script, binding.node, seen)
    value = written(binding) if binding.kind is Kind.ASSIGN else None
    return _made(script, value, seen) if value is not None else None


def _imported(script: Script, node: syntax.Node, seen: frozenset[syntax.Node]) -> list[Made] | None:
    dotted = script.dotted(node)
    binding, place = script.imported_binding(dotted) if dotted is not None else (None, None)
    return _of_module(place, binding, seen) if binding is not None and place is not None else None


def _of_module(script: Script, binding: Binding, seen: frozenset[syntax.Node]) -> list[Made] | None:
    """The same of a variable of another module, which binds it once, whatever the run, and which no other file sets."""
    bindings = script.names.module.bindings.get(binding.name, [])
    is_chosen = script.source.enclosing(binding.node, syntax.If, syntax.Try) is not None
    if len(bindings) != 1 or is_chosen or script.names.module.stars or _is_set_on_others(script, binding.name):
        return None
    return _bound(script, binding, seen)


def _passed(script: Script, parameter: syntax.Param, seen: frozenset[syntax.Node]) -> list[Made] | None:
    function = script.source.enclosing(parameter, syntax.FunctionDef, syntax.Lambda)
    if not isinstance(function, syntax.FunctionDef) or _is_handed_on(script, function):
        return None
    given = list(script.values.passed(parameter))
    if len(given) < len(script.call_sites(function)):
        return None
    default = parameter.default
    made = [
        _made(place, value, seen) if value is not None else (_made(script, default, seen) if default is not None else None)
        for place, value in given
    ]
    return _all(made)


@once(True)
def _is_handed_on(script: Script, function: syntax.FunctionDef) -> bool:
    """Whether a function is spoken of without being called, so that others may call it: ``Thread(target=train)``."""
    name = function.name.value
    for place in script.everywhere(words([name])):
        for each in place.source.tree.named((name,)):
            node: syntax.Node = each
            if isinstance(up := place.source.parents[node], syntax.Attribute) and up.attr is node:
                node, up = up, place.source.parents[up]
            is_called = isinstance(up, syntax.Call) and up.func is node
            is_bound = isinstance(up, syntax.FunctionDef | syntax.ImportAlias | syntax.AsName | syntax.Param)
            is_keyword = isinstance(up, syntax.Arg) and up.keyword is node
            if not (is_called or is_bound or is_keyword) and not is_target(place.source, node):
                return True
    return False


def _all(found: list[list[Made] | None]) -> list[Made] | None:
    """All of several, where all are known and there are any."""
    known = [each for each in found if each is not None]
    return [one for each in known for one in each] if known and len(known) == len(found) else None


def _is_one_of(script: Script, holder: syntax.BaseExpression, nodes: frozenset[syntax.BaseExpression]) -> bool:
    """Whether an expression may stand for one of some dicts."""
    made = _made(script, holder, frozenset())
    return made is None or any(node in nodes for _, node in made)


def _handed_to(places: list[Script], nodes: frozenset[syntax.BaseExpression]) -> list[Script] | None:
    """Some scripts, and those of the functions that they hand one of some dicts, and so on; None where one is handed to what
    is out of sight, or to too many."""
    found = dict.fromkeys(places)
    todo = list(found)
    while todo:
        script = todo.pop()
        if _is_put_elsewhere(script, nodes):
            return None
        for call in script.source.of(syntax.Call):
            held = (arg.value for arg in call.args if not arg.star and isinstance(arg.value, syntax.Name | syntax.Attribute))
            if not any(script.role(each) is Role.MAPPING and _is_one_of(script, each, nodes) for each in held):
                continue
            if (callee := script.callee(call)) is not None:
                if callee.script not in found:
                    found[callee.script] = None
                    todo.append(callee.script)
            elif (name := script.name(call.func) or "") not in _LEAVE and not name.startswith(_LEAVING):
                return None
        if len(found) > _MOST_FILES:
            return None
    return list(found)


def _is_put_elsewhere(script: Script, nodes: frozenset[syntax.BaseExpression]) -> bool:
    """Whether one of some dicts is put into another thing, or a method of it is handed on: others may change it."""
    source = script.source
    for name in source.of(syntax.Name):
        up = source.parents[name]
        is_put = isinstance(up, syntax.Element | syntax.DictElement | syntax.Yield | syntax.Return | syntax.NamedExpr)
        is_put = is_put or (isinstance(up, syntax.Arg) and bool(up.star) and up.star == "*")
        if isinstance(up, syntax.Assign) and up.value is name:
            is_put = any(isinstance(each.target, syntax.Subscript) for each in up.targets)
        if isinstance(up, syntax.Attribute) and up.value is name and up.attr.value in _CHANGES:
            called = source.parents[up]
            is_put = not (isinstance(called, syntax.Call) and called.func is up)
        if is_put and script.role(name) is Role.MAPPING and _is_one_of(script, name, nodes):
            return True
    return False


def _set_under(script: Script, key: str, nodes: frozenset[syntax.BaseExpression]) -> Iterator[syntax.BaseExpression | None]:
    """What a script gives entries of dicts under a key, of any dict, or what it may give one of some dicts under it; None
    for what is not known."""
    source = script.source
    for entry in source.of(syntax.Subscript):
        known = key_of(entry)
        up = source.parents[entry]
        if not (is_target(source, entry) or isinstance(up, syntax.Del)) or script.role(entry.value) not in _DICTS:
            continue
        if known == key or (known is None and _may_be_text(script, entry) and _is_one_of(script, entry.value, nodes)):
            assign = source.parents[up] if isinstance(up, syntax.AssignTarget) else None
            yield assign.value if known == key and isinstance(assign, syntax.Assign) else None
    for joined in source.of(syntax.AugAssign):
        is_of_dict = isinstance(joined.operator, syntax.BitOrAssign) and _is_one_of(script, joined.target, nodes)
        if is_of_dict and script.role(joined.target) in _DICTS:
            yield from _of_entries(script, key, joined.value)
    for call in script.method_calls(*_CHANGES):
        assert isinstance(call.func, syntax.Attribute)
        if script.role(call.func.value) in _DICTS and _is_one_of(script, call.func.value, nodes):
            yield from _of_change(script, key, call, call.func.attr.value)


def _of_change(script: Script, key: str, call: syntax.Call, method: str) -> Iterator[syntax.BaseExpression | None]:
    if method == "update":
        for arg in call.args:
            if arg.keyword is not None:
                yield from [arg.value] if arg.keyword.value == key else []
            elif script.role(arg.value) not in _NO_DICTS:
                yield from _of_entries(script, key, arg.value)
        return
    first = call.args[0].value if call.args else None
    known = script.constant(first) if first is not None else None
    if known is None or known.value == key:
        is_default = method == "setdefault" and len(call.args) > 1 and known is not None
        yield call.args[1].value if is_default else None


def _of_entries(script: Script, key: str, added: syntax.BaseExpression) -> Iterator[syntax.BaseExpression | None]:
    """What a dict that is joined to another one brings under a key."""
    entries = script.values.written_entries(added)
    if entries is None:
        yield None
    elif key in entries:
        yield entries[key]


def _may_be_text(script: Script, entry: syntax.Subscript) -> bool:
    """Whether an entry may be one under a text: its key is none that is known to be something else."""
    match entry.slice:
        case [syntax.SubscriptElement(slice=syntax.Index(value=key))]:
            return script.role(key) in (Role.STRING, Role.UNKNOWN)
    return False
