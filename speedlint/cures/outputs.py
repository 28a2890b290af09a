"""What a step computes in half precision once it runs under autocast, and where that goes afterwards.

What the model gives is float32 without autocast, and float16 or bfloat16 with it. Each use after the loss has to be one that
does not mind, since a float32 layer, a product with a float32 tensor, an assignment to indexed rows and others raise (see
``tests/facts/test_precision.py``), and numpy adds up float16 arrays in float16.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

from speedlint.ask.script import Script
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.shapes.model.networks import is_loss
from speedlint.shapes.precision import hazards
from speedlint.shapes.steps import Step, attributes_set, runs_network
from speedlint.shapes.sync.displays import is_display
from speedlint.solve.names import Kind
from speedlint.solve.reach import parameter_of
from speedlint.solve.unpacking import all_written
from speedlint.solve.values import returned
from speedlint.torch import library
from speedlint.torch.words import Role

_FOLLOWED = frozenset(
    "abs cat chunk clamp clip clone contiguous cpu cuda detach detach_ exp expand expand_as flatten log log1p "
    "log_softmax mean norm normalize permute pow relu repeat requires_grad_ reshape round sigmoid softmax split "
    "sqrt square squeeze stack std sum swapaxes t tanh zeros_like ones_like empty_like full_like "
    "tile transpose unbind unflatten unsqueeze var view view_as "
    "where".split()
)
"""What gives half precision for half precision, and takes it."""
_HARMLESS = frozenset(
    "all any argmax argmin argsort backward bool dim double element_size eq equal float ge gt int is_contiguous "
    "isfinite isinf isnan item le long lt ndimension ne nelement numel register_hook retain_grad size "
    "storage_offset stride tolist".split()
)
"""What takes half precision and gives none, or none that is read."""
_PRODUCTS = frozenset("bmm dot einsum matmul mm mv".split())
_ARITHMETIC = frozenset("add add_ copy_ div mul mul_ sub sub_".split())
_LOSSES = frozenset("cross_entropy kl_div l1_loss mse_loss nll_loss smooth_l1_loss".split())
_BUILTINS = frozenset("bool float id int isinstance len repr str type".split())
_SEQUENCES = ("list", "reversed", "tuple", "zip")
_BOARD = frozenset("add_histogram add_image add_images add_scalar add_scalars".split())
_METRICS = ("torchmetrics.", "torcheval.", "ignite.metrics.")
_WRITES = frozenset(
    "index_add_ index_copy_ index_put_ lerp_ masked_scatter_ numpy put_ scatter_ scatter_add_ scatter_reduce_".split()
)
"""What raises, for autocast or without it, where half precision meets float32."""
_MOST = 200


def refuse_uses(step: Step, *, wrapped: tuple[syntax.Node, syntax.Node]) -> None:
    """Raises CannotEdit where what a step would leave in half precision is kept on an object, or may meet float32.

    ``wrapped`` are the first and the last statement that autocast would be put around.
    """
    for statement in step.statements:
        for assign in step.script.source.inside(statement, syntax.Assign):
            _refuse_kept(step.script, assign, step.loss)
    _Outputs(step, wrapped).follow_all()


def _refuse_kept(script: Script, assign: syntax.Assign, loss: syntax.BaseExpression) -> None:
    kept = [script.text(each) for each in attributes_set(assign)]
    if len(kept) > 1 or (kept and isinstance(assign.targets[0].target, syntax.Tuple) and script.text(loss) not in kept):
        other = next((text for text in kept if text != script.text(loss)), kept[0])
        raise CannotEdit(f"`{other}` keeps what the model gives, which may be read outside autocast")


class _Outputs:
    """Follows the outputs of one step. All methods raise CannotEdit at a use that is not known to be harmless."""

    def __init__(self, step: Step, wrapped: tuple[syntax.Node, syntax.Node]) -> None:
        self.step, self.source = step, step.script.source
        self.first, self.last = self.source.order[wrapped[0]], self.source.last(wrapped[1])
        self._seen: set[syntax.Node] = set()
        self._variables: set[syntax.Node] = set()
        self._followed: set[syntax.Node] = set()

    def follow_all(self) -> None:
        """Follows all variables that the step assigns a module's output, or what is computed from one."""
        script, loss = self.step.script, self.step.script.text(self.step.loss)
        for call in (each for statement in self.step.statements for each in self.source.inside(statement, syntax.Call)):
            if isinstance(call.func, syntax.Attribute) and any(self._is_half(arg.value) for arg in call.args):
                self._gathered(script, call, call.func)
        for target, value in (pair for statement in self.step.statements for pair in _assigned(script, statement)):
            for name in self.source.inside(target, syntax.Name) if self._is_half(value) else ():
                is_part = isinstance(self.source.parents[name], syntax.Attribute | syntax.Subscript | syntax.Index)
                if not is_part and name.value != loss and not _is_returned_in_full(script, target, value, name):
                    self._variable(script, name)

    def _is_half(self, value: syntax.BaseExpression) -> bool:
        """Whether a value comes from a module's output, and is neither a loss (float32) nor cast."""
        script = self.step.script
        if _is_full(script, value):
            return False
        if any(runs_network(script, call) for call in self.source.inside(value, syntax.Call)):
            return True
        return any(name in self._followed for name in self.source.inside(value, syntax.Name))

    def _variable(self, script: Script, bound: syntax.Name | syntax.Param) -> None:
        if bound in self._variables:
            return
        self._variables.add(bound)
        uses = list(_uses(script, bound))
        self._followed.update(uses)
        for use in uses:
            if script is self.step.script and self.first <= self.source.order[use] <= self.last:
                self._under_autocast(use)
            elif not _is_under_autocast(script, use):
                self._follow(script, use)

    def _under_autocast(self, use: syntax.Node) -> None:
        script, node = self.step.script, use
        while isinstance(parent := self.source.parents[node], (syntax.Attribute, syntax.Subscript, syntax.Call)):
            if isinstance(parent, syntax.Attribute) and parent.attr.value in _WRITES:
                self._refuse(script, parent)
            if (
                not isinstance(parent, syntax.Attribute)
                and getattr(parent, "value", getattr(parent, "func", None)) is not node
            ):
                break
            node = parent
        if isinstance(parent, syntax.Arg):
            call = self.source.parents[parent]
            if isinstance(call, syntax.Call) and isinstance(call.func, syntax.Attribute) and call.func.attr.value in _WRITES:
                self._refuse(script, call)
            if isinstance(call, syntax.Call) and isinstance(call.func, syntax.Attribute):
                self._gathered(script, call, call.func)
        if isinstance(parent, syntax.Assign) and any(
            hazards.is_written_by_index(script, each.target) for each in parent.targets
        ):
            self._refuse(script, parent)

    def _follow(self, script: Script, node: syntax.Node) -> None:
        """Looks at what is done with an expression that is in half precision."""
        if node in self._seen:
            return
        self._seen.add(node)
        parent = script.source.parents[node]
        if len(self._seen) > _MOST:
            self._refuse(script, parent)
        match parent:
            case syntax.Subscript(value=value) if value is node:
                self._follow(script, parent)
            case syntax.Attribute(value=value) if value is node:
                self._attribute(script, parent)
            case syntax.BinaryOperation(left=left, operator=operator, right=right):
                if isinstance(operator, syntax.MatrixMultiply) and not self._is_of_outputs(script, left, right):
                    self._refuse(script, parent)
                self._follow(script, parent)
            case syntax.UnaryOperation(operator=syntax.Minus() | syntax.Plus()) | syntax.IfExp():
                self._follow(script, parent)
            case syntax.Comparison() | syntax.ComparisonTarget() | syntax.BooleanOperation() | syntax.UnaryOperation():
                return
            case (
                syntax.Expr()
                | syntax.FormattedStringExpression()
                | syntax.Del()
                | syntax.If()
                | syntax.While()
                | syntax.Assert()
            ):
                return
            case syntax.Assign(targets=targets):
                for target in targets:
                    self._bound(script, target.target)
            case syntax.For(target=target, iter=iterated) | syntax.CompFor(target=target, iter=iterated) if iterated is node:
                self._bound(script, target)
            case syntax.Arg():
                self._passed(script, parent)
            case syntax.Return():
                self._returned(script, parent, None)
            case syntax.Element() if isinstance(holder := script.source.parents[parent], syntax.Tuple | syntax.List):
                self._in_sequence(script, holder, holder.elements.index(parent))
            case syntax.ListComp(elt=element) | syntax.GeneratorExp(elt=element) if element is node:
                self._follow(script, parent)
            case _:
                self._refuse(script, parent)

    def _attribute(self, script: Script, attribute: syntax.Attribute) -> None:
        call, name = script.source.parents[attribute], attribute.attr.value
        if isinstance(call, syntax.Call) and call.func is attribute:
            is_of_outputs = name in _PRODUCTS and self._is_of_outputs(script, *(arg.value for arg in call.args))
            if name in ("append", "extend", "clear"):
                return
            if name in library.PAIRS_WITH_DIM:
                self._pair(script, call)
            elif name in _FOLLOWED or is_of_outputs or (name == "to" and not _casts(script, call)):
                self._follow(script, call)
            elif name not in _HARMLESS and not _casts_to_full(script, call):
                self._refuse(script, call)
        elif name not in library.NUMBER_ATTRIBUTES | {"dtype", "device"}:
            self._follow(script, attribute)

    def _bound(self, script: Script, target: syntax.BaseExpression) -> None:
        match target:
            case syntax.Name():
                self._variable(script, target)
            case syntax.Tuple() | syntax.List():
                for element in target.elements:
                    self._bound(script, element.value)
            case syntax.Subscript(value=written) if script.role(written) is Role.TENSOR:
                if hazards.is_written_by_index(script, target):
                    self._refuse(script, script.source.parents[target])
            case _:
                self._refuse(script, target)

    def _passed(self, script: Script, arg: syntax.Arg) -> None:
        call = script.source.parents[arg]
        if not isinstance(call, syntax.Call) or arg.star:
            self._refuse(script, call)
        name = script.name(call.func)
        if not (is_display(script, call) or name in _BUILTINS or _is_of_metric(script, call, name)):
            self._handed_to(script, call, arg, name)

    def _handed_to(self, script: Script, call: syntax.Call, arg: syntax.Arg, name: str | None) -> None:
        last = name.rpartition(".")[2] if name is not None and name.startswith("torch.") else ""
        factors = [each.value for each in call.args if not isinstance(each.value, syntax.SimpleString)]
        if name in _SEQUENCES or last in _FOLLOWED or (last in _PRODUCTS and self._is_of_outputs(script, *factors)):
            self._follow(script, call)
        elif last in library.PAIRS_WITH_DIM:
            self._pair(script, call)
        elif last and last not in _HARMLESS | _LOSSES:
            self._refuse(script, call)
        elif script.role(call.func) is Role.MODULE:
            if not is_loss(script, call) or hazards.of_module(script, call.func):
                self._refuse(script, call)
            self._follow(script, call)
        elif (callee := script.callee(call)) is not None and (
            parameter := parameter_of(script, callee, call, arg)
        ) is not None:
            self._variable(callee.script, parameter)
        elif isinstance(call.func, syntax.Attribute) and name is None:
            self._handed_to_method(script, call, call.func)
        elif not last:
            self._refuse(script, call)

    def _handed_to_method(self, script: Script, call: syntax.Call, method: syntax.Attribute) -> None:
        name, held = method.attr.value, method.value
        role = script.role(held)
        if self._gathered(script, call, method):
            return
        if role is Role.TENSOR:
            if name not in _HARMLESS | _FOLLOWED | _ARITHMETIC and not (
                name in _PRODUCTS and self._is_of_outputs(script, held)
            ):
                self._refuse(script, call)
            self._follow(script, call)
        elif name not in _BOARD:
            self._refuse(script, call)

    def _gathered(self, script: Script, call: syntax.Call, method: syntax.Attribute) -> bool:
        """Whether a call puts what it is handed into a list in a variable, which is followed then."""
        held = method.value
        if method.attr.value not in ("append", "extend") or not isinstance(held, syntax.Name):
            return False
        if script.role(held) is not Role.SEQUENCE:
            return False
        for binding in script.names.reaching(held):
            if binding.kind is not Kind.ASSIGN or binding.path or not isinstance(binding.node, syntax.Name):
                self._refuse(script, call)
            self._variable(script, binding.node)
        return True

    def _pair(self, script: Script, call: syntax.Call) -> None:
        """``values, indices`` of ``x.max(1)`` and the like, of which the values are in half precision."""
        match parent := script.source.parents[call]:
            case syntax.Assign(targets=[syntax.AssignTarget(target=syntax.Tuple(elements=[values, _]))]):
                self._bound(script, values.value)
            case syntax.Attribute(attr=syntax.Name("indices")):
                return
            case syntax.Subscript(slice=[syntax.SubscriptElement(slice=syntax.Index(value=syntax.Integer("1")))]):
                return
            case syntax.Subscript() | syntax.Attribute():
                self._follow(script, parent if isinstance(parent, syntax.Subscript) else call)
            case _:
                self._follow(script, call)

    def _is_of_outputs(self, script: Script, *factors: syntax.BaseExpression) -> bool:
        """Whether all of a product's factors are outputs, or parts of them."""
        return all(any(name in self._followed for name in script.source.inside(each, syntax.Name)) for each in factors)

    def _in_sequence(self, script: Script, holder: syntax.Tuple | syntax.List, index: int) -> None:
        parent = script.source.parents[holder]
        if isinstance(holder, syntax.Tuple) and isinstance(parent, syntax.Return):
            self._returned(script, parent, index)
        else:
            self._follow(script, holder)

    def _returned(self, script: Script, node: syntax.Return, index: int | None) -> None:
        function = script.function(node)
        sites = script.call_sites(function) if function is not None else []
        if not sites:
            self._refuse(script, node)
        for other, call in sites:
            taken = other.source.parents[call]
            if isinstance(taken, syntax.Expr):
                continue
            if index is None:
                self._follow(other, call)
                continue
            targets = [target.target for target in taken.targets] if isinstance(taken, syntax.Assign) else []
            if not targets or not all(isinstance(each, syntax.Tuple) and index < len(each.elements) for each in targets):
                self._refuse(other, call)
            for target in targets:
                assert isinstance(target, syntax.Tuple)
                self._bound(other, target.elements[index].value)

    def _refuse(self, script: Script, node: syntax.Node) -> NoReturn:
        line = script.source.position(script.source.span(node).start)[0]
        where = f"line {line}" if script is self.step.script else f"{script.path.name} line {line}"
        shown = " ".join(script.text(node).split())
        raise CannotEdit(f"{where}: `{shown}` takes what the model gives, which would be in half precision")


