"""Networks that each turn of a loop runs again on what does not change there: the result is the same each time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes import probes
from speedlint.shapes.evaluation import is_in_forward, is_network
from speedlint.shapes.model import networks
from speedlint.shapes.model.evaluating import is_evaluating
from speedlint.shapes.optimizer.discarded import may_update
from speedlint.shapes.sync.clocks import may_read_clock
from speedlint.shapes.training import roots
from speedlint.solve import counts
from speedlint.solve.inplace import is_written, viewed
from speedlint.solve.loops import Loop
from speedlint.solve.names import last_name
from speedlint.source import is_target
from speedlint.torch import library
from speedlint.torch.words import FREQUENT, Role

_DEPTH = 3
"""Functions of the project that hand an argument on to the layer that takes it."""
_CHANCE = re.compile(
    rb"rand|noise|sampl|bernoulli|normal_\(|gumbel|distributions|functional\.\w*dropout|F\.\w*dropout|no_?ise|perm\("
)
"""What a network's code says where what it computes may hang on chance in evaluation mode too."""
_BY_MODE = re.compile(rb"(?i)drop|norm|self\.training|rrelu|stochastic")
"""What it says where it computes something else in training mode."""
_KEEPS = re.compile(
    rb"self\.\w+(?:\[[^]\n]{0,80}\])?\s{0,3}[-+*/]?=(?!=)|self\.[\w.]+\.(?:append|add|update|popleft|\w+_)\("
    rb"|register_buffer|cache|nonlocal|global"
)
"""What it says, outside of ``__init__``, where it may remember something from call to call."""
_LEAF = re.compile(rb"requires_grad|Parameter\(")
_UPDATES = re.compile(
    rb"\bparameters\(|state_dict|\.(?:train|eval)\(|_hook\(|\.weight\b|\.bias\b|\.ema|update_parameters|requires_grad_\(False"
)
"""What the code of a turn says where it may change a network."""


_TURNS = (
    *(syntax.For, syntax.While, syntax.With, syntax.FunctionDef, syntax.Lambda),
    *(syntax.ListComp, syntax.GeneratorExp, syntax.DictComp, syntax.SetComp),
)
"""What runs the same line once more, or otherwise: under a manager that switches adapters a network gives something else."""


class Part(NamedTuple):
    """A layer of a network that computes the same in each turn of a loop.

    Attributes:
        script: where the layer is called.
        call: the call of the layer, in the network's ``forward``.
        loop: the loop that calls the network.
    """

    script: Script
    call: syntax.Call
    loop: Loop


class Again(NamedTuple):
    """A network that runs on the same a second time.

    Attributes:
        first: the call that ran before.
        only_shape: whether nothing but the shape of its result is used.
    """

    first: syntax.Call
    only_shape: bool


def same_in_each_turn(script: Script, call: syntax.Call) -> Loop | None:
    """The loop around the call of a network which gives it the same, and so gets the same, in each of its turns."""
    loop = _loop_around(script, call)
    if loop is None or not is_network(script, call) or script.frequency(call) not in FREQUENT:
        return None
    if not all(not arg.star and _is_fixed(script, arg.value, loop) for arg in call.args):
        return None
    if not _goes_on_untimed(script, call, loop) or not _is_left_alone(script, call, loop):
        return None
    return loop if _is_settled(script, call) else None


def part_in_each_turn(script: Script, call: syntax.Call) -> Part | None:
    """The first layer behind a call, in a loop of a network's ``forward``, which takes only what the loop gives the call
    unchanged in each turn: the keys of attention, projected again for each word."""
    loop = _loop_around(script, call)
    if loop is None or not is_in_forward(script, call) or script.hides_arguments(call):
        return None
    if any(_is_set_within(script, loop, name) for name in script.source.inside(call.func, syntax.Name)):
        return None
    found = _layer_of_fixed(script, call, lambda given: _is_fixed(script, given, loop), _DEPTH)
    if found is None or not _goes_on_untimed(script, call, loop) or not _is_left_alone(script, call, loop):
        return None
    return Part(*found, loop)


