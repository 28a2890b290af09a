"""Random numbers that a dataset draws one by one, in loops of Python over its samples."""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.solve import counts
from speedlint.solve.terms import Definition
from speedlint.torch.words import Role

_SIZES = {
    "numpy.random.randint": 2,
    "numpy.random.choice": 1,
    "numpy.random.uniform": 2,
    "numpy.random.normal": 2,
    "numpy.random.rand": 0,
    "numpy.random.randn": 0,
    "numpy.random.random": 0,
}
"""numpy's functions that draw one number without a size, and the place of their sizes."""
_OF_ONE = frozenset({"random.randint", "random.randrange", "random.choice", "random.random", "random.uniform"})


def one_by_one(method: Definition) -> syntax.Call | None:
    """The call by which a method of a dataset draws a single number in a loop within one over its samples."""
    script, node = method.script, method.node
    if not isinstance(node, syntax.FunctionDef) or (owner := script.names.owner(node)) is None:
        return None
    if script.roles.instance(Definition(script, owner)).role is not Role.DATASET:
        return None
    return next((call for call in script.source.inside(node.body, syntax.Call) if _is_in_loops(script, call, node)), None)


def _is_in_loops(script: Script, call: syntax.Call, function: syntax.FunctionDef) -> bool:
    if not _draws_one(script, call) or script.function(call) is not function:
        return False
    loops = list(_loops(script, call, function))
    outermost = loops[-1] if len(loops) > 1 else None
    return isinstance(outermost, syntax.For) and counts.turns(script, outermost) is None


def _loops(script: Script, call: syntax.Call, function: syntax.FunctionDef) -> Iterator[syntax.Node]:
    for up in script.source.ancestors(call):
        if up is function:
            return
        if isinstance(up, syntax.For | syntax.While | syntax.ListComp | syntax.SetComp | syntax.GeneratorExp):
            yield up


def _draws_one(script: Script, call: syntax.Call) -> bool:
    name = script.name(call.func)
    if name in _OF_ONE:
        return True
    place = _SIZES.get(name or "")
    return place is not None and script.argument(call, "size", place) is None and not script.hides_arguments(call)
