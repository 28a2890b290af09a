"""Tensors that nothing else holds: what is kept of them stays as it is, whatever the rest of the program does."""

from __future__ import annotations

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes.data.loaders import loader
from speedlint.shapes.model.networks import is_loss, network
from speedlint.solve.inplace import changes_argument, leaves_argument
from speedlint.solve.names import Kind
from speedlint.solve.unpacking import Path, part
from speedlint.solve.values import returned
from speedlint.source import is_name, is_target
from speedlint.torch.methods import CASTS, DETACHES, MAKES_ANEW, MOVES, PARTS, VIEWS, works_in_place
from speedlint.torch.words import Role

_LOSSES = frozenset(
    "binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss cosine_similarity cross_entropy ctc_loss "
    "gaussian_nll_loss hinge_embedding_loss huber_loss kl_div l1_loss margin_ranking_loss mse_loss multi_margin_loss "
    "multilabel_margin_loss multilabel_soft_margin_loss nll_loss one_hot poisson_nll_loss smooth_l1_loss soft_margin_loss "
    "triplet_margin_loss".split()
)
_ASKED = frozenset("backward scale is_floating_point get_device".split())
"""What else a tensor is asked for, or handed to, that neither changes nor keeps it."""
_NUMBERS = frozenset("device dtype grad grad_fn is_cuda is_leaf itemsize nbytes ndim requires_grad shape".split())
_BUILTINS = frozenset("bool float format int isinstance len print repr round str type".split())
_SHARE = VIEWS | CASTS | MOVES | DETACHES | {"contiguous"}
_DEEPEST = 6


def is_own(script: Script, tensor: syntax.BaseExpression, *, in_part: bool = False, depth: int = 0) -> bool:
    """Whether an expression certainly gives a tensor of its own, which nothing else holds or changes from then on; with
    ``in_part`` also a view of such a one."""
    if depth > _DEEPEST:
        return False
    match tensor:
        case syntax.BinaryOperation() | syntax.Comparison() | syntax.UnaryOperation(operator=syntax.Minus()):
            return True
        case syntax.Call(func=syntax.Attribute(value=inner, attr=syntax.Name(value=method))) if (
            method in (_SHARE if in_part else CASTS | MOVES | DETACHES) and script.name(tensor.func) is None
        ):
            return is_own(script, inner, in_part=in_part, depth=depth + 1)
        case syntax.Attribute(value=inner, attr=syntax.Name(value="data")):
            return is_own(script, inner, in_part=in_part, depth=depth + 1)
        case syntax.Subscript(value=syntax.Name() as batch) if script.role(batch) is Role.BATCH and _is_entry(tensor):
            text, uses = script.text(tensor), (script.source.parents[use] for use in script.names.uses(batch))
            entries = [use for use in uses if isinstance(use, syntax.Subscript) and script.text(use) == text]
            beside = (use for use in entries if use is not tensor)
            return _is_of_loader(script, batch) and all(_leaves_part(script, use) for use in beside)
        case syntax.Subscript(value=inner):
            return _selects(script, tensor) or (in_part and is_own(script, inner, in_part=True, depth=depth + 1))
        case syntax.Call():
            return _makes_anew(script, tensor) or _is_output(script, tensor)
        case syntax.Name():
            bindings = script.names.reaching(tensor)
            own = bool(bindings) and all(
                each.kind is Kind.ASSIGN and _is_made(script, each.value, each.path, in_part, depth + 1) for each in bindings
            )
            others = (
                use
                for use in script.names.uses(tensor)
                if use is not tensor and any(each in bindings for each in script.names.reaching(use))
            )
            return (own or _is_of_loader(script, tensor)) and all(_leaves(script, use) for use in others)
    return False


