"""What must hold of a list or sum that keeps tensors until the loop that fills it is over."""

from __future__ import annotations

from speedlint.ask.script import Script
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.shapes.sync.accumulators import first_binding, is_empty_list, is_graphed
from speedlint.solve.gradients import switches
from speedlint.solve.inplace import is_written, viewed
from speedlint.solve.loops import Loop
from speedlint.solve.names import Binding, Kind, last_name
from speedlint.solve.stops import lets_errors_through
from speedlint.solve.unpacking import advanced, all_written
from speedlint.solve.values import returned
from speedlint.source import is_name
from speedlint.torch.methods import MAKES_ANEW, works_in_place
from speedlint.torch.words import Frequency, Role

_SCOPES = (syntax.FunctionDef, syntax.Lambda, syntax.ClassDef)

_DEEPEST = 4

_GIVES_STATE = frozenset("parameters named_parameters state_dict buffers named_buffers get_parameter get_buffer".split())

_FUNCTIONS_MAKE_ANEW = frozenset(f"torch.{name}" for name in MAKES_ANEW) | {"torch.nn.functional.softmax"}


def filled_list(script: Script, append: syntax.Call, base: syntax.Name) -> tuple[Binding, Loop]:
    """Where a list starts empty, and the loop that fills it; after that loop its name may be given away.

    Raises CannotEdit where the list is anything else.
    """
    start = first_binding(script, base)
    if start is None or not is_empty_list(script, start):
        raise CannotEdit(f"`{base.value}` is not only a list that starts empty in this function")
    return start, filling_loop(script, append, base, start)


def filling_loop(script: Script, inside: syntax.Node, base: syntax.Name, start: Binding) -> Loop:
    """The loop that fills what ``start`` binds to a variable; nothing else is bound to it before that loop is over.

    Raises CannotEdit where it has a second name, or the loop is not seen whole.
    """
    statement = script.source.enclosing(start.node, syntax.Assign)
    if isinstance(statement, syntax.Assign) and len(statement.targets) > 1:
        raise CannotEdit(f"`{base.value}` has a second name")
    loop = loop_outside(script, inside, start.node)
    for other in script.names.scope(base).bindings[base.value]:
        if other is not start and (other.kind is not Kind.ASSIGN or not script.order.runs_before(loop, other.node)):
            raise CannotEdit(f"`{base.value}` is also set on line {script.source.line(other.node)}")
    return loop


def loop_outside(script: Script, inside: syntax.Node, start: syntax.Node) -> Loop:
    """The outermost loop around ``inside`` that ``start`` is not in. Raises CannotEdit where it runs in each step itself, or
    where an error in it may be swallowed, so that what stands below it is skipped."""
    found: Loop | None = None
    for up in script.source.ancestors(inside):
        if isinstance(up, _SCOPES) or script.source.contains(up, start):
            break
        if isinstance(up, syntax.For | syntax.While):
            found = up
    same = script.source.enclosing(start, *_SCOPES) is script.source.enclosing(inside, *_SCOPES)
    if found is None or not same or script.frequency(found) in (Frequency.STEP, Frequency.EVAL_STEP):
        raise CannotEdit("the loop that fills it is not seen whole")
    for up in script.source.ancestors(found):
        if isinstance(up, _SCOPES):
            break
        if isinstance(up, syntax.With) and not all(lets_errors_through(script, each.item) for each in up.items):
            raise CannotEdit("a context manager around its loop may swallow an error")
    return found


def last_converted(script: Script, loop: Loop) -> syntax.Node:
    """The loop, or the last of the lines right below it that convert what it added up or gathered: ``hits = int(hits)``,
    ``losses = torch.stack(losses).tolist() if losses else []``."""
    block = script.source.parents[loop]
    body = block.body if isinstance(block, syntax.Module | syntax.IndentedBlock) else ()
    last: syntax.Node = loop
    for line in body[body.index(loop) + 1 :] if loop in body else ():
        if not _converts(script, line):
            break
        last = line
    return last


