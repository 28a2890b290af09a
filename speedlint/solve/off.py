"""Whether a line runs in the runs that are made: by the defaults of a script's options, or as a shipped command starts it.

A branch that only an option turns on, or another model, metric or task than the one by default, is no part of the training
that its author runs, unless a README or a shell script of the project chooses it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.solve import entries, heirs, shipped, truths
from speedlint.solve.flow import once
from speedlint.solve.guards import deciding_tests
from speedlint.solve.names import Binding, Kind
from speedlint.solve.terms import Constant, Definition
from speedlint.solve.truths import Values
from speedlint.solve.unpacking import key_of, written
from speedlint.solve.values import option_of
from speedlint.source import is_name
from speedlint.torch.words import Frequency

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_MACHINE = re.compile(
    r"(?:use_?|no_?|on_?|enable_?|with_?)?(?:cuda|gpu|accel\w*|mps|device)s?(?:_?ids?)?|(?:\w*_)?rank(?:_\w*)?"
    r"|n_?gpus?|num_?gpus?|gpu_?(?:num|count)|world_?size",
    re.IGNORECASE,
)
"""Options by which a run is told of its machine, or by a launcher: who has several GPUs, or any, sets them."""
_TRUE = frozenset({"true", "t", "yes", "y", "on", "1", ""})
_NUMBERS: dict[str, Callable[[str], object]] = {"int": int, "float": float}
_LOOK_INTO, _READ_ALL = ("getattr", "vars"), ("locals", "globals", "eval", "exec")
_BY_NAME = re.compile(rb"(?<![\w.])(?:getattr|vars|locals|globals|eval|exec)\(|__dict__")
_MAKES_BY_NAME = re.compile(rb"\bfire\b|jsonargparse|LightningCLI|instantiate\(|import_module|__import__")
"""What makes an object of a class by a name that is not written out in a program's code."""
_TELL_OF = frozenset("print getattr hasattr isinstance callable repr str type id help len".split())
_BACKWARD = b".backward("
_MOST_CALLERS = 8
"""Ways to one function that are looked at for whether all of them are off."""


@once(False)
def is_off(script: Script, node: syntax.Node) -> bool:
    """Whether a node runs only under a condition that does not hold in the runs that are made, while these train without it:
    ``if args.debug:``, ``if args.model == "other":``, also around each call of its function."""
    return _is_shut(script, node) or _is_left_out(script, node, is_within_loop=False)


def _is_shut(script: Script, node: syntax.Node) -> bool:
    """Whether a node logs to a run of wandb that is disabled, or is a tensor that it is handed: nothing looks at it."""
    call = _logs(script, node)
    if call is None or (call is not node and not script.is_device_tensor(node)):
        return False
    begun = [(place, place.argument(made, "mode", None)) for place, made in script.calls_everywhere("wandb.init")]
    return bool(begun) and all(mode is not None and values(place, mode) == ("disabled",) for place, mode in begun)


def _logs(script: Script, node: syntax.Node) -> syntax.Node | None:
    """The call of ``wandb.log`` that a node is, or that it is handed to as it is or in a dict."""
    for each in (node, *script.source.ancestors(node)):
        if script.is_call_to(each, "wandb.log"):
            return each
        is_dict = isinstance(each, (syntax.Arg, syntax.DictElement, syntax.Dict)) or script.is_call_to(each, "dict")
        if each is not node and not is_dict:
            return None
    return None


def _is_left_out(script: Script, node: syntax.Node, *, is_within_loop: bool) -> bool:
    """``is_within_loop`` tells whether a whole loop of training steps lies below: then that is the training, and only left
    out where a loop around it trains by something else."""
    child: syntax.Node = node
    for up in script.source.ancestors(node):
        if is_unmet(script, up, child):
            if is_within_loop and _is_beside_training(script, child):
                return True
            if not is_within_loop and _trains(script):
                return True
        if isinstance(up, (syntax.For, syntax.While)) and child is up.body:
            is_within_loop = is_within_loop or script.loops.kind(up) in (Frequency.STEP, Frequency.EPOCH)
        if isinstance(up, syntax.FunctionDef) and child is up.body:
            if not is_within_loop and is_of_unmade(script, up):
                return True
            ways = _ways_to(script, up)
            return 0 < len(ways) <= _MOST_CALLERS and all(_is_way_left_out(*way, is_within_loop) for way in ways)
        child = up
    return False


