"""Gradients that a backward pass computes and nothing uses: they are zeroed before an optimizer steps on them, or no
optimizer holds what they are for."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from typing import NamedTuple

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes import evaluation, training
from speedlint.shapes.model import networks, surgery
from speedlint.shapes.optimizer import graphs, optimizers
from speedlint.shapes.optimizer.optimizers import Parameters
from speedlint.shapes.steps import CLIPS, Step, carrying, runs_module, training_steps
from speedlint.shapes.sync.reads import shown
from speedlint.shapes.training import Root
from speedlint.solve.flow import once
from speedlint.solve.gradients import gradients_off
from speedlint.solve.terms import Definition, Made
from speedlint.source import is_name, is_target
from speedlint.torch.words import Role

_STEPS = b".step("
_HOOKS = (b"_hook(", b"_hooks(", b"register_multi_grad")
_WRAPPERS = (
    b"checkpoint(",
    b"checkpoint_sequential",
    b"DistributedDataParallel",
    b"FullyShardedDataParallel",
    b"deepspeed",
    b"fully_shard",
)
_DIFFERENTIATES = (b"autograd.grad", b"import grad", b"functional_call", b"torch.func")
_LEAF = re.compile(rb"requires_grad|Parameter\(")
_NUMBERS = (Role.NUMBER, Role.STRING, Role.NONE, Role.DEVICE, Role.DTYPE, Role.FUNCTION, Role.CLASS)
_SWITCHES = re.compile(r"requires_grad|detach_$|freeze|toggle")
"""Names by which parameters, or tensors, are told whether to take gradients."""


class Kind(enum.Enum):
    """Which gradients nothing uses, and so how they are spared."""

    BEYOND = "beyond"
    """Those that go back through a network's input into another one."""
    ALL = "all"
    """All that a network that is not trained computes: its input needs none."""
    WEIGHTS = "weights"
    """Those of the weights of a network that is not trained: its input needs some."""
    OTHER = "other"
    """Those of the weights of a network that another pass trains, as the discriminator's in the generator's step."""


class Discarded(NamedTuple):
    """Gradients of a backward pass that nothing uses.

    Attributes:
        kind: which.
        forward: the call of the network; where they go beyond it, of the one that the pass is for.
        given: where they go beyond it, the argument that they flow back through.
        beyond: where they go beyond it, the calls of the other networks.
    """

    kind: Kind
    forward: syntax.Call
    given: syntax.BaseExpression
    beyond: tuple[syntax.Call, ...] = ()


def discarded(script: Script, backward: syntax.Call) -> Iterator[Discarded]:
    """The gradients that a backward pass of a training step computes and nothing uses."""
    step = next((each for each in training_steps(script) if each.backward is backward), None)
    if step is None or any(is_name(arg.keyword, "create_graph") for arg in backward.args):
        return
    for forward in _networks(script, carrying(script, backward, step.loss)):
        found = list(_beyond(step, forward)) or list(_untrained(step, forward)) or list(_of_another(step, forward))
        yield from found


def _networks(script: Script, calls: list[syntax.Call]) -> list[syntax.Call]:
    return [call for call in calls if script.role(call.func) is Role.MODULE and evaluation.is_network(script, call)]


# From one network into another


def _beyond(step: Step, forward: syntax.Call) -> Iterator[Discarded]:
    """Where the pass goes on into networks whose gradients are zeroed before their optimizer steps, as from the
    discriminator into the generator."""
    for arg in forward.args:
        inner = _networks(step.script, carrying(step.script, forward, arg.value))
        if inner and _is_for(step, forward) and all(_is_dropped(step, forward, each) for each in inner):
            yield Discarded(Kind.BEYOND, forward, arg.value, tuple(inner))


def _is_for(step: Step, forward: syntax.Call) -> bool:
    """Whether an optimizer that holds a network takes the gradients that the pass gives it."""
    updates = _updates(step.script)
    return updates is not None and any(
        _holds(each, step.script, forward.func) is True and _is_taken(step, each, forward.func) for each in updates
    )


def _is_dropped(step: Step, forward: syntax.Call, inner: syntax.Call) -> bool:
    """Whether no optimizer takes the gradients that the pass gives a network, and no other pass goes the same way."""
    return _is_left(step, inner.func) and not _goes_elsewhere(step, forward)


