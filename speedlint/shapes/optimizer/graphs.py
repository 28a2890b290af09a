"""What brings a graph into a tensor that a script has computed: outputs of networks, parameters, tensors that are told to
take gradients."""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.solve.gradients import gradients_off
from speedlint.solve.names import Binding, Kind
from speedlint.solve.terms import Definition
from speedlint.solve.unpacking import part
from speedlint.source import is_name, is_target
from speedlint.torch import library
from speedlint.torch.methods import DETACHES, GRAPHLESS, works_in_place
from speedlint.torch.words import Role

_PLAIN = (Role.NUMBER, Role.STRING, Role.NONE, Role.ARRAY, Role.DEVICE, Role.DTYPE)
_ENDS = GRAPHLESS | DETACHES | {"detach_", "shape", "dtype", "device", "ndim", "one_hot"}
_MADE = frozenset(
    f"torch.{name}"
    for name in (
        "zeros ones empty full tensor from_numpy arange linspace eye rand randn randint randperm load zeros_like ones_like "
        "rand_like randn_like empty_like full_like argmax argmin argsort is_tensor FloatTensor LongTensor Tensor normal "
        "bernoulli nn.functional.one_hot"
    ).split()
)
"""Functions whose result has no graph, unless they are told ``requires_grad=True``."""
_FILLS = frozenset({"append", "extend", "insert", "add", "update", "setdefault"})
_DEEPEST = 200
"""Expressions that are followed."""


def carrier(script: Script, value: syntax.Node, *, passes_networks: bool = False) -> tuple[Script, syntax.Node] | None:
    """What may bring a graph into a value: a parameter, a function that is not known, the call of a network, of which only
    what it is given counts where ``passes_networks``; None where the value is followed to data, to numbers, or out of
    sight."""
    return next(_Followed(passes_networks=passes_networks).carriers(script, value), None)


class _Followed:
    def __init__(self, *, passes_networks: bool) -> None:
        self.passes_networks = passes_networks
        self._seen: set[syntax.Node] = set()

    def carriers(self, script: Script, node: syntax.Node) -> Iterator[tuple[Script, syntax.Node]]:
        if node in self._seen or script.role(node) in _PLAIN:
            return
        self._seen.add(node)
        if len(self._seen) > _DEEPEST:
            yield script, node
            return
        match node:
            case syntax.Name():
                yield from self._of_name(script, node)
            case syntax.Attribute():
                yield from self._of_attribute(script, node)
            case syntax.Call():
                yield from self._of_call(script, node)
            case _:
                for inner in _taken(node):
                    yield from self.carriers(script, inner)

    def _of_name(self, script: Script, name: syntax.Name) -> Iterator[tuple[Script, syntax.Node]]:
        for binding in script.names.reaching(name):
            yield from self._bound(script, binding)
        for use in script.names.uses(name):
            yield from self._put_in(script, use)

    def _bound(self, script: Script, binding: Binding) -> Iterator[tuple[Script, syntax.Node]]:
        if binding.kind is Kind.PARAMETER and isinstance(binding.node, syntax.Param):
            for place, given in script.values.passed(binding.node):
                if given is not None:
                    yield from self.carriers(place, given)
        elif binding.value is not None:
            yield from self.carriers(script, part(binding.value, binding.path)[0])

    def _put_in(self, script: Script, use: syntax.Name) -> Iterator[tuple[Script, syntax.Node]]:
        """What a use of a variable puts into its object: an entry, what is appended, what it is changed to in place."""
        node, up = use, script.source.parents[use]
        if isinstance(up, syntax.Subscript) and up.value is node:
            above = script.source.parents[up]
            assign = script.source.parents[above] if isinstance(above, syntax.AssignTarget) else above
            if isinstance(assign, syntax.Assign | syntax.AugAssign) and is_target(script.source, up):
                yield from self.carriers(script, assign.value)
        elif isinstance(up, syntax.Attribute) and up.value is node:
            call, name = script.source.parents[up], up.attr.value
            if isinstance(call, syntax.Call) and call.func is up:
                if name == "requires_grad_" and script.role(use) is not Role.MODULE:
                    yield script, call
                elif name in _FILLS or works_in_place(name):
                    for arg in call.args:
                        yield from self.carriers(script, arg.value)
            elif name == "requires_grad" and is_target(script.source, up) and script.role(use) is not Role.MODULE:
                yield script, up

    def _of_attribute(self, script: Script, attribute: syntax.Attribute) -> Iterator[tuple[Script, syntax.Node]]:
        if attribute.attr.value in _ENDS or script.name(attribute) is not None:
            return
        made = [(place, each) for place, each in script.roles.origins(attribute) if each is not attribute]
        if made:
            for place, each in made:
                yield from self.carriers(place, each)
        elif script.role(attribute.value) is Role.MODULE and not is_name(attribute.value, "self"):
            yield script, attribute
        else:
            yield from self.carriers(script, attribute.value)

    def _of_call(self, script: Script, call: syntax.Call) -> Iterator[tuple[Script, syntax.Node]]:
        name, func = script.name(call.func), call.func
        if gradients_off(script, call) is True:
            return
        if _begins_graph(script, call) or (script.role(func) is Role.MODULE and not self.passes_networks):
            yield script, call
            return
        is_method = name is None and isinstance(func, syntax.Attribute)
        if name in _MADE or (is_method and func.attr.value in _ENDS):
            return
        callee = script.callee(call) if script.role(func) is not Role.MODULE else None
        if callee is not None and isinstance(callee.node, syntax.FunctionDef) and callee.name != "__init__":
            yield from self._returned(callee)
            return
        if is_method and script.role(func) is not Role.MODULE:
            yield from self.carriers(script, func.value)
        for arg in call.args:
            yield from self.carriers(script, arg.value)

    def _returned(self, callee: Definition) -> Iterator[tuple[Script, syntax.Node]]:
        script = callee.script
        for kind in (syntax.Return, syntax.Yield):
            for statement in script.source.inside(callee.node, kind):
                if statement.value is not None and script.function(statement) is callee.node:
                    yield from self.carriers(script, statement.value)


