"""The training steps of a script: each backward pass with the forward calls and the statements that its loss comes from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property, reduce
from typing import NamedTuple

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes.acting import ENVIRONMENTS
from speedlint.shapes.model.networks import Network, code_network, is_loss, root_network
from speedlint.shapes.training import Root, roots, trained_modules
from speedlint.solve import off
from speedlint.solve.flow import once
from speedlint.solve.gradients import told
from speedlint.solve.loops import Does
from speedlint.solve.names import Binding, Kind
from speedlint.solve.terms import Definition
from speedlint.torch import library
from speedlint.torch.methods import DETACHES, GRAPHLESS
from speedlint.torch.words import Frequency, Role

CLIPS = (
    "torch.nn.utils.clip_grad_norm_",
    "torch.nn.utils.clip_grad_norm",
    "torch.nn.utils.clip_grad_value_",
    "torch.nn.utils.clip_grad.clip_grad_norm_",
    "torch.nn.utils.clip_grad.clip_grad_value_",
)

_CUTS = GRAPHLESS | DETACHES | {"indices", "shape", "dtype", "device"}
"""Attributes and methods whose results carry no graph."""
_CUTTING = frozenset(
    "float int len str bool print range isinstance torch.zeros_like torch.ones_like torch.rand_like torch.randn_like "
    "torch.empty_like torch.full_like torch.argmax torch.argmin torch.argsort torch.eq torch.isnan torch.isfinite".split()
)
"""Functions whose results carry no graph."""
_DEPTH = 3
"""How many calls within each other are followed to a pass without gradients."""
_OF_VALUES_ALONE = (Role.TENSOR, Role.BATCH, Role.ARRAY, Role.NUMBER, Role.STRING, Role.SEQUENCE, Role.MAPPING)
"""What has no methods that run a network."""
_OF_VALUES = frozenset({"aminmax"})
"""What returns two of values."""


class Step(NamedTuple):
    """One backward pass and what leads to it, within one function.

    Attributes:
        backward: ``loss.backward()``.
        loss: what is differentiated, without ``scaler.scale``.
        scaler: the scaler that scales it.
        forward: the first call of a module, or of a first-party function that calls one, that the loss comes from.
        shown: the first one that runs by the defaults of the script's options: of two networks, the one that is trained.
        statements: the statements from the first forward call on that the loss comes from, in source order.
        region: the function, or the module, that the step stands in.
    """

    script: Script
    backward: syntax.Call
    loss: syntax.BaseExpression
    scaler: syntax.BaseExpression | None
    forward: syntax.Call
    shown: syntax.Call
    statements: tuple[syntax.Node, ...]
    region: syntax.Node

    @property
    def turn(self) -> syntax.Node:
        """What runs once a step: the body of the loop that drives it, or the function where the loop stands elsewhere."""
        loop = self.script.loops.driving_loop(self.backward)
        return loop.body if loop is not None else self.region

    def calls(self) -> Iterator[syntax.Call]:
        """The calls of the step, those of functions defined within it left out."""
        for call in self.script.source.inside(self.turn, syntax.Call):
            if self.script.source.enclosing(call, syntax.FunctionDef, syntax.Lambda) is _function(
                self.script, self.backward
            ):
                yield call

    def optimizer_steps(self) -> list[syntax.Call]:
        """The calls ``optimizer.step(...)`` and ``scaler.step(optimizer)`` of the step."""
        return [call for call in self.calls() if _is_optimizer_step(self.script, call)]

    def clips(self) -> list[syntax.Call]:
        """The calls that clip gradients."""
        return [call for call in self.calls() if self.script.name(call.func) in CLIPS]

    def backwards(self) -> list[syntax.Call]:
        """All backward passes of the step."""
        return [
            call for call in self.calls() if isinstance(call.func, syntax.Attribute) and call.func.attr.value == "backward"
        ]


def of_program(script: Script) -> Iterator[Step]:
    """The training steps of all scripts of the programs, the script's own first."""
    return (step for place in script.everywhere(b".backward(") for step in training_steps(place))


@once([])
def training_steps(script: Script) -> list[Step]:
    """The steps of the script's own training loops, in source order; none that a closure or a framework drives."""
    found = (_step(script, call) for call in script.method_calls("backward"))
    return [step for step in found if step is not None]


