"""Numbers that float16 does not hold: it ends at 65504, and begins at 6e-8."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from speedlint.facts import syntax
from speedlint.shapes.model.networks import is_loss
from speedlint.source import is_name
from speedlint.torch.words import Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script

Found: TypeAlias = "tuple[syntax.Node, str]"
_HALF_MAX = 65504
_HALF_MIN = 6e-8
_HALF_NEAR_ONE = 0.9997
_DEEPEST = 4
"""Variables that are followed to what they are made of."""
_FILLS = {
    "masked_fill": 1,
    "masked_fill_": 1,
    "full_like": 0,
    "new_full": 1,
    "fill_": 0,
    "fill_diagonal_": 0,
    "index_fill": 2,
    "index_fill_": 2,
}
"""Methods that fill a tensor with a number, and the place of that among their arguments."""
_CLAMPS = ("clamp", "clamp_", "clamp_min", "clamp_max", "clip", "clip_")
_LIMITS = (*_CLAMPS, "pad", "hardtanh", "hardtanh_", "threshold", "threshold_", "Hardtanh", "Threshold", "where")
"""What clamps, pads or replaces by numbers."""
_DISTANCES = frozenset(
    "torch.nn.MSELoss torch.nn.L1Loss torch.nn.SmoothL1Loss torch.nn.HuberLoss torch.nn.functional.mse_loss "
    "torch.nn.functional.l1_loss torch.nn.functional.smooth_l1_loss torch.nn.functional.huber_loss".split()
)
_BOUNDED = re.compile(rb"(?i)sigmoid|tanh|standardscaler|minmaxscaler|normali[sz]e|zscore|\.std\(")
"""What a program says that keeps its numbers small."""
_OF_ROWS = frozenset(f"torch.nn.{each}" for each in "Linear LazyLinear Conv1d LazyConv1d LSTM GRU RNN".split())
_OF_OTHERS = ("torch.nn.Embedding", "torch.nn.Conv2d", "torch.nn.Conv3d", "torchvision.", "timm.", "transformers.")
_SCALED = re.compile(rb"(?i)scaler|normali[sz]e|standardi[sz]|zscore|\.std\(|torch\.rand|ToTensor|/\s*255|torchvision|token")
"""What a program says that brings measurements into one scale, or that it has none."""
_LOSSES = ("_loss", "entropy", "kl_div", "logits", "Loss")
"""How torch's names of losses end."""


def beyond(script: Script, top: syntax.Node) -> Iterator[Found]:
    """The numbers in a piece of code that float16 does not hold, or rounds away, and what they do there."""
    for call in script.source.inside(top, syntax.Call):
        method = call.func.attr.value if isinstance(call.func, syntax.Attribute) else ""
        yield from _of_call(script, call, method)
    for operation in script.source.inside(top, syntax.BinaryOperation):
        yield from _of_operation(script, operation)
    for target in script.source.inside(top, syntax.AssignTarget):
        assign = script.source.parents[target]
        is_entry = isinstance(target.target, syntax.Subscript) and script.role(target.target.value) is Role.TENSOR
        if is_entry and isinstance(assign, syntax.Assign) and overflows(script, assign.value):
            yield (
                target.target,
                f"`{script.text(assign.value)}` does not fit in float16, so that setting entries to it raises",
            )
    yield from _rescaled(script, top)


def amounts(calls: list[tuple[Script, syntax.Call]]) -> Iterator[tuple[Script, syntax.Call, str]]:
    """The layers with which a network tells one amount, as a price or a distance, of which nothing says how large it is."""
    if not any((place.name(call.func) or "") in _DISTANCES for place, call in calls):
        return
    for place, call in calls:
        size = place.argument(call, "out_features", 1) if place.is_call_to(call, "torch.nn.Linear") else None
        known = place.constant(size) if size is not None else None
        if known is not None and known.value == 1 and not place.program.mentions(place, _BOUNDED):
            yield place, call, "what it tells may lie beyond 65504, the most that float16 holds"


