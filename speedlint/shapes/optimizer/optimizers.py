"""Optimizers: which modules' parameters they hold, where those lie when the optimizer is made, what its options do."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from typing import NamedTuple

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes import devices
from speedlint.shapes.training import goes_over_parameters, parameters_within, roots, taken_apart
from speedlint.solve.loops import Does
from speedlint.solve.names import Binding, Kind
from speedlint.solve.terms import Definition, Made
from speedlint.solve.values import returned
from speedlint.source import is_name, is_none, is_target
from speedlint.torch import library
from speedlint.torch.words import Place, Role

Move = tuple[Script, syntax.Call]

_SHARDERS = (
    "torch.distributed.fsdp",
    "torch.distributed._composable",
    "torch.distributed.tensor",
    "torch.distributed._tensor",
    "torch.distributed.pipelining",
    "fairscale",
    "deepspeed",
)
_SCALES = re.compile(rb"(?i)grad_?scaler|nativescaler|mixed_precision|\bapex\b")
_GRADIENT = re.compile(rb"\.grad\b")
_WATCHES = re.compile(rb"register_(?:optimizer_)?step_(?:pre|post)_hook|\.step\s*=(?!=)")
_SAME = frozenset("to cuda cpu train eval half float double bfloat16 requires_grad_ apply share_memory".split())

_CHANGES_NOTHING = frozenset("zero_grad state_dict param_groups defaults".split())
"""What an optimizer is asked for that takes no step."""
_SHOW_NAMES = ("locals", "globals", "vars", "exec", "eval")
"""What may lead to a variable without its name."""


def made(script: Script, optimizer: syntax.Node) -> Made | None:
    """The library call that made the optimizer an expression stands for; None where it is not one known call."""
    value = script.value(optimizer)
    return value.made if value.role is Role.OPTIMIZER and value.definition is None else None


def is_plain_sgd(found: Made | None) -> bool:
    """Whether a step leaves a parameter whose gradient is zero as it is: SGD without momentum, decay, groups."""
    if found is None or found.script.name(found.call.func) != "torch.optim.SGD" or found.script.hides_arguments(found.call):
        return False
    script, call = found.script, found.call
    params = script.argument(call, "params", 0)
    if params is None or not _are_plain(script, params):
        return False
    return all(_is_zero(script, call, name, place) for name, place in (("momentum", 2), ("weight_decay", 4)))


_DECAYS = frozenset({"momentum", "weight_decay"})
_CYCLES = frozenset({"torch.optim.lr_scheduler.OneCycleLR", "torch.optim.lr_scheduler.CyclicLR"})
"""Schedulers that give an SGD a momentum unless they are told not to (torch 2.13)."""


def may_gain_momentum(script: Script) -> bool:
    """Whether the program may give an optimizer a momentum or a decay once it is made: by its groups, by a state that it
    loads, by a scheduler that cycles momentum."""
    return loads_state(script) or any(_gives_momentum(place) for place in script.everywhere(b"param_group", b"LR("))


def _gives_momentum(script: Script) -> bool:
    for attribute in script.source.of(syntax.Attribute):
        if attribute.attr.value == "param_groups" and not _only_sets_rates(script, attribute):
            return True
    for call in script.method_calls("add_param_group"):
        if not all(_names_no_decay(script, arg.value) for arg in call.args):
            return True
    cycles = [script.argument(call, "cycle_momentum") for call in script.calls(*_CYCLES)]
    return any(given is None or (known := script.constant(given)) is None or known.value for given in cycles)


def _names_no_decay(script: Script, group: syntax.BaseExpression) -> bool:
    """Whether a group of parameters is written out, with no momentum and no decay of its own."""
    return isinstance(group, syntax.Dict) and all(
        isinstance(each, syntax.DictElement) and _is_harmless_key(script, each.key) for each in group.elements
    )


def _is_harmless_key(script: Script, key: syntax.BaseExpression) -> bool:
    known = script.constant(key)
    return known is not None and isinstance(known.value, str) and known.value not in _DECAYS


def _only_sets_rates(script: Script, groups: syntax.Attribute) -> bool:
    """Whether nothing is set of an optimizer's groups but what is no momentum and no decay."""
    match script.source.parents[groups]:
        case syntax.Subscript(value=value) as one if value is groups:
            return _is_only_read(script, one)
        case syntax.For(target=target) | syntax.CompFor(target=target):
            names = script.source.inside(target, syntax.Name)
        case syntax.Arg() as arg:
            call = script.source.parents[arg]
            if script.is_call_to(call, "len"):
                return True
            loop = script.source.parents[call]
            if not script.is_call_to(call, "enumerate", "zip") or not isinstance(loop, syntax.For | syntax.CompFor):
                return False
            names = script.source.inside(loop.target, syntax.Name)
        case _:
            return False
    return all(_is_only_read(script, use) for name in names for use in script.names.uses(name))