def _step(script: Script, backward: syntax.Call) -> Step | None:
    assert isinstance(backward.func, syntax.Attribute)
    if script.name(backward.func) is not None or script.frequency(backward) is not Frequency.STEP:
        return None
    loss: syntax.BaseExpression = backward.func.value
    scaler: syntax.BaseExpression | None = None
    match loss:
        case syntax.Call(func=syntax.Attribute(value=receiver, attr=syntax.Name("scale")), args=[syntax.Arg(value=inner)]):
            scaler, loss = receiver, inner
        case _ if any(arg.keyword is None for arg in backward.args):
            return None
    origin = _Origin(script, backward)
    origin.follow(loss)
    forwards = sorted((call for call in origin.calls if _is_forward(script, call)), key=script.source.order.__getitem__)
    outputs = [
        call
        for call in forwards
        if not is_loss(script, call) and not runs_without_gradients(script, call) and not _is_detached(script, call)
    ]
    if not outputs:
        return None
    first = _first_to_run(script, outputs)
    start = script.source.order[_line(script, first)]
    lines = {_line(script, node): None for node in (*origin.statements, *forwards)}
    kept = sorted((s for s in lines if script.source.order[s] >= start), key=script.source.order.__getitem__)
    region = _function(script, backward) or script.source.module
    running = [call for call in outputs if off.runs_by_default(script, call)]
    shown = _first_to_run(script, running) if running else first
    return Step(script, backward, loss, scaler, first, shown, tuple(kept), region)


def carrying(script: Script, at: syntax.Node, expression: syntax.Node, but: Iterable[syntax.Node] = ()) -> list[syntax.Call]:
    """The calls that gradients of an expression may flow back to, through the assignments of one turn of the loop that
    drives ``at``: none through ``.detach()``, a comparison, what is made under ``no_grad``, or one of ``but``."""
    origin = _Origin(script, at, is_differentiated=True, but=frozenset(but))
    origin.follow(expression)
    return [call for call in origin.calls if told(script, call) is not True]


def _first_to_run(script: Script, calls: list[syntax.Call]) -> syntax.Call:
    """The first call in source order; of calls within each other, the innermost."""
    first = calls[0]
    inner = [call for call in calls if call is not first and script.source.contains(first, call)]
    return _first_to_run(script, inner) if inner else first