def raw_inputs(calls: list[tuple[Script, syntax.Call]]) -> Iterator[tuple[Script, syntax.Call, str]]:
    """The layer of a network of measurements, neither images nor words, where nothing brings these into one scale."""
    names = [(place, call, place.name(call.func) or "") for place, call in calls]
    if any(name.startswith(_OF_OTHERS) for _, _, name in names):
        return
    for place, call, name in names:
        if name in _OF_ROWS and not place.program.mentions(place, _SCALED):
            yield place, call, "its inputs, which nothing scales, may lead beyond 65504, the most that float16 holds"


def overflows(script: Script, expression: syntax.BaseExpression) -> bool:
    """Whether a constant lies beyond what float16 holds."""
    constant = script.constant(expression)
    value = constant.value if constant is not None else None
    return isinstance(value, (int, float)) and _HALF_MAX < abs(value) < float("inf")


def _of_call(script: Script, call: syntax.Call, method: str) -> Iterator[Found]:
    if (fill := _fill(script, call, method)) is not None and not _is_held(script, fill):
        yield call, f"`{script.text(fill)}` is not known to fit in float16, else `{method}` raises"
    limits = [arg.value for arg in call.args] if method in _LIMITS else []
    if any(overflows(script, each) for each in limits):
        each = next(each for each in limits if overflows(script, each))
        yield call, f"`{script.text(each)}` does not fit in float16, so `{method}` raises or gives infinity"
    elif method in _CLAMPS and any(_vanishes(script, each) for each in limits):
        yield call, f"the bounds of `{script.text(call)}` round away in float16"
    if _is_log_of_rest(script, call, method):
        yield call, f"`{script.text(call)}` is infinite where a probability rounds to 1 in float16"


def _of_operation(script: Script, operation: syntax.BinaryOperation) -> Iterator[Found]:
    sides = (operation.left, operation.right)
    if isinstance(operation.operator, syntax.Add) and any(_vanishes(script, part) for part in sides):
        yield operation, f"what `{script.text(operation)}` adds is zero in float16"
    if isinstance(operation.operator, syntax.Multiply):
        for factor, other in (sides, sides[::-1]):
            if overflows(script, factor) and _may_be_half(script, other, _DEEPEST):
                yield operation, f"`{script.text(operation)}` may lie beyond 65504, the most that float16 holds"


def _may_be_half(script: Script, factor: syntax.BaseExpression, depth: int) -> bool:
    """Whether a factor may be a tensor that autocast has computed in float16."""
    role = script.role(factor)
    if role not in (Role.TENSOR, Role.BATCH, Role.UNKNOWN) or script.constant(factor) is not None:
        return False
    match factor:
        case syntax.Comparison() | syntax.Integer() | syntax.Float():
            return False
        case syntax.Call(func=syntax.Attribute(attr=syntax.Name("float" | "double" | "long" | "int")), args=[]):
            return False
        case syntax.Call(func=syntax.Attribute(attr=syntax.Name("type_as" | "half"))):
            return True
        case syntax.BinaryOperation(left=left, right=right):
            return any(_may_be_half(script, each, depth) for each in (left, right))
        case syntax.UnaryOperation(expression=inner):
            return not isinstance(factor.operator, syntax.Not | syntax.BitInvert) and _may_be_half(script, inner, depth)
        case syntax.Call():
            return not _is_loss(script, factor)
        case syntax.Name() if depth:
            bindings = script.names.reaching(factor)
            made = [each.value for each in bindings if isinstance(each.value, syntax.BaseExpression) and not each.path]
            return not made or any(_may_be_half(script, each, depth - 1) for each in made)
    return True


def _is_loss(script: Script, call: syntax.Call) -> bool:
    """Whether a call computes a loss, in float32 under autocast."""
    name = script.name(call.func) or ""
    return (name.startswith("torch.nn.") and name.endswith(_LOSSES)) or is_loss(script, call)


def _fill(script: Script, call: syntax.Call, method: str) -> syntax.BaseExpression | None:
    """The value that a call fills a tensor with."""
    if method not in _FILLS:
        return None
    is_function = script.name(call.func) is not None
    keyword = "fill_value" if method in ("full_like", "new_full", "fill_diagonal_") else "value"
    return script.argument(call, keyword, _FILLS[method] + is_function)