def same_as_before(script: Script, call: syntax.Call) -> Again | None:
    """The call of a network that is written the same and ran before, in the same turn and on the same, where it gave the
    same or its result only gives a shape."""
    function = script.function(call)
    if function is None or not call.args or script.name(call.func) is not None:
        return None
    alike = [
        each
        for each in script.written_calls(last_name(call.func) or "")
        if each is not call and script.function(each) is function and script.text(each) == script.text(call)
    ]
    if not alike or not is_network(script, call) or script.frequency(call) not in FREQUENT:
        return None
    for first in alike:
        if _is_same_turn(script, first, call) and _takes_the_same(script, first, call):
            is_measured = probes.is_in_benchmark(script, call) or may_read_clock(script, function)
            if is_measured or _may_change_between(script, first, call):
                continue
            only_shape = _gives_only_a_shape(script, first, call)
            if only_shape or _is_settled(script, call):
                return Again(first, only_shape)
    return None


def _is_same_turn(script: Script, first: syntax.Call, call: syntax.Call) -> bool:
    """Whether one call surely runs before another one, in the same turn of the same loop and under the same managers."""
    home, other = (script.source.enclosing(each, *_TURNS) for each in (first, call))
    return home is other and script.order.runs_before(first, call)


def _takes_the_same(script: Script, first: syntax.Call, call: syntax.Call) -> bool:
    names = zip(script.source.inside(first, syntax.Name), script.source.inside(call, syntax.Name), strict=True)
    same = all(
        {binding.node for binding in script.names.reaching(one)}
        == {binding.node for binding in script.names.reaching(other)}
        for one, other in names
    )
    return same and all(not arg.star and _is_fixed(script, arg.value, None) for arg in call.args)


def _may_change_between(script: Script, first: syntax.Call, call: syntax.Call) -> bool:
    """Whether anything that runs between two calls of a network may change it, an update, its mode, a function that does, or
    frees the graph of the first one: a backward pass."""
    function = script.function(call)
    assert function is not None
    between = [
        each
        for each in script.source.inside(function.body, syntax.Call)
        if script.order.may_run_between(first, each, call) and script.role(each.func) is not Role.MODULE
    ]
    if any(
        last_name(each.func) in ("step", "backward", "grad") or _UPDATES.search(script.text(each).encode())
        for each in between
    ):
        return True
    changes = (b".step(", b".backward(")
    called = (text for each in between for text in _called(script, each))
    return any(_UPDATES.search(text) or any(change in text for change in changes) for text in called)


def _gives_only_a_shape(script: Script, first: syntax.Call, call: syntax.Call) -> bool:
    """Whether the first result is bound to a name that the second takes over, and tells its shape meanwhile."""
    match script.source.parents[first], script.source.enclosing(call, syntax.Assign):
        case (
            syntax.Assign(targets=[syntax.AssignTarget(target=syntax.Name() as bound)]),
            syntax.Assign(targets=[syntax.AssignTarget(target=syntax.Name() as next_bound)]),
        ) if bound.value == next_bound.value:
            uses = [
                use for use in script.names.uses(bound) if any(each.node is bound for each in script.names.reaching(use))
            ]
        case _:
            return False
    read = [use for use in uses if not is_target(script.source, use)]
    meanwhile = [use for use in read if script.order.may_run_between(first, use, next_bound)]
    return bool(meanwhile) and all(_is_measured(script.source.parents[use], use) for use in meanwhile)


def _is_measured(parent: syntax.Node, use: syntax.Name) -> bool:
    return isinstance(parent, syntax.Attribute) and parent.value is use and parent.attr.value in ("shape", "size", "ndim")


