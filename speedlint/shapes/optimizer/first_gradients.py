"""Whether all parameters that an optimizer is handed get their first gradient in the same step.

torch's fused SGD makes the buffers of its momentum where none of the parameters with a gradient has one, and else takes them
to be there: a parameter that gets its first gradient after the others, of a layer that was frozen or of a branch that was
not taken, stops it with an error (torch 2.13). The proof is narrow: one step in the program, which runs the whole network
that the optimizer was made for, and no choice in what the step and the network run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes import steps
from speedlint.shapes.model import networks

_CHANGES = re.compile(rb"requires_grad|\.grad\b|opt\w{0,30}\.state\b|\.state\.(?:pop|clear)\b|\.state\[")
"""What decides from outside of the network which parameters get a gradient, or takes their momentum away."""
_SEEN = ("torch", "torchvision", "math", "numpy", "functools", "itertools")
"""Libraries whose modules run all of their parts in each step."""
_CHOICES = (syntax.CompIf, syntax.IfExp, syntax.While, syntax.Match, syntax.Try, syntax.BooleanOperation)
_BINDS = (syntax.Assign, syntax.AugAssign, syntax.AnnAssign, syntax.NamedExpr)


def is_shared(script: Script, call: syntax.Call) -> bool:
    """Whether the parameters of the optimizer that ``call`` makes surely get their first gradient in one step."""
    module = _whole(script, call)
    if module is None or script.program.mentions(script, _CHANGES):
        return False
    if sum(len(place.method_calls("backward")) for place in script.everywhere(b".backward(")) != 1:
        return False
    found = list(steps.of_program(script))
    if len(found) != 1 or not isinstance(found[0].forward.func, syntax.Name | syntax.Attribute):
        return False
    step = found[0]
    made = list(script.roles.origins(module))
    run = list(step.script.roles.origins(step.forward.func))
    if not made or any(origin not in run for origin in made) or not all(_is_straight(*origin) for origin in run):
        return False
    return not _chooses(step) and all(_is_straight(*origin) for origin in _called(step))


def _whole(script: Script, call: syntax.Call) -> syntax.BaseExpression | None:
    """The module all of whose parameters an optimizer is handed, and nothing else: ``model.parameters()``."""
    match script.argument(call, "params", 0):
        case syntax.Call(func=syntax.Attribute(value=module, attr=syntax.Name("parameters")), args=[]):
            return module
    return None


def _chooses(step: steps.Step) -> bool:
    """Whether a turn of the step computes one thing or another."""
    script, inside = step.script, step.script.source.inside
    if any(_holds_any(script, branch, _BINDS) for branch in inside(step.turn, syntax.If)):
        return True
    if any(_holds_any(script, line, _CHOICES) for line in step.statements):
        return True
    around = (each for kind in (syntax.If, *_CHOICES) for each in inside(step.turn, kind))
    if any(script.source.contains(each, step.forward) for each in around):
        return True
    pieces = networks.with_named(script, step.turn)
    return not all(_runs_all(place, node) for place, node in pieces if node is not step.turn)


def _called(step: steps.Step) -> Iterator[tuple[Script, syntax.BaseExpression]]:
    """What the objects of the project's own classes that a step calls are made by: its network, its losses."""
    for call in step.calls():
        if isinstance(call.func, syntax.Name | syntax.Attribute):
            for place, node in step.script.roles.origins(call.func):
                if isinstance(node, syntax.Call) and place.definition(node.func) is not None:
                    yield place, node


def _is_straight(script: Script, made: syntax.BaseExpression) -> bool:
    """Whether a module, by the call that makes it, runs all of its parts each time."""
    if not isinstance(made, syntax.Call):
        return False
    if script.definition(made.func) is None and not _is_seen(script, made):
        return False
    return all(_runs_all(place, node) for place, node in networks.with_named(script, made))


def _runs_all(script: Script, piece: syntax.Node) -> bool:
    """Whether what a piece of code runs does not depend on what it is given, nor on when it runs."""
    if not all(_is_seen(script, call) for call in script.source.inside(piece, syntax.Call)):
        return False
    if isinstance(piece, syntax.ClassDef):
        methods = [each for each in script.source.inside(piece, syntax.FunctionDef) if each.name.value != "__init__"]
        return not any(True for method in methods for _ in _choices(script, method))
    return not isinstance(piece, syntax.FunctionDef) or not any(True for _ in _choices(script, piece))


def _is_seen(script: Script, call: syntax.Call) -> bool:
    """Whether a call is of the project's own code, of a part of an object, or of a library that is known."""
    if script.definition(call.func) is not None:
        return True
    name = script.name(call.func)
    if name is None:
        return isinstance(call.func, syntax.Attribute)
    return "." not in name or name.partition(".")[0] in _SEEN


def _choices(script: Script, function: syntax.Node) -> Iterator[syntax.Node]:
    """Where a function chooses what it runs: conditions but for `self.training`, and parts that are taken by an index."""
    for kind in _CHOICES:
        yield from script.source.inside(function, kind)
    for branch in script.source.inside(function, syntax.If):
        if script.text(branch.test) != "self.training":
            yield branch
    for taken in script.source.inside(function, syntax.Subscript):
        if isinstance(taken.value, syntax.Attribute) and taken.value.attr.value != "shape":
            yield taken
    for loop in script.source.inside(function, syntax.For):
        if _holds_any(script, loop.iter, (syntax.Subscript,)):
            yield loop


def _holds_any(script: Script, node: syntax.Node, kinds: tuple[type[syntax.Node], ...]) -> bool:
    return any(True for kind in kinds for _ in script.source.inside(node, kind))
