"""Where values are gathered over the steps: sums that start from zero, and meters of the project's own."""

from __future__ import annotations

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.solve.inplace import viewed
from speedlint.solve.names import Binding
from speedlint.solve.terms import Definition
from speedlint.solve.unpacking import written
from speedlint.torch.words import Role

_GRAPHED = (b"reduce-overhead", b"max-autotune", b"cudagraph", b"CUDAGraph", b"make_graphed_callables")
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
            if not _only_computes(statement, parameters[1], kept, summed):
                return False
    return not kept & summed and not _gives_itself_away(definition)


def _gives_itself_away(definition: Definition) -> bool:
    """Whether a class's methods give their object another name: ``registry.append(self)``."""
    source = definition.script.source
    return any(
        not isinstance(parent := source.parents[name], syntax.Attribute) or parent.value is not name
        for name in source.inside(definition.node, syntax.Name)
        if name.value == "self" and not isinstance(source.parents[name], syntax.Param)
    )


def fed(definition: Definition) -> dict[str, bool]:
    """The attributes of a meter that its ``update`` computes of the value, and whether they are a quotient of it."""
    found: dict[str, bool] = {}
    update = definition.script.roles.calls.method(definition, "update")
    if update is None or not isinstance(update.node, syntax.FunctionDef):
        return found
    source, value = update.script.source, update.node.params.params[1].name.value
    statements = [*source.inside(update.node.body, syntax.Assign), *source.inside(update.node.body, syntax.AugAssign)]
    for statement in sorted(statements, key=lambda each: source.order[each]):
        target = statement.target if isinstance(statement, syntax.AugAssign) else statement.targets[0].target
        parts = {each.attr.value for each in source.inside(statement.value, syntax.Attribute)} & found.keys()
        is_of_value = any(name.value == value for name in source.inside(statement.value, syntax.Name))
        if isinstance(target, syntax.Attribute) and (is_of_value or parts):
            operations = source.inside(statement.value, syntax.BinaryOperation)
            is_quotient = any(isinstance(each.operator, syntax.Divide) for each in operations)
            found[target.attr.value] = is_quotient or any(found[part] for part in parts)
    return found


def _only_computes(statement: syntax.Node, value: str, kept: set[str], summed: set[str]) -> bool:
    match statement:
        case syntax.Assign(
            targets=[syntax.AssignTarget(target=syntax.Attribute(value=syntax.Name(value="self"), attr=attr))], value=right
        ):
            match right:
                case syntax.Name(name) if name == value:
                    kept.add(attr.value)
                case syntax.Attribute(value=syntax.Name("self"), attr=syntax.Name(other)):
                    kept |= {attr.value, other}
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


def first_binding(script: Script, base: syntax.Name) -> Binding | None:
    """The first binding of a variable of the function that ``base`` stands in; None where it is one of another."""
    scope = script.names.scope(base)
    bindings = scope.bindings.get(base.value, []) if base.value not in scope.outer else []
    return bindings[0] if bindings else None


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