def _is_only_read(script: Script, group: syntax.BaseExpression) -> bool:
    """Whether a group is asked for an entry, or set one that is no momentum and no decay; a number is no group."""
    if is_target(script.source, group) and isinstance(group, syntax.Name):
        return True
    match script.source.parents[group]:
        case syntax.Subscript(value=value, slice=[syntax.SubscriptElement(slice=syntax.Index(value=key))]) as entry:
            return value is group and (not is_target(script.source, entry) or _is_harmless_key(script, key))
        case syntax.Attribute(value=value, attr=syntax.Name(method)) if value is group:
            return method in ("get", "keys", "values", "items")
    return script.role(group) is Role.NUMBER


def _are_plain(script: Script, params: syntax.BaseExpression) -> bool:
    """Whether an expression is the parameters of modules, in no groups: ``list(a.parameters()) + list(b.parameters())``."""
    match params:
        case syntax.Call(func=syntax.Attribute(attr=syntax.Name("parameters"))):
            return True
        case syntax.Call(args=[syntax.Arg(value=inner)]) if script.is_call_to(params, "list", "tuple"):
            return _are_plain(script, inner)
        case syntax.Call(args=args) if args and script.is_call_to(params, "itertools.chain"):
            return all(not arg.star and _are_plain(script, arg.value) for arg in args)
        case syntax.BinaryOperation(left=left, operator=syntax.Add(), right=right):
            return _are_plain(script, left) and _are_plain(script, right)
    return False


_FEW = 2
"""Parameters that are one kernel each to fill with zeros: nothing that a step could show."""
_LAYERS_OF_FEW = frozenset(
    f"torch.nn.{name}"
    for name in (
        "Linear Bilinear Conv1d Conv2d Conv3d Embedding LayerNorm GroupNorm BatchNorm1d BatchNorm2d BatchNorm3d"
    ).split()
)
"""Layers of a weight and at most a bias."""
_REGISTERS = frozenset({"register_parameter", "add_module", "register_module", "setattr", "__setattr__"})


def holds_few(script: Script, owner: syntax.Node) -> bool:
    """Whether an optimizer is handed a tensor or two, or a module has no more: written out in a list, or all that a layer or
    a class of the project's has, as the temperature of a soft actor-critic."""
    if script.role(owner) is Role.MODULE:
        return _is_of_few(script, owner)
    found = made(script, owner)
    params = found.script.argument(found.call, "params", 0) if found is not None else None
    match params:
        case syntax.List(elements=elements) | syntax.Tuple(elements=elements) if found is not None:
            return len(elements) <= _FEW and all(
                isinstance(each, syntax.Element) and found.script.role(each.value) is Role.TENSOR for each in elements
            )
        case syntax.Call(func=syntax.Attribute(value=module, attr=syntax.Name("parameters"))) if found is not None:
            return _is_of_few(found.script, module)
    return False


def _is_of_few(script: Script, module: syntax.Node) -> bool:
    """Whether a module is made by layers or classes of a few parameters; what a checkpoint holds, it was before."""
    given = [root for root in roots(script, module) if not is_none(root[1]) and not isinstance(root[1], syntax.Subscript)]
    return bool(given) and all(_makes_few(*root) for root in given)


def _makes_few(script: Script, node: syntax.Node) -> bool:
    if isinstance(node, syntax.Call) and script.name(node.func) in _LAYERS_OF_FEW:
        return True
    definition = script.value(node).definition
    return definition is not None and _has_few(definition)