class _Origin:
    """What the value of an expression comes from, backwards through the assignments of one function, within one turn."""

    def __init__(
        self,
        script: Script,
        backward: syntax.Node,
        *,
        is_differentiated: bool = False,
        but: frozenset[syntax.Node] = frozenset(),
    ) -> None:
        self.script, self.backward, self.is_differentiated, self.but = script, backward, is_differentiated, but
        self.function = _function(script, backward)
        loop = script.loops.driving_loop(backward)
        self.turn: syntax.Node = loop.body if loop is not None else self.function or script.source.module
        self.statements: list[syntax.Node] = []
        self.calls: dict[syntax.Call, None] = {}
        self._seen: set[syntax.Node] = set()

    def follow(self, expression: syntax.Node) -> None:
        """Adds what the expression comes from."""
        if expression in self._seen:
            return
        self._seen.add(expression)
        for call in self.script.source.inside(expression, syntax.Call):
            if call not in self.calls and not self._is_cut(call, expression):
                self.calls[call] = None
        for name in self.script.source.inside(expression, syntax.Name):
            parent = self.script.source.parents[name]
            if self._is_cut(name, expression):
                continue
            if isinstance(parent, syntax.Attribute) and parent.attr is name:
                self._attribute(parent)
            elif not (isinstance(parent, syntax.Arg) and parent.keyword is name):
                self._name(name)

    def _is_cut(self, node: syntax.Node, expression: syntax.Node) -> bool:
        """Whether no gradient of the expression passes to a node within it."""
        while self.is_differentiated and node not in self.but and node is not expression:
            up = self.script.source.parents[node]
            match up:
                case syntax.Attribute(value=inner, attr=syntax.Name(value=name)) if inner is node and name in _CUTS:
                    return True
                case syntax.Comparison():
                    return True
                case syntax.Subscript(value=inner) if inner is not node or takes_places(self.script, up):
                    return True
                case syntax.IfExp(test=test) if test is node:
                    return True
                case syntax.Call(func=func) if func is not node and self._is_cutting(up):
                    return True
            node = up
        return node in self.but

    def _is_cutting(self, call: syntax.Call) -> bool:
        """Whether a function returns numbers that no gradient flows through."""
        return self.script.name(call.func) in _CUTTING

    def _is_index(self, binding: Binding) -> bool:
        """Whether a variable has the places that ``max`` or ``topk`` returns beside the values."""
        return self.is_differentiated and binding.path == (1,) and gives_places(self.script, binding.value)

    def _name(self, name: syntax.Name) -> None:
        source = self.script.source
        for binding in self.script.names.reaching(name):
            is_here = source.contains(self.turn, binding.node) and self._is_before(binding.node)
            if self._is_index(binding) or (self.is_differentiated and told(self.script, binding.node) is True):
                continue
            if binding.value is None or not is_here or binding.kind not in (Kind.ASSIGN, Kind.AUGMENT, Kind.WITH, Kind.FOR):
                continue
            if binding.kind in (Kind.ASSIGN, Kind.AUGMENT):
                self.statements.append(_line(self.script, binding.node))
            if binding.kind is Kind.AUGMENT and isinstance(binding.node, syntax.Name) and binding.node not in self._seen:
                self._seen.add(binding.node)
                self._name(binding.node)
            self.follow(binding.value)
        if self.script.role(name) is Role.SEQUENCE:
            self._filled(name)

    def _is_before(self, node: syntax.Node) -> bool:
        return self.script.order.may_run_before(node, self.backward)

    def _filled(self, name: syntax.Name) -> None:
        """What is appended to a list."""
        source = self.script.source
        for use in self.script.names.uses(name):
            call = source.parents[source.parents[use]]
            if (
                isinstance(call, syntax.Call)
                and isinstance(call.func, syntax.Attribute)
                and call.func.value is use
                and call.func.attr.value in ("append", "extend")
                and source.contains(self.turn, call)
            ):
                self.statements.append(_line(self.script, call))
                for arg in call.args:
                    self.follow(arg.value)

    def _attribute(self, attribute: syntax.Attribute) -> None:
        """Assignments to the same attribute in this turn, as in ``self.loss = ...`` and ``output, self.loss = ...``."""
        text = self.script.text(attribute)
        for assign, target in self._set.get(attribute.attr.value, ()):
            if self.script.text(target) == text and self._is_before(assign):
                self.statements.append(_line(self.script, assign))
                self.follow(assign.value)

    @cached_property
    def _set(self) -> dict[str, list[tuple[syntax.Assign, syntax.Attribute]]]:
        """The assignments of the turn to attributes, by the names of these."""
        found: dict[str, list[tuple[syntax.Assign, syntax.Attribute]]] = {}
        for assign in self.script.source.inside(self.turn, syntax.Assign):
            for target in attributes_set(assign):
                found.setdefault(target.attr.value, []).append((assign, target))
        return found


def gives_places(script: Script, value: syntax.Node | None) -> bool:
    """Whether a call returns places beside the values: ``x.max(1)``, ``torch.topk(x, 5)``."""
    match value:
        case syntax.Call(func=syntax.Attribute(value=tensor, attr=syntax.Name(value=name)) as func) if (
            name in library.PAIRS_WITH_DIM - _OF_VALUES
        ):
            is_of_torch = script.name(func) == f"torch.{name}"
            dim = script.argument(value, "dim", 1 if is_of_torch else 0)
            is_pair = name in library.PAIRS_ALWAYS or (dim is not None and script.role(dim) is Role.NUMBER)
            return is_pair and (is_of_torch or script.role(tensor) in (Role.TENSOR, Role.BATCH))
    return False


def takes_places(script: Script, taken: syntax.Subscript) -> bool:
    """Whether a subscript takes the places that ``max`` or ``topk`` returns beside the values: ``x.max(1)[1]``."""
    index = taken.slice[0].slice
    return gives_places(script, taken.value) and isinstance(index, syntax.Index) and script.text(index.value) == "1"


def attributes_set(assign: syntax.Assign) -> Iterator[syntax.Attribute]:
    """The attributes that an assignment gives a value, also those in a tuple of targets."""
    targets: list[syntax.BaseExpression] = [target.target for target in assign.targets]
    while targets:
        target = targets.pop()
        if isinstance(target, (syntax.Tuple, syntax.List)):
            targets += [element.value for element in target.elements]
        elif isinstance(target, syntax.Attribute):
            yield target


