"""Losses that are gathered over the steps together with their graph: nothing can use it, since the backward pass of the
step has freed what it needs, but every node of it stays in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes.sync.accumulators import is_empty_list, is_zero
from speedlint.shapes.sync.gradients import is_graphless
from speedlint.solve.gradients import gradients_off
from speedlint.solve.loops import Does, Loop
from speedlint.solve.names import Binding, Kind
from speedlint.solve.reach import parameter_of
from speedlint.solve.terms import Definition
from speedlint.solve.unpacking import all_written, part, written
from speedlint.source import is_name
from speedlint.torch.methods import FLOATS, MOVES, RESHAPES
from speedlint.torch.words import Frequency, Role

_ARITHMETIC = (syntax.Add, syntax.Subtract, syntax.Multiply, syntax.Divide)
_SAME_GRAPH = RESHAPES | FLOATS | MOVES | {"mean", "sum", "clone"}
_FILLED = ("torch.zeros", "torch.tensor", "torch.zeros_like", "torch.as_tensor")
_DEPTH = 3


class Kept(NamedTuple):
    """A loss that is gathered with its graph: its use, and the variable, attribute or meter that gathers it."""

    loss: syntax.Name
    store: syntax.BaseExpression


def kept_losses(script: Script, node: syntax.Node) -> Iterator[Kept]:
    """What a sum, ``total += loss``, a list, ``losses.append(loss)``, or a meter keeps of the step's graph."""
    for store, value in _gathered(script, node):
        loss = _core(script, value)
        if loss is None or script.frequency(node) is not Frequency.STEP:
            continue
        if not _may_be_tensor(script, loss) or not is_differentiated(script, loss) or is_graphless(script, loss):
            continue
        if isinstance(node, syntax.Call) and not _is_append(node) and not _sums_up(script, node, value):
            continue
        if _is_of_one_step(script, node) or gradients_off(script, node) is not False:
            continue
        if _starts_outside(script, store, node):
            yield Kept(loss, store)


def _gathered(script: Script, node: syntax.Node) -> Iterator[tuple[syntax.BaseExpression, syntax.BaseExpression]]:
    match node:
        case syntax.AugAssign(target=target, operator=syntax.AddAssign(), value=value):
            yield target, value
        case syntax.Assign(
            targets=[syntax.AssignTarget(target=target)],
            value=syntax.BinaryOperation(left=left, operator=syntax.Add(), right=right),
        ):
            if _is_weighed(script, left, target):
                yield target, right
            elif _is_weighed(script, right, target):
                yield target, left
        case syntax.Call(func=syntax.Attribute(value=store), args=args):
            if isinstance(script.source.parents[node], syntax.Expr):
                given = (arg for i, arg in enumerate(args) if not arg.star and (arg.keyword is not None or i == 0))
                yield from ((store, arg.value) for arg in given)


def _is_weighed(script: Script, expression: syntax.BaseExpression, target: syntax.BaseExpression) -> bool:
    """Whether an expression is the target itself, also scaled, as in ``mean = 0.9 * mean + 0.1 * loss``."""
    match expression:
        case syntax.BinaryOperation(left=left, operator=syntax.Multiply(), right=right):
            if _is_weighed(script, left, target):
                return _is_number(script, right)
            return _is_weighed(script, right, target) and _is_number(script, left)
    return script.text(expression) == script.text(target)


def _is_append(call: syntax.Call) -> bool:
    return isinstance(call.func, syntax.Attribute) and call.func.attr.value == "append" and len(call.args) == 1


def _sums_up(script: Script, call: syntax.Call, given: syntax.BaseExpression) -> bool:
    """Whether a method of the project adds an argument, as it is, to a sum or list of its object."""
    callee, arg = script.callee(call), script.source.parents[given]
    if callee is None or not isinstance(callee.node, syntax.FunctionDef) or callee.node.decorators:
        return False
    other, method = callee.script, callee.node
    if other.names.owner(method) is None or gradients_off(other, method.body) is not False:
        return False
    assert isinstance(arg, syntax.Arg)
    value = parameter_of(script, callee, call, arg)
    if value is None:
        named = method.params.star_kwarg
        return isinstance(named, syntax.Param) and arg.keyword is not None and _sums_up_each(other, method, named)
    uses = other.names.uses(value)
    if any(binding.kind is not Kind.PARAMETER for use in uses for binding in other.names.reaching(use)):
        return False
    return any(_is_summed(other, use) for use in uses)


def _sums_up_each(script: Script, method: syntax.FunctionDef, named: syntax.Param) -> bool:
    """Whether a method adds up each of its ``**kwargs`` by its name: ``for k in kwargs: self.sum[k] += kwargs[k]``."""
    for loop in script.source.inside(method.body, syntax.For):
        match loop:
            case syntax.For(target=syntax.Name() as key, iter=syntax.Name() as gone_over) if _stands_for(
                script, gone_over, named
            ):
                entries = (each for each in script.source.inside(loop.body, syntax.Subscript) if _key(each) == key.value)
                if any(
                    isinstance(each.value, syntax.Name)
                    and _stands_for(script, each.value, named)
                    and _is_summed(script, each)
                    for each in entries
                ):
                    return True
            case syntax.For(
                target=syntax.Tuple(elements=[_, syntax.Element(value=syntax.Name() as entry)]),
                iter=syntax.Call(func=syntax.Attribute(value=syntax.Name() as gone_over, attr=syntax.Name("items"))),
            ) if _stands_for(script, gone_over, named):
                if any(_is_summed(script, use) for use in script.names.uses(entry)):
                    return True
    return False