def _has_few(definition: Definition) -> bool:
    """Whether all parameters of a module's class are a few that it makes one by one, with no module in it."""
    script, node = definition.script, definition.node
    bases = list(script.roles.calls.foreign_bases(definition))
    if not isinstance(node, syntax.ClassDef) or len(node.bases) != 1 or bases != ["torch.nn.Module"]:
        return False
    calls = list(script.source.inside(node, syntax.Call))
    plain = [call for call in calls if script.is_call_to(call, *library.PARAMETERS)]
    is_repeated = any(
        script.source.enclosing(call, syntax.For, syntax.While, syntax.ListComp, syntax.ClassDef) is not node
        for call in plain
    )
    holds_more = any(
        script.role(call) is Role.MODULE or script.text(call.func).rpartition(".")[2] in _REGISTERS for call in calls
    )
    return 0 < len(plain) <= _FEW and not is_repeated and not holds_more


def is_of_new_network(script: Script, zeroed: syntax.Call, optimizer: syntax.Node) -> bool:
    """Whether gradients are zeroed once for each network that is made, with its optimizer and before any backward pass, as
    for the copy that each turn of a meta-learner adapts: a copy has no gradients."""
    found = made(script, optimizer)
    params = found.script.argument(found.call, "params", 0) if found is not None else None
    if found is None or params is None or found.script is not script or not _is_beside(script, found.call, zeroed):
        return False
    modules = [root for each in parameters_within(script, params) for root in roots(script, each)]
    return bool(modules) and all(place is script and _is_beside(script, node, zeroed) for place, node in modules)


def _is_beside(script: Script, made_at: syntax.Node, zeroed: syntax.Call) -> bool:
    """Whether a line stands before another one, runs as often, and no backward pass stands between."""
    around = (syntax.For, syntax.While, syntax.FunctionDef, syntax.Lambda, syntax.ListComp)
    function = script.function(zeroed)
    if not isinstance(made_at, syntax.Call) or made_at.row > zeroed.row or function is None:
        return False
    if script.is_call_to(made_at, "copy.copy"):  # which shares the parameters
        return False
    if script.source.enclosing(made_at, *around) is not script.source.enclosing(zeroed, *around):
        return False
    between = (each for each in script.source.inside(function, syntax.Call) if made_at.row < each.row < zeroed.row)
    return not any(script.loops.does(script.source.statement(each), Does.STEPS | Does.DIFFERENTIATES) for each in between)


def has_momentum(found: Made) -> bool:
    """Whether a library call makes an SGD that keeps a momentum."""
    script, call = found.script, found.call
    return script.name(call.func) == "torch.optim.SGD" and not _is_zero(script, call, "momentum", 2)


def may_be_scaled(script: Script) -> bool:
    """Whether the program's text speaks of a loss scaler, or of a library that may bring one."""
    return script.program.mentions(script, _SCALES)


def may_be_watched(script: Script) -> bool:
    """Whether the program's text speaks of hooks around an optimizer's step, or puts a function in its place."""
    return script.program.mentions(script, _WATCHES)


def _is_zero(script: Script, call: syntax.Call, name: str, position: int) -> bool:
    value = script.argument(call, name, position)
    constant = script.constant(value) if value is not None else None
    return value is None or (constant is not None and constant.value == 0)


def reads_gradients(script: Script, *but: syntax.Node) -> bool:
    """Whether the program touches ``.grad`` other than to ask whether it is None; ``but`` left out."""
    return any(_reads_gradients(one, but) for one in script.everywhere(_GRADIENT))


def _reads_gradients(script: Script, but: tuple[syntax.Node, ...]) -> bool:
    source = script.source
    for attribute in source.of(syntax.Attribute):
        if attribute.attr.value != "grad" or script.name(attribute) is not None:
            continue
        if not _expects_none(script, attribute) and not any(source.contains(each, attribute) for each in but):
            return True
    if any(string.evaluated_value == "grad" for string in source.of(syntax.SimpleString)):
        return True  # have: getattr(parameter, "grad")
    return any(True for _ in script.calls("torch.cuda.graph", "torch.cuda.make_graphed_callables"))


def _expects_none(script: Script, gradient: syntax.Attribute) -> bool:
    """Whether a ``.grad`` is asked for None, set to None, or zeroed after it was asked."""
    source = script.source
    parent = source.parents[gradient]
    if isinstance(parent, syntax.Comparison):
        return any(is_none(target.comparator) for target in parent.comparisons)
    if isinstance(parent, syntax.AssignTarget):
        assign = source.parents[parent]
        return isinstance(assign, syntax.Assign) and is_none(assign.value)
    while isinstance(parent, syntax.Attribute):
        name, parent = parent.attr.value, source.parents[parent]
        if name in ("zero_", "detach_"):
            return any(isinstance(up, syntax.If) and _is_none_asked(script, up.test) for up in source.ancestors(gradient))
    return False