def _converts(script: Script, line: syntax.Node) -> bool:
    """Whether a line only turns what one variable or entry holds into numbers."""
    match line:
        case syntax.SimpleStatementLine(
            body=[
                syntax.Assign(
                    targets=[syntax.AssignTarget(target=syntax.Name() | syntax.Subscript() as target)],
                    value=syntax.Call(func=syntax.Name("float" | "int"), args=[syntax.Arg(value=kept)]),
                )
            ]
        ):
            return script.text(kept) == script.text(target)
        case syntax.SimpleStatementLine(
            body=[
                syntax.Assign(
                    targets=[syntax.AssignTarget(target=syntax.Name(listed))],
                    value=syntax.IfExp(test=syntax.Name(kept), body=joined, orelse=syntax.List(elements=[])),
                )
            ]
        ):
            return listed == kept and _are_stacked(script, joined, kept)
    return False


def _are_stacked(script: Script, joined: syntax.BaseExpression, listed: str) -> bool:
    """Whether an expression is ``torch.stack(listed).tolist()``, flattened or not."""
    match joined:
        case syntax.Call(func=syntax.Attribute(value=inner, attr=syntax.Name("tolist" | "flatten")), args=[]):
            return _are_stacked(script, inner, listed)
        case syntax.Call(args=[syntax.Arg(value=syntax.Name(value))]):
            return value == listed and script.is_call_to(joined, "torch.stack")
    return False


def _is_made_outside_graphs(script: Script, tensor: syntax.BaseExpression, depth: int) -> bool:
    """Whether an operation of a function that is certainly not compiled makes a tensor of its own."""
    function = script.function(tensor)
    if function is None or function.name.value == "forward" or _is_compiled(script, function):
        return False
    match made := viewed(tensor):
        case syntax.Call(func=syntax.Attribute(value=base, attr=syntax.Name(method))) if script.name(made.func) is None:
            return method in MAKES_ANEW and script.role(base) is Role.TENSOR
        case syntax.Call(func=func):
            return script.name(func) in _FUNCTIONS_MAKE_ANEW
        case syntax.Name() if depth <= _DEEPEST:
            values = all_written(script.names.reaching(made))
            return bool(values) and all(_is_made_outside_graphs(script, value, depth + 1) for value in values)
    return False


def _is_compiled(script: Script, function: syntax.FunctionDef) -> bool:
    """Whether a function may be one that is compiled."""
    if any(switches(script, each.decorator) is not True for each in function.decorators):
        return True
    compiled = (call.args for _, call in script.calls_everywhere("torch.compile") if call.args)
    return any(last_name(args[0].value) in (None, function.name.value) for args in compiled)


def check_alias(script: Script, read: syntax.Node, tensor: syntax.BaseExpression) -> None:
    """A tensor that is kept shares its memory: raises CannotEdit where something changes it in place afterwards."""
    if is_graphed(script) and not _is_made_outside_graphs(script, tensor, 0):
        raise CannotEdit("the outputs of a model compiled to CUDA graphs are overwritten by the next step")
    made = viewed(tensor)
    if isinstance(made, syntax.Call):
        _check_own(script, made, read)
        return
    if _is_trained(script, made):
        raise CannotEdit(f"the optimizer may change `{script.text(made)}` in place")
    source = script.source
    function = source.enclosing(read, *_SCOPES)
    block = function.body if isinstance(function, syntax.FunctionDef) else source.module
    own = {name.value for name in source.inside(tensor, syntax.Name)}
    names = _sharing(script, block, own)
    for statement in source.inside(block, syntax.AugAssign):
        changed = names & {name.value for name in source.inside(statement.target, syntax.Name)}
        if changed and script.role(statement.target) is Role.TENSOR:
            ways = (_rebound(script, read, each) for each in (own, changed))
            if any(script.order.runs_again(read, statement, rebound) for rebound in ways):
                raise CannotEdit(f"`{script.text(statement)}` changes the tensor in place")
    for call in source.inside(block, syntax.Call):
        match call.func:
            case syntax.Attribute(value=syntax.Name(value=name), attr=syntax.Name(value=method)):
                if name in names and works_in_place(method):
                    raise CannotEdit(f"`{script.text(call)}` changes the tensor in place")
    _check_own(script, made, read)


def _sharing(script: Script, block: syntax.Node, names: set[str]) -> set[str]:
    """Some variables and those that stand for the same tensor in a block, or a view of it: ``loss = part``."""
    same = [
        {viewed_name.value, target.target.value}
        for statement in script.source.inside(block, syntax.Assign)
        if isinstance(viewed_name := viewed(statement.value), syntax.Name)
        for target in statement.targets
        if isinstance(target.target, syntax.Name)
    ]
    found = set(names)
    while more := {name for pair in same if pair & found for name in pair - found}:
        found |= more
    return found