def _uses(script: Script, bound: syntax.Name | syntax.Param) -> Iterator[syntax.Name]:
    """The uses that a binding of a variable or parameter reaches, through ``x /= 2`` too; no targets."""
    bindings: list[syntax.Node] = [bound]
    for binding in bindings:
        for use in script.names.uses(bound):
            if use is binding or not any(each.node is binding for each in script.names.reaching(use)):
                continue
            parent = script.source.parents[use]
            if isinstance(parent, syntax.AugAssign) and parent.target is use:
                bindings += [use] if use not in bindings else []
            elif not isinstance(parent, syntax.AssignTarget):
                yield use


def _is_full(script: Script, value: syntax.BaseExpression, depth: int = 3) -> bool:
    """Whether a value is certainly not in half precision: a loss, numbers of rows, a comparison, or cast."""
    match value:
        case syntax.Comparison():
            return True
        case syntax.Call(func=func):
            name, method = script.name(func), func.attr.value if isinstance(func, syntax.Attribute) else ""
            last = name.rpartition(".")[2] if name is not None else method
            if last in _HARMLESS | _LOSSES or is_loss(script, value) or _casts_to_full(script, value):
                return True
            inner = func.value if name is None and isinstance(func, syntax.Attribute) else None
            return last in _FOLLOWED and inner is not None and _is_full(script, inner, depth)
        case syntax.Name() if depth:
            values = all_written(script.names.reaching(value))
            return bool(values) and all(_is_full(script, each, depth - 1) for each in values)
    return False