def _is_none_asked(script: Script, test: syntax.BaseExpression) -> bool:
    return any(
        isinstance(each.left, syntax.Attribute)
        and each.left.attr.value == "grad"
        and any(is_none(t.comparator) for t in each.comparisons)
        for each in script.source.inside(test, syntax.Comparison)
    )


# Where the parameters are


class Parameters(NamedTuple):
    """The parameters of one module, as an optimizer is given them; ``module`` is an expression of ``script``."""

    script: Script
    module: syntax.BaseExpression


def parameters(script: Script, call: syntax.Call) -> list[Parameters]:
    """The modules whose parameters the construction of an optimizer names, through variables and parameters."""
    first = script.argument(call, "params", 0)
    return held_by(script, first) if first is not None else []


def held_by(script: Script, expression: syntax.BaseExpression) -> list[Parameters]:
    """The modules whose parameters are in what an expression stands for, through variables and parameters."""
    found: dict[syntax.Node, Parameters] = {}
    for one in _named(script, expression, set()):
        found.setdefault(one.module, one)
    return list(found.values())


def _named(script: Script, expression: syntax.BaseExpression, seen: set[syntax.Node]) -> Iterator[Parameters]:
    yield from (Parameters(script, module) for module in parameters_within(script, expression))
    for name in script.source.inside(expression, syntax.Name):
        parent = script.source.parents[name]
        if isinstance(parent, (syntax.Attribute, syntax.Param)) or (
            isinstance(parent, syntax.Arg) and parent.keyword is name
        ):
            continue
        yield from _of_variable(script, name, seen)
    for attribute in script.source.inside(expression, syntax.Attribute):
        parent = script.source.parents[attribute]
        is_called = isinstance(parent, syntax.Call) and parent.func is attribute
        is_alone = not is_called and not isinstance(parent, syntax.Attribute)
        if is_alone and attribute not in seen and script.role(attribute) is not Role.MODULE:
            seen.add(attribute)
            yield from _of_attribute(script, attribute, seen)


def _of_attribute(script: Script, attribute: syntax.Attribute, seen: set[syntax.Node]) -> Iterator[Parameters]:
    """The parameters that an object keeps, ``self.trained = [p for p in self.model.parameters() if p.requires_grad]``."""
    for place, kept in script.roles.origins(attribute):
        if kept is not attribute and kept not in seen:
            seen.add(kept)
            yield from _named(place, kept, seen)


def _of_variable(script: Script, name: syntax.Name, seen: set[syntax.Node]) -> Iterator[Parameters]:
    for binding in script.names.adding_up(name):
        if binding.node in seen:
            continue
        seen.add(binding.node)
        if binding.kind is Kind.PARAMETER and isinstance(binding.node, syntax.Param):
            for other, value in script.values.passed(binding.node):
                if value is not None:
                    yield from _named(other, value, seen)
        elif binding.kind in (Kind.ASSIGN, Kind.FOR, Kind.AUGMENT) and binding.value is not None:
            yield from _named(script, binding.value, seen)
    for use in script.names.uses(name):
        attribute = script.source.parents[use]
        if isinstance(attribute, syntax.IfExp):
            attribute = script.source.parents[attribute]
        added = script.source.parents[attribute]
        if (
            isinstance(attribute, syntax.Attribute)
            and attribute.attr.value in ("append", "extend")
            and isinstance(added, syntax.Call)
        ):
            for arg in added.args:
                yield from _into(script, arg.value, seen)


def _into(script: Script, expression: syntax.BaseExpression, seen: set[syntax.Node]) -> Iterator[Parameters]:
    """The parameters in what is appended to a list, not looked for in the list itself."""
    for name in script.source.inside(expression, syntax.Name):
        for binding in script.names.reaching(name):
            if binding.kind is Kind.FOR and binding.value is not None and binding.node not in seen:
                seen.add(binding.node)
                yield from _named(script, binding.value, seen)
    yield from (Parameters(script, module) for module in parameters_within(script, expression))


