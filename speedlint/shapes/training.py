"""Which modules a script trains, where it puts them on their device, and who drives the training."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.solve import off, reach
from speedlint.solve.calls import CALLED_AS
from speedlint.solve.flow import listed_once, once
from speedlint.solve.loops import Does
from speedlint.solve.names import Binding, Kind
from speedlint.solve.terms import Definition
from speedlint.solve.unpacking import part
from speedlint.solve.values import returned
from speedlint.source import is_none
from speedlint.torch import library
from speedlint.torch.words import Place, Role

_OPTIMIZER = (
    "opt(?!ion|um_|imum)|Opt(?!ion|imum)|OPT(?!ION)|adam|Adam|ADAM|sgd|Sgd|SGD|ada[gG]rad|Ada[gG]rad|ada[dD]elta|Ada[dD]elta|"
    "ada[fF]actor|Ada[fF]actor|rmsprop|RMS[pP]rop|Rmsprop|lamb(?!da)|Lamb(?!da)|LAMB(?!DA)|lion|Lion|LION|lbfgs|LBFGS|rprop|Rprop"
)
"""What names of optimizers, and of what makes them, hold. To ignore case would take four times as long."""
_NAMES_OPTIMIZER = re.compile(_OPTIMIZER)
_MAKES_OPTIMIZER = re.compile(rb"(?:" + _OPTIMIZER.encode() + rb")\w{0,40}\s{0,9}(?:\(|=[^=])")
_PARAMETERS = frozenset({"parameters", "named_parameters"})
_SAME = frozenset(
    "to cuda cpu train eval half float double bfloat16 type requires_grad_ apply share_memory to_empty".split()
)
_FRAMEWORKS = (
    "pytorch_lightning",
    "lightning",
    "accelerate",
    "deepspeed",
    "apex.amp",
    "apex.fp16_utils",
    "mmengine.runner",
    "mmengine.Runner",
    "mmengine.optim",
    "mmengine.model",
    "mmengine.hooks",
    "mmengine.registry",
    "mmcv.runner",
    "fastai",
    "composer",
    "torchtune",
    "colossalai",
    "fairseq",
    "transformers.Trainer",
    "transformers.trainer",
    "trl",
    "catalyst",
    "lightning_fabric",
    "torch_xla",
    "torch.distributed.fsdp",
    "torch.distributed._composable.fsdp",
    "torch.distributed.tensor.parallel",
    "intel_extension_for_pytorch",
    "habana_frameworks",
)
_PARTS = ("apex", "transformers", "mmcv", "mmengine")
"""Packages that one part of is a framework: a script may import the package and name the part where it uses it."""
_WITHIN_FRAMEWORKS = tuple(f"{name}." for name in _FRAMEWORKS)
_LOOPS_OF_ONES_OWN = ("accelerate", "apex.amp", "apex.fp16_utils", "deepspeed", "lightning_fabric", "torch.distributed")
"""Frameworks of ``_FRAMEWORKS`` that leave the loop, and all that it does beside the precision, to the script."""
_LIGHTNING = ("lightning", "pytorch_lightning")
_DRIVES_NOTHING = re.compile(
    r"(?:lightning|pytorch_lightning)\.(?:seed_everything$|(?:pytorch\.)?(?:utilities|loggers|metrics)\b.*)"
)
"""What a loop of one's own takes of Lightning: a seed for all generators, a logger."""
_LIGHTNING_LOOP = re.compile(rb"\bTrainer\b|LightningModule|LightningCLI")
_DEPTH = 12

Root = tuple[Script, syntax.Node]


class Placement(NamedTuple):
    """A call that puts a trained module on its device.

    Attributes:
        call: the first ``.to(...)`` or ``.cuda(...)`` of the module in this script.
        module: the expression that is moved.
        further: other placements of the same module: other branches, wrapped again.
    """

    call: syntax.Call
    module: syntax.BaseExpression
    further: tuple[syntax.Call, ...] = ()