def _line(script: Script, node: syntax.Node) -> syntax.Node:
    return script.source.statement(node)


def _function(script: Script, node: syntax.Node) -> syntax.FunctionDef | None:
    return script.function(node)


def _is_optimizer_step(script: Script, call: syntax.Call) -> bool:
    match call:
        case syntax.Call(func=syntax.Attribute(value=receiver, attr=syntax.Name("step")), args=args):
            role = script.role(receiver)
            return role is Role.OPTIMIZER or (role is Role.SCALER and bool(args))
    return False


# Forward calls


def _is_detached(script: Script, call: syntax.Call) -> bool:
    """Whether no gradient passes through what a call returns: ``teacher(x).detach()``."""
    up = script.source.parents[call]
    return isinstance(up, syntax.Attribute) and up.attr.value in ("detach", "data")


def _is_forward(script: Script, call: syntax.Call) -> bool:
    if script.name(call.func) is not None and "." not in (script.name(call.func) or ""):
        return False
    return script.role(call.func) is Role.MODULE or _calls_runner(script, call)


@once(False)
def runs_module(function: Definition) -> bool:
    """Whether a first-party function calls a module that is not a loss, itself or through the functions it calls."""
    script, node = function.script, function.node
    return any(runs_network(script, call) for call in script.source.inside(node, syntax.Call))


def runs_network(script: Script, call: syntax.Call) -> bool:
    """Whether a call is one of a module that is no loss, or of a first-party function that runs one."""
    if script.role(call.func) is Role.MODULE:
        return not is_loss(script, call)
    return _calls_runner(script, call)


def _calls_runner(script: Script, call: syntax.Call) -> bool:
    return any(True for _ in _runners(script, call))


def _runners(script: Script, call: syntax.Call) -> Iterator[Definition]:
    """The first-party functions that a call may run and that run a module."""
    for callee in script.roles.calls.called(call):
        if isinstance(callee.node, syntax.FunctionDef) and callee.name != "__init__" and runs_module(callee):
            yield callee


def runs_without_gradients(script: Script, call: syntax.Call) -> bool:
    """Whether a call runs under ``no_grad``, or is one of functions that run each of their modules so."""
    if told(script, call) is True:
        return True
    runners = list(_runners(script, call)) if script.role(call.func) is not Role.MODULE else []
    return bool(runners) and all(map(_is_quiet, runners))


@once(False)
def _is_quiet(function: Definition) -> bool:
    """Whether a function runs all of its modules without gradients."""
    script = function.script
    running = [call for call in script.source.inside(function.node, syntax.Call) if runs_network(script, call)]
    return bool(running) and all(runs_without_gradients(script, call) for call in running)


def run_without_gradients(script: Script, code: syntax.Node, depth: int = 0) -> Iterator[tuple[Script, syntax.Call]]:
    """The calls in some code, and in the functions and networks of the project that it runs, that stand under ``no_grad``
    and may run a network; of a network's own parts, those that it runs with gradients, too."""
    for call in script.source.inside(code, syntax.Call):
        is_module = script.role(call.func) is Role.MODULE
        if is_module and is_loss(script, call):
            continue
        if told(script, call) is True:
            if is_module or _may_run_network(script, call):
                yield script, call
        elif depth < _DEPTH:
            for callee in script.roles.calls.may_run(call) if is_module else _runners(script, call):
                inner = run_without_gradients(callee.script, callee.node, depth + 1)
                yield from (each for each in inner if not is_module or _runs_with_gradients(callee, *each))


def _may_run_network(script: Script, call: syntax.Call) -> bool:
    """Whether a call that runs no network by itself may run one: it is no method of a tensor, and no function of a library
    that is not handed one."""
    if any(script.role(arg.value) is Role.MODULE for arg in call.args):
        return True
    func = call.func
    is_method = isinstance(func, syntax.Attribute) and script.role(func.value) in _OF_VALUES_ALONE
    is_built_in = isinstance(func, syntax.Name) and script.names.scope(func).lookup(func.value) is None
    return not (is_method or is_built_in or script.name(func) is not None)


def _runs_with_gradients(network: Definition, place: Script, call: syntax.Call) -> bool:
    """Whether a network runs a part of itself with gradients, which a call runs without them."""
    part = place.text(call.func)
    return any(
        place.text(each.func) == part and told(place, each) is not True
        for each in place.source.inside(place.source.enclosing(call, syntax.ClassDef) or network.node, syntax.Call)
    )