def moves(script: Script, module: syntax.Node) -> list[tuple[Script, syntax.Call]]:
    """The calls, here and beside, that move a module, or what it is made of or part of, to a device."""
    origin = {id(node) for _, node in roots(script, module)}
    found = []
    for place in script.everywhere(b".to(", b".cuda("):
        for call in place.method_calls("to", "cuda"):
            assert isinstance(call.func, syntax.Attribute)
            is_move = (
                place.name(call.func) is None and place.role(call.func.value) is Role.MODULE and _has_device(place, call)
            )
            if is_move and any(id(node) in origin for _, node in roots(place, call.func.value)):
                found.append((place, call))
    return found


def _has_device(script: Script, call: syntax.Call) -> bool:
    assert isinstance(call.func, syntax.Attribute)
    if call.func.attr.value == "cuda":
        return True
    target = script.argument(call, "device", 0)
    return (
        target is not None
        and not script.roles.calls.is_dtype(target)
        and (script.roles.calls.device_of(target) is not Place.HOST)
    )


def parameter_loop(script: Script, name: syntax.Name) -> syntax.For | None:
    """The loop over a module's parameters, or an optimizer's, whose variable ``name`` is."""
    for binding in script.names.reaching(name):
        loop = script.source.enclosing(binding.node, syntax.For)
        is_of_loop = binding.kind is Kind.FOR and isinstance(loop, syntax.For) and script.source.contains(loop.body, name)
        if isinstance(loop, syntax.For) and is_of_loop and goes_over_parameters(script, loop):
            return loop
    return None


def has_group_a_parameter(script: Script, call: syntax.Call) -> bool:
    """Whether the optimizer is given a group for each parameter: each group is updated by kernels of its own."""
    params = script.argument(call, "params", 0)
    if not isinstance(params, syntax.Name):
        return False
    for entry in script.source.of(syntax.DictElement):
        match entry:
            case syntax.DictElement(
                key=syntax.SimpleString(evaluated_value="params"),
                value=syntax.List(elements=[syntax.Element(value=syntax.Name() as one)]),
            ):
                names = {name.value for name in script.source.inside(script.source.statement(entry), syntax.Name)}
                if params.value in names and parameter_loop(script, one) is not None:
                    return True
    return False


def steps_in_loop(script: Script, call: syntax.Call) -> bool:
    """Whether the optimizer made by ``call`` may step many times: False where each step that is seen is taken once, or where
    none can be."""
    once = [
        place.loops.runs_once_a_training(step)
        for place in script.everywhere(b".step(")
        for step in place.method_calls("step")
        if isinstance(step.func, syntax.Attribute)
        and (found := made(place, step.func.value)) is not None
        and found.call is call
    ]
    return not all(once) if once else not _never_steps(script, call)


def _never_steps(script: Script, call: syntax.Call) -> bool:
    """Whether only a variable holds an optimizer, which is asked for other things alone: a script that times passes."""
    match script.source.parents[call]:
        case syntax.Assign(targets=[syntax.AssignTarget(target=syntax.Name() as name)], value=value) if value is call:
            if isinstance(script.names.scope(name).node, syntax.ClassDef) or any(True for _ in script.calls(*_SHOW_NAMES)):
                return False
            if script.function(call) is None and any(True for _ in script.program.importers(script, name.value.encode())):
                return False
            uses = [use for use in script.names.uses(name) if use is not name]
            asked = [script.source.parents[use] for use in uses]
            return all(isinstance(each, syntax.Attribute) and each.attr.value in _CHANGES_NOTHING for each in asked)
    return False


class Where(enum.Enum):
    """Whether a module's parameters are on a GPU where its optimizer is made."""

    ON_GPU = "on"
    """For certain."""
    BY_CUDA = "cuda"
    """If ``torch.cuda.is_available()``."""
    BY_DEVICE = "device"
    """If a ``torch.device`` variable, in sight there, is a CUDA device."""
    PERHAPS = "perhaps"
    """Not known: moved on some paths, or by code out of sight."""
    LATER = "later"
    """They are moved after it, and not before."""


class Found(NamedTuple):
    """Where parameters are, and the device's expression for BY_DEVICE."""

    where: Where
    device: str = ""


