"""Gradient checkpointing: where it is switched on, and whether it is without asking and without signs of scarce memory."""

from __future__ import annotations

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes.training import roots
from speedlint.solve.gradients import gradients_off
from speedlint.source import is_name
from speedlint.torch.words import Role

_SWITCHES = frozenset(
    "gradient_checkpointing_enable enable_gradient_checkpointing set_grad_checkpointing use_checkpointing".split()
)
_KEYWORDS = frozenset(
    "use_checkpoint use_checkpointing gradient_checkpointing grad_checkpointing use_gradient_checkpointing with_cp".split()
)
_CHECKPOINTS = ("torch.utils.checkpoint.checkpoint", "torch.utils.checkpoint.checkpoint_sequential")
_SCARCE = (
    b"load_in_4bit",
    b"load_in_8bit",
    b"bitsandbytes",
    b"import peft",
    b"from peft",
    b"deepspeed",
    b"FullyShardedDataParallel",
    b"fully_shard",
    b"CPUOffload",
    b"device_map",
    b"enable_input_require_grads",
    b"get_peft_model",
    b"unsloth",
)
"""What a program says whose model hardly fits."""
_DEPTH = 4


def switch(script: Script, call: syntax.Call) -> bool:
    """Whether a call switches checkpointing on for a module: by a method, or by an argument of what makes it."""
    if isinstance(call.func, syntax.Attribute) and call.func.attr.value in _SWITCHES and script.name(call.func) is None:
        return not any(is_name(arg.value, "False") for arg in call.args)
    return any(
        is_name(arg.keyword, *_KEYWORDS) and is_name(arg.value, "True") and _makes_module(script, call) for arg in call.args
    )


def _makes_module(script: Script, call: syntax.Call) -> bool:
    """Whether a call makes a module that a program trains, as opposed to settings, options, or a part of another module."""
    if script.role(call) is not Role.MODULE or (script.name(call.func) or "").startswith("peft."):
        return False
    return script.source.enclosing(call, syntax.ClassDef) is None


def is_pretrained(script: Script, call: syntax.Call) -> bool:
    """Whether the module that a call switches over is a published one, whose size is not in sight."""
    if not isinstance(call.func, syntax.Attribute):
        return False
    return any(
        isinstance(node, syntax.Call)
        and isinstance(node.func, syntax.Attribute)
        and node.func.attr.value == "from_pretrained"
        for _, node in roots(script, call.func.value)
    )


def recomputed(script: Script, call: syntax.Call) -> bool:
    """Whether a module's own code puts a part of it through ``torch.utils.checkpoint``, whenever it trains."""
    if script.name(call.func) not in _CHECKPOINTS or gradients_off(script, call) is not False:
        return False
    function = script.function(call)
    if function is None or script.names.owner(function) is None:
        return False
    segments = script.argument(call, "segments", 1) if (script.name(call.func) or "").endswith("_sequential") else None
    known = script.constant(segments) if segments is not None else None
    return (known is None or known.value != 1) and not _is_asked_for(script, call, function)


def is_unasked(script: Script, node: syntax.Node, depth: int = 0) -> bool:
    """Whether a line runs in every training, with no option, no check of the memory and no error before it."""
    function = script.function(node)
    if _is_asked_for(script, node, function):
        return False
    if function is None:
        return True
    callers = script.call_sites(function)
    return not callers or depth > _DEPTH or any(is_unasked(other, call, depth + 1) for other, call in callers)


def _is_asked_for(script: Script, node: syntax.Node, function: syntax.FunctionDef | None) -> bool:
    child = node
    for up in script.source.ancestors(node):
        if up is function:
            return False
        match up:
            case syntax.If() | syntax.IfExp() if child is not up.test and not _always_holds(script, up, child):
                return True
            case syntax.ExceptHandler() | syntax.While():
                return True
            case syntax.BooleanOperation() if child is up.right:
                return True
        child = up
    return False


def _always_holds(script: Script, branch: syntax.If | syntax.IfExp, child: syntax.Node) -> bool:
    """Whether a condition only asks for what can be: the method, a GPU, training mode, being run; or is a true constant."""
    if child is not branch.body:
        return False
    test = branch.test
    text = script.text(test)
    if "__name__" in text or text == "self.training" or script.is_call_to(test, "hasattr", "torch.cuda.is_available"):
        return True
    known = script.constant(test)
    return known is not None and known.value is True


def is_scarce(script: Script) -> bool:
    """Whether the program shows that memory is short: quantised or sharded weights, adapters, an optimizer off the GPU."""
    return any(mark in place.source.data for place in script.everywhere(*_SCARCE) for mark in _SCARCE)
