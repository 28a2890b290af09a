"""Objects that are made again in each turn of the loop over the epochs, out of the same things as in the turn before."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from speedlint.facts import syntax
from speedlint.shapes.data.repeats import Hangs, Run
from speedlint.shapes.schedule.periods import scheduled
from speedlint.solve.changing import written
from speedlint.solve.names import Binding, Kind
from speedlint.solve.terms import Definition
from speedlint.solve.values import PARSERS
from speedlint.torch.words import Frequency

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_LOOKS = frozenset({"len", "print", "isinstance", "range", "min", "max", "str", "int", "float", "type", "id"})
_KEEPS = frozenset("__len__ keys values items get shape size format split join".split())
_PLAIN = ("os.", "torch.utils.data.", "torchvision.", "torch.cuda.", "multiprocessing.cpu_count")
_SETS_ANY = re.compile(rb"\bsetattr\(|\bvars\(|__dict__")
_DEPTH = 3

Loop = syntax.For | syntax.While


class Turn(NamedTuple):
    """What runs once in each epoch of one training.

    Attributes:
        region: the loop over the epochs, or a function that it calls in each turn.
        site: where the function is called, and the turn that the call stands in; None for a loop.
    """

    region: Loop | syntax.FunctionDef
    site: tuple[Script, syntax.Call, Turn] | None = None


def epoch_turn(script: Script, call: syntax.Call) -> Turn | None:
    """The turn of the loop over the epochs of one training that makes a call each time, itself or by a function."""
    if script.frequency(call) is not Frequency.EPOCH:
        return None
    around = script.source.enclosing(
        call,
        syntax.For,
        syntax.While,
        syntax.If,
        syntax.Try,
        syntax.Lambda,
        syntax.ListComp,
        syntax.DictComp,
        syntax.FunctionDef,
    )
    if isinstance(around, syntax.FunctionDef):
        sites = script.call_sites(around)
        turn = epoch_turn(*sites[0]) if len(sites) == 1 else None
        return Turn(around, (*sites[0], turn)) if turn is not None else None
    found = scheduled(script, call)
    if found is None or around is not found.loop or script.loops.kind(found.loop) is not Frequency.EPOCH:
        return None
    if _goes_over_splits(script, found.loop):
        outer = script.source.enclosing(found.loop, syntax.For, syntax.While, syntax.If, syntax.Try, syntax.FunctionDef)
        if isinstance(outer, Loop) and script.loops.kind(outer) is Frequency.EPOCH:
            return Turn(outer)
    return Turn(found.loop)


def _goes_over_splits(script: Script, loop: Loop) -> bool:
    """Whether a loop goes over words that are written out: ``for phase in ["train", "val"]``, the parts of one epoch."""
    if not isinstance(loop, syntax.For):
        return False
    return any(
        words.elements and all(isinstance(each.value, syntax.SimpleString) for each in words.elements)
        for where, given in script.roles.origins(loop.iter)
        for kind in (syntax.List, syntax.Tuple)
        for words in where.source.inside(given, kind)
    )


def is_same_in_each_turn(script: Script, expression: syntax.Node, turn: Turn, maker: syntax.Node, depth: int = 0) -> bool:
    """Whether an expression has the same value in each turn, made of things that nothing changes there."""
    names = [expression] if isinstance(expression, syntax.Name) else script.source.inside(expression, syntax.Name)
    if any(_draws(script, each) for each in script.source.inside(expression, syntax.Call)):
        return False
    return all(_is_part_of_name(script, name) or _is_fixed(script, name, turn, maker, depth) for name in names)


def _is_part_of_name(script: Script, name: syntax.Name) -> bool:
    """Whether a name is the last part of ``a.name`` or the keyword of an argument."""
    parent = script.source.parents[name]
    return (isinstance(parent, syntax.Attribute) and parent.attr is name) or (
        isinstance(parent, syntax.Arg) and parent.keyword is name
    )


def _is_fixed(script: Script, name: syntax.Name, turn: Turn, maker: syntax.Node, depth: int) -> bool:
    loop = turn.region
    for binding in script.names.reaching(name):
        inside = script.source.contains(loop, binding.node)
        if not inside or _is_handed_the_same(script, binding, turn):
            continue
        if binding.kind is Kind.PARAMETER:
            return False
        value = binding.value
        is_split = binding.kind is Kind.FOR and (walk := script.source.enclosing(binding.node, syntax.For)) is not None
        if is_split and not (isinstance(walk, syntax.For) and walk is not loop and _goes_over_splits(script, walk)):
            return False
        if not (is_split or binding.kind is Kind.ASSIGN) or binding.path or value is None or depth >= _DEPTH:
            return False
        if not is_same_in_each_turn(script, value, turn, maker, depth + 1):
            return False
    if _is_option(script, name) or _is_word(script, name):
        return True
    return not any(_may_change(script, use, maker) for use in script.names.uses(name) if script.source.contains(loop, use))


def _is_word(script: Script, name: syntax.Name) -> bool:
    """Whether a name stands for the word of a turn, which no method changes: ``phase.upper()``."""
    walks = [script.source.enclosing(binding.node, syntax.For) for binding in script.names.reaching(name)]
    return bool(walks) and all(isinstance(walk, syntax.For) and _goes_over_splits(script, walk) for walk in walks)


def _is_option(script: Script, name: syntax.Name) -> bool:
    """Whether a name stands for the options of the command line in ``args.size``, which nothing in the program sets anew."""
    option = script.source.parents[name]
    if not isinstance(option, syntax.Attribute) or option.value is not name:
        return False
    is_set = rb"\.%s\b\s{0,9}(?:[:,][^=\n]{0,80})?=(?!=)" % re.escape(option.attr.value.encode())
    if script.program.mentions(script, re.compile(is_set)) or script.program.mentions(script, _SETS_ANY):
        return False
    made = (node.func for _, node in script.roles.origins(name) if isinstance(node, syntax.Call))
    return any(isinstance(func, syntax.Attribute) and func.attr.value in PARSERS for func in made)


def _is_handed_the_same(script: Script, binding: Binding, turn: Turn) -> bool:
    """Whether a binding is a parameter for which the one call of the function passes the same in each turn."""
    if turn.site is None or not isinstance(binding.node, syntax.Param) or not isinstance(turn.region, syntax.FunctionDef):
        return False
    other, call, outer = turn.site
    passed = script.values.given(turn.region, binding.node, other, call)
    if passed is None:
        return binding.node.default is not None and not other.hides_arguments(call)
    return is_same_in_each_turn(other, passed, outer, call)


def _may_change(script: Script, use: syntax.Name, maker: syntax.Node) -> bool:
    """Whether a use may change the object: a method of it is called, or it is handed to code other than what makes it."""
    source = script.source
    if source.contains(maker, use):
        return False
    node: syntax.Node = use
    parent = source.parents[node]
    while isinstance(parent, (syntax.Attribute, syntax.Subscript)) and parent.value is node:
        node, parent = parent, source.parents[parent]
    if isinstance(parent, (syntax.AssignTarget, syntax.AugAssign)) and getattr(parent, "target", None) is node:
        return node is not use
    if isinstance(parent, syntax.Call) and parent.func is node and node is not use:
        assert isinstance(node, (syntax.Attribute, syntax.Subscript))
        is_kept = isinstance(node, syntax.Attribute) and node.attr.value in _KEEPS
        return script.name(node) is None and not is_kept and not _only_gives(script, parent)
    if isinstance(parent, syntax.Arg):
        call = source.parents[parent]
        if not isinstance(call, syntax.Call):
            return True
        return (
            script.name(call.func) not in _LOOKS and not _only_makes(script, call) and not _only_reads(script, call, parent)
        )
    return False


def _only_reads(script: Script, call: syntax.Call, arg: syntax.Arg) -> bool:
    """Whether a function of the project does not change what a call hands it, nor hands it on."""
    callee = script.callee(call)
    if callee is None or not isinstance(callee.node, syntax.FunctionDef):
        return False
    other, function = callee.script, callee.node
    for parameter in (*function.params.params, *function.params.kwonly_params):
        if other.values.given(function, parameter, script, call) is arg.value:
            uses = [use for use in other.names.uses(parameter) if use is not parameter.name]
            return not any(
                isinstance(other.source.parents[use], syntax.Arg) or _may_change(other, use, call) for use in uses
            )
    return False


def _only_gives(script: Script, call: syntax.Call) -> bool:
    """Whether a call is of a method that gives back what its object holds, and does nothing else."""
    callee = script.callee(call)
    if callee is None or not isinstance(callee.node, syntax.FunctionDef):
        return False
    body = callee.node.body
    return next(written(callee.script, body), None) is None and not any(callee.script.source.inside(body, syntax.Call))


def _only_makes(script: Script, call: syntax.Call) -> bool:
    """Whether a call makes a loader or dataset of what it is given, which does not change that."""
    definition = script.definition(call.func)
    name = script.name(call.func) or ""
    return (definition is not None and isinstance(definition.node, syntax.ClassDef)) or name.startswith("torch.utils.data.")


def _draws(script: Script, call: syntax.Call) -> bool:
    """Whether what a call gives hangs on chance or on code out of sight."""
    name = script.name(call.func)
    definition = script.definition(call.func)
    if definition is not None:
        return _makes_by_chance(definition)
    if name is None:
        return not isinstance(call.func, syntax.Attribute) or call.func.attr.value not in _KEEPS
    plain = name in _LOOKS or "." not in name or name.startswith(_PLAIN)
    return not plain or name.endswith("random_split")


def _makes_by_chance(definition: Definition) -> bool:
    """Whether what a first-party class is made of hangs on chance, or its ``__init__`` is out of sight."""
    if not isinstance(definition.node, syntax.ClassDef):
        return True
    init = definition.script.roles.calls.method(definition, "__init__")
    if init is None or not isinstance(init.node, syntax.FunctionDef):
        return True
    params = (*init.node.params.posonly_params, *init.node.params.params, *init.node.params.kwonly_params)
    return Run(init.script, init.node, dict.fromkeys(params, Hangs.NOTHING)).draws()


def is_made_in_turn(script: Script, expression: syntax.Node, turn: Turn) -> syntax.Call | None:
    """The call within the turn that makes the object an expression stands for, if one does."""
    if isinstance(expression, syntax.Call) and script.source.contains(turn.region, expression):
        return expression
    if isinstance(expression, syntax.Name):
        bindings = script.names.reaching(expression)
        if len(bindings) == 1 and bindings[0].value is not None and not bindings[0].path:
            return is_made_in_turn(script, bindings[0].value, turn)
    return None