# Which modules


@once([])
def model_placements(script: Script) -> list[Placement]:
    """Where this script puts the modules it trains on their device, one placement for each module, in source order.

    Losses, frozen helpers (a teacher, a feature extractor), and moves to the CPU or to a dtype alone are no placements.
    Those of a function that only runs the module, as a test after the training does, and those of runs that are not made,
    come after the others.
    """
    found: list[tuple[set[int], list[syntax.Call]]] = []
    for call in script.method_calls("to", "cuda"):
        if not _moves_module(script, call):
            continue
        trained = {id(node) for _, node in trained_modules(script)}
        assert isinstance(call.func, syntax.Attribute)
        origin = {id(node) for _, node in roots(script, call.func.value)}
        if not origin & trained:
            continue
        same = next((entry for entry in found if entry[0] & origin), None)
        if same is None:
            found.append((origin, [call]))
        else:
            same[0].update(origin)
            same[1].append(call)
    ordered = (sorted(calls, key=lambda call: _only_runs(script, call)) for _, calls in found)
    placed = [
        Placement(calls[0], calls[0].func.value, tuple(calls[1:]))
        for calls in ordered
        if isinstance(calls[0].func, syntax.Attribute)
    ]
    return sorted(placed, key=lambda one: off.is_off(script, one.call)) if len(placed) > 1 else placed


def _only_runs(script: Script, call: syntax.Call) -> bool:
    """Whether the function of a call runs modules, and trains none."""
    function = script.function(call)
    does = script.loops.function_does(function, Does.FORWARD | Does.STEPS) if function is not None else Does.NOTHING
    return does == Does.FORWARD


@once([])
def placed_by_helpers(script: Script) -> list[Placement]:
    """The calls by which this script hands a module it trains to a function, of a file that is not asked for, which puts it
    on its device."""
    found: list[Placement] = []
    trained: set[int] | None = None
    for call in script.source.of(syntax.Call):
        callee = script.callee(call)
        if callee is None or not isinstance(callee.node, syntax.FunctionDef) or script.is_reported(callee.script):
            continue
        for moved in _moved_parameters(callee.script, callee.node):
            given = callee.script.values.given(callee.node, moved, script, call)
            if given is None:
                continue
            trained = {id(node) for _, node in trained_modules(script)} if trained is None else trained
            if trained & {id(node) for _, node in roots(script, given)}:
                found.append(Placement(call, given))
    return found


@listed_once
def _moved_parameters(script: Script, function: syntax.FunctionDef) -> Iterator[syntax.Param]:
    """The parameters of a function that it puts on a device as modules."""
    for call in script.source.inside(function.body, syntax.Call):
        match call.func:
            case syntax.Attribute(value=syntax.Name() as moved, attr=syntax.Name("to" | "cuda")) if _moves_module(
                script, call
            ):
                for binding in script.names.reaching(moved):
                    if isinstance(binding.node, syntax.Param) and script.function(call) is function:
                        yield binding.node


def _moves_module(script: Script, call: syntax.Call) -> bool:
    assert isinstance(call.func, syntax.Attribute)
    if script.name(call.func) is not None or script.role(call.func.value) is not Role.MODULE:
        return False
    if call.func.attr.value == "to":
        target = script.argument(call, "device", 0)
        if target is None or script.roles.calls.is_dtype(target):
            return False
    return script.roles.calls.place_of_move(call, Place.EITHER) is not Place.HOST


@once([])
def trained_modules(script: Script) -> list[Root]:
    """The roots (see ``roots``) of the modules whose parameters, all or those of a part, an optimizer of the program is
    given, or that make one by a method of their own.

    Where no optimizer is seen to take a module, those on which ``train()`` is called.
    """
    optimized = [root for place in script.everywhere(_MAKES_OPTIMIZER) for root in _optimized(place)]
    return optimized or [root for place in script.everywhere(b".train(") for root in _set_to_train(place)]


