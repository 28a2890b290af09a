"""Where values are gathered over the steps: sums that start from zero, and meters of the project's own."""

from __future__ import annotations

from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.semantics.gradients import switches
from speedlint.semantics.loops import Loop
from speedlint.semantics.methods import works_in_place
from speedlint.semantics.names import Binding, Kind, last_name
from speedlint.semantics.script import Script
from speedlint.semantics.sync.inplace import is_written, viewed
from speedlint.semantics.terms import Definition, Frequency, Role
from speedlint.semantics.unpacking import all_written, written
from speedlint.semantics.values import returned
from speedlint.source import Source

_SCOPES = (syntax.FunctionDef, syntax.Lambda, syntax.ClassDef)
_GRAPHED = (b"reduce-overhead", b"max-autotune", b"cudagraph", b"CUDAGraph", b"make_graphed_callables")
_DEEPEST = 4
_GIVES_STATE = frozenset("parameters named_parameters state_dict buffers named_buffers get_parameter get_buffer".split())
_MAKES_ANEW = frozenset("mean sum norm std var prod argmax argmin abs exp log sqrt pow softmax sigmoid eq ne".split())
"""Methods of tensors whose result shares no memory with the tensor."""
_FUNCTIONS_MAKE_ANEW = frozenset(f"torch.{name}" for name in _MAKES_ANEW) | {"torch.nn.functional.softmax"}
_OPERATORS = (syntax.Add, syntax.Subtract, syntax.Multiply, syntax.Divide)


def is_zero(script: Script, binding: Binding) -> bool:
    """Whether a binding sets its name to a zero written out: ``total = 0.0``, ``a, b = 0, 0``."""
    return is_written_zero(script, written(binding))


def is_written_zero(script: Script, value: syntax.BaseExpression | None) -> bool:
    """Whether an expression is a zero written out."""
    return isinstance(value, syntax.Integer | syntax.Float) and script.text(value).strip("0.") == ""


def accepts_tensors(definition: Definition, count: int) -> bool:
    """Whether a meter's ``update`` only adds, multiplies and divides, so that a tensor does as well as a number."""
    found = definition.script.roles.calls.method(definition, "update")
    if (
        found is None
        or not isinstance(found.node, syntax.FunctionDef)
        or not isinstance(found.node.body, syntax.IndentedBlock)
    ):
        return False
    parameters = [parameter.name.value for parameter in found.node.params.params]
    if len(parameters) < 1 + count:
        return False
    kept: set[str] = set()
    summed: set[str] = set()
    for line in found.node.body.body:
        if not isinstance(line, syntax.SimpleStatementLine):
            return False
        for statement in line.body:
            if not _only_computes(found.script, statement, parameters[1], kept, summed):
                return False
    return not kept & summed


def _only_computes(script: Script, statement: syntax.Node, value: str, kept: set[str], summed: set[str]) -> bool:
    match statement:
        case syntax.Assign(
            targets=[syntax.AssignTarget(target=syntax.Attribute(value=syntax.Name(value="self"), attr=attr))], value=right
        ):
            if isinstance(right, syntax.Name) and right.value == value:
                kept.add(attr.value)
        case syntax.AugAssign(target=syntax.Attribute(value=syntax.Name(value="self"), attr=attr), value=right):
            summed.add(attr.value)
        case syntax.Expr(value=syntax.SimpleString()):
            return True
        case _:
            return False
    return _is_arithmetic(right)


def _is_arithmetic(node: syntax.BaseExpression) -> bool:
    match node:
        case syntax.BinaryOperation(left=left, operator=operator, right=right):
            return isinstance(operator, _OPERATORS) and _is_arithmetic(left) and _is_arithmetic(right)
        case syntax.Attribute(value=syntax.Name(value="self")) | syntax.Name() | syntax.Integer() | syntax.Float():
            return True
    return False


def is_fed_tensors(script: Script, meter: syntax.Name) -> bool:
    """Whether a meter of the script is given device tensors already."""
    for use in script.names.uses(meter):
        attribute = script.source.parents[use]
        if isinstance(attribute, syntax.Attribute) and attribute.attr.value == "update":
            call = script.source.parents[attribute]
            if isinstance(call, syntax.Call) and call.args and script.is_device_tensor(call.args[0].value):
                return True
    return False


def is_empty_list(script: Script, binding: Binding) -> bool:
    """Whether a binding gives its name an empty list."""
    value = written(binding)
    return value is not None and script.text(value) in ("[]", "list()")


def filled_list(script: Script, append: syntax.Call, base: syntax.Name) -> tuple[Binding, Loop]:
    """Where a list starts empty, and the loop that fills it; after that loop its name may be given away.

    Raises CannotEdit where the list is anything else.
    """
    start = first_binding(script, base)
    if start is None or not is_empty_list(script, start):
        raise CannotEdit(f"`{base.value}` is not only a list that starts empty in this function")
    return start, filling_loop(script, append, base, start)


def first_binding(script: Script, base: syntax.Name) -> Binding | None:
    """The first binding of a variable of the function that ``base`` stands in; None where it is one of another."""
    scope = script.names.scope(base)
    bindings = scope.bindings.get(base.value, []) if base.value not in scope.outer else []
    return bindings[0] if bindings else None


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
    """The outermost loop around ``inside`` that ``start`` is not in. Raises CannotEdit where it runs in each step itself."""
    found: Loop | None = None
    for up in script.source.ancestors(inside):
        if isinstance(up, _SCOPES) or script.source.contains(up, start):
            break
        if isinstance(up, syntax.For | syntax.While):
            found = up
    same = script.source.enclosing(start, *_SCOPES) is script.source.enclosing(inside, *_SCOPES)
    if found is None or not same or script.frequency(found) in (Frequency.STEP, Frequency.EVAL_STEP):
        raise CannotEdit("the loop that fills it is not seen whole")
    return found