def whereabouts(script: Script, module: syntax.BaseExpression) -> Found:
    """Where a module's parameters are when ``module`` is evaluated."""
    moved = _moves_before(script, module)
    if is_name(module, "self") and (function := script.function(module)) is not None and function.name.value == "__init__":
        return Found(Where.PERHAPS if moved else Where.LATER)
    found = list(dict.fromkeys(_places(script, module, set(), 0)))
    if len(found) == 1 and found[0] is not None:
        return _visible(script, module, found[0])
    if found and all(one is None for one in found):
        if moved and _moves_if_cuda(script, module, moved[-1]):
            return Found(Where.BY_CUDA)
        if not moved and _is_moved_later(script, module):
            return Found(Where.LATER)
    return Found(Where.PERHAPS)


def _is_moved_later(script: Script, module: syntax.BaseExpression) -> bool:
    """Whether each move of a module that is seen runs after ``module``: below it, or below the calls of its function."""
    function = script.function(module)
    points = [(script, module), *(script.call_sites(function) if function is not None else [])]
    found = moves(script, module)
    return bool(found) and all(any(_follows(move, point) for point in points) for move in found)


def _follows(move: Move, point: tuple[Script, syntax.Node]) -> bool:
    (place, call), (script, node) = move, point
    return place is script and script.function(call) is script.function(node) and script.order.may_run_before(node, call)


def may_be_moved_later(script: Script, module: syntax.BaseExpression) -> bool:
    """Whether something that may be the module, by whatever name, may be moved after ``module`` is evaluated, or the module
    is a part of one that is still being made; not where it surely was moved before."""
    moved = list(_places(script, module, set(), 0))
    if moved and None not in moved:
        return False
    function = script.function(module)
    owner = script.names.owner(function) if function is not None and function.name.value == "__init__" else None
    if owner is not None and script.roles.instance(Definition(script, owner)).role is Role.MODULE:
        return True
    points: list[tuple[Script, syntax.Node]] = [(script, module)]
    points += script.call_sites(function) if function is not None else []
    homes = dict.fromkeys((place, _home(place, node)) for place, node in points)
    named = (move for place, home in homes for move in _moves_by_any_name(place, home, script, module))
    return any(not _is_done_before(move, points) for move in dict.fromkeys((*moves(script, module), *named)))


def _home(script: Script, node: syntax.Node) -> syntax.Node | None:
    """The function that a node stands in, or the class of its method."""
    function = script.function(node)
    return function and (script.names.owner(function) or function)


def _moves_by_any_name(place: Script, home: syntax.Node | None, script: Script, module: syntax.Node) -> Iterator[Move]:
    """The moves in a function or class of what is not known to be another module: of an entry, or a loop's variable."""
    made = [isinstance(node, syntax.Call) for _, node in roots(script, module)]
    for call in place.method_calls("to", "cuda"):
        assert isinstance(call.func, syntax.Attribute)
        if _home(place, call) is not home:
            continue
        role = place.role(call.func.value)
        is_module = role is Role.MODULE or (role is Role.UNKNOWN and _is_in_place(place, call))
        if place.name(call.func) is None and is_module and _has_device(place, call):
            moved = [isinstance(node, syntax.Call) for _, node in roots(place, call.func.value)]
            if not all((*made, *moved)):
                yield place, call


def _is_in_place(script: Script, call: syntax.Call) -> bool:
    """Whether nothing takes what a call returns: a statement of its own, or one for each turn of a comprehension."""
    for up in script.source.ancestors(call):
        if isinstance(up, syntax.Expr):
            return True
        if not isinstance(up, syntax.ListComp | syntax.GeneratorExp | syntax.SetComp):
            return False
    return False


def _is_done_before(move: Move, points: list[tuple[Script, syntax.Node]]) -> bool:
    """Whether a move, or each call of the function it stands in, is surely done before one of some points."""
    place, call = move
    here = [node for script, node in points if script is place and place.function(node) is place.function(call)]
    if here:
        return any(place.order.runs_before(call, node) or not place.order.may_run_before(node, call) for node in here)
    function = place.function(call)
    sites = place.call_sites(function) if function is not None else []
    if _is_made_by(place, call):
        scripts = [script for script, _ in points]
        sites = [(other, site) for other, site in sites if other in scripts]
    return bool(sites) and all(
        any(other is script and other.order.runs_before(site, node) for script, node in points) for other, site in sites
    )


def _is_made_by(script: Script, move: syntax.Call) -> bool:
    """Whether a function moves what it has made itself, so that its other calls move other modules."""
    assert isinstance(move.func, syntax.Attribute)
    moved = move.func.value
    bindings = script.names.reaching(moved) if isinstance(moved, syntax.Name) else []
    return bool(bindings) and all(
        isinstance(binding.value, syntax.Call) and script.function(binding.node) is script.function(move)
        for binding in bindings
    )