def _begins_graph(script: Script, call: syntax.Call) -> bool:
    """Whether a call makes a tensor that takes gradients, or is of a function that is not known."""
    name, func = script.name(call.func), call.func
    if name is not None:
        takes = (arg for arg in call.args if is_name(arg.keyword, "requires_grad"))
        return name in library.PARAMETERS or any(_is_on(script, arg) for arg in takes)
    if isinstance(func, syntax.Name):
        is_known = script.role(func) is Role.MODULE or script.definition(func) is not None
        return not is_known and not _is_of_library(script, func)
    is_told = isinstance(func, syntax.Attribute) and func.attr.value == "requires_grad_"
    return is_told and script.role(func.value) is not Role.MODULE


def _is_of_library(script: Script, func: syntax.Name) -> bool:
    """Whether a variable is a function of a library's, or one of two: ``torch.cuda.FloatTensor if cuda else ...``."""
    found = [
        (place, each)
        for place, made in script.roles.origins(func)
        for each in ((made.body, made.orelse) if isinstance(made, syntax.IfExp) else (made,))
    ]
    return bool(found) and all(place.name(each) is not None for place, each in found)


def _is_on(script: Script, arg: syntax.Arg) -> bool:
    known = script.constant(arg.value)
    return known is None or bool(known.value)


def _taken(node: syntax.Node) -> Iterator[syntax.Node]:
    """The parts of an expression that its value is made of; none of a comparison."""
    match node:
        case syntax.BinaryOperation(left=left, right=right) | syntax.BooleanOperation(left=left, right=right):
            yield from (left, right)
        case syntax.UnaryOperation(expression=inner) | syntax.Await(expression=inner):
            yield inner
        case syntax.IfExp(body=body, orelse=orelse):
            yield from (body, orelse)
        case syntax.Subscript(value=inner) | syntax.NamedExpr(value=inner):
            yield inner
        case syntax.Tuple(elements=elements) | syntax.List(elements=elements) | syntax.Set(elements=elements):
            yield from (each.value for each in elements)
        case syntax.Dict(elements=elements):
            yield from (each.value for each in elements)
        case syntax.ListComp(elt=elt) | syntax.SetComp(elt=elt) | syntax.GeneratorExp(elt=elt):
            yield elt
        case syntax.DictComp(value=inner):
            yield inner