def is_part(script: Script, tensor: syntax.BaseExpression, depth: int = 0) -> bool:
    """Whether a tensor may be a part of a larger one, all of whose memory it keeps: ``out[:, -1]``, one of its chunks."""
    match tensor:
        case syntax.Subscript():
            return not _selects(script, tensor)
        case syntax.Attribute(value=inner, attr=syntax.Name(value="data" | "T" | "mT")):
            return is_part(script, inner, depth)
        case syntax.Call(func=syntax.Attribute(value=inner, attr=syntax.Name(value=method))) if (
            script.name(tensor.func) is None
        ):
            return method in PARTS or (method in _SHARE and is_part(script, inner, depth))
        case syntax.Call(func=func):
            if (script.name(func) or "").rpartition(".")[2] in PARTS:
                return True
            forwards = script.roles.calls.called(tensor) if depth < _DEEPEST else ()
            return any(is_part(each.script, value, depth + 1) for each in forwards for value in returned(each))
        case syntax.Name() if depth < _DEEPEST:
            values = (each.value for each in script.names.reaching(tensor))
            return any(isinstance(each, syntax.BaseExpression) and is_part(script, each, depth + 1) for each in values)
    return False


def _is_entry(part: syntax.Subscript) -> bool:
    index = part.slice[0].slice
    return isinstance(index, syntax.Index) and isinstance(index.value, syntax.SimpleString | syntax.Integer)


def _is_made(script: Script, value: syntax.Node | None, path: Path, in_part: bool, depth: int) -> bool:
    """Whether a variable is given a tensor of its own, or a part of what a network gives."""
    if path:
        return isinstance(value, syntax.Call) and _is_output(script, value, path)
    if not isinstance(value, syntax.BaseExpression) or isinstance(value, syntax.Name):
        return False
    return is_own(script, value, in_part=in_part, depth=depth)


def _makes_anew(script: Script, call: syntax.Call) -> bool:
    """Whether a call makes a tensor of its own, and neither changes nor keeps what it is given."""
    if any(is_name(arg.keyword, "out", "inplace") or is_name(arg.value, "True") for arg in call.args):
        return False
    name = script.name(call.func)
    if name is not None:
        last = name.rpartition(".")[2]
        return name in _BUILTINS or (name.startswith("torch.") and last in MAKES_ANEW | _LOSSES)
    if isinstance(call.func, syntax.Attribute) and call.func.attr.value in MAKES_ANEW:
        return script.role(call.func.value) in (Role.TENSOR, Role.BATCH)
    return is_loss(script, call)


def _selects(script: Script, rows: syntax.Subscript) -> bool:
    """Whether entries are selected by a mask or by places, which copies them."""
    indices = [each.slice.value for each in rows.slice if isinstance(each.slice, syntax.Index)]
    return any(isinstance(each, syntax.Comparison) or script.role(each) is Role.TENSOR for each in indices)


def _is_output(script: Script, call: syntax.Call, path: Path = ()) -> bool:
    """Whether a call gives what a network computes, or at a path a part of that: a network that is out of sight, or of
    layers, and none of its parameters."""
    if script.role(call.func) is not Role.MODULE:
        bindings = script.names.reaching(call.func) if isinstance(call.func, syntax.Name) else []
        return bool(bindings) and all(each.kind is Kind.PARAMETER for each in bindings) and script.callee(call) is None
    made_of = network(script, call.func)
    has_layers = made_of.convolutions or made_of.products or made_of.linears or made_of.attention
    if made_of.is_known and not has_layers:
        return False
    forwards = script.roles.calls.called(call)
    return all(_is_computed(each.script, value, path, _DEEPEST) for each in forwards for value in returned(each))