@once(False)
def is_of_unmade(script: Script, method: syntax.Node) -> bool:
    """Whether a method is of a class whose objects are all made where nothing runs in the runs that are made. One that
    trains is another training, as a function that does."""
    owner = script.names.owner(method) if isinstance(method, syntax.FunctionDef) else None
    if owner is None or owner.decorators or any(script.source.contains(owner, step) for step in script.loops.steps):
        return False
    init = script.roles.calls.method(Definition(script, owner), "__init__")
    if init is None or init.node is method or init.script is not script or not isinstance(init.node, syntax.FunctionDef):
        return False
    ways = [way for way in script.call_sites(init.node) if not _is_of_unused(*way)]
    if script.names.owner(init.node) is not owner or not 0 < len(ways) <= _MOST_CALLERS:
        return False
    return all(_is_way_left_out(*way, False) for way in ways) and is_only_called(script, owner)


def _is_of_unused(script: Script, call: syntax.Call) -> bool:
    """Whether a call stands in the constructor of a class that nothing in the project makes an object of."""
    function = script.function(call)
    if function is None or function.name.value != "__init__" or script.call_sites(function):
        return False
    owner = script.names.owner(function)
    return owner is not None and is_only_called(script, owner)


@once(False)
def is_only_called(script: Script, owner: syntax.ClassDef) -> bool:
    """Whether nothing makes an object of a class, or of one that derives from it, but calls of it by its name: no method of
    the class itself, ``Net.load()``, no function that it is handed to, no registry, and nothing that looks it up."""
    name = owner.name.value
    if owner.decorators or may_be_looked_up(script) or script.program.is_for_notebooks(script, name):
        return False
    places = script.everywhere(frozenset((name.encode(),)))
    return all(_is_called_or_told(place, each, owner) for place in places for each in _mentions(place, name))


def _mentions(script: Script, name: str) -> Iterator[syntax.Node]:
    yield from (each for each in script.source.of(syntax.Name) if each.value == name)
    yield from (each for each in script.source.of(syntax.SimpleString) if each.evaluated_value == name)


def _is_called_or_told(script: Script, mention: syntax.Node, owner: syntax.ClassDef) -> bool:
    """Whether what holds the name of a class calls it, imports it by that name, derives from it a class of which the same
    holds, asks whether something is of it, or is a part of it."""
    parents = script.source.parents
    held = parents.get(mention)
    if script.source.contains(owner, mention):
        return True
    while isinstance(held, syntax.Attribute) and held.attr is mention:
        mention, held = held, parents.get(held)
    match held:
        case syntax.Call(func=func):
            return func is mention
        case syntax.ImportAlias():
            return held.asname is None
        case syntax.ClassDef():
            return held.name is mention
        case syntax.Arg() if isinstance(parents.get(held), syntax.ClassDef):
            heir = parents[held]
            return isinstance(heir, syntax.ClassDef) and is_only_called(script, heir)
        case syntax.Arg():
            call = parents.get(held)
            return isinstance(call, syntax.Call) and script.name(call.func) in _TELL_OF
        case syntax.Annotation():
            return True
    return False


@once(False)
def may_be_looked_up(script: Script) -> bool:
    """Whether the program may take a class out of a module by a name that is not written out, in the module itself or where
    it is led to."""
    if script.program.mentions(script, _MAKES_BY_NAME):
        return True
    led_to = frozenset(script.program.upward_files(script))
    places = (place for place in script.everywhere(_BY_NAME) if place is script or place.key in led_to)
    return any(map(_looks_up, places))


