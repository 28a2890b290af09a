"""Whether an optimizer is handed a parameter twice: several modules' parameters in one list, of modules that share some."""

from __future__ import annotations

import re
from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes.training import Root, parameters_within, roots
from speedlint.solve.names import last_name

_TIED = re.compile(rb"\.weight[ \t]*=[ \t]*[\w.\[\]]+\.weight\b")
_ADDS = frozenset({"append", "extend", "insert", "add_module", "register_module"})


def may_be_twice(script: Script, optimizer: syntax.Call) -> bool:
    """Whether some of the parameters that an optimizer is handed in one group may be listed twice: torch warns and goes on,
    and a fused update advances such a parameter's step count twice before it updates it. Groups that share one raise."""
    params = script.argument(optimizer, "params", 0)
    if params is None or any(True for _ in script.source.inside(params, syntax.Dict)):
        return False
    modules = list(_listed(script, params))
    if len(modules) < 2:
        return False
    if script.program.mentions(script, _TIED):
        return True
    texts = [place.text(node) for place, node in modules]
    is_within = any(one != two and two.startswith(f"{one}.") for one in texts for two in texts)
    found = [{id(node) for _, node in roots(*each)} for each in modules]
    is_same = any(one & two for index, one in enumerate(found) for two in found[:index])
    return is_within or is_same or any(_is_given_others(*each) for each in modules)


def _listed(script: Script, params: syntax.Node) -> Iterator[Root]:
    """The modules whose parameters an expression lists, also within a module's own method that does."""
    for module in parameters_within(script, params):
        attribute = script.source.parents[module]
        call = script.source.parents[attribute]
        method = script.callee(call) if isinstance(call, syntax.Call) else None
        if method is None:
            yield script, module
            continue
        for result in method.script.source.inside(method.node, syntax.Return):
            yield from ((method.script, each) for each in parameters_within(method.script, result))


def _is_given_others(script: Script, module: syntax.Node) -> bool:
    """Whether a module of others, an attribute, is given modules of another name: ``self.first += self.second``."""
    name = last_name(module) if isinstance(module, syntax.Attribute) else None
    if name is None:
        return False
    for place in script.everywhere(name.encode()):
        for added in place.source.of(syntax.AugAssign):
            if isinstance(added.target, syntax.Attribute) and added.target.attr.value == name:
                return True
        for call in place.method_calls(*_ADDS):
            holder = call.func.value if isinstance(call.func, syntax.Attribute) else None
            is_its = isinstance(holder, syntax.Attribute) and holder.attr.value == name
            others = (syntax.Name, syntax.Attribute) if last_name(call.func) == "extend" else syntax.Attribute
            if is_its and any(isinstance(arg.value, others) for arg in call.args):
                return True
    return False