def _rebound(script: Script, read: syntax.Node, names: set[str]) -> list[syntax.Node]:
    """Where some variables, as they are called where something is read, are bound anew."""
    scopes = ((name, script.names.scope(read).lookup(name)) for name in names)
    bindings = (binding for name, scope in scopes if scope is not None for binding in scope.bindings[name])
    return [binding.node for binding in bindings if binding.kind is not Kind.AUGMENT]


def _check_own(script: Script, tensor: syntax.BaseExpression, read: syntax.Node) -> None:
    """Raises CannotEdit where each turn of a loop may give the same tensor."""
    if (lasting := _lasting(script, tensor, read, 0)) is not None:
        raise CannotEdit(f"`{lasting}` may be one tensor that every turn writes anew")


def _lasting(script: Script, tensor: syntax.BaseExpression, read: syntax.Node, depth: int) -> str | None:
    """What an expression may give that outlives the turn of a loop: the state of an object, a tensor made before the loop or
    handed in as ``out=``, what a method changes in place. None where it makes a tensor of its own."""
    tensor = viewed(tensor)
    source = script.source
    match tensor:
        case syntax.Call(args=args) if any(is_name(arg.keyword, "out") for arg in args):
            return script.first_line(tensor)
        case syntax.Call(func=syntax.Attribute(attr=syntax.Name(method))) if (
            works_in_place(method) and script.name(tensor.func) is None
        ):
            return script.first_line(tensor)
        case syntax.Call(func=func) if last_name(func) in _GIVES_STATE:
            return script.first_line(tensor)
        case syntax.Call(func=syntax.Name("iter" | "list" | "getattr"), args=[syntax.Arg(value=given), *_]):
            return _lasting(script, given, read, depth + 1)
        case syntax.Call() if (iterator := advanced(script, tensor)) is not None:
            return _lasting(script, iterator, read, depth + 1)
        case syntax.Call():
            for callee in script.roles.calls.may_run(tensor) if depth < _DEEPEST else ():
                if not isinstance(callee.node, syntax.FunctionDef) or callee.node.name.value == "__init__":
                    continue
                for result in returned(callee):
                    inner = viewed(result)
                    if isinstance(inner, syntax.Attribute) and callee.script.role(inner.value) is not Role.TENSOR:
                        return callee.script.first_line(inner)
                    found = _lasting(callee.script, inner, result, depth + 1) if isinstance(inner, syntax.Call) else None
                    if found is not None:
                        return found
        case syntax.Name():
            loop = source.enclosing(read, syntax.For, syntax.While, *_SCOPES)
            for binding in script.names.reaching(tensor):
                is_loop = isinstance(loop, syntax.For | syntax.While)
                if loop is not None and is_loop and binding.kind is Kind.ASSIGN and not source.contains(loop, binding.node):
                    return tensor.value
                if binding.kind is Kind.FOR and script.role(tensor) is not Role.BATCH:
                    return tensor.value
                if binding.value is not None and binding.kind is Kind.ASSIGN and depth < _DEEPEST:
                    found = _lasting(script, binding.value, read, depth + 1)
                    if found is not None:
                        return found
            if is_written(script, tensor):
                return tensor.value
    return None


def _is_trained(script: Script, tensor: syntax.BaseExpression) -> bool:
    """Whether a tensor may be a parameter or a buffer: an attribute of a module or an object, or a leaf made by hand."""
    if isinstance(tensor, syntax.Attribute):
        return script.role(tensor.value) not in (Role.TENSOR, Role.BATCH, Role.MAPPING, Role.SEQUENCE)
    if not isinstance(tensor, syntax.Name):
        return False
    for binding in script.names.reaching(tensor):
        match binding.value:
            case syntax.Call(args=args) if any(is_name(arg.keyword, "requires_grad") for arg in args):
                return True
            case syntax.Call(func=func) if (script.name(func) or "").endswith("Parameter"):
                return True
            case syntax.Attribute() as value if not binding.path:
                return _is_trained(script, value)
    return False