@once(False)
def _looks_up(script: Script) -> bool:
    """Whether a script reads names that are computed, out of a module of the project's or of all that it has itself."""
    asked = (call for call in script.source.of(syntax.Call) if script.name(call.func) in _LOOK_INTO and call.args)
    held = (each.value for each in script.source.of(syntax.Attribute) if each.attr.value == "__dict__")
    looked_into = (*(call.args[0].value for call in asked), *held)
    is_read = any(script.name(call.func) in _READ_ALL for call in script.source.of(syntax.Call))
    return is_read or any(_is_own_module(script, each) for each in looked_into)


def _is_own_module(script: Script, expression: syntax.BaseExpression) -> bool:
    """Whether an expression is a module of the project's, or ``sys.modules[...]``."""
    held = expression.value if isinstance(expression, syntax.Subscript) else expression
    dotted = script.dotted(held)
    return dotted == "sys.modules" or (dotted is not None and script.program.module(script, dotted) is not None)


@once(True)
def _is_way_left_out(script: Script, way: syntax.Node, is_within_loop: bool) -> bool:
    return _is_left_out(script, way, is_within_loop=is_within_loop)


def _ways_to(script: Script, function: syntax.FunctionDef) -> list[tuple[Script, syntax.Node]]:
    """The calls of a function, and where its file hands it to what may call it: ``mp.spawn(main_worker, ...)``."""
    handed = (use for use in script.names.uses(function.name) if _is_handed_on(script, use))
    return [*script.call_sites(function), *((script, use) for use in handed)]


def _is_handed_on(script: Script, use: syntax.Name) -> bool:
    """Whether a function's name is an argument of what may call it, no builtin that tells of it."""
    arg = script.source.parents[use]
    call = script.source.parents[arg] if isinstance(arg, syntax.Arg) else None
    return isinstance(call, syntax.Call) and script.name(call.func) not in _TELL_OF


def _is_kept(script: Script, function: syntax.FunctionDef) -> bool:
    """Whether something keeps a function, from which it may be called: a dict, a list, another name."""
    kept = (syntax.Assign, syntax.DictElement, syntax.Element, syntax.Return)
    return any(isinstance(script.source.parents[use], kept) for use in script.names.uses(function.name))


def is_unmet(script: Script, up: syntax.Node, child: syntax.Node) -> bool:
    """Whether a part of ``up`` does not run in the runs that are made."""
    return any(_truths(script, test) == (not is_met,) for test, is_met in deciding_tests(up, child))


def runs_by_default(script: Script, node: syntax.Node) -> bool:
    """Whether no condition around a node within its function, or its loop of steps, fails by the defaults of the options."""
    around, child = script.loops.driving_loop(node) or script.function(node), node
    for up in script.source.ancestors(node):
        if up is around:
            break
        if any((_truths(script, test) or (is_met,))[0] is not is_met for test, is_met in deciding_tests(up, child)):
            return False
        child = up
    return True


def _is_beside_training(script: Script, branch: syntax.Node) -> bool:
    """Whether a loop around a branch takes training steps without it, or its function trains whatever the choice is that it
    is a branch of."""
    choice: syntax.Node = branch
    for up in script.source.ancestors(branch):
        if isinstance(up, syntax.If) and choice in (branch, up.orelse):
            choice = up
        if isinstance(up, syntax.FunctionDef):
            return script.loops.trains_beside(up, choice)
        if isinstance(up, (syntax.For, syntax.While)) and script.loops.trains_beside(up, branch):
            return True
    return False


@once(True)
def _trains(script: Script) -> bool:
    """Whether the runs that are made train: a backward pass of the program is under no condition that fails in them, or none
    is seen, as where a framework trains."""
    steps = [(place, call) for place in script.everywhere(_BACKWARD) for call in place.loops.steps]
    return not steps or any(_is_reached(place, call) for place, call in steps)


