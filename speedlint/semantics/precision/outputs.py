"""What a step computes in half precision once it runs under autocast, and where that meets float32 afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from speedlint.edits import CannotEdit
from speedlint.semantics import library, reach
from speedlint.semantics.model.networks import network
from speedlint.semantics.script import Script
from speedlint.semantics.steps import Step, attributes_set, is_criterion, runs_module
from speedlint.semantics.terms import Role

_KEEPS_DTYPE = frozenset(
    "chunk clone contiguous cpu cuda detach detach_ expand expand_as flatten permute repeat reshape requires_grad_ split "
    "squeeze swapaxes t tile transpose unbind unflatten unsqueeze view view_as".split()
)
_ONE_DTYPE = frozenset(
    "addmm baddbmm bmm dot einsum index_add index_add_ index_copy index_copy_ index_put index_put_ lerp lerp_ linear "
    "masked_scatter masked_scatter_ matmul mm mv put_ scatter scatter_ scatter_add scatter_add_ scatter_reduce "
    "scatter_reduce_".split()
)
"""What raises where one operand is in half precision and another is not."""
_FULL_ONLY = frozenset("cdist inverse pinverse quantile nanquantile cholesky svd qr det logdet slogdet".split())
"""What torch has for single and double precision alone."""
_METRICS = ("torchmetrics.", "torcheval.", "ignite.metrics.", "evaluate.", "sklearn.")
_MOST = 200


def refuse_uses(step: Step, *, half: bool) -> None:
    """Raises CannotEdit where what a step leaves in half precision (``half``: float16, else bfloat16) is read outside of
    autocast: where an object keeps it, or it meets what takes float32 alone."""
    for statement in step.statements:
        for assign in step.script.source.inside(statement, cst.Assign):
            _refuse_kept(step.script, assign, step.loss)
    seen: set[cst.CSTNode] = set()
    todo = [(step.script, _seen_through(step.script, use)) for use in _read_afterwards(step)]
    while todo and len(seen) < _MOST:
        script, node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        for use in reach.uses(script, node):
            if not _is_under_autocast(use.script, use.node):
                _refuse_meeting(use, step, half=half)
                if (view := _seen_through(use.script, use.node)) is not use.node:
                    todo.append((use.script, view))


def _refuse_kept(script: Script, assign: cst.Assign, loss: cst.BaseExpression) -> None:
    kept = [script.text(each) for each in attributes_set(assign)]
    if len(kept) > 1 or (kept and isinstance(assign.targets[0].target, cst.Tuple) and script.text(loss) not in kept):
        other = next((text for text in kept if text != script.text(loss)), kept[0])
        raise CannotEdit(f"`{other}` keeps what the model gives, which may be read outside autocast")


def _read_afterwards(step: Step) -> Iterator[cst.Name]:
    """The uses, after the loss is computed, of the variables that hold what the step's modules give."""
    script, source = step.script, step.script.source
    last = step.statements[-1]
    halves: set[cst.CSTNode] = set()
    for statement in step.statements:
        for assign in source.inside(statement, cst.Assign):
            if not _is_half(script, assign.value, halves):
                continue
            names = [each for target in assign.targets for each in source.inside(target, cst.Name)]
            for name in (each for each in names if each.value != script.text(step.loss)):
                bound = [use for use in script.names.uses(name) if name in {b.node for b in script.names.reaching(use)}]
                halves.update(bound)
                yield from (u for u in bound if source.order[u] > source.order[last] and not source.contains(last, u))


def _is_half(script: Script, value: cst.BaseExpression, halves: set[cst.CSTNode]) -> bool:
    """Whether a value is what a module gives, or a view of such a value; a loss is computed in float32."""
    top = value
    while isinstance(top, (cst.Attribute, cst.Subscript, cst.Call)):
        if isinstance(top, cst.Call):
            if script.role(top.func) is Role.MODULE:
                return not is_criterion(script, top)
            callee = script.callee(top)
            if callee is not None and isinstance(callee.node, cst.FunctionDef):
                return runs_module(callee)
            if not isinstance(top.func, cst.Attribute) or top.func.attr.value not in _KEEPS_DTYPE:
                return False
            top = top.func.value
        else:
            top = top.value
    return top in halves


def _seen_through(script: Script, node: cst.CSTNode) -> cst.CSTNode:
    """The outermost expression around an output that is a view or a part of it: ``out.logits.detach()[0]`` for ``out``."""
    while True:
        parent = script.source.parents[node]
        match parent:
            case cst.Subscript(value=value) if value is node:
                node = parent
            case cst.Attribute(value=value, attr=cst.Name(name)) if value is node:
                call = script.source.parents[parent]
                is_called = isinstance(call, cst.Call) and call.func is parent
                if (is_called and name not in _KEEPS_DTYPE) or script.role(parent) is Role.NUMBER:
                    return node
                node = call if is_called else parent
            case _:
                return node


def _is_under_autocast(script: Script, node: cst.CSTNode) -> bool:
    return any(
        isinstance(up, cst.With) and any(script.is_call_to(item.item, *library.AUTOCASTS) for item in up.items)
        for up in script.source.ancestors(node)
    )


def _refuse_meeting(use: reach.Use, step: Step, *, half: bool) -> None:
    """Raises where a tensor in half precision is handed to what takes float32."""
    script, met = use.script, _meets(use.script, use.node, half=half)
    if met is not None:
        line = script.source.position(script.source.span(met).start)[0]
        where = f"line {line}" if script is step.script else f"{script.path.name} line {line}"
        shown = " ".join(script.text(met).split())
        raise CannotEdit(f"{where}: `{shown}` is handed what the model gives, and takes float32")


def _meets(script: Script, node: cst.CSTNode, *, half: bool) -> cst.CSTNode | None:
    parent = script.source.parents[node]
    match parent:
        case cst.Arg() if isinstance(call := script.source.parents[parent], cst.Call):
            return call if _takes_full(script, call, half=half) else None
        case cst.Attribute(value=value, attr=cst.Name(name)) if value is node:
            call = script.source.parents[parent]
            is_called = isinstance(call, cst.Call) and call.func is parent
            is_refused = name in _ONE_DTYPE | _FULL_ONLY or (name == "numpy" and not half)
            return call if is_called and is_refused else None
        case cst.BinaryOperation(operator=cst.MatrixMultiply()):
            return parent
        case cst.Assign(targets=targets) if any(_is_written_by_index(script, each.target) for each in targets):
            return parent
    return None


def _takes_full(script: Script, call: cst.Call, *, half: bool) -> bool:
    name = script.name(call.func)
    if name is not None and name.startswith("torch."):
        last = name.rpartition(".")[2]
        return last in _ONE_DTYPE | _FULL_ONLY or name.startswith(("torch.linalg.", "torch.fft."))
    if name is not None and name.startswith(("numpy.", *_METRICS)):
        return not half and name.startswith("numpy.")
    if script.role(call.func) is Role.MODULE:
        made_of = network(script, call.func)
        return bool(made_of.convolutions or made_of.attention or made_of.recurrent or made_of.linears)
    return isinstance(call.func, cst.Attribute) and name is None and call.func.attr.value in _ONE_DTYPE


def _is_written_by_index(script: Script, target: cst.BaseExpression) -> bool:
    """Whether a target is ``x[rows]``: unlike those by slices, such an assignment casts nothing."""
    if not isinstance(target, cst.Subscript):
        return False
    indices = [part.slice.value for part in target.slice if isinstance(part.slice, cst.Index)]
    return any(script.role(index) is Role.TENSOR for index in indices)