@listed_once
def _optimized(script: Script) -> Iterator[Root]:
    for call in script.source.of(syntax.Call):
        if not _makes_optimizer(script, call):
            continue
        given = [module for arg in call.args for module in _modules_within(script, arg.value, set())]
        whole = [module.value for module in given if isinstance(module, syntax.Attribute)]
        if isinstance(call.func, syntax.Attribute):
            whole.append(call.func.value)
        for module in (*given, *(each for each in whole if script.role(each) is Role.MODULE)):
            yield from roots(script, module)


def _makes_optimizer(script: Script, call: syntax.Call) -> bool:
    if not _may_make_optimizer(script, call):
        return False
    name = script.name(call.func)
    is_library = name is not None and "." in name and script.imported(name) is None
    if is_library and not (name or "").startswith("torch.optim.") and name not in library.LEGACY_OPTIMIZERS:
        return False
    return script.value(call).role is Role.OPTIMIZER


def _may_make_optimizer(script: Script, call: syntax.Call) -> bool:
    """Whether what is called, or what its result is bound to, is called after an optimizer: else it is not looked into."""
    parent = script.source.parents[call]
    targets = parent.targets if isinstance(parent, syntax.Assign) else ()
    written = (call.func, *(target.target for target in targets))
    words, rows = _words_of_optimizers(script), script.source.tree.rows
    return any(not words.isdisjoint(rows.text[each.row : rows.last[each.row] + 1]) for each in written)


@once(frozenset())
def _words_of_optimizers(script: Script) -> frozenset[int]:
    """Which of a file's names and strings hold what names of optimizers do."""
    return frozenset(number for number, text in enumerate(script.source.tree.rows.strings) if _NAMES_OPTIMIZER.search(text))


def _modules_within(
    script: Script, expression: syntax.BaseExpression, seen: set[syntax.Node]
) -> Iterator[syntax.BaseExpression]:
    """The modules whose parameters an optimizer's argument names, through the variables that hold them."""
    if isinstance(expression, (syntax.Name, syntax.Attribute)) and script.role(expression) is Role.MODULE:
        yield expression
        return
    yield from parameters_within(script, expression)
    for name in script.source.inside(expression, syntax.Name):
        for binding in _values_of(script, name):
            if binding.value is not None and binding.node not in seen:
                seen.add(binding.node)
                yield from _modules_within(script, binding.value, seen)
        yield from _modules_added(script, name)


def parameters_within(script: Script, node: syntax.Node) -> Iterator[syntax.BaseExpression]:
    """The modules whose ``parameters()``, ``named_parameters()``, or own method that goes over these, are called within a
    node."""
    for call in script.source.inside(node, syntax.Call):
        if isinstance(call.func, syntax.Attribute) and (
            call.func.attr.value in _PARAMETERS or _gives_parameters(script, call)
        ):
            yield call.func.value


def _gives_parameters(script: Script, call: syntax.Call) -> bool:
    """Whether a call is of a module's own method that speaks of its parameters: ``model.groups(lr)``."""
    assert isinstance(call.func, syntax.Attribute)
    if script.name(call.func) is not None or script.role(call.func.value) is not Role.MODULE:
        return False
    method = script.callee(call)
    if call.func.attr.value in CALLED_AS:
        return False
    methods = [method] if method is not None else _methods_of_kinds(script, call.func)
    named = (each for one in methods for each in one.script.source.inside(one.node, syntax.Attribute))
    return any(each.attr.value in _PARAMETERS for each in named)


def _methods_of_kinds(script: Script, method: syntax.Attribute) -> list[Definition]:
    """The methods that a module has under a name, by each of the classes that it may be of."""
    kinds = (place.definition(made.func) for place, made in roots(script, method.value) if isinstance(made, syntax.Call))
    found = (kind.script.roles.calls.method(kind, method.attr.value) for kind in kinds if kind is not None)
    return [each for each in found if each is not None]