@once(False)
def _is_reached(script: Script, node: syntax.Node) -> bool:
    child: syntax.Node = node
    for up in script.source.ancestors(node):
        if is_unmet(script, up, child):
            return False
        if isinstance(up, syntax.FunctionDef) and child is up.body:
            ways = _ways_to(script, up)
            return not ways or _is_kept(script, up) or any(_is_reached(*way) for way in ways)
        child = up
    return True


# What conditions come to


def values(script: Script, expression: syntax.BaseExpression) -> Values | None:
    """The values, of a condition truth values, that an expression has in the runs that are made, first what it is by the
    defaults alone; None where one may be unknown."""
    return truths.values(expression, lambda part: _of_part(script, part))


def _truths(script: Script, test: syntax.BaseExpression) -> tuple[bool, ...] | None:
    found = values(script, test)
    return None if found is None else truths.each(map(bool, found))


@once(None)
def _of_part(script: Script, expression: syntax.BaseExpression) -> Values | None:
    match expression:
        case syntax.Name(value=name) if name not in ("True", "False", "None"):
            return None if _MACHINE.fullmatch(name) else _of_name(script, expression)
        case syntax.Attribute(attr=syntax.Name(value=name)) if _MACHINE.fullmatch(name):
            return None
    if isinstance(expression, syntax.Subscript) and _is_entry(script, expression):
        return _of_entry(script, expression.value, str(key_of(expression)))
    known = script.constant(expression)
    if known is not None:
        return _of_constant(known)
    if not isinstance(expression, syntax.Attribute):
        return None
    several = _of_several(script, expression.value, expression.attr.value)
    return several if several is not None else _of_object(script, expression)


def _is_entry(script: Script, expression: syntax.Subscript) -> bool:
    """Whether an expression is an entry, under a text, of a dict that the program writes out."""
    key = key_of(expression)
    return isinstance(key, str) and entries.put(script, expression.value, key) is not None


def _of_entry(script: Script, holder: syntax.BaseExpression, key: str) -> Values | None:
    """What a dict that the program writes out has under a key in the runs that are made."""
    found = entries.put(script, holder, key) if not _MACHINE.fullmatch(key) else None
    kept = [(place, value) for place, value in found or () if value is None or not _is_ruled_out(place, value)]
    return truths.union(values(place, value) if value is not None else None for place, value in kept) if kept else None


def _of_object(script: Script, attribute: syntax.Attribute) -> Values | None:
    """What an object of the project keeps: what its class sets on itself, as what it is made with, and what others set."""
    owner, name = script.value(attribute.value).definition, attribute.attr.value
    derived = heirs.derived(owner) if owner is not None and isinstance(owner.node, syntax.ClassDef) else None
    if owner is None or derived is None:
        return None
    own = [each for klass in (owner, *derived) for each in script.roles.assigned_on_self(klass, name)]
    if not own or any(path or _is_field(place, value) for place, value, path in own):
        return None
    kept = truths.union(values(place, value) for place, value, _ in own)
    if kept is None:
        return None
    others = _set_elsewhere(script, name, owner)
    return truths.union((kept, *(values(place, value) if value is not None else None for place, value in others)))


def _is_field(script: Script, value: syntax.BaseExpression) -> bool:
    """Whether a value is the default of a class's field, as of a dataclass: objects are made with others."""
    statement = script.source.parents[value]
    return isinstance(statement, syntax.AnnAssign) and not isinstance(statement.target, syntax.Attribute)


def _set_elsewhere(script: Script, name: str, owner: Definition) -> Iterator[tuple[Script, syntax.BaseExpression | None]]:
    """What is assigned to an attribute of objects other than ``self`` that may be of a class; None where it is computed in
    place."""
    for place in script.everywhere(name.encode()):
        for kind in (syntax.Assign, syntax.AugAssign, syntax.AnnAssign):
            for statement in place.source.of(kind):
                targets = (
                    [each.target for each in statement.targets]
                    if isinstance(statement, syntax.Assign)
                    else [statement.target]
                )
                for target in targets:
                    if not isinstance(target, syntax.Attribute) or target.attr.value != name:
                        continue
                    is_own = is_name(target.value, "self")
                    if isinstance(statement, syntax.AugAssign):
                        yield place, None
                    elif not is_own and place.value(target.value).definition in (None, owner):
                        yield place, statement.value