def _goes_elsewhere(step: Step, forward: syntax.Call) -> bool:
    """Whether anything else may differentiate what a call returns."""
    return any(forward in carrying(step.script, other, kept) for other, kept in _others(step))


def _is_left(step: Step, module: syntax.BaseExpression) -> bool:
    """Whether an optimizer holds a network, and never takes the gradients that the pass gives it."""
    script, updates = step.script, _updates(step.script)
    if updates is None or not any(_holds(each, script, module) for each in updates) or _is_switched(script, module):
        return False
    return not any(_holds(each, script, module) is not False and _is_taken(step, each, module) for each in updates)


def _of_another(step: Step, forward: syntax.Call) -> Iterator[Discarded]:
    """A network whose gradients are zeroed before its own optimizer steps, on the way to one that the pass is for."""
    script = step.script
    if optimizers.reads_gradients(script):
        return
    if any(script.program.mentions(script, mark) for mark in (*_DIFFERENTIATES, *_WRAPPERS)):
        return
    for arg in forward.args:
        inner = _networks(script, carrying(script, forward, arg.value))
        if any(_is_for(step, each) for each in inner) and _is_left(step, forward.func):
            if _goes_elsewhere(step, forward):
                return
            yield Discarded(Kind.OTHER, forward, arg.value, tuple(inner))
            return


def is_only_way(script: Script, backward: syntax.Call, found: Discarded) -> bool:
    """Whether the pass reaches the other networks through the one argument alone."""
    assert isinstance(backward.func, syntax.Attribute)
    loss = next(each.loss for each in training_steps(script) if each.backward is backward)
    left = carrying(script, backward, loss, (found.given,))
    return not any(each in left for each in found.beyond)


def why_not(script: Script, found: Discarded) -> str | None:
    """Why it is not proven that nothing but time is lost with gradients that go beyond; None where it is."""
    if script.role(found.given) is not Role.TENSOR:
        return f"what `{script.text(found.given)}` holds is not known"
    if any(script.program.mentions(script, mark) for mark in _HOOKS):
        return "a hook of the program may look at the gradients"
    if any(script.program.mentions(script, mark) for mark in _WRAPPERS):
        return "the program spreads its networks over processes, or computes parts of them again"
    if optimizers.reads_gradients(script) or any(True for name in CLIPS for _ in script.calls(name)):
        return "the program looks at gradients by itself"
    return _why_shared(script, found)


def _why_shared(script: Script, found: Discarded) -> str | None:
    """Why the gradients may be those of something that an optimizer does take; None where nothing says so."""
    if (learned := graphs.carrier(script, found.given, passes_networks=True)) is not None:
        return f"`{shown(*learned)}` may take gradients by this way too"
    ours = training.roots(script, found.forward.func)
    theirs = [root for each in found.beyond for root in training.roots(script, each.func)]
    if (added := _added(script, theirs)) is not None:
        return f"`{shown(*added)}` may add parameters that these gradients are for"
    if any(_fills_groups(place) for place in script.everywhere(b"param_groups")):
        return "the parameters in an optimizer's groups are changed"
    if any(_takes_parts(each) for each in _updates(script) or ()):
        return "an optimizer is given parts of networks by themselves"
    if _parts_of(ours) & _parts_of(theirs):
        return "the networks share a part"
    classes = {part for root in (*ours, *theirs) for _, part in networks.with_named(*root)}
    for change in surgery.changes(script):
        if not _is_within(change, classes):
            return f"{change.place(script)} may put a part of one network into the other"
    return None


def _added(script: Script, modules: list[Root]) -> tuple[Script, syntax.Call] | None:
    """A call that may give an optimizer parameters of some modules when it is made."""
    for place in script.everywhere(b"add_param_group"):
        for call in place.method_calls("add_param_group"):
            added = [each for arg in call.args for each in optimizers.held_by(place, arg.value)]
            if not added or any(_may_share(each.script, each.module, modules) for each in added):
                return place, call
    return None