def _is_held(script: Script, fill: syntax.BaseExpression) -> bool:
    """Whether a value that fills a tensor is known to fit in float16: small, infinite, or the least of the tensor's own."""
    match fill:
        case syntax.UnaryOperation(operator=syntax.Minus(), expression=inner) if script.constant(fill) is None:
            return _is_held(script, inner)
        case syntax.Call(func=syntax.Name("float"), args=[syntax.Arg(value=syntax.SimpleString() as said)]):
            return "inf" in str(said.evaluated_value) or "nan" in str(said.evaluated_value)
        case syntax.Attribute(value=syntax.Call() as asked, attr=syntax.Name("min" | "max" | "eps" | "tiny")):
            given = asked.args[0].value if asked.args else None
            is_own = isinstance(given, syntax.Attribute) and given.attr.value == "dtype"
            return is_own or (given is not None and script.name(given) in ("torch.float16", "torch.half"))
    if script.name(fill) in ("math.inf", "numpy.inf", "torch.inf", "math.nan", "numpy.nan", "torch.nan"):
        return True
    constant = script.constant(fill)
    value = constant.value if constant is not None else None
    return (value is None and constant is not None) or (isinstance(value, (int, float)) and not overflows(script, fill))


def _is_log_of_rest(script: Script, call: syntax.Call, method: str) -> bool:
    """Whether it is ``torch.log(1 - p)`` or ``torch.log1p(-p)``, as in a cross entropy written out."""
    name = script.name(call.func)
    given = call.args[0].value if name in ("torch.log", "torch.log1p") and call.args else None
    if name is None and method in ("log", "log1p") and isinstance(call.func, syntax.Attribute):
        given = call.func.value
    if given is None:
        return False
    if method == "log1p":
        return isinstance(given, syntax.UnaryOperation) or script.text(given).endswith(".neg()")
    return _is_rest(script, given, _DEEPEST)


def _is_rest(script: Script, given: syntax.BaseExpression, depth: int) -> bool:
    """Whether a value may be ``1 - p`` of a probability: by itself, as a variable, or as one of two by a condition."""
    match given:
        case syntax.BinaryOperation(left=left, operator=syntax.Subtract()):
            known = script.constant(left)
            return known is not None and known.value == 1
        case syntax.Name() if depth:
            bindings = script.names.reaching(given)
            values = [each.value for each in bindings if isinstance(each.value, syntax.BaseExpression) and not each.path]
            return any(_is_rest(script, value, depth - 1) for value in values)
        case syntax.Call() if script.name(given.func) == "torch.where" and depth:
            return any(_is_rest(script, arg.value, depth - 1) for arg in given.args)
        case syntax.IfExp(body=one, orelse=two) if depth:
            return _is_rest(script, one, depth - 1) or _is_rest(script, two, depth - 1)
    return False


def _vanishes(script: Script, expression: syntax.BaseExpression) -> bool:
    """Whether a constant is rounded to 0 or 1 in float16."""
    if isinstance(expression, syntax.SimpleString):
        return False
    constant = script.constant(expression)
    value = constant.value if constant is not None else None
    return isinstance(value, float) and (0 < value < _HALF_MIN or _HALF_NEAR_ONE < value < 1)


def _rescaled(script: Script, top: syntax.Node) -> Iterator[Found]:
    """Where a network gives its outputs the scale of the data: ``x * self.std + self.mean``, of buffers."""
    kept = {
        str(known.value)
        for call in script.source.inside(top, syntax.Call)
        if isinstance(call.func, syntax.Attribute) and call.func.attr.value == "register_buffer" and call.args
        if (known := script.constant(call.args[0].value)) is not None
    }
    for operation in script.source.inside(top, syntax.BinaryOperation) if kept else ():
        match operation:
            case syntax.BinaryOperation(
                left=syntax.BinaryOperation(left=one, operator=syntax.Multiply(), right=two),
                operator=syntax.Add(),
                right=added,
            ) if _is_kept(added, kept) and (_is_kept(one, kept) or _is_kept(two, kept)):
                yield operation, f"`{script.text(operation)}` may lie beyond 65504, the most that float16 holds"


def _is_kept(node: syntax.BaseExpression, kept: set[str]) -> bool:
    return isinstance(node, syntax.Attribute) and is_name(node.value, "self") and node.attr.value in kept