def goes_over_parameters(script: Script, loop: syntax.For) -> bool:
    """Whether a loop goes over the parameters of a module, or of an optimizer's group."""
    if any(string.evaluated_value == "params" for string in script.source.inside(loop.iter, syntax.SimpleString)):
        return True
    called = (call.func for call in script.source.inside(loop.iter, syntax.Call))
    return any(isinstance(func, syntax.Attribute) and func.attr.value.endswith("parameters") for func in called)


def _values_of(script: Script, name: syntax.Name) -> list[Binding]:
    parent = script.source.parents[name]
    if isinstance(parent, syntax.Attribute) or (isinstance(parent, syntax.Arg) and parent.keyword is name):
        return []
    return [b for b in script.names.adding_up(name) if b.kind in (Kind.ASSIGN, Kind.FOR, Kind.AUGMENT)]


def _modules_added(script: Script, name: syntax.Name) -> Iterator[syntax.BaseExpression]:
    """The modules whose parameters are appended to the list ``name`` stands for."""
    parent = script.source.parents[name]
    if isinstance(parent, syntax.Attribute) or (isinstance(parent, syntax.Arg) and parent.keyword is name):
        return
    for use in script.names.uses(name):
        attribute = script.source.parents[use]
        call = script.source.parents[attribute]
        if (
            isinstance(attribute, syntax.Attribute)
            and attribute.value is use
            and isinstance(call, syntax.Call)
            and call.func is attribute
            and attribute.attr.value in ("append", "extend")
        ):
            for arg in call.args:
                yield from parameters_within(script, arg)


@listed_once
def _set_to_train(script: Script) -> Iterator[Root]:
    for call in script.method_calls("train"):
        assert isinstance(call.func, syntax.Attribute)
        if not call.args and script.role(call.func.value) is Role.MODULE:
            yield from roots(script, call.func.value)


def same_module(script: Script, left: syntax.BaseExpression, right: syntax.BaseExpression) -> bool:
    """Whether two expressions of a script may be the same module."""
    first = {id(node) for _, node in roots(script, left)}
    return any(id(node) in first for _, node in roots(script, right))


def roots(script: Script, expression: syntax.Node) -> list[Root]:
    """The expressions (constructions, mostly) that a module comes from, each with its script.

    Looks through moves, ``train()``, wrappers such as ``DataParallel`` and ``torch.compile``, variables, attributes on
    ``self``, parameters and first-party functions that return it. Two expressions are one module if they share a root.
    """
    found: dict[int, Root] = {}
    _collect(script, expression, found, {}, 0)
    return list(found.values())


def passed_through(script: Script, expression: syntax.Node) -> list[Root]:
    """The expressions that a module passes through on its way from its roots (see ``roots``), last first: moves, wrappers,
    calls that return it."""
    seen: dict[int, Root] = {}
    _collect(script, expression, {}, seen, 0)
    return list(seen.values())


def _collect(script: Script, node: syntax.Node, found: dict[int, Root], seen: dict[int, Root], depth: int) -> None:
    if id(node) in seen or depth > _DEPTH:
        return
    seen[id(node)] = (script, node)
    inner = _wrapped(script, node)
    if inner is not None:
        _collect(script, inner, found, seen, depth + 1)
        return
    sources = list(_sources(script, node))
    if isinstance(node, syntax.Call) or (not sources and not _is_left_out(script, node)):
        found[id(node)] = (script, node)
    for other, value in sources:
        _collect(other, value, found, seen, depth + 1)


def _is_left_out(script: Script, node: syntax.Node) -> bool:
    """Whether a variable is a parameter that is None by default, whose function is called in sight without it."""
    bindings = script.names.reaching(node) if isinstance(node, syntax.Name) else []
    for binding in bindings:
        parameter, function = binding.node, script.function(binding.node)
        is_optional = isinstance(parameter, syntax.Param) and is_none(parameter.default)
        if not is_optional or function is None or not script.call_sites(function):
            return False
    return bool(bindings)