def _is_returned_in_full(
    script: Script, target: syntax.BaseExpression, value: syntax.BaseExpression, name: syntax.Name
) -> bool:
    """Whether a variable of ``loss, rows = run(x)`` takes a part that a first-party function returns in full precision."""
    callee = script.callee(value) if isinstance(value, syntax.Call) else None
    if callee is None or not isinstance(callee.node, syntax.FunctionDef) or not isinstance(target, syntax.Tuple):
        return False
    index = next((i for i, element in enumerate(target.elements) if element.value is name), None)
    results = list(returned(callee))
    return index is not None and all(
        isinstance(result, syntax.Tuple)
        and index < len(result.elements)
        and _is_full(callee.script, result.elements[index].value)
        for result in results
    )


def _assigned(script: Script, statement: syntax.Node) -> Iterator[tuple[syntax.BaseExpression, syntax.BaseExpression]]:
    """The targets in a statement, each with its value."""
    for assign in script.source.inside(statement, syntax.Assign):
        yield from ((target.target, assign.value) for target in assign.targets)
    for noted in script.source.inside(statement, syntax.AnnAssign):
        if noted.value is not None:
            yield noted.target, noted.value
    for named in script.source.inside(statement, syntax.NamedExpr):
        yield named.target, named.value


def _is_under_autocast(script: Script, node: syntax.Node) -> bool:
    return any(
        isinstance(up, syntax.With) and any(script.is_call_to(item.item, *library.AUTOCASTS) for item in up.items)
        for up in script.source.ancestors(node)
    )


def _casts(script: Script, call: syntax.Call) -> bool:
    """Whether ``x.to(...)`` is told a dtype, and not only a device."""
    return any(script.roles.calls.is_dtype(arg.value) or script.text(arg.value).endswith(".dtype") for arg in call.args)


def _casts_to_full(script: Script, call: syntax.Call) -> bool:
    """Whether ``x.to(...)``, ``x.type(...)`` or ``x.type_as(...)`` casts to what is not named as half precision."""
    method = call.func.attr.value if isinstance(call.func, syntax.Attribute) else ""
    is_cast = method in ("type", "type_as") or (method == "to" and _casts(script, call))
    return is_cast and not any("16" in script.text(arg.value) or "half" in script.text(arg.value) for arg in call.args)


def _is_of_metric(script: Script, call: syntax.Call, name: str | None) -> bool:
    """Whether a call is one of a metric of a library's."""
    held = call.func.value if isinstance(call.func, syntax.Attribute) else call.func
    made = script.value(held).made
    names = (name or "", (made.script.name(made.call.func) or "") if made is not None else "")
    return any(each.startswith(_METRICS) for each in names)