def _fills_groups(script: Script) -> bool:
    """Whether parameters are put into a group of an optimizer by hand: ``group["params"].append(codes)``."""
    for text in script.source.of(syntax.SimpleString):
        entry = script.source.enclosing(text, syntax.Subscript) if text.evaluated_value == "params" else None
        up = script.source.parents[entry] if entry is not None else None
        if entry is not None and (is_target(script.source, entry) or isinstance(up, syntax.Attribute)):
            return True
    return False


def _takes_parts(update: _Update) -> bool:
    """Whether an optimizer is given parameters by name: ``[generator.scale]``."""
    made = optimizers.made(update.script, update.optimizer)
    params = made.script.argument(made.call, "params", 0) if made is not None else None
    if made is None or params is None:
        return False
    names = made.script.source.inside(params, syntax.Name)
    bound = [each.value for name in names for each in made.script.names.adding_up(name) if each.value is not None]
    return any(
        made.script.role(each.value) is Role.MODULE
        and made.script.role(each) is not Role.MODULE
        and not isinstance(made.script.source.parents[each], syntax.Call | syntax.Attribute)
        for value in (params, *bound)
        for each in made.script.source.inside(value, syntax.Attribute)
    )


def _parts_of(made: list[Root]) -> set[syntax.Node]:
    """What modules are made by, and the modules that they are handed, with theirs."""
    found: set[syntax.Node] = set()
    todo = list(made)
    while todo:
        place, node = todo.pop()
        if node not in found:
            found.add(node)
            if isinstance(node, syntax.Call):
                todo += [
                    root for arg in node.args for each in _arguments(place, arg) for root in training.roots(place, each)
                ]
    return found


def _is_within(change: surgery.Change, classes: set[syntax.Node]) -> bool:
    """Whether a change puts nothing in but what is made for it, or what is of the same network."""
    script = change.script
    function = script.function(change.node)
    owner = script.names.owner(function) if function is not None else None
    first = next(script.source.inside(change.node, syntax.Name), None)
    for given in change.given:
        for name in script.source.inside(given, syntax.Name):
            up = script.source.parents[name]
            is_part = (isinstance(up, syntax.Attribute) and up.attr is name) or (
                isinstance(up, syntax.Arg) and up.keyword is name
            )
            if is_part or script.name(name) is not None or script.definition(name) is not None:
                continue
            if script.role(name) in _NUMBERS or script.constant(name) is not None:
                continue
            is_same = first is not None and name.value == first.value
            if not is_same or (name.value == "self" and owner not in classes):
                return False
    return True


# Through a network that is not trained


def _untrained(step: Step, forward: syntax.Call) -> Iterator[Discarded]:
    script, module = step.script, forward.func
    updates = _updates(script)
    if not updates or any(_holds(each, script, module) is not False for each in updates):
        return
    if not _has_layers(script, module) or _is_switched(script, module) or optimizers.reads_gradients(script):
        return
    if any(script.program.mentions(script, mark) for mark in (*_HOOKS, *_DIFFERENTIATES)):
        return
    if networks.takes_over(script, module) or _added(script, training.roots(script, module)) is not None:
        return
    if gradients_off(script, forward) is not False or not forward.args:
        return
    needs = any(_needs_gradient(script, forward, arg.value) for arg in forward.args)
    yield Discarded(Kind.WEIGHTS if needs else Kind.ALL, forward, forward.args[0].value)


def may_take_gradients(script: Script, module: syntax.BaseExpression) -> bool:
    """Whether a network's weights take gradients for all that is known: it has some, or an optimizer holds them, and nothing
    in the program switches them."""
    if _is_switched(script, module) or any(_switches_unseen(place) for place in script.everywhere(b"requires_grad")):
        return False
    return _has_layers(script, module) or any(_holds(each, script, module) is True for each in _updates(script) or ())


@once(False)
def _switches_unseen(script: Script) -> bool:
    """Whether a script tells parameters not to take gradients in another way than by a loop over those of a module: in a
    comprehension or a lambda, by ``setattr``, over a list that it has made."""
    source = script.source
    told = [each for name in ("requires_grad", "requires_grad_") for each in source.tree.named((name,))]
    hidden = (syntax.ListComp, syntax.GeneratorExp, syntax.Lambda, syntax.While)
    if any(source.enclosing(each, *hidden) is not None for each in told):
        return True
    if any(text.evaluated_value == "requires_grad" for text in source.of(syntax.SimpleString)):
        return True
    turned = [loop for each in told if (loop := _loop_of(script, each)) is not None]
    return any(not list(training.parameters_within(script, loop.iter)) for loop in turned)