def _wrapped(script: Script, node: syntax.Node) -> syntax.Node | None:
    """The module within a move or a wrapper."""
    if isinstance(node, syntax.Attribute) and node.attr.value in ("module", "_orig_mod") and script.name(node) is None:
        return node.value
    if not isinstance(node, syntax.Call):
        return None
    name = script.name(node.func)
    is_wrapper = name in library.DISTRIBUTED_WRAPPERS or name in library.COMPILERS
    if is_wrapper or script.roles.calls.is_own_wrapper(node, library.DISTRIBUTED_WRAPPERS):
        return node.args[0].value if node.args else None
    if isinstance(node.func, syntax.Attribute) and node.func.attr.value in _SAME:
        return node.func.value if name is None or script.role(node.func.value) is Role.MODULE else None
    return None


def _sources(script: Script, node: syntax.Node) -> Iterator[tuple[Script, syntax.Node]]:
    """Where a name, attribute or call gets its value from, one step back; a binding without a value is its own source."""
    match node:
        case syntax.Name():
            bindings = script.names.reaching(node)
            for binding in bindings:
                yield from _binding_sources(script, binding)
            if not bindings:
                yield from _imported_sources(script, node)
        case syntax.Attribute():
            yield from _attribute_sources(script, node)
        case syntax.Call():
            definition = script.definition(node.func) or script.value(node.func).definition
            if definition is not None and isinstance(definition.node, syntax.FunctionDef):
                for value in returned(definition):
                    given = _handed_back(definition, value, script, node)
                    yield (script, given) if given is not None else (definition.script, value)
            elif definition is None and script.name(node.func) is None:
                for place, choice in script.roles.calls.choices(node.func):
                    yield from _chosen(place, choice)
        case syntax.IfExp(body=body, orelse=orelse):
            yield from ((script, body), (script, orelse))


def _handed_back(
    function: Definition, result: syntax.BaseExpression, script: Script, call: syntax.Call
) -> syntax.BaseExpression | None:
    """What a call hands to a function that gives it back, moved at most; None where that is not seen."""
    found = reach.parameters(function.script, result)
    is_own = len(found) == 1 and function.script.function(found[0]) is function.node
    if not is_own or not isinstance(function.node, syntax.FunctionDef) or script.hides_arguments(call):
        return None
    return function.script.values.given(function.node, found[0], script, call)


def _chosen(script: Script, choice: syntax.BaseExpression) -> Iterator[tuple[Script, syntax.Node]]:
    """What a call of one of several functions and lambdas gives: what they return."""
    if isinstance(choice, syntax.Lambda):
        yield script, choice.body
        return
    definition = script.definition(choice) or script.value(choice).definition
    if definition is not None and isinstance(definition.node, syntax.FunctionDef):
        yield from ((definition.script, value) for value in returned(definition))


def _binding_sources(script: Script, binding: Binding) -> Iterator[tuple[Script, syntax.Node]]:
    if binding.kind is Kind.PARAMETER and isinstance(binding.node, syntax.Param):
        yield from _passed(script, binding.node)
    elif binding.kind is Kind.IMPORT and binding.dotted is not None:
        reached, other = script.imported_binding(binding.dotted)
        if reached is not None and other is not None:
            yield from _binding_sources(other, reached)
    elif binding.kind is Kind.ASSIGN and binding.value is not None:
        taken = list(taken_apart(script, binding.value, binding.path))
        if not taken:
            yield script, binding.node
        yield from ((place, value) for place, value in taken if not is_none(value))
    elif binding.kind is not Kind.AUGMENT:
        yield script, binding.node


def taken_apart(
    script: Script, value: syntax.BaseExpression, path: tuple[int | None, ...]
) -> Iterator[tuple[Script, syntax.BaseExpression]]:
    """The part of a tuple, written out or returned by a first-party function, that a path leads to."""
    value, path = part(value, path)
    if not path:
        yield script, value
    elif isinstance(value, syntax.Call):
        definition = script.definition(value.func) or script.value(value.func).definition
        if definition is not None and isinstance(definition.node, syntax.FunctionDef):
            for result in returned(definition):
                yield from taken_apart(definition.script, result, path)


