"""Replay memories that work out the chances of all that they hold each time a batch is drawn."""

from __future__ import annotations

from typing import NamedTuple

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.solve.names import Kind

_DEPTH = 6
_MAKE = ("numpy.zeros", "numpy.ones", "numpy.full", "numpy.empty")
_FEW = 20_000
"""Priorities below which to go over all of them takes no longer than a tree that is written in Python, a tenth of a
millisecond."""
_CHANCES = 3
"""The place of ``p`` among the arguments of numpy's ``choice``."""


class Weighed(NamedTuple):
    """A draw with chances that are worked out from all priorities.

    Attributes:
        node: the call that draws.
        priorities: the attribute that holds them.
    """

    script: Script
    node: syntax.Call
    priorities: syntax.Attribute


def within(script: Script, function: syntax.FunctionDef) -> list[Weighed]:
    """The draws of a method whose chances are its object's priorities, raised to a power on the spot."""
    if b"choice" not in script.source.data or script.names.owner(function) is None:
        return []
    calls = (call for call in script.source.inside(function.body, syntax.Call) if script.function(call) is function)
    return [found for call in calls if (found := weighed(script, call)) is not None]


def weighed(script: Script, call: syntax.Call) -> Weighed | None:
    """A call as a draw with chances that are worked out from all priorities; None for any other."""
    if not script.is_call_to(call, "numpy.random.choice"):
        return None
    chances = script.argument(call, "p", _CHANCES)
    raised = _raised(script, chances, _DEPTH) if chances is not None else None
    priorities = _held(script, raised, _DEPTH) if raised is not None else None
    return Weighed(script, call, priorities) if priorities is not None and not _are_few(script, priorities) else None


def _are_few(script: Script, priorities: syntax.Attribute) -> bool:
    """Whether priorities are made as an array that is known to be small."""
    owner = script.source.enclosing(priorities, syntax.ClassDef)
    text = script.text(priorities)
    for assign in script.source.inside(owner, syntax.Assign) if owner is not None else ():
        match assign:
            case syntax.Assign(targets=[syntax.AssignTarget(target=target)], value=syntax.Call(args=[first, *_])) if (
                script.text(target) == text and script.is_call_to(assign.value, *_MAKE)
            ):
                size = first.value.elements[0].value if isinstance(first.value, syntax.Tuple) else first.value
                known = script.constant(size)
                return known is not None and isinstance(known.value, int) and known.value < _FEW
    return False


def _raised(script: Script, chances: syntax.BaseExpression, depth: int) -> syntax.BaseExpression | None:
    """What is raised to a power to give the chances."""
    match chances:
        case syntax.BinaryOperation(operator=syntax.Power(), left=left):
            return left
        case syntax.BinaryOperation(operator=syntax.Divide(), left=left) if depth:
            return _raised(script, left, depth - 1)
        case syntax.Call(args=[first, _]) if script.is_call_to(chances, "numpy.power"):
            return first.value
        case syntax.Name() if depth:
            found = [_raised(script, value, depth - 1) for value in _values(script, chances)]
            return found[0] if found and None not in found else None
    return None


def _held(script: Script, raised: syntax.BaseExpression, depth: int) -> syntax.Attribute | None:
    """The attribute of ``self`` that an expression is, or is a slice of, but for numbers beside it."""
    match raised:
        case syntax.Attribute(value=syntax.Name(value="self")):
            return raised
        case syntax.Subscript(value=inner, slice=[syntax.SubscriptElement(slice=syntax.Slice())]) if depth:
            return _held(script, inner, depth - 1)
        case syntax.BinaryOperation(left=left) if depth:
            return _held(script, left, depth - 1)
        case syntax.Call(args=[first, *_]) if depth and script.is_call_to(
            raised, "numpy.array", "numpy.asarray", "numpy.abs"
        ):
            return _held(script, first.value, depth - 1)
        case syntax.Name() if depth:
            found = [_held(script, value, depth - 1) for value in _values(script, raised)]
            return found[0] if found and None not in found else None
    return None


def _values(script: Script, name: syntax.Name) -> list[syntax.BaseExpression]:
    """What is assigned to a variable; what changes it in place, ``probs /= probs.sum()``, left out."""
    return [each.value for each in script.names.adding_up(name) if each.kind is Kind.ASSIGN and each.value is not None]
