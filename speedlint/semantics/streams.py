"""The GPU's queues: when the host waits for all of them, and when it has to."""

from __future__ import annotations

import libcst as cst

from speedlint.semantics.model import Place
from speedlint.semantics.script import Script

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
_OTHER_LIBRARIES = ("cupy", "numba", "pycuda", "tensorrt", "ctypes", "pynvml")


def needs_to_wait(script: Script, call: cst.Call) -> bool:
    """Whether something beside the step's own stream may rely on the wait: other streams, CUDA graphs, libraries that use
    the GPU by themselves, or a copy to the host that does not block."""
    if next(script.calls(*_OTHER_STREAMS), None) is not None:
        return True
    packages = {(binding.dotted or "").partition(".")[0] for all_of in script.names.all_bindings() for binding in all_of}
    return not packages.isdisjoint(_OTHER_LIBRARIES) or _copies_without_blocking(script, call)


def _copies_without_blocking(script: Script, call: cst.Call) -> bool:
    block = script.function(call) or script.source.module
    for copy in script.source.inside(block, cst.Call):
        if not isinstance(copy.func, cst.Attribute) or copy.func.attr.value not in ("to", "copy_"):
            continue
        asked = script.argument(copy, "non_blocking", 1)
        if asked is None or script.text(asked) == "False":
            continue
        if copy.func.attr.value == "copy_" or script.roles.calls.place_of_move(copy, Place.EITHER) is Place.HOST:
            return True
    return False


def whole_branch(script: Script, statement: cst.CSTNode) -> cst.CSTNode:
    """The branch that holds nothing but the statement and only asks, as for ``torch.cuda.is_available()``."""
    source = script.source
    line = source.parents[statement]
    block = source.parents[line]
    body = block if isinstance(block, cst.IndentedBlock) else line
    owner = source.parents[body]
    alone = isinstance(body, (cst.IndentedBlock, cst.SimpleStatementSuite)) and len(body.body) == 1
    if isinstance(line, cst.SimpleStatementLine) and len(line.body) != 1:
        return statement
    if not alone or not isinstance(owner, cst.If) or owner.orelse is not None or owner.body is not body:
        return statement
    is_elif = isinstance(source.parents[owner], cst.If)
    return statement if is_elif or not _only_asks(script, owner.test) else owner


def _only_asks(script: Script, test: cst.BaseExpression) -> bool:
    calls = list(script.source.inside(test, cst.Call))
    return not any(True for _ in script.source.inside(test, cst.NamedExpr)) and all(
        (script.name(call.func) or "").startswith("torch.") for call in calls
    )