def _is_computed(script: Script, value: syntax.BaseExpression, path: Path, depth: int) -> bool:
    """Whether what a function gives, or a part of that, was computed there: no attribute, and nothing it was handed."""
    if path and isinstance(value, syntax.Tuple | syntax.List | syntax.Dict):
        value, path = part(value, path)
    match value:
        case syntax.Attribute(value=base, attr=syntax.Name(value=name)):
            return name in ("data", "T", "mT") and _is_computed(script, base, path, depth)
        case syntax.Tuple(elements=elements) | syntax.List(elements=elements):
            return all(_is_computed(script, each.value, (), depth) for each in elements)
        case syntax.IfExp(body=one, orelse=two):
            return _is_computed(script, one, path, depth) and _is_computed(script, two, path, depth)
        case syntax.Call(func=syntax.Attribute(value=inner, attr=syntax.Name(value=method))) if (
            method in _SHARE and script.name(value.func) is None
        ):
            return _is_computed(script, inner, path, depth)
        case syntax.Call(args=[syntax.Arg(value=inner), *_]) if (script.name(value.func) or "").rpartition(".")[2] in _SHARE:
            return _is_computed(script, inner, path, depth)
        case syntax.Name() if depth:
            bindings = [each for each in script.names.reaching(value) if each.kind is not Kind.AUGMENT]
            return bool(bindings) and all(
                each.kind is Kind.ASSIGN
                and isinstance(each.value, syntax.BaseExpression)
                and _is_computed(script, each.value, (*each.path, *path), depth - 1)
                for each in bindings
            )
        case syntax.Subscript(value=inner):
            return _is_computed(script, inner, (), depth)
    return isinstance(value, syntax.Call | syntax.BinaryOperation | syntax.UnaryOperation | syntax.Comparison)


def _is_of_loader(script: Script, name: syntax.Name) -> bool:
    """Whether a variable is a part of a batch that torch's own loader, or one out of sight, has just put together."""
    value = script.value(name)
    if value.role is Role.BATCH and value.made is None:
        return True
    found = loader(value.made.script, value.made.call) if value.made is not None else None
    if found is None or not found.is_torch or found.hides_arguments or found.is_on_gpu:
        return False
    return found.parameter("collate_fn") is None and found.parameter("batch_size") is not None


def _leaves(script: Script, use: syntax.Name) -> bool:
    """Whether a use of a variable leaves its tensor as it is, and gives it no other name."""
    return is_target(script.source, use) or _leaves_part(script, use)


def _leaves_part(script: Script, part: syntax.BaseExpression) -> bool:
    parent = script.source.parents[part]
    match parent:
        case syntax.Attribute(value=value, attr=syntax.Name(value=name)) if value is part:
            return name in _NUMBERS or _leaves_method(script, parent, name)
        case syntax.Subscript(value=value) if value is part:
            is_read = not is_target(script.source, parent)
            return is_read and (_selects(script, parent) or _leaves_part(script, parent))
        case syntax.Arg():
            call = script.source.parents[parent]
            return isinstance(call, syntax.Call) and _leaves_argument(script, call, parent)
        case syntax.BinaryOperation() | syntax.Comparison() | syntax.ComparisonTarget() | syntax.UnaryOperation():
            return True
        case syntax.FormattedStringExpression() | syntax.Expr() | syntax.Index():
            return True
        case syntax.AugAssign(value=value):
            return value is part
        case syntax.If() | syntax.While() | syntax.Assert():
            return parent.test is part
    return False


def _leaves_method(script: Script, method: syntax.Attribute, name: str) -> bool:
    above = script.source.parents[method]
    if not isinstance(above, syntax.Call) or above.func is not method:
        return name in ("data", "T", "mT") and _leaves_part(script, method)
    if works_in_place(name):
        return False
    return name in MAKES_ANEW | _ASKED or (name in _SHARE and _leaves_part(script, above))


def _leaves_argument(script: Script, call: syntax.Call, arg: syntax.Arg) -> bool:
    is_asked = isinstance(call.func, syntax.Attribute) and call.func.attr.value in _ASKED
    if is_asked or _makes_anew(script, call) or (script.name(call.func) or "").startswith("math."):
        return True
    if script.role(call.func) is Role.MODULE:
        return not changes_argument(script, arg)
    return leaves_argument(script, call, arg)
