"""Attention: layers whose weights nobody reads, and attention that is written out as products around a softmax."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from speedlint.facts import syntax
from speedlint.solve import off
from speedlint.solve.flow import once
from speedlint.solve.names import Kind, last_name
from speedlint.solve.terms import Definition
from speedlint.solve.unpacking import all_written
from speedlint.source import is_name
from speedlint.torch.library import FORWARD_HOOKS
from speedlint.torch.words import Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_LAYERS = ("torch.nn.MultiheadAttention", "torch.nn.modules.activation.MultiheadAttention")
_SOFTMAX = ("torch.softmax", "torch.nn.functional.softmax")
_PRODUCTS = ("torch.matmul", "torch.bmm", "torch.mm")
_PRODUCT_METHODS = ("matmul", "bmm")
_TRANSPOSES = frozenset("transpose permute swapaxes mT T t movedim".split())
_KEEPS = frozenset(
    "masked_fill masked_fill_ float half type to contiguous view reshape unsqueeze squeeze div div_ mul add sub".split()
)
_SECOND_DERIVATIVES = re.compile(rb"create_graph|torch\.func\b|functorch|autograd\.functional|\b(?:jvp|hessian)\(")
_DETERMINISTIC = re.compile(rb"use_deterministic_algorithms|deterministic=True")
_TRIANGLES = frozenset({"tril", "triu", "tril_", "triu_", "generate_square_subsequent_mask"})
_FORM = frozenset("shape size dtype device ndim dim new_zeros new_ones new_full new_tensor".split())
_FUSED = re.compile(rb"scaled_dot_product_attention|flash_attn|xformers|memory_efficient_attention|flex_attention")
_DEPTH = 12


# Layers


def is_layer(script: Script, call: syntax.Call) -> bool:
    """Whether a call runs a ``torch.nn.MultiheadAttention``, and nothing else."""
    if not isinstance(call.func, (syntax.Name, syntax.Attribute)) or script.role(call.func) is not Role.MODULE:
        return False
    made = [(place, node) for place, node in script.roles.origins(call.func)]
    return bool(made) and all(place.is_call_to(node, *_LAYERS) for place, node in made)


def are_weights_unread(script: Script, call: syntax.Call) -> bool:
    """Whether nothing reads the second part of what a call returns."""
    parent = script.source.parents[call]
    if isinstance(parent, syntax.Subscript):
        return parent.value is call and _is_first(parent)
    match parent:
        case syntax.Assign(targets=[syntax.AssignTarget(target=syntax.Name() as target)]):
            uses = _reads(script, target)
            return bool(uses) and all(
                isinstance(part := script.source.parents[use], syntax.Subscript) and part.value is use and _is_first(part)
                for use in uses
            )
        case syntax.Assign(targets=[syntax.AssignTarget(target=syntax.Tuple(elements=[_, second]))]):
            return isinstance(second.value, syntax.Name) and not _reads(script, second.value)
    return False


def _is_first(part: syntax.Subscript) -> bool:
    match part.slice:
        case [syntax.SubscriptElement(slice=syntax.Index(value=syntax.Integer("0")))]:
            return True
    return False


def _reads(script: Script, target: syntax.Name) -> list[syntax.Name]:
    """The places that may read the value that ``target`` is given here."""
    return [
        use
        for use in script.names.uses(target)
        if use is not target
        and not isinstance(script.source.parents[use], syntax.AssignTarget)
        and not _is_element_of_target(script, use)
        and any(binding.node is target for binding in script.names.reaching(use))
    ]


def _is_element_of_target(script: Script, use: syntax.Name) -> bool:
    element = script.source.parents[use]
    return isinstance(element, syntax.Element) and isinstance(
        script.source.parents.get(script.source.parents[element]), syntax.AssignTarget
    )


def refuses_fused(script: Script) -> str | None:
    """Why a program may need attention that is not fused; None where nothing speaks against it."""
    if script.program.mentions(script, FORWARD_HOOKS):
        return "a forward hook of the program may read the weights"
    if differentiates_twice(script):
        return "the program takes second derivatives, which fused attention does not have"
    if script.program.mentions(script, _DETERMINISTIC):
        return "the program asks for deterministic algorithms, and the backward pass of fused attention may not be one"
    return None


def differentiates_twice(script: Script) -> bool:
    """Whether the program may take second derivatives."""
    return script.program.mentions(script, _SECOND_DERIVATIVES)


# Attention that is written out


def names_fused(script: Script) -> bool:
    """Whether the file names a fused kernel as well, for which written out attention is the fallback."""
    return script.program.disk.mentions(str(script.key), _FUSED)


class Manual(NamedTuple):
    """``softmax(query @ key.transpose(-2, -1) ...) @ value``.

    Attributes:
        product: the first product.
        output: the second one.
        masked: whether something is masked or added between the product and the softmax.
        dropped: whether the weights go through dropout.
        kept_for: the flag, False unless something asks for it, under which the weights go elsewhere too.
    """

    product: syntax.BaseExpression
    output: syntax.BaseExpression
    masked: bool
    dropped: bool
    kept_for: syntax.BaseExpression | None = None


def is_of_triangle(script: Script, softmax: syntax.Call) -> bool:
    """Whether the function around, or its class, makes a triangle, as a mask of what comes later is."""
    function = script.function(softmax)
    owner = script.names.owner(function) if function is not None else None
    around = owner or function or script.source.module
    return any(last_name(call.func) in _TRIANGLES for call in script.source.inside(around, syntax.Call))


def manual(script: Script, softmax: syntax.Call) -> Manual | None:
    """The attention that a softmax over the last dimension is the middle of; of several, in branches, that lead to
    one product, the first softmax that runs. None where scores or weights are read elsewhere."""
    return _all_manual(script).get(softmax)


@once({})
def _all_manual(script: Script) -> dict[syntax.Call, Manual]:
    by_output: dict[syntax.Node, list[tuple[syntax.Call, _Scores, _Weights]]] = {}
    for call in script.source.of(syntax.Call):
        scores = _softened(script, call)
        before, after = _Scores(script), _Weights(script)
        if scores is None:
            continue
        before.follow(scores, 0)
        after.follow(call, 0)
        if not (before.is_lost or after.is_lost) and len(before.products) == len(after.products) == 1:
            by_output.setdefault(after.products[0], []).append((call, before, after))
    found: dict[syntax.Call, Manual] = {}
    for output, branches in by_output.items():
        seen = {node for _, before, _ in branches for node in before.seen}
        if not any(before.is_read_beside(seen) for _, before, _ in branches) and isinstance(output, syntax.BaseExpression):
            masked, dropped = any(one.masked for _, one, _ in branches), any(one.dropped for _, _, one in branches)
            softmax, before, after = min(branches, key=lambda branch: off.is_off(script, branch[0]))
            found[softmax] = Manual(before.products[0], output, masked, dropped, after.kept_for)
    return found


def _softened(script: Script, call: syntax.Call) -> syntax.BaseExpression | None:
    """What a softmax over the last dimension is taken of."""
    dim: syntax.BaseExpression | None
    scores: syntax.BaseExpression | None
    if script.name(call.func) in _SOFTMAX:
        scores, dim = script.argument(call, "input", 0), script.argument(call, "dim", 1)
    elif isinstance(call.func, syntax.Attribute) and call.func.attr.value == "softmax" and _takes_dim(call):
        scores, dim = call.func.value, script.argument(call, "dim", 0)
    else:
        made = [node for place, node in _origins(script, call.func) if place.is_call_to(node, "torch.nn.Softmax")]
        if len(made) != 1 or not isinstance(made[0], syntax.Call) or len(call.args) != 1:
            return None
        scores, dim = call.args[0].value, script.argument(made[0], "dim", 0)
    return scores if dim is not None and script.text(dim).replace(" ", "") in ("-1", "3") else None


def _takes_dim(call: syntax.Call) -> bool:
    match call.args:
        case [syntax.Arg(keyword=None, value=syntax.Integer() | syntax.UnaryOperation()), *_]:
            return True
    return any(is_name(arg.keyword, "dim") for arg in call.args)


def _origins(script: Script, expression: syntax.BaseExpression) -> Iterator[tuple[Script, syntax.BaseExpression]]:
    if isinstance(expression, (syntax.Name, syntax.Attribute)):
        yield from script.roles.origins(expression)
    else:
        yield script, expression


def _factors(script: Script, node: syntax.Node) -> tuple[syntax.BaseExpression, syntax.BaseExpression] | None:
    """The two factors of a matrix product."""
    match node:
        case syntax.BinaryOperation(left=left, operator=syntax.MatrixMultiply(), right=right):
            return left, right
        case syntax.Call(func=func, args=[syntax.Arg(keyword=None) as first, syntax.Arg(keyword=None) as second]) if (
            script.name(func) in _PRODUCTS
        ):
            return first.value, second.value
        case syntax.Call(
            func=syntax.Attribute(value=left, attr=syntax.Name(method)), args=[syntax.Arg(keyword=None) as second]
        ) if method in _PRODUCT_METHODS and script.name(node.func) is None:
            return left, second.value
    return None


class _Scores:
    """Follows scores back to the products that they come from."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.products: list[syntax.BaseExpression] = []
        self.masked = self.is_lost = False
        self.seen: set[syntax.Node] = set()
        self._targets: list[syntax.Name] = []

    def is_read_beside(self, seen: set[syntax.Node]) -> bool:
        """Whether anything but ``seen`` reads the scores, other than their shape and type."""
        return any(
            use not in seen and not self._asks_form(use) and not self._fills(use)
            for target in self._targets
            for use in _reads(self.script, target)
            if not isinstance(self.script.source.parents[use], syntax.AugAssign)
        )

    def _asks_form(self, use: syntax.Name) -> bool:
        parent = self.script.source.parents[use]
        if isinstance(parent, syntax.Attribute):
            return parent.attr.value in _FORM
        call = self.script.source.parents[parent]
        return isinstance(call, syntax.Call) and (self.script.name(call.func) or "").endswith(("_like", "finfo"))

    def _fills(self, use: syntax.Name) -> bool:
        """Whether it is a statement ``scores.masked_fill_(...)``."""
        match self.script.source.parents[use]:
            case syntax.Attribute(attr=syntax.Name("masked_fill_")) as method:
                call = self.script.source.parents[method]
                self.masked = True
                return isinstance(self.script.source.parents[call], syntax.Expr)
        return False

    def follow(self, node: syntax.BaseExpression, depth: int) -> None:
        if node in self.seen:
            return
        self.seen.add(node)
        if depth > _DEPTH:
            self.is_lost = True
            return
        factors = _factors(self.script, node)
        if factors is not None:
            if _is_normalized(self.script, factors[0]) or not _is_transposed(self.script, factors[1], 0):
                self.is_lost = True
            self.products.append(node)
            return
        self._step(node, depth)

    def _step(self, node: syntax.BaseExpression, depth: int) -> None:
        match node:
            case syntax.Name():
                self._variable(node, depth)
            case syntax.BinaryOperation(left=left, operator=syntax.Multiply() | syntax.Divide(), right=right):
                self.follow(right if self._is_plain(left) else left, depth + 1)
            case syntax.BinaryOperation(left=left, operator=syntax.Add() | syntax.Subtract(), right=right):
                self.masked = True
                self.follow(right if self._is_scores(right) and not self._is_scores(left) else left, depth + 1)
            case syntax.Call(func=syntax.Attribute(value=base, attr=syntax.Name(method))) if (
                method in _KEEPS and self.script.name(node.func) is None
            ):
                self.masked = self.masked or method.startswith(("masked_fill", "add", "sub"))
                self.follow(base, depth + 1)
            case syntax.Call(func=func, args=[_, syntax.Arg(value=chosen), *_]) if self.script.name(func) == "torch.where":
                self.masked = True
                self.follow(chosen, depth + 1)
            case _:
                self.is_lost = True

    def _variable(self, name: syntax.Name, depth: int) -> None:
        bindings = self.script.names.reaching(name)
        if not bindings:
            self.is_lost = True
        for binding in bindings:
            if binding.kind is Kind.AUGMENT and isinstance(binding.node, syntax.Name):
                self._augmented(binding.node, depth)
                continue
            if binding.kind is not Kind.ASSIGN or binding.value is None or binding.path:
                self.is_lost = True
                return
            if isinstance(binding.node, syntax.Name):
                self._targets.append(binding.node)
            self.follow(binding.value, depth + 1)

    def _augmented(self, target: syntax.Name, depth: int) -> None:
        assign = self.script.source.parents[target]
        if isinstance(assign, syntax.AugAssign) and isinstance(assign.operator, (syntax.AddAssign, syntax.SubtractAssign)):
            self.masked = True
        self.follow(target, depth + 1)

    def _is_plain(self, node: syntax.BaseExpression) -> bool:
        return self.script.constant(node) is not None or not self._is_scores(node)

    def _is_scores(self, node: syntax.BaseExpression) -> bool:
        """Whether an operand is, or comes from, a product."""
        if _factors(self.script, node) is not None:
            return True
        names = [node] if isinstance(node, syntax.Name) else []
        if (
            isinstance(node, syntax.Call)
            and isinstance(node.func, syntax.Attribute)
            and isinstance(node.func.value, syntax.Name)
        ):
            names = [node.func.value]
        values = [
            binding.value for name in names for binding in self.script.names.reaching(name) if binding.value is not None
        ]
        return any(
            _factors(self.script, part) is not None
            for value in values
            for kind in (syntax.BinaryOperation, syntax.Call)
            for part in self.script.source.inside(value, kind)
        )