def _loop_of(script: Script, name: syntax.Name) -> syntax.For | None:
    """The loop that binds the object of which an attribute is named."""
    attribute, loop = script.source.parents[name], script.source.enclosing(name, syntax.For)
    if not isinstance(attribute, syntax.Attribute) or not isinstance(attribute.value, syntax.Name):
        return None
    if not isinstance(loop, syntax.For):
        return None
    bound = (binding.node for binding in script.names.reaching(attribute.value))
    return loop if any(script.source.contains(loop.target, each) for each in bound) else None


def _has_layers(script: Script, module: syntax.BaseExpression) -> bool:
    """Whether a module has layers with weights: attention that is written out in products has those of its Linear layers."""
    made_of = networks.network(script, module)
    in_layers = made_of.attention and not made_of.products
    return bool(made_of.convolutions or in_layers or made_of.recurrent or made_of.linears)


def _needs_gradient(script: Script, at: syntax.Call, given: syntax.BaseExpression) -> bool:
    """Whether an argument comes from a network, or from what may be differentiated for its own sake."""
    calls = carrying(script, at, given)
    callees = [callee for call in calls if (callee := script.callee(call)) is not None]
    if any(script.role(call.func) is Role.MODULE for call in calls) or any(map(_may_carry, callees)):
        return True
    if any(isinstance(call.func, syntax.Attribute) and call.func.attr.value == "requires_grad_" for call in calls):
        return True
    return _names_switch(script, script.source.module)


def _may_carry(callee: Definition) -> bool:
    """Whether what a first-party function returns may have a graph."""
    names = callee.script.source.inside(callee.node, syntax.Name)
    return runs_module(callee) or any(each.value == "Parameter" or _SWITCHES.search(each.value) for each in names)


# Optimizers


class _Update(NamedTuple):
    """A call that steps an optimizer."""

    script: Script
    call: syntax.Call
    optimizer: syntax.BaseExpression


@once(None)
def _updates(script: Script) -> list[_Update] | None:
    """The calls of the program that step an optimizer; None where one may be out of sight."""
    found: list[_Update] = []
    for place in script.everywhere(_STEPS):
        for call in place.method_calls("step"):
            assert isinstance(call.func, syntax.Attribute)
            receiver = call.func.value
            given = [arg.value for arg in call.args if place.role(arg.value) is Role.OPTIMIZER]
            if given or place.role(receiver) is Role.OPTIMIZER:
                found.append(_Update(place, call, given[0] if given else receiver))
            elif place.role(receiver) is Role.SCALER or (place.role(receiver) is Role.UNKNOWN and not call.args):
                return None
    return found


def may_update(script: Script, body: syntax.Node, module: syntax.BaseExpression) -> bool:
    """Whether an optimizer that is stepped in a piece of code may hold parameters of a module."""
    steps = [call for call in script.method_calls("step") if script.source.contains(body, call)]
    updates = {each.call: each for each in _updates(script) or () if each.script is script}
    return any(call not in updates or _holds(updates[call], script, module) is not False for call in steps)


def _holds(update: _Update, script: Script, module: syntax.BaseExpression) -> bool | None:
    """Whether an optimizer holds parameters of a module; None where that is not known."""
    made = optimizers.made(update.script, update.optimizer)
    if made is None:
        return None
    held = _held(update, made)
    if not held:
        return False if _holds_tensors(made.script, made.call) else None
    ours = training.roots(script, module)
    found = [_share(root, ours) for each in held for root in training.roots(each.script, each.module)]
    return True if True in found else None if None in found or not found else False


def _held(update: _Update, made: Made) -> list[Parameters]:
    """The modules whose parameters the optimizer of an update holds; where a function of the project makes it, those that
    the function is handed for this one: ``get_optimizer(generator)``."""
    found: list[Parameters] = []
    for place, maker in _makers(update.script, update.optimizer):
        handed = _handed(place, maker, made)
        if handed is None:
            return optimizers.parameters(made.script, made.call)
        found += handed
    return found or optimizers.parameters(made.script, made.call)