def _layer_of_fixed(
    script: Script, call: syntax.Call, is_fixed: Callable[[syntax.BaseExpression], bool], depth: int
) -> tuple[Script, syntax.Call] | None:
    """The first layer that each run of what is called runs on parameters for which the call passes what is fixed, itself or
    in what it calls in turn."""
    callee = script.callee(call)
    if callee is None or not isinstance(callee.node, syntax.FunctionDef):
        return None
    place, function = callee.script, callee.node

    def is_handed(given: syntax.BaseExpression) -> bool:
        inner = viewed(given)
        bindings = place.names.reaching(inner) if isinstance(inner, syntax.Name) else ()
        if len(bindings) != 1 or not isinstance(parameter := bindings[0].node, syntax.Param):
            return False
        passed = place.values.given(function, parameter, script, call)
        return passed is not None and is_fixed(passed) and _is_fixed(place, given, None)

    for inner in place.source.inside(function.body, syntax.Call):
        handed = [not arg.star and is_handed(arg.value) for arg in inner.args]
        if not any(handed) or _around(place, inner) is not function:
            continue
        if all(handed) and is_network(place, inner) and _is_settled(place, inner):
            return place, inner
        further = _layer_of_fixed(place, inner, is_handed, depth - 1) if depth else None
        if further is not None:
            return further
    return None


def _loop_around(script: Script, call: syntax.Call) -> Loop | None:
    """The loop that calls a network in each of its turns."""
    loop = _around(script, call) if call.args else None
    if not isinstance(loop, syntax.For | syntax.While) or not script.source.contains(loop.body, call):
        return None
    return None if isinstance(script.source.parents[call], syntax.Expr) else loop


def _goes_on_untimed(script: Script, call: syntax.Call, loop: Loop) -> bool:
    """Whether a loop may take several turns, and measures none of them."""
    if script.loops.ends_in_first_turn(loop) or counts.turns(script, loop) in (0, 1):
        return False
    return not (probes.is_in_benchmark(script, call) or may_read_clock(script, loop))


def _around(script: Script, call: syntax.Call) -> syntax.Node | None:
    """The loop, condition or function that decides how often a call runs."""
    return script.source.enclosing(
        call,
        *(syntax.For, syntax.While, syntax.If, syntax.IfExp, syntax.Try, syntax.BooleanOperation, syntax.Lambda),
        *(syntax.ListComp, syntax.GeneratorExp, syntax.DictComp, syntax.FunctionDef),
    )


def _is_fixed(script: Script, given: syntax.BaseExpression, loop: Loop | None) -> bool:
    """Whether an argument is a tensor, or a constant, that no turn of a loop, where one is given, sets anew or changes."""
    if loop is not None and any(_is_set_within(script, loop, name) for name in script.source.inside(given, syntax.Name)):
        return False  # `x[i]`: the view that is another one in each turn
    given = viewed(given)
    if not isinstance(given, syntax.Name):
        return script.constant(given) is not None
    bindings = script.names.reaching(given)
    if not bindings or (loop is not None and _is_set_within(script, loop, given)):
        return False
    same = [given, *_aliases(script, given)]
    return not any(is_written(script, each) or _is_added_to(script, each) or _may_be_trained(script, each) for each in same)


def _is_set_within(script: Script, loop: Loop, name: syntax.Name) -> bool:
    return any(script.source.contains(loop, binding.node) for binding in script.names.reaching(name))


def _aliases(script: Script, name: syntax.Name) -> Iterator[syntax.Name]:
    """The variables that stand for the same tensor, or a view of it."""
    for use in script.names.uses(name):
        statement = script.source.enclosing(use, syntax.Assign)
        if isinstance(statement, syntax.Assign) and viewed(statement.value) is use:
            yield from (each.target for each in statement.targets if isinstance(each.target, syntax.Name))