def _moves_before(script: Script, module: syntax.BaseExpression) -> list[syntax.Call]:
    """The moves of a variable or attribute that stand before it, on whichever path, where its variable is in sight."""
    source, text = script.source, script.text(module)
    root = module.value if isinstance(module, syntax.Attribute) else module
    uses = script.names.uses(root) if isinstance(root, syntax.Name) else []
    found = []
    for use in uses:
        receiver = source.parents[use] if isinstance(module, syntax.Attribute) else use
        attribute = source.parents[receiver]
        call = source.parents[attribute]
        match call:
            case syntax.Call(func=syntax.Attribute(value=moved, attr=syntax.Name("to" | "cuda" | "cpu"))) if (
                call.func is attribute
            ):
                if script.order.may_run_before(use, module) and script.text(moved) == text:
                    found.append(call)
    return found


def _moves_if_cuda(script: Script, module: syntax.BaseExpression, move: syntax.Call) -> bool:
    """Whether ``move`` is a statement ``model.cuda()`` that runs before ``module`` just where there is a GPU."""
    source = script.source
    statement = source.statement(move)
    branch = source.parents[source.parents[statement]]
    if (
        not isinstance(branch, syntax.If)
        or not isinstance(source.parents[move], syntax.Expr)
        or not isinstance(module, syntax.Name)
    ):
        return False
    if branch.body is not source.parents[statement] or not source.contains(source.parents[branch], module):
        return False
    bindings = script.names.reaching(module)
    if any(script.order.runs_again(branch, each.node) for each in bindings) or source.contains(branch, module):
        return False
    if _visible(script, move, (script, move)).where is not Where.ON_GPU:
        return False
    return script.loops.guards.asks_for_gpu(branch.test) is True


def guard(script: Script, move: syntax.Call, module: str) -> str | None:
    """The condition under which a module is on a GPU right after ``move``; None where it always is."""
    found = _visible(script, move, (script, move))
    match found.where:
        case Where.ON_GPU:
            return None
        case Where.BY_DEVICE:
            return devices.is_of_cuda(found.device)
    return f"next({module}.parameters()).is_cuda"


def _visible(script: Script, module: syntax.Node, move: tuple[Script, syntax.Call]) -> Found:
    """What the move says of the parameters, in words that hold where ``module`` stands."""
    place, call = move
    assert isinstance(call.func, syntax.Attribute)
    target = place.argument(call, "device", 0) if call.func.attr.value == "to" else None
    if target is None:
        return Found(Where.ON_GPU)
    constant = place.constant(target)
    if place.roles.calls.device_of(target) is Place.GPU and (constant is None or constant.value is not None):
        return Found(Where.ON_GPU)
    if place is script and isinstance(target, syntax.Name) and devices.is_device_variable(script, target, module):
        return Found(Where.BY_DEVICE, target.value)
    if all(devices.is_chosen_by_cuda(other, value) for other, value in place.roles.origins(target)):
        return Found(Where.BY_CUDA) if any(True for _ in place.roles.origins(target)) else Found(Where.PERHAPS)
    return Found(Where.PERHAPS)


def _places(script: Script, node: syntax.Node, seen: set[int], depth: int) -> Iterator[Move | None]:
    """The moves that the value of an expression has gone through last, one for each way it may come; None for no move."""
    if id(node) in seen or depth > 12:
        return
    seen.add(id(node))
    match node:
        case syntax.Call():
            yield from _places_of_call(script, node, seen, depth)
        case syntax.Name():
            moved = _moved_in_place(script, node)
            bindings = script.names.reaching(node)
            for binding in bindings:
                if moved is not None and script.order.may_run_before(binding.node, moved[1]):
                    yield moved
                else:
                    yield from _places_of_binding(script, binding, seen, depth)
            if not bindings:
                yield None
        case syntax.Attribute(value=base) if script.role(base) is Role.MODULE and not is_name(base, "self"):
            yield from _places(script, base, seen, depth + 1)
        case syntax.Attribute():
            definition = script.value(node.value).definition
            sources = list(script.roles.self_assignments(definition, node.attr.value)) if definition else []
            for place, value in sources:
                yield from _places(place, value, seen, depth + 1)
            if not sources:
                yield None
        case syntax.IfExp(body=body, orelse=orelse):
            yield from _places(script, body, seen, depth + 1)
            yield from _places(script, orelse, seen, depth + 1)
        case _:
            yield None


