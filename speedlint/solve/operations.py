"""A project's own operations, classes derived from ``torch.autograd.Function``: ``apply`` runs their ``forward``, with a
context before what it is given, and each backward pass through a result their ``backward``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.solve.names import Kind
from speedlint.solve.terms import Definition

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_BASES = frozenset(
    "torch.autograd.Function torch.autograd.function.Function torch.autograd.function.InplaceFunction "
    "torch.autograd.function.NestedIOFunction".split()
)
_APPLY = "apply"


def is_operation(script: Script, klass: syntax.ClassDef) -> bool:
    """Whether a class of this script's is one."""
    lineage = script.roles.calls.lineage(Definition(script, klass))
    return any(
        one.script.name(base.value) in _BASES
        for one in lineage
        if isinstance(one.node, syntax.ClassDef)
        for base in one.node.bases
    )


def takes_context(script: Script, owner: syntax.ClassDef, function: syntax.FunctionDef) -> bool:
    """Whether a method is the ``forward`` of an operation that is handed a context first, not by ``setup_context``."""
    if function.name.value != "forward" or not is_operation(script, owner):
        return False
    return script.roles.calls.method(Definition(script, owner), "setup_context") is None


def applied(script: Script, call: syntax.Call) -> Definition | None:
    """The ``forward`` of the operation that a call applies: ``Square.apply(x)``; by another name too, ``square =
    Square.apply``."""
    match call.func:
        case syntax.Attribute(attr=syntax.Name(value=name)) as apply if name == _APPLY:
            return _forward(script, apply)
        case syntax.Name() as name:
            bindings = script.names.reaching(name)
            binding, place = bindings[0] if len(bindings) == 1 else None, script
            if binding is not None and binding.kind is Kind.IMPORT and binding.dotted is not None:
                binding, found = script.imported_binding(binding.dotted)
                place = found or script
            if binding is not None and binding.kind is Kind.ASSIGN and not binding.path:
                value = binding.value
                if isinstance(value, syntax.Attribute) and value.attr.value == _APPLY:
                    return _forward(place, value)
    return None


def _forward(script: Script, apply: syntax.Attribute) -> Definition | None:
    klass = script.definition(apply.value)
    if klass is None or not isinstance(klass.node, syntax.ClassDef) or not is_operation(klass.script, klass.node):
        return None
    return klass.script.roles.calls.method(klass, "forward")


def backward_of(script: Script, forward: syntax.FunctionDef) -> syntax.FunctionDef | None:
    """What a backward pass runs of the operation whose ``forward`` a function of this script's is; None of any other."""
    owner = script.names.owner(forward) if forward.name.value == "forward" else None
    if owner is None or not is_operation(script, owner):
        return None
    found = script.roles.calls.method(Definition(script, owner), "backward")
    is_own = found is not None and found.script is script
    return found.node if found is not None and is_own and isinstance(found.node, syntax.FunctionDef) else None