def _makers(script: Script, optimizer: syntax.BaseExpression) -> list[tuple[Script, syntax.Call]]:
    """The calls that an optimizer may come from: of a library's class, or of a function that makes it."""
    return [(place, node) for place, node in script.roles.origins(optimizer) if isinstance(node, syntax.Call)]


def _handed(script: Script, maker: syntax.Call, made: Made) -> list[Parameters] | None:
    """The modules that a call hands to a function which makes an optimizer of their parameters; None for any other call."""
    callee, params = script.callee(maker), made.script.argument(made.call, "params", 0)
    if callee is None or callee.script is not made.script or params is None:
        return None
    function = callee.node
    if not isinstance(function, syntax.FunctionDef) or not made.script.source.contains(function.body, made.call):
        return None
    found = []
    for module in training.parameters_within(made.script, params):
        bindings = made.script.names.reaching(module) if isinstance(module, syntax.Name) else []
        if len(bindings) != 1 or not isinstance(bindings[0].node, syntax.Param):
            return None
        given = made.script.values.given(function, bindings[0].node, script, maker)
        if given is None:
            return None
        found.append(Parameters(script, given))
    return found or None


def _holds_tensors(script: Script, call: syntax.Call) -> bool:
    """Whether an optimizer is given tensors that are made for it: ``picture = content.clone().requires_grad_()``."""
    given = script.argument(call, "params", 0)
    return isinstance(given, syntax.List) and all(_is_made_for_it(script, each.value) for each in given.elements)


def _is_made_for_it(script: Script, tensor: syntax.BaseExpression) -> bool:
    values = [binding.value for binding in script.names.reaching(tensor)] if isinstance(tensor, syntax.Name) else [None]
    return bool(values) and all(value is not None and _LEAF.search(script.text(value).encode()) for value in values)


def _share(root: Root, others: list[Root]) -> bool | None:
    """Whether a module is one of those that come from ``others``, or part of one, or holds one; None where it may."""
    if any(node is root[1] for _, node in others):
        return True
    if not others or not all(isinstance(node, syntax.Call) for _, node in (root, *others)):
        return None
    return None if any(_within(root, other) or _within(other, root) for other in others) else False


def _within(inner: Root, outer: Root) -> bool:
    """Whether one construction names the other: in its arguments, in its class, or in what that names."""
    script, made = outer
    if any(node is inner[1] for arg in _arguments(script, made) for _, node in training.roots(script, arg)):
        return True
    return any(
        place is inner[0] and place.source.contains(top, inner[1])
        for place, top in networks.with_named(script, made)
        if top is not made
    )


def _arguments(script: Script, made: syntax.Node) -> Iterator[syntax.Node]:
    for kind in (syntax.Name, syntax.Attribute):
        for node in script.source.inside(made, kind):
            if script.role(node) is Role.MODULE:
                yield node


def _is_taken(step: Step, update: _Update, module: syntax.BaseExpression) -> bool:
    """Whether an update may use what the pass adds to a module's gradients: they are not always zeroed in between."""
    script, place = step.script, update.script
    function = place.function(update.call)
    zeros = [call for call in step.calls() if _zeroes(script, call, update, module, script)]
    if place is script and function is script.function(step.backward):
        if script.order.runs_again(step.backward, update.call, zeros):
            return True
        return script.loops.driving_loop(step.backward) is None and not script.order.surely(zeros, update.call)
    if function is None:
        return True
    calls = place.source.inside(function.body, syntax.Call)
    return not place.order.surely([call for call in calls if _zeroes(place, call, update, module, script)], update.call)


def _zeroes(script: Script, call: syntax.Call, update: _Update, module: syntax.BaseExpression, of: Script) -> bool:
    """Whether a call zeroes the gradients of a module, an expression of the script ``of``."""
    match call.func:
        case syntax.Attribute(value=receiver, attr=syntax.Name(value="zero_grad")):
            if script.role(receiver) is Role.MODULE:
                return {id(node) for _, node in training.roots(script, receiver)} == {
                    id(node) for _, node in training.roots(of, module)
                }
            return _is_same(script, receiver, update)
    callee = script.callee(call)
    if callee is None or not isinstance(callee.node, syntax.FunctionDef):
        return False
    place = callee.script
    return any(
        isinstance(zero.func, syntax.Attribute)
        and _is_same(place, zero.func.value, update)
        and not any(True for _ in place.order.under(zero))
        for zero in place.source.inside(callee.node, syntax.Call)
        if isinstance(zero.func, syntax.Attribute) and zero.func.attr.value == "zero_grad"
    )