def _passed(script: Script, parameter: syntax.Param) -> Iterator[tuple[Script, syntax.Node]]:
    passed = list(script.values.passed(parameter))
    for other, value in passed:
        if value is not None:
            yield other, value
        elif parameter.default is not None and not is_none(parameter.default):
            yield script, parameter.default
    if not passed:
        yield script, parameter


def _imported_sources(script: Script, node: syntax.Node) -> Iterator[tuple[Script, syntax.Node]]:
    """Where a name of another module, after ``import *`` too, gets its value from."""
    dotted = script.dotted(node)
    reached, other = script.imported_binding(dotted) if dotted is not None else (None, None)
    if reached is not None and other is not None:
        yield from _binding_sources(other, reached)


def _attribute_sources(script: Script, node: syntax.Attribute) -> Iterator[tuple[Script, syntax.Node]]:
    if script.dotted(node) is not None:
        yield from _imported_sources(script, node)
        return
    definition: Definition | None = script.value(node.value).definition
    if definition is not None and isinstance(definition.node, syntax.ClassDef):
        for other, value, path in script.roles.assigned_on_self(definition, node.attr.value):
            yield from (each for each in taken_apart(other, value, path) if not is_none(each[1]))


# Who drives


def is_framework_driven(script: Script) -> bool:
    """Whether a library that brings its own mixed precision (a trainer, apex, FSDP) drives this script's training, or a
    another's of its program."""
    return any(True for place in _near_frameworks(script) for _ in _frameworks(place))


def is_apex_driven(script: Script) -> bool:
    """Whether apex is all that drives a program's training: it changes what is computed, and leaves the optimizer alone."""
    found = {name for place in _near_frameworks(script) for name in _frameworks(place)}
    return bool(found) and all(name.startswith("apex.") for name in found)


def leaves_optimizer(script: Script) -> bool:
    """Whether the frameworks of a program, if any, take the optimizer that the script makes as it is: apex, Accelerate."""
    found = (name for place in _near_frameworks(script) for name in _frameworks(place))
    return all(name.startswith(("apex.", "accelerate")) for name in found)


def is_loop_of_framework(script: Script) -> bool:
    """Whether a library runs the loop itself, with switches of its own: a loop written with Accelerate or Fabric is none."""
    return any(_runs_loop(place, name) for place in _near_frameworks(script) for name in _frameworks(place))


def _near_frameworks(script: Script) -> Iterator[Script]:
    marks = {name.partition(".")[0].encode() for name in _FRAMEWORKS if not name.startswith("torch.")}
    marks |= {name.rpartition(".")[2].encode() for name in _FRAMEWORKS if name.startswith("torch.")}
    return script.everywhere(*marks)


@listed_once
def _frameworks(script: Script) -> Iterator[str]:
    """The frameworks, and what is taken from them, that a script imports, or takes out of a package that it imports."""
    for _, dotted in script.names.imports:
        is_one = f"{dotted}.".startswith(_WITHIN_FRAMEWORKS) and not _DRIVES_NOTHING.match(dotted)
        if is_one and script.program.module(script, dotted) is None:
            yield dotted
    within = [name for name in _FRAMEWORKS if name.partition(".")[0] in _PARTS]
    for name in within if any(name in _PARTS for _, name in script.names.imports) else ():
        taken = (script.name(each) for each in script.source.of(syntax.Attribute))
        yield from (each for each in taken if each is not None and f"{each}.".startswith(f"{name}."))


def _runs_loop(script: Script, name: str) -> bool:
    if name.startswith(_LOOPS_OF_ONES_OWN):
        return False
    return name.partition(".")[0] not in _LIGHTNING or _LIGHTNING_LOOP.search(script.source.data) is not None
