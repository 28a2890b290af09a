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


def is_operation(script: Script, klass: syntax.Node) -> bool:
    """Whether a class of this script's is one."""
    assert isinstance(klass, syntax.ClassDef)
    lineage = script.roles.calls.lineage(Definition(script, klass))
    return any(
        one.script.name(base.value) in _BASES
        for one in lineage
        if isinstance(one.node, syntax.ClassDef)
        for base in one.node.bases
    )


def applied(script: Script, call: syntax.Call) -> Definition | None:
    """The ``forward`` of the operation that a call applies."""
    klass = _operation(script, call)
    return klass.script.roles.calls.method(klass, "forward") if klass is not None else None


def _operation(script: Script, call: syntax.Call) -> Definition | None:
    """The class that a call applies: ``Square.apply(x)``; by another name too, ``square = Square.apply``."""
    match call.func:
        case syntax.Attribute(attr=syntax.Name(value=name)) as apply if name == _APPLY:
            return _applied(script, apply)
        case syntax.Name() as name:
            bindings = script.names.reaching(name)
            binding, place = bindings[0] if len(bindings) == 1 else None, script
            if binding is not None and binding.kind is Kind.IMPORT and binding.dotted is not None:
                binding, found = script.imported_binding(binding.dotted)
                place = found or script
            if binding is not None and binding.kind is Kind.ASSIGN and not binding.path:
                value = binding.value
                if isinstance(value, syntax.Attribute) and value.attr.value == _APPLY:
                    return _applied(place, value)
    return None


def hands_context(script: Script, call: syntax.Call) -> bool:
    """Whether a call applies an operation whose ``forward`` is handed a context first, not by ``setup_context``."""
    klass = _operation(script, call)
    return klass is not None and klass.script.roles.calls.method(klass, "setup_context") is None


def _applied(script: Script, apply: syntax.Attribute) -> Definition | None:
    klass = script.definition(apply.value)
    is_class = klass is not None and isinstance(klass.node, syntax.ClassDef)
    return klass if klass is not None and is_class and is_operation(klass.script, klass.node) else None


def backward_of(script: Script, forward: syntax.FunctionDef) -> syntax.FunctionDef | None:
    """What a backward pass runs of the operation whose ``forward`` a function of this script's is; None of any other."""
    owner = script.names.owner(forward) if forward.name.value == "forward" else None
    if owner is None or not is_operation(script, owner):
        return None
    found = script.roles.calls.method(Definition(script, owner), "backward")
    is_own = found is not None and found.script is script
    return found.node if found is not None and is_own and isinstance(found.node, syntax.FunctionDef) else None


def is_backward(script: Script, function: syntax.FunctionDef) -> bool:
    """Whether a function is the ``backward`` of an operation."""
    owner = script.names.owner(function) if function.name.value == "backward" else None
    return owner is not None and is_operation(script, owner)