def _key(entry: syntax.Subscript) -> str | None:
    """The variable by which an entry is taken: ``k`` of ``kwargs[k]``."""
    match entry.slice:
        case [syntax.SubscriptElement(slice=syntax.Index(value=syntax.Name(value=name)))]:
            return name
    return None


def _stands_for(script: Script, name: syntax.Name, parameter: syntax.Param) -> bool:
    return [each.node for each in script.names.reaching(name)] == [parameter]


def _is_summed(script: Script, use: syntax.Node) -> bool:
    node: syntax.Node = use
    while isinstance(parent := script.source.parents[node], syntax.BinaryOperation):
        if not isinstance(parent.operator, _ARITHMETIC):
            return False
        node = parent
    match parent:
        case syntax.AugAssign(target=target, operator=syntax.AddAssign(), value=value) if value is node:
            held = target.value if isinstance(target, syntax.Subscript) else target
            is_own = isinstance(held, syntax.Attribute) and is_name(held.value, "self")
            return is_own and script.source.enclosing(parent, syntax.If, syntax.With, syntax.Try) is None
    return False


def _core(script: Script, expression: syntax.BaseExpression) -> syntax.Name | None:
    """The variable whose graph an expression carries: ``loss`` in ``loss.mean() * images.size(0)``."""
    match expression:
        case syntax.Name():
            return expression
        case syntax.UnaryOperation(operator=syntax.Minus(), expression=inner):
            return _core(script, inner)
        case syntax.Call(func=syntax.Attribute(value=inner, attr=syntax.Name(value=method))) if method in _SAME_GRAPH:
            return _core(script, inner)
        case syntax.BinaryOperation(left=left, operator=operator, right=right) if isinstance(operator, _ARITHMETIC):
            if _is_number(script, right):
                return _core(script, left)
            return _core(script, right) if _is_number(script, left) else None
    return None


def _may_be_tensor(script: Script, loss: syntax.Name) -> bool:
    """Whether a variable is a tensor of torch, or may be one in a file that imports torch."""
    role = script.role(loss)
    if role is not Role.UNKNOWN:
        return role is Role.TENSOR
    bound = (dotted for _, dotted in script.names.imports)
    return any(dotted.split(".")[0] == "torch" for dotted in bound)


def _is_number(script: Script, expression: syntax.BaseExpression) -> bool:
    return script.role(expression) is Role.NUMBER or script.constant(expression) is not None


# Whether the step's backward pass has run through it


def is_differentiated(script: Script, loss: syntax.Name) -> bool:
    """Whether each value that a variable may have here has been, or is yet to be in this turn, the start of a backward pass
    that frees its graph: the variable itself, what a module of losses gave it, or what a function returns that does it."""
    if any(_starts_at(script, backward, loss) for backward in script.method_calls("backward")):
        return True
    bindings = script.names.reaching(loss)
    return bool(bindings) and all(_is_returned(script, binding) for binding in bindings)


def _starts_at(script: Script, backward: syntax.Call, loss: syntax.Name) -> bool:
    """Whether a backward pass starts at the variable, and runs whenever what reads it does."""
    assert isinstance(backward.func, syntax.Attribute)
    if backward.args or script.function(backward) is not script.function(loss):
        return False
    receiver = backward.func.value
    match receiver:
        case syntax.Call(
            func=syntax.Attribute(attr=syntax.Name("scale")), args=[syntax.Arg(keyword=None, star="", value=inner)]
        ):
            receiver = inner
    return _is_part(script, receiver, loss, 0) and _runs_with(script, backward, loss)


def _is_part(script: Script, whole: syntax.BaseExpression, loss: syntax.Name, depth: int) -> bool:
    """Whether the backward pass of an expression runs through the variable: it is it, scaled by numbers, or made of it."""
    match whole:
        case syntax.BinaryOperation(left=left, operator=operator, right=right) if isinstance(operator, _ARITHMETIC):
            return any(_is_part(script, side, loss, depth) for side in (left, right))
    core = _core(script, whole)
    if core is None or depth > _DEPTH:
        return False
    bindings = script.names.reaching(core)
    if core.value == loss.value and bindings and bindings == script.names.reaching(loss):
        return True
    values = all_written(bindings)
    return bool(values) and all(_is_part(script, value, loss, depth + 1) for value in values)