def is_graphed(script: Script) -> bool:
    """Whether the program may run a model as CUDA graphs, whose outputs the next run overwrites."""
    return any(mark in each.source.data for each in script.everywhere(*_GRAPHED) for mark in _GRAPHED)


def may_be_overwritten(script: Script, tensor: syntax.BaseExpression) -> bool:
    """Whether a tensor is, or is a view of, what a module returns that may run as a CUDA graph."""
    return is_graphed(script) and _is_output(script, tensor, 0)


def _is_output(script: Script, tensor: syntax.BaseExpression, depth: int) -> bool:
    made = viewed(tensor)
    if isinstance(made, syntax.Call):
        return script.role(made.func) is Role.MODULE
    if not isinstance(made, syntax.Name) or depth > 4:
        return False
    values = (binding.value for binding in script.names.reaching(made))
    return any(isinstance(value, syntax.BaseExpression) and _is_output(script, value, depth + 1) for value in values)


def _is_made_outside_graphs(script: Script, tensor: syntax.BaseExpression, depth: int) -> bool:
    """Whether an operation of a function that is certainly not compiled makes a tensor of its own."""
    function = script.function(tensor)
    if function is None or function.name.value == "forward" or _is_compiled(script, function):
        return False
    match made := viewed(tensor):
        case syntax.Call(func=syntax.Attribute(value=base, attr=syntax.Name(method))) if script.name(made.func) is None:
            return method in _MAKES_ANEW and script.role(base) is Role.TENSOR
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
    names = {name.value for name in source.inside(tensor, syntax.Name)}
    scopes = ((name, script.names.scope(read).lookup(name)) for name in names)
    bindings = (binding for name, scope in scopes if scope is not None for binding in scope.bindings[name])
    rebound = [binding.node for binding in bindings if binding.kind is not Kind.AUGMENT]
    function = source.enclosing(read, *_SCOPES)
    block = function.body if isinstance(function, syntax.FunctionDef) else source.module
    for statement in source.inside(block, syntax.AugAssign):
        changed = names & {name.value for name in source.inside(statement.target, syntax.Name)}
        if changed and script.order.runs_again(read, statement, rebound) and script.role(statement.target) is Role.TENSOR:
            raise CannotEdit(f"`{script.text(statement)}` changes the tensor in place")
    for call in source.inside(block, syntax.Call):
        match call.func:
            case syntax.Attribute(value=syntax.Name(value=name), attr=syntax.Name(value=method)):
                if name in names and works_in_place(method):
                    raise CannotEdit(f"`{script.text(call)}` changes the tensor in place")
    _check_own(script, made, read)


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
        case syntax.Call(args=args) if any(arg.keyword is not None and arg.keyword.value == "out" for arg in args):
            return _short(script, tensor)
        case syntax.Call(func=syntax.Attribute(attr=syntax.Name(method))) if (
            works_in_place(method) and script.name(tensor.func) is None
        ):
            return _short(script, tensor)
        case syntax.Call(func=func) if last_name(func) in _GIVES_STATE:
            return _short(script, tensor)
        case syntax.Call(func=syntax.Name("next" | "iter" | "list" | "getattr"), args=[syntax.Arg(value=given), *_]):
            return _lasting(script, given, read, depth + 1)
        case syntax.Call():
            callee = script.callee(tensor) if depth < _DEEPEST else None
            if callee is None or not isinstance(callee.node, syntax.FunctionDef) or callee.node.name.value == "__init__":
                return None
            for result in returned(callee):
                inner = viewed(result)
                if isinstance(inner, syntax.Attribute) and callee.script.role(inner.value) is not Role.TENSOR:
                    return _short(callee.script, inner)
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


def _short(script: Script, node: syntax.Node) -> str:
    return script.text(node).partition("\n")[0]


def _is_trained(script: Script, tensor: syntax.BaseExpression) -> bool:
    """Whether a tensor may be a parameter or a buffer: an attribute of a module or an object, or a leaf made by hand."""
    if isinstance(tensor, syntax.Attribute):
        return script.role(tensor.value) not in (Role.TENSOR, Role.BATCH, Role.MAPPING, Role.SEQUENCE)
    if not isinstance(tensor, syntax.Name):
        return False
    for binding in script.names.reaching(tensor):
        match binding.value:
            case syntax.Call(args=args) if any(
                arg.keyword is not None and arg.keyword.value == "requires_grad" for arg in args
            ):
                return True
            case syntax.Call(func=func) if (script.name(func) or "").endswith("Parameter"):
                return True
            case syntax.Attribute() as value if not binding.path:
                return _is_trained(script, value)
    return False


def is_target(source: Source, use: syntax.Node) -> bool:
    """Whether a name is written as a target of an assignment or a loop."""
    node, parent = use, source.parents[use]
    while isinstance(parent, syntax.Element | syntax.Tuple | syntax.List):
        node, parent = parent, source.parents[parent]
    return isinstance(parent, syntax.AssignTarget) or (
        isinstance(parent, syntax.For | syntax.CompFor | syntax.AugAssign | syntax.AnnAssign) and parent.target is node
    )
