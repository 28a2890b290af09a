"""Compilation: whether a program compiles anything, and where a trained module could be compiled in place."""

from __future__ import annotations

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes.model.networks import network
from speedlint.shapes.training import Placement, roots
from speedlint.source import is_name
from speedlint.torch import library

_SECOND_DERIVATIVES = ("torch.autograd.grad", "torch.autograd.functional.jacobian", "torch.autograd.functional.hessian")
_CLASHES = (
    "torch.utils.checkpoint.checkpoint",
    "torch.jit.script",
    "torch.jit.trace",
    "torch.nn.utils.parametrizations.weight_norm",
)


def is_compiled(script: Script) -> bool:
    """Whether a script of the program compiles or scripts something, be it behind a switch."""
    return any(_compiles(one) for one in script.everywhere(b"compile", b"jit", b"dynamo"))


def _compiles(script: Script) -> bool:
    if any(True for _ in script.calls(*library.COMPILERS)):
        return True
    if any(
        script.name(each.decorator) in library.COMPILERS
        for function in script.source.of(syntax.FunctionDef)
        for each in function.decorators
    ):
        return True
    return any(
        script.name(call.func) not in ("re.compile",) and not _is_pattern(script, call)
        for call in script.method_calls("compile")
    )


def _is_pattern(script: Script, call: syntax.Call) -> bool:
    return (
        isinstance(call.func, syntax.Attribute)
        and script.name(call.func) is not None
        and not (script.name(call.func) or "").startswith("torch.")
    )


def may_gain(script: Script, module: syntax.BaseExpression) -> bool:
    """Whether a module is in sight, has enough in it, and nothing in it or beside it is known to break compilation."""
    definition = script.value(module).definition
    if definition is not None and script.roles.calls.method(definition, "forward") is None:
        return False  # run by other methods, which `compile()` leaves as they are
    made_of = network(script, module)
    if (
        made_of.recurrent
        or made_of.narrow_recurrent
        or not (made_of.convolutions or made_of.attention or made_of.linears > 1)
    ):
        return False
    clashes = next(script.calls_everywhere(*_SECOND_DERIVATIVES, *_CLASHES), None)
    return clashes is None and not any(_differentiates_twice(one) for one in script.everywhere(b"create_graph"))


def _differentiates_twice(script: Script) -> bool:
    return any(
        is_name(arg.keyword, "create_graph") and not _is_false(script, arg.value)
        for call in script.source.of(syntax.Call)
        for arg in call.args
    )


def _is_false(script: Script, expression: syntax.BaseExpression) -> bool:
    constant = script.constant(expression)
    return constant is not None and constant.value is False


def in_place(script: Script, placement: Placement) -> tuple[str | None, str]:
    """How the placed module is spelled right after its placement; None and the reason where it cannot be compiled there."""
    source, call = script.source, placement.call
    if placement.further:
        return None, "it is moved in several branches"
    if _is_wrapped(script, placement):
        return None, "it is wrapped for several GPUs, and which of the two to compile is to be tried"
    for up in source.ancestors(call):
        if isinstance(up, (syntax.For, syntax.While)):
            return None, "it is made in a loop, and each turn would be compiled anew"
        if isinstance(up, syntax.FunctionDef):
            break
    parent = source.parents[call]
    match parent:
        case syntax.Expr() if isinstance(placement.module, (syntax.Name, syntax.Attribute)):
            return script.text(placement.module), ""
        case syntax.Assign(targets=[syntax.AssignTarget(target=(syntax.Name() | syntax.Attribute()) as target)]):
            return script.text(target), ""
    return None, "it has no name of its own there"


def _is_wrapped(script: Script, placement: Placement) -> bool:
    """Whether the module is handed to ``DataParallel`` or the like anywhere beside."""
    origin = {id(node) for _, node in roots(script, placement.module)}
    return any(
        call.args and any(id(node) in origin for _, node in roots(one, call.args[0].value))
        for one, call in script.calls_everywhere(*library.DISTRIBUTED_WRAPPERS)
    )