class _Weights:
    """Follows weights to the products that they go into."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.products: list[syntax.BaseExpression] = []
        self.dropped = self.is_lost = False
        self.kept_for: syntax.BaseExpression | None = None

    def follow(self, node: syntax.BaseExpression, depth: int) -> None:
        if depth > _DEPTH:
            self.is_lost = True
            return
        parent = self.script.source.parents[node]
        holder = self.script.source.parents[parent] if isinstance(parent, (syntax.Arg, syntax.Attribute)) else parent
        factors = _factors(self.script, holder)
        if factors is not None and factors[0] is node and isinstance(holder, syntax.BaseExpression):
            self.products.append(holder)
        elif isinstance(holder, syntax.Call) and isinstance(parent, syntax.Arg) and self._drops(holder, parent):
            self.dropped = True
            self.follow(holder, depth + 1)
        elif (
            isinstance(holder, syntax.Call)
            and isinstance(parent, syntax.Attribute)
            and parent.attr.value in ("to", "type_as", "float", "half", "type", "contiguous")
        ):
            self.follow(holder, depth + 1)
        elif (
            isinstance(parent, syntax.Assign)
            and len(parent.targets) == 1
            and isinstance(parent.targets[0].target, syntax.Name)
        ):
            self._bound(parent.targets[0].target, depth)
        else:
            self.is_lost = True

    def _bound(self, target: syntax.Name, depth: int) -> None:
        uses = _reads(self.script, target)
        wanted = [(use, flag) for use in uses if (flag := _flag_around(self.script, use)) is not None]
        self.kept_for = self.kept_for or next((flag for _, flag in wanted), None)
        followed = [use for use in uses if use not in [each for each, _ in wanted]]
        self.is_lost = self.is_lost or not followed
        for use in followed:
            self.follow(use, depth + 1)

    def _drops(self, call: syntax.Call, arg: syntax.Arg) -> bool:
        if call.args[0] is not arg:
            return False
        if self.script.name(call.func) in ("torch.nn.functional.dropout", "torch.dropout"):
            return True
        made = list(_origins(self.script, call.func))
        return bool(made) and all(
            place.is_call_to(node, "torch.nn.Dropout", "torch.nn.Identity") or isinstance(node, syntax.IfExp)
            for place, node in made
        )


def _flag_around(script: Script, use: syntax.Name) -> syntax.BaseExpression | None:
    """The flag, False unless something asks for it, under which weights are kept for somebody to look at."""
    for up in script.source.ancestors(use):
        if isinstance(up, syntax.FunctionDef):
            break
        if isinstance(up, syntax.If) and script.source.contains(up.body, use):
            return up.test if _is_false_unless_asked(script, up.test) else None
    return None


def _is_false_unless_asked(script: Script, flag: syntax.BaseExpression) -> bool:
    """Whether a flag is False by default: an argument, or an attribute that is set to it when the object is made."""
    if isinstance(flag, syntax.Attribute):
        function = script.function(flag)
        owner = script.names.owner(function) if function is not None else None
        if owner is None or not isinstance(flag.value, syntax.Name) or flag.value.value != "self":
            return False
        given = [
            (place, value)
            for place, value in script.roles.self_assignments(Definition(script, owner), flag.attr.value)
            if (setter := place.function(value)) is not None and setter.name.value == "__init__"
        ]
        return bool(given) and all(_is_false_unless_asked(*each) or _is_false(*each) for each in given)
    bindings = script.names.reaching(flag) if isinstance(flag, syntax.Name) else ()
    parameters = [one.node for one in bindings if isinstance(one.node, syntax.Param)]
    if len(bindings) != 1 or not parameters or parameters[0].default is None:
        return False
    passed = [(place, value) for place, value in script.values.passed(parameters[0]) if value is not None]
    return _is_false(script, parameters[0].default) and all(not _is_true(*each) for each in passed)


def _is_false(script: Script, value: syntax.BaseExpression) -> bool:
    known = script.constant(value)
    return known is not None and known.value is False


def _is_true(script: Script, value: syntax.BaseExpression) -> bool:
    known = script.constant(value)
    return known is not None and bool(known.value)


def _is_transposed(script: Script, node: syntax.BaseExpression, depth: int) -> bool:
    """Whether an expression has dimensions swapped last of all, here or where its variable is bound."""
    match node:
        case syntax.Call(func=syntax.Attribute(attr=syntax.Name(method)) as func):
            if method in _TRANSPOSES:
                return True
            return method in ("contiguous", "float", "to") and _is_transposed(script, func.value, depth)
        case syntax.Call(func=func) if script.name(func) in ("torch.transpose", "torch.permute"):
            return True
        case syntax.Attribute(attr=syntax.Name(name)):
            return name in ("T", "mT")
        case syntax.Name() if depth < 3:
            values = all_written(script.names.reaching(node))
            return bool(values) and all(_is_transposed(script, value, depth + 1) for value in values)
    return False


def _is_normalized(script: Script, node: syntax.BaseExpression) -> bool:
    """Whether queries are made to have one length first: cosine attention, or attention between channels."""
    values = [node]
    if isinstance(node, syntax.Name):
        values = [binding.value for binding in script.names.reaching(node) if binding.value is not None]
    return any(
        (script.name(call.func) or "").endswith(".normalize")
        for value in values
        for call in script.source.inside(value, syntax.Call)
    )
