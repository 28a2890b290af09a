"""Networks that map each row of a batch by itself: what they give for many rows is what they give for each of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes.training import roots
from speedlint.solve.names import Kind
from speedlint.solve.terms import Definition
from speedlint.solve.unpacking import written
from speedlint.torch import library

_DEPTH = 8
_LAYERS = frozenset(
    f"torch.nn.{name}"
    for name in (
        "Linear Bilinear Identity Embedding LayerNorm RMSNorm GroupNorm Flatten PixelShuffle Upsample "
        "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d ZeroPad2d ReflectionPad2d "
        "MaxPool1d MaxPool2d MaxPool3d AvgPool1d AvgPool2d AvgPool3d AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveMaxPool2d "
        "ReLU ReLU6 LeakyReLU ELU SELU GELU SiLU Mish Tanh Sigmoid Hardtanh Hardswish Hardsigmoid Softplus PReLU LogSigmoid"
    ).split()
)
"""Layers that take each row by itself, in training too, and leave the first dimension where it is."""
_NORMS = frozenset({"torch.nn.LayerNorm", "torch.nn.RMSNorm"})
_PLANAR = frozenset(name for name in _LAYERS if re.search(r"Pool|Pad|Upsample|PixelShuffle|Conv|GroupNorm", name))
_IN_EVALUATION = frozenset(
    f"torch.nn.{name}"
    for name in "Dropout Dropout1d Dropout2d Dropout3d AlphaDropout BatchNorm1d BatchNorm2d BatchNorm3d".split()
)
"""Layers that do so in evaluation mode only."""
_OVER = frozenset({"torch.nn.Softmax", "torch.nn.LogSoftmax"})
_FUNCTIONS = frozenset(
    [
        f"torch.nn.functional.{name}"
        for name in (
            "relu relu6 leaky_relu elu selu gelu silu tanh sigmoid softplus hardtanh max_pool1d max_pool2d avg_pool1d "
            "avg_pool2d adaptive_avg_pool1d adaptive_avg_pool2d"
        ).split()
    ]
    + [f"torch.{name}" for name in "relu tanh sigmoid exp abs".split()]
)
_METHODS = frozenset("relu tanh sigmoid exp abs contiguous float".split())
_REDUCTIONS = frozenset("mean sum amax amin softmax log_softmax flatten".split())
"""Functions and methods that work along dimensions which they are given."""


def maps_rows(script: Script, module: syntax.BaseExpression, *, is_evaluated: bool) -> bool:
    """Whether a network certainly gives for a batch, along the first dimension, what it gives for each row: all of it is in
    sight, and made of layers and functions that are known to, in evaluation mode where ``is_evaluated``."""
    made = roots(script, module)
    if not made or script.program.mentions(script, library.FORWARD_HOOKS):
        return False
    seen = _Seen(is_evaluated)
    return all(_is_layer(place, node, seen, _DEPTH) for place, node in made) and seen.takes_batches()


@dataclass(slots=True)
class _Seen:
    """What is seen of a network's layers.

    Attributes:
        is_evaluated: whether it is in evaluation mode.
        channels: how many channels each convolution takes; None where that is not known.
        is_planar: whether a layer takes images or sequences, with or without a dimension for the batch.
    """

    is_evaluated: bool
    channels: list[object] = field(default_factory=list)
    is_planar: bool = False

    def takes_batches(self) -> bool:
        """Whether the first dimension is that of the batch: layers of images take one image of one channel without it."""
        known = all(isinstance(each, int) and each > 1 for each in self.channels)
        return known and (bool(self.channels) or not self.is_planar)


def _is_layer(script: Script, node: syntax.Node, seen: _Seen, depth: int) -> bool:
    if not isinstance(node, syntax.Call) or depth == 0:
        return False
    name = script.name(node.func)
    if name in _LAYERS:
        seen.is_planar = seen.is_planar or name in _PLANAR
        if "Conv" in name:
            given = script.argument(node, "in_channels", 0)
            known = script.constant(given) if given is not None else None
            seen.channels.append(known.value if known is not None else None)
        if name in _NORMS:
            shape = script.argument(node, "normalized_shape", 0)
            return not isinstance(shape, (syntax.Tuple, syntax.List))
        return name != "torch.nn.Flatten" or not node.args
    if name in _IN_EVALUATION:
        return seen.is_evaluated and script.argument(node, "track_running_stats") is None
    if name in _OVER:
        return _is_inner(script, script.argument(node, "dim", 0))
    if name == "torch.nn.Sequential":
        return all(
            not arg.star
            and all(
                isinstance(made, syntax.Call) and _is_layer(place, made, seen, depth - 1)
                for place, made in script.roles.origins(arg.value)
            )
            for arg in node.args
        )
    definition = script.definition(node.func)
    if definition is None or not isinstance(definition.node, syntax.ClassDef):
        return False
    forward = definition.script.roles.calls.method(definition, "forward")
    own_call = definition.script.roles.calls.method(definition, "__call__")
    return own_call is None and forward is not None and _Forward(definition, forward, seen, depth).maps_rows()


def _is_inner(script: Script, dim: syntax.BaseExpression | None) -> bool:
    """Whether what is given for a dimension is one but the first, or several: written as whole numbers above 0."""
    if dim is None:
        return False
    if isinstance(dim, (syntax.Tuple, syntax.List)):
        return bool(dim.elements) and all(_is_inner(script, each.value) for each in dim.elements)
    return isinstance(dim, syntax.Integer) and script.text(dim) != "0"


class _Forward:
    """The ``forward`` of a first-party class, and whether each of its values is made row by row."""

    def __init__(self, definition: Definition, forward: Definition, seen: _Seen, depth: int) -> None:
        self.definition, self.script = definition, forward.script
        self.function = forward.node
        self.seen, self.depth = seen, depth

    def maps_rows(self) -> bool:
        """Whether its body binds names and returns one value, and takes one argument, whose rows it maps."""
        function = self.function
        if not isinstance(function, syntax.FunctionDef) or function.decorators or len(function.params.params) != 2:
            return False
        if not isinstance(function.body, syntax.IndentedBlock):
            return False
        results = []
        for line in function.body.body:
            if not isinstance(line, syntax.SimpleStatementLine):
                return False
            for statement in line.body:
                match statement:
                    case syntax.Expr(value=syntax.SimpleString() | syntax.ConcatenatedString()) | syntax.Pass():
                        pass
                    case syntax.Assign(targets=[syntax.AssignTarget(target=syntax.Name())]):
                        pass
                    case syntax.Return(value=syntax.BaseExpression() as result):
                        results.append(result)
                    case _:
                        return False
        return len(results) == 1 and self._maps(results[0], _DEPTH * 4)

    def _maps(self, node: syntax.BaseExpression, depth: int) -> bool:
        """Whether an expression is a tensor whose rows are made of those of the argument."""
        script = self.script
        if depth == 0:
            return False
        match node:
            case syntax.Name():
                return self._is_name(node, depth - 1)
            case syntax.BinaryOperation(left=left, operator=syntax.Add(), right=right):
                return self._maps(left, depth - 1) and self._maps(right, depth - 1)
            case syntax.Call(
                func=syntax.Attribute(value=syntax.Name("self"), attr=part), args=[syntax.Arg(value=given, star="")]
            ):
                made = list(script.roles.self_assignments(self.definition, part.value))
                layers = (_is_layer(place, value, self.seen, self.depth - 1) for place, value in made)
                return bool(made) and all(layers) and self._maps(given, depth - 1)
            case syntax.Call(args=[syntax.Arg(value=given, star="", keyword=None), *others]) if (
                name := script.name(node.func)
            ) is not None:
                return self._is_function(name, others) and self._maps(given, depth - 1)
            case syntax.Call(func=syntax.Attribute(value=base, attr=syntax.Name(value=method))):
                return self._is_method(node, method) and self._maps(base, depth - 1)
        return False

    def _is_name(self, name: syntax.Name, depth: int) -> bool:
        bindings = self.script.names.reaching(name)
        return bool(bindings) and all(
            one.node is self.function.params.params[1]
            if one.kind is Kind.PARAMETER
            else (value := written(one)) is not None and self._maps(value, depth)
            for one in bindings
        )

    def _is_function(self, name: str, others: list[syntax.Arg]) -> bool:
        last = name.rpartition(".")[2]
        if name in _FUNCTIONS:
            self.seen.is_planar = self.seen.is_planar or "pool" in name
            return all(arg.keyword is None or arg.keyword.value != "inplace" for arg in others)
        if name.startswith("torch.") and last in _REDUCTIONS:
            return len(others) == 1 and _is_inner(self.script, others[0].value)
        return False

    def _is_method(self, call: syntax.Call, method: str) -> bool:
        """Whether a method of a tensor works on each row by itself."""
        if method in _METHODS:
            return not call.args
        if method in _REDUCTIONS:
            return len(call.args) == 1 and _is_inner(self.script, call.args[0].value)
        if method in ("view", "reshape") and call.args:
            return self._counts_rows(call.args[0].value) and not any(arg.star or arg.keyword for arg in call.args)
        return False

    def _counts_rows(self, count: syntax.BaseExpression) -> bool:
        """Whether an expression is the number of rows of a tensor whose rows are those of the argument."""
        match count:
            case (
                syntax.Call(
                    func=syntax.Attribute(value=counted, attr=syntax.Name("size")),
                    args=[syntax.Arg(value=syntax.Integer("0"))],
                )
                | syntax.Subscript(
                    value=syntax.Attribute(value=counted, attr=syntax.Name("shape")),
                    slice=[syntax.SubscriptElement(slice=syntax.Index(value=syntax.Integer("0")))],
                )
            ):
                return self._maps(counted, _DEPTH)
        return False