def _is_added_to(script: Script, name: syntax.Name) -> bool:
    """Whether ``x += y`` changes a variable's tensor in place."""
    parents = script.source.parents
    return any(isinstance(up := parents[use], syntax.AugAssign) and up.target is use for use in script.names.uses(name))


def _may_be_trained(script: Script, name: syntax.Name) -> bool:
    """Whether a variable's tensor may be what an optimizer changes: a leaf of its own."""
    for binding in script.names.reaching(name):
        if binding.value is not None and _LEAF.search(script.text(binding.value).encode()):
            return True
    for use in script.names.uses(name):
        parent = script.source.parents[use]
        if isinstance(parent, syntax.Attribute) and parent.attr.value.startswith("requires_grad"):
            return True
        around = script.source.enclosing(use, syntax.Call)
        while isinstance(around, syntax.Call):
            if library.makes_optimizer(script.name(around.func) or ""):
                return True
            around = script.source.enclosing(around, syntax.Call)
    return False


def _is_left_alone(script: Script, call: syntax.Call, loop: Loop) -> bool:
    """Whether no turn of a loop changes a network: by an optimizer, by hand, by its mode."""
    source = script.source
    if _UPDATES.search(script.text(loop.body).encode()):
        return False
    if any(b".step(" in text or _UPDATES.search(text) for text in _called(script, loop.body)):
        return False
    of = _prefixes(script, call.func)
    if any(script.text(each.target) in of for each in source.inside(loop, syntax.AssignTarget)):
        return False
    return not may_update(script, loop.body, call.func)


def _called(script: Script, body: syntax.Node) -> Iterator[bytes]:
    """The code of the project's functions that a loop's body calls, networks aside."""
    for call in script.source.inside(body, syntax.Call):
        callee = script.callee(call)
        if callee is not None and isinstance(callee.node, syntax.FunctionDef) and script.role(call.func) is not Role.MODULE:
            yield callee.script.text(callee.node).encode()


def _prefixes(script: Script, module: syntax.Node) -> set[str]:
    """``self.net.encoder``, ``self.net`` and ``self`` of ``self.net.encoder``."""
    found = {script.text(module)}
    while isinstance(module, syntax.Attribute | syntax.Subscript):
        module = module.value
        found.add(script.text(module))
    return found


def _is_settled(script: Script, call: syntax.Call) -> bool:
    """Whether a network gives the same for the same: nothing in it hangs on chance, on its mode, or on earlier calls."""
    module = call.func.value if _is_forward(call.func) else call.func
    made = roots(script, module)
    known = [(place, node, networks.root_definition(place, node)) for place, node in made]
    by_mode = not known
    for place, node, definition in known:
        if definition is None:
            name = place.name(node.func) if isinstance(node, syntax.Call) else None
            if name is None or not name.startswith(("torch.nn.Linear", "torch.nn.Conv", "torch.nn.Embedding")):
                by_mode = True
            continue
        for where, top in networks.with_named(definition.script, definition.node):
            text = where.text(top).encode()
            if _CHANCE.search(text) or _remembers(where, top):
                return False
            by_mode = by_mode or _BY_MODE.search(text) is not None
    return not by_mode or is_evaluating(script, module, call)


def _is_forward(func: syntax.BaseExpression) -> bool:
    return isinstance(func, syntax.Attribute) and func.attr.value == "forward"


def _remembers(script: Script, top: syntax.Node) -> bool:
    """Whether a class or function may remember something from call to call."""
    if isinstance(top, syntax.FunctionDef):
        return _KEEPS.search(script.text(top).encode()) is not None
    methods = (each for each in script.source.inside(top, syntax.FunctionDef) if each.name.value not in _BEFORE)
    return any(_KEEPS.search(script.text(each).encode()) for each in methods)


_BEFORE = frozenset({"__init__", "reset_parameters", "init_weights", "_init_weights", "load_state_dict", "train", "eval"})
"""Methods that run before a network does, or between its runs when asked for."""