@once(Network())
def step_network(step: Step) -> Network:
    """What the modules of a step, its losses included, are made of."""
    return _network(step, modules_of(step))


def chosen_network(step: Step) -> Network:
    """What those are made of that the runs that are made train."""
    return _network(step, chosen_modules(step))


def _network(step: Step, made: list[Root]) -> Network:
    found = [code_network(step.script, statement) for statement in step.statements]
    return reduce(Network.__or__, (*found, *(root_network(*root) for root in made)))


def updates(step: Step) -> bool:
    """Whether an optimizer steps after the backward pass, here or in a caller; a gradient may serve another purpose."""
    script = step.script
    places = [(script, step.turn)]
    if script.loops.driving_loop(step.backward) is None and isinstance(step.region, syntax.FunctionDef):
        for other, call in script.call_sites(step.region):
            loop = other.loops.driving_loop(call)
            places.append((other, loop.body if loop is not None else other.function(call) or other.source.module))
    return any(
        other.loops.does(place, Does.OPTIMIZER_STEP)
        or any(_steps_by_name(call) for call in other.source.inside(place, syntax.Call))
        for other, place in places
    )


def _steps_by_name(call: syntax.Call) -> bool:
    return isinstance(call.func, syntax.Attribute) and call.func.attr.value.startswith(("step", "update"))


@once([])
def modules_of(step: Step) -> list[Root]:
    """The modules that the step names; all that are trained where it names none but runs one out of sight."""
    return [root for each in _named_modules(step) for root in each]


@once([])
def _named_modules(step: Step) -> list[list[Root]]:
    """For each module that the step names, all that it may be."""
    script = step.script
    named = (
        node
        for statement in step.statements
        for kind in (syntax.Name, syntax.Attribute)
        for node in script.source.inside(statement, kind)
        if not isinstance(parent := script.source.parents[node], syntax.Attribute) or parent.value is node
    )
    found = [roots(script, node) for node in named if script.role(node) is Role.MODULE]
    found = [each for each in found if each] or [[root] for root in trained_modules(script)]
    return [[made for root in each for made in _originals(root)] for each in found]


@once([])
def chosen_modules(step: Step) -> list[Root]:
    """The modules of a step that the runs that are made train, without those that other options would choose."""
    return _chosen(modules_of(step))


@once([])
def alternatives(step: Step) -> list[list[Root]]:
    """For each module that the step names, what it may be in the runs that are made, without what only changes another of
    these, ``add_adapters(model)``, or was saved: ``torch.load(path)["model"]``."""
    return [[root for root in made if _makes_one(root, made)] or made for made in map(_chosen, _named_modules(step))]


def _makes_one(root: Root, others: list[Root]) -> bool:
    """Whether a call makes a module, in no test, and is not handed one of others."""
    script, node = root
    if not isinstance(node, syntax.Call) or script.is_test or script.is_call_to(node, "torch.load"):
        return False
    return not any(other != root and other in others for each in node.args for other in roots(script, each.value))


def _chosen(made: list[Root]) -> list[Root]:
    return [root for root in made if not off.is_off(*root)] or made


def _originals(root: Root) -> list[Root]:
    """What a module is made like: of ``copy.deepcopy(model)`` the model's roots."""
    todo, seen = [root], dict.fromkeys([root])
    found: list[Root] = []
    while todo:
        script, node = todo.pop(0)
        is_copy = isinstance(node, syntax.Call) and script.is_call_to(node, "copy.deepcopy", "copy.copy")
        copied = roots(script, node.args[0].value) if is_copy and isinstance(node, syntax.Call) and node.args else []
        found += [] if copied else [(script, node)]
        todo += [each for each in copied if each not in seen]
        seen |= dict.fromkeys(copied)
    return found or [root]


def is_reinforcement(script: Script) -> bool:
    """Whether the program trains on what an environment answers."""
    for place in script.everywhere(*(name.encode() for name in ENVIRONMENTS)):
        names = {name for name, dotted in place.names.imports if dotted.split(".")[0] in ENVIRONMENTS}
        if any(name.value in names and not _is_imported(place, name) for name in place.source.of(syntax.Name)):
            return True
    return False


def _is_imported(script: Script, name: syntax.Name) -> bool:
    return script.source.enclosing(name, syntax.Import, syntax.ImportFrom) is not None