def _runs_with(script: Script, backward: syntax.Call, loss: syntax.Name) -> bool:
    """Whether no branch or loop stands around the backward pass that is not around the other place too, but one of those
    that each end in one."""
    source = script.source
    child: syntax.Node = backward
    for up in source.ancestors(backward):
        if source.contains(up, loss):
            return not isinstance(up, syntax.If) or source.contains(child, loss)
        if isinstance(up, syntax.For | syntax.While | syntax.FunctionDef | syntax.Lambda | syntax.ExceptHandler):
            return False
        if isinstance(up, syntax.If) and not (child is up.body and _has_backward(script, up.orelse)):
            return False
        child = up
    return False


def _has_backward(script: Script, other: syntax.If | syntax.Else | None) -> bool:
    """Whether the other branches of an ``if`` all run a backward pass."""
    if other is None:
        return False
    if isinstance(other, syntax.If) and not _has_backward(script, other.orelse):
        return False
    return any(script.source.contains(other.body, call) for call in script.method_calls("backward"))


def _is_returned(script: Script, binding: Binding) -> bool:
    """Whether a value comes from a function that makes its backward pass: ``loss = train_step(batch)``."""
    if binding.kind is not Kind.ASSIGN or not isinstance(binding.value, syntax.Call) or len(binding.path) > 1:
        return False
    callee = script.callee(binding.value)
    if callee is None or not isinstance(callee.node, syntax.FunctionDef) or callee.node.decorators:
        return False
    found = list(_returned(callee, binding.path))
    other = callee.script
    return bool(found) and all(
        isinstance(value, syntax.Name)
        and any(_starts_at(other, backward, value) for backward in other.method_calls("backward"))
        for value in found
    )


def _returned(callee: Definition, path: tuple[int | None, ...]) -> Iterator[syntax.BaseExpression | None]:
    script = callee.script
    for statement in script.source.inside(callee.node, syntax.Return):
        if script.function(statement) is not callee.node:
            continue
        value = statement.value
        rest = path
        if value is not None:
            value, rest = part(value, path)
        yield None if rest or isinstance(value, syntax.Tuple) else value


# Where it is gathered


def _is_of_one_step(script: Script, node: syntax.Node) -> bool:
    """Whether the loop around only adds up the parts of one step, whose graph is let go with it."""
    loop = script.loops.driving_loop(node)
    outer = script.loops.driving_loop(loop) if loop is not None else None
    return outer is not None and script.loops.kind(outer) is Frequency.STEP


def _starts_outside(script: Script, store: syntax.BaseExpression, node: syntax.Node) -> bool:
    """Whether what gathers begins empty outside the steps, or is emptied only now and then."""
    match store:
        case syntax.Name():
            return _variable_starts_outside(script, store, node)
        case syntax.Attribute() | syntax.Subscript():
            return _place_starts_outside(script, store)
    return False


def _variable_starts_outside(script: Script, store: syntax.Name, node: syntax.Node) -> bool:
    scope = script.names.scope(store)
    if scope.lookup(store.value) is not scope:
        return False
    starts = [one for one in scope.bindings[store.value] if not _adds(script, one)]
    begun = [one for one in starts if _is_start(script, one)]
    loops: list[Loop] = [up for up in script.source.ancestors(node) if isinstance(up, syntax.For | syntax.While)]
    around = [loop for loop in loops if script.loops.kind(loop) is Frequency.STEP]
    inside = [one for one in starts if any(script.source.contains(loop.body, one.node) for loop in around)]
    if any(_goes_with_step(script, one) for one in inside):
        return False
    return bool(begun) and bool(around) and all(script.frequency(one.node) < Frequency.EVAL_STEP for one in inside)


def _goes_with_step(script: Script, start: Binding) -> bool:
    """Whether a variable begins anew in a branch in which the optimizer steps: it holds the batches of one step."""
    branch = script.source.enclosing(start.node, syntax.If, syntax.For, syntax.While, syntax.FunctionDef)
    return isinstance(branch, syntax.If) and bool(script.loops.does(branch.body, Does.OPTIMIZER_STEP))


def _adds(script: Script, binding: Binding) -> bool:
    """Whether a binding is ``total += x`` or ``total = total + x``."""
    if binding.kind is Kind.AUGMENT:
        return True
    value = binding.value if binding.kind is Kind.ASSIGN and not binding.path else None
    names = script.source.inside(value, syntax.Name) if isinstance(value, syntax.BinaryOperation) else ()
    return any(name.value == binding.name for name in names)


def _is_start(script: Script, binding: Binding) -> bool:
    """Whether a binding sets its name to zero, an empty list, or a new object of the project's."""
    if is_zero(script, binding) or is_empty_list(script, binding):
        return True
    value = written(binding)
    return isinstance(value, syntax.Call) and (
        script.name(value.func) in _FILLED or script.value(value).role is Role.INSTANCE
    )


def _place_starts_outside(script: Script, store: syntax.Attribute | syntax.Subscript) -> bool:
    """An attribute or entry: it is set somewhere in the file, and nowhere in each step."""
    text = script.text(store)
    set_at = [target for target in script.source.of(syntax.AssignTarget) if script.text(target.target) == text]
    return bool(set_at) and all(script.frequency(target) < Frequency.EVAL_STEP for target in set_at)