def _places_of_call(script: Script, call: syntax.Call, seen: set[int], depth: int) -> Iterator[Move | None]:
    name = script.name(call.func)
    if name in library.DISTRIBUTED_WRAPPERS or name in library.COMPILERS:
        if call.args:
            yield from _places(script, call.args[0].value, seen, depth + 1)
        return
    if name is None and isinstance(call.func, syntax.Attribute) and call.func.attr.value in _SAME:
        if call.func.attr.value in ("to", "cuda") and _names_device(script, call):
            yield script, call
        else:
            yield from _places(script, call.func.value, seen, depth + 1)
        return
    definition = script.definition(call.func)
    values = list(returned(definition)) if definition is not None and isinstance(definition.node, syntax.FunctionDef) else []
    for value in values:
        assert definition is not None
        yield from _places(definition.script, value, seen, depth + 1)
    if not values:
        yield None


def _names_device(script: Script, call: syntax.Call) -> bool:
    """Whether a ``.to`` or ``.cuda`` names a place, the CPU included."""
    assert isinstance(call.func, syntax.Attribute)
    target = script.argument(call, "device", 0)
    return call.func.attr.value == "cuda" or (target is not None and not script.roles.calls.is_dtype(target))


def _places_of_binding(script: Script, binding: Binding, seen: set[int], depth: int) -> Iterator[Move | None]:
    if binding.kind is Kind.PARAMETER and isinstance(binding.node, syntax.Param):
        passed = list(script.values.passed(binding.node))
        for place, value in passed:
            if value is not None:
                yield from _places(place, value, seen, depth + 1)
        if not passed:
            yield None
    elif binding.kind is Kind.ASSIGN and binding.value is not None:
        taken = list(taken_apart(script, binding.value, binding.path))
        for place, value in taken:
            yield from _places(place, value, seen, depth + 1)
        if not taken:
            yield None
    else:
        yield None


def _moved_in_place(script: Script, name: syntax.Name) -> Move | None:
    """The last statement ``model.to(device)`` that surely runs before ``name``."""
    parents, found = script.source.parents, None
    for use in script.names.uses(name):
        func = parents[use]
        call = parents[func]
        if not isinstance(call, syntax.Call) or call.func is not func or not isinstance(parents[call], syntax.Expr):
            continue
        if isinstance(func, syntax.Attribute) and script.order.runs_before(call, name):
            if func.attr.value == "cpu":
                found = None
            elif func.attr.value in ("to", "cuda") and _names_device(script, call):
                found = (script, call)
    return found


def has_sparse_gradients(script: Script) -> bool:
    """Whether the program may make an embedding with sparse gradients."""
    return script.program.mentions(script, b"sparse") and any(
        _may_be_sparse(one, call)
        for one in script.everywhere(b"Embedding")
        for call in one.calls("torch.nn.Embedding", "torch.nn.EmbeddingBag")
    )


def _may_be_sparse(script: Script, call: syntax.Call) -> bool:
    value = script.argument(call, "sparse")
    known = script.constant(value) if value is not None else None
    return script.hides_arguments(call) if value is None else known is None or known.value is not False


def loads_state(script: Script) -> bool:
    """Whether the program may load the state of an optimizer that was saved before."""
    return any(
        script_of.role(call.func.value) in (Role.OPTIMIZER, Role.UNKNOWN)
        for script_of in script.everywhere(b"load_state_dict")
        for call in script_of.method_calls("load_state_dict")
        if isinstance(call.func, syntax.Attribute)
    )


def is_remote(script: Script) -> bool:
    """Whether a script calls other processes for their parameters or gradients: its server's own stay on the CPU."""
    names = (dotted for _, dotted in script.names.imports)
    return any(f"{name}.".startswith("torch.distributed.rpc.") for name in names)


def is_sharded(script: Script) -> bool:
    """Whether the program spreads a model's parameters over several processes."""
    return any(
        binding.dotted is not None and binding.dotted.startswith(_SHARDERS)
        for one in script.everywhere(*{name.rpartition(".")[2].encode() for name in _SHARDERS})
        for bindings in one.names.all_bindings()
        for binding in bindings
    )
