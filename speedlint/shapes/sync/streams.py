"""The GPU's queues: when the host waits for all of them, and when it has to."""

from __future__ import annotations

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.source import is_name
from speedlint.torch.words import Place

SYNCHRONIZE = tuple(f"torch.{device}.synchronize" for device in ("cuda", "xpu", "mps", "npu", "mlu", "accelerator"))
_OTHER_STREAMS = (
    "torch.cuda.Stream",
    "torch.cuda.stream",
    "torch.cuda.StreamContext",
    "torch.cuda.ExternalStream",
    "torch.cuda.graph",
    "torch.cuda.CUDAGraph",
    "torch.cuda.make_graphed_callables",
    "torch.cuda.cudart",
    "torch.Stream",
)
_ASKS = (
    "torch.cuda.is_available",
    "torch.cuda.device_count",
    "torch.cuda.is_initialized",
    "torch.backends.mps.is_available",
)
_OTHER_LIBRARIES = ("cupy", "numba", "pycuda", "tensorrt", "ctypes", "pynvml")


def blocks(call: syntax.Call) -> bool | None:
    """Whether a copy is blocking: no ``non_blocking``, or False; None where that is not known."""
    for arg in call.args:
        if is_name(arg.keyword, "non_blocking"):
            return True if is_name(arg.value, "False") else None
    positional = [arg.value for arg in call.args if arg.keyword is None]
    assert isinstance(call.func, syntax.Attribute)
    most = 2 if call.func.attr.value == "to" else 1
    named = [value for value in positional if isinstance(value, syntax.Name) and value.value in ("True", "False")]
    return None if len(positional) > most or named else True


def needs_to_wait(script: Script) -> bool:
    """Whether something in the program beside the step's own stream may rely on the wait: other streams, CUDA graphs,
    libraries that use the GPU by themselves, or a copy to the host that does not block."""
    if next(script.calls_everywhere(*_OTHER_STREAMS), None) is not None:
        return True
    packages = {dotted.partition(".")[0] for _, dotted in script.names.imports}
    if not packages.isdisjoint(_OTHER_LIBRARIES):
        return True
    return any(_copies_without_blocking(place) for place in script.everywhere(b"non_blocking"))


def _copies_without_blocking(script: Script) -> bool:
    """Whether a script copies to the host, or to where it is not known, without blocking."""
    for copy in script.source.of(syntax.Call):
        method = copy.func.attr.value if isinstance(copy.func, syntax.Attribute) else ""
        asked = script.argument(copy, "non_blocking", 1 if method in ("to", "cuda", "copy_") else None)
        if asked is None or script.text(asked) == "False":
            continue
        if method not in ("to", "cuda"):
            return True
        target = script.argument(copy, "device", 0)
        place = script.roles.calls.place_of_move(copy, Place.EITHER)
        is_device = target is not None and any(
            word in script.text(target).lower() for word in ("dev", "gpu", "cuda", "rank")
        )
        if place is Place.HOST or (place is Place.EITHER and not is_device):
            return True
    return False


def whole_branch(script: Script, statement: syntax.Node) -> syntax.Node:
    """The branch that holds nothing but the statement and only asks, as for ``torch.cuda.is_available()``."""
    source = script.source
    line = source.parents[statement]
    block = source.parents[line]
    body = block if isinstance(block, syntax.IndentedBlock) else line
    owner = source.parents[body]
    alone = isinstance(body, (syntax.IndentedBlock, syntax.SimpleStatementSuite)) and len(body.body) == 1
    if not alone or (isinstance(line, syntax.SimpleStatementLine) and len(line.body) != 1):
        return statement
    if not isinstance(owner, syntax.If) or owner.orelse is not None or owner.body is not body:
        return statement
    is_elif = isinstance(source.parents[owner], syntax.If)
    return statement if is_elif or "#" in script.text(owner) or not _only_asks(script, owner.test) else owner


def _only_asks(script: Script, test: syntax.BaseExpression) -> bool:
    """Whether a condition has no effect: names, comparisons, and whether there is a GPU."""
    asked = (script.name(call.func) for call in script.source.inside(test, syntax.Call))
    others = (syntax.NamedExpr, syntax.Subscript, syntax.Await)
    return all(name in _ASKS for name in asked) and not any(
        True for kind in others for _ in script.source.inside(test, kind)
    )