def _of_name(script: Script, name: syntax.Name) -> Values | None:
    bindings = script.names.reaching(name)
    if not bindings:
        known = script.constant(name)
        return _of_constant(known) if known is not None else None
    made = [each for each in bindings if not _is_ruled_out(script, each.node)]
    return truths.union(_of_binding(script, each) for each in made or bindings)


def _is_ruled_out(script: Script, node: syntax.Node) -> bool:
    """Whether a condition around a node within its function does not hold in the runs that are made."""
    child: syntax.Node = node
    for up in script.source.ancestors(node):
        if isinstance(up, syntax.FunctionDef):
            return False
        if is_unmet(script, up, child):
            return True
        child = up
    return False


def _of_binding(script: Script, binding: Binding) -> Values | None:
    if binding.kind is Kind.PARAMETER and isinstance(binding.node, syntax.Param):
        return _of_parameter(script, binding.node)
    value = written(binding)
    return values(script, value) if value is not None else None


def _of_parameter(script: Script, parameter: syntax.Param) -> Values | None:
    function = script.source.enclosing(parameter, syntax.FunctionDef, syntax.Lambda)
    if not isinstance(function, syntax.FunctionDef):
        return None
    sites = script.call_sites(function)
    made = [site for site in sites if script.is_test or not site[0].is_test]
    if sites and not made and parameter.default is not None:
        return values(script, parameter.default)
    return truths.union(_passed(script, function, parameter, other, call) for other, call in made)


def _passed(
    script: Script, function: syntax.FunctionDef, parameter: syntax.Param, other: Script, call: syntax.Call
) -> Values | None:
    """What one call of a function gives a parameter, also with all options of a program: ``run(**vars(args))``."""
    given = script.values.given(function, parameter, other, call)
    if other.hides_arguments(call):
        match [arg.value for arg in call.args if arg.star]:
            case [syntax.Call(func=by, args=[syntax.Arg(value=parsed)])] if given is None and other.name(by) == "vars":
                return _of_several(other, parsed, parameter.name.value)
        return None
    if given is not None:
        return values(other, given)
    return values(script, parameter.default) if parameter.default is not None else None


def _of_constant(known: Constant) -> Values | None:
    option = option_of(known.script, known.node)
    if option is None or known.entry is not None:
        return (known.value,)
    return _of_option(known.script, option, known.value)


def _of_several(script: Script, parsed: syntax.BaseExpression, name: str) -> Values | None:
    """What an option comes to that each of several programs declares."""
    settings = script.values.settings(parsed)
    if not settings or not all(isinstance(setting, syntax.Call) for _, setting in settings):
        return None
    declared = {
        call: place
        for origin, setting in settings
        for place, call in origin.values.declared(name, setting if isinstance(setting, syntax.Call) else None)
    }
    defaults = [(place, call, place.values.default_of(call)) for call, place in declared.items()]
    return truths.union(
        _of_option(place, call, default.value) if default is not None else None for place, call, default in defaults
    )


def _of_option(script: Script, option: syntax.Call, default: object) -> Values | None:
    """The default of an option, and what shipped commands pass for it."""
    name = script.values.destination(option)
    if name is not None and _MACHINE.fullmatch(name):
        return None
    action, kind = script.argument(option, "action", None), script.argument(option, "type", None)
    acts = script.constant(action) if action is not None else None
    found = [default]
    for given in shipped.given(script, option):
        if given is None:
            return None
        if acts is not None and acts.value in ("store_true", "store_false"):
            found.append(acts.value == "store_true")
        elif isinstance(default, bool):
            found.append(given.lower() in _TRUE)
        else:
            found.append(_converted(given, script.text(kind) if kind is not None else type(default).__name__))
    return truths.each(found)


def _converted(given: str, kind: str) -> object:
    try:
        return _NUMBERS.get(kind, str)(given)
    except ValueError:
        return given