def _is_same(script: Script, optimizer: syntax.BaseExpression, update: _Update) -> bool:
    """Whether an expression is the optimizer that an update steps."""
    ours, theirs = optimizers.made(script, optimizer), optimizers.made(update.script, update.optimizer)
    if ours is None or theirs is None or ours.call is not theirs.call:
        return False
    return {id(call) for _, call in _makers(script, optimizer)} == {
        id(call) for _, call in _makers(update.script, update.optimizer)
    }


# What else may use them


def _is_switched(script: Script, module: syntax.BaseExpression) -> bool:
    """Whether the module's parameters may be told not to take gradients."""
    made = training.roots(script, module)
    if any(_names_switch(place, top) for place, node in made for place, top in networks.with_named(place, node)):
        return True
    for place in script.everywhere(b"requires_grad", b"detach_("):
        for loop in place.source.of(syntax.For):
            if _names_switch(place, loop.body):
                over = training.parameters_within(place, loop.iter)
                if any(_may_share(place, each, made) for each in over):
                    return True
        for call in place.method_calls("requires_grad_"):
            assert isinstance(call.func, syntax.Attribute)
            if place.role(call.func.value) is Role.MODULE and _may_share(place, call.func.value, made):
                return True
    return any(
        _switches(script, call) and any(_may_share(script, module, made) for module in _arguments(script, call))
        for call in script.source.of(syntax.Call)
        if call.args
    )


def _switches(script: Script, call: syntax.Call) -> bool:
    """Whether a function is called by a name, or has code, that tells parameters not to take gradients."""
    if _names_switch(script, call.func):
        return True
    callee = script.callee(call)
    return callee is not None and isinstance(callee.node, syntax.FunctionDef) and _names_switch(callee.script, callee.node)


def _names_switch(script: Script, code: syntax.Node) -> bool:
    return any(_SWITCHES.search(each.value) for each in script.source.inside(code, syntax.Name))


def _may_share(script: Script, module: syntax.Node, roots: list[Root]) -> bool:
    return any(_share(root, roots) is not False for root in training.roots(script, module))


def _others(step: Step) -> Iterator[tuple[syntax.Node, syntax.BaseExpression]]:
    """What else the step's function may differentiate, keeps or hands out, each with where."""
    script, source = step.script, step.script.source
    for other in step.backwards():
        if other is not step.backward and isinstance(other.func, syntax.Attribute):
            yield other, other.func.value
            yield from ((other, arg.value) for arg in other.args)
    for call in step.calls():
        name = script.name(call.func) or ""
        if name.startswith(("torch.autograd.", "torch.func.")) and name.rsplit(".", 1)[-1] != "Variable":
            yield from ((call, arg.value) for arg in call.args)
    for node in source.inside(step.region, syntax.Return):
        if node.value is not None:
            yield node, node.value
    for assign in source.inside(step.region, syntax.Assign):
        if not all(isinstance(each.target, syntax.Name | syntax.Tuple) for each in assign.targets):
            yield assign, assign.value
    for call in step.calls():
        callee = script.callee(call)
        if (
            callee is not None
            and isinstance(callee.node, syntax.FunctionDef)
            and "backward(" in callee.script.text(callee.node)
        ):
            yield from ((call, arg.value) for arg in call.args)
        if isinstance(call.func, syntax.Attribute) and call.func.attr.value in ("append", "extend", "update", "add"):
            yield from ((call, arg.value) for arg in call.args)


def passes_between(script: Script, forward: syntax.Call, backward: syntax.Call) -> syntax.Call | None:
    """The first backward pass that stands between a forward call and the backward pass of what it gives."""
    order = script.source.order
    between = (each for each in script.method_calls("backward") if order[forward] < order[each] < order[backward])
    return next((each for each in between if script.function(each) is script.function(backward)), None)
