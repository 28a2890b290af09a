"""How autocast enters a training step: what stands in the way, the statements to wrap, and whether the device is a GPU.

Everything here raises CannotEdit with the reason where a step cannot be rewritten safely.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.cures import outputs, spelling
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Edit
from speedlint.shapes.devices import is_of_cuda
from speedlint.shapes.model.networks import Network, network
from speedlint.shapes.precision import hazards
from speedlint.shapes.precision.hazards import Hazard
from speedlint.shapes.steps import CLIPS, Step, modules_of, run_without_gradients, step_network, training_steps
from speedlint.shapes.sync.reads import shown
from speedlint.shapes.training import model_placements, roots
from speedlint.solve.bound import is_bound
from speedlint.solve.gradients import SETTERS
from speedlint.solve.terms import Definition
from speedlint.solve.unpacking import all_written
from speedlint.torch.words import Role

_DOUBLES = ("torch.float64", "torch.double", "torch.DoubleTensor", "torch.cuda.DoubleTensor")
_TRAINED = (Role.MODULE, Role.OPTIMIZER)
_BUILT_IN = ("len", "print", "list", "sum", "str", "format", "isinstance", "hasattr", "id", "type")
_LEAVES_GRADIENTS = frozenset(
    "parameters named_parameters modules named_modules children train eval zero_grad state_dict step item log".split()
)
"""Methods of networks, optimizers and what writes logs that neither read nor change gradients before the step."""
_HOOKS = re.compile(rb"register_hook\(|_backward_hook\(|_grad_hook\(|register_comm_hook\(|post_accumulate_grad")
_LOOPS = (syntax.For, syntax.While)
_SUITES = (syntax.IndentedBlock, syntax.Module)
_ALLOWED = (syntax.SimpleStatementLine, syntax.If, syntax.With, syntax.For)
_LEAVES = (
    syntax.Return,
    syntax.Yield,
    syntax.Raise,
    syntax.Break,
    syntax.Continue,
    syntax.Del,
    syntax.Await,
    syntax.FunctionDef,
    syntax.ClassDef,
)


# What stands in the way


def refuse_hazards(step: Step, *, half: bool) -> None:
    """Raises where the step does what autocast (``half``: in float16) breaks, or runs code that is out of sight."""
    _refuse(step.script, step_network(step), hazards.of_step(step), half=half)
    _refuse_first(step.script, hazards.of_uses(step), half=half)
    for call in (call for statement in step.statements for call in step.script.source.inside(statement, syntax.Call)):
        if hazards.is_out_of_sight(step.script, call):
            raise CannotEdit(f"what `{step.script.text(call.func)}` computes is out of sight")


def refuse_module_hazards(script: Script, module: syntax.BaseExpression, *, half: bool) -> None:
    """The same for a module that a framework trains, its training step and loss among its methods."""
    _refuse(script, network(script, module), hazards.of_module(script, module), half=half)


def refuse_code_hazards(script: Script, code: syntax.Node, *, half: bool) -> None:
    """The same for a class or function, for what is seen of its code."""
    _refuse_first(script, hazards.of_code(script, code), half=half)


def refuse_known_hazards(script: Script, *, half: bool) -> None:
    """The same for all training steps of a program, for what is seen of their code."""
    for place in script.everywhere(b".backward("):
        for step in training_steps(place):
            _refuse_first(script, hazards.of_step(step), half=half)
        for loop in (place.loops.driving_loop(call) for call in place.method_calls("backward")):
            if loop is not None:
                _refuse_first(script, hazards.of_code(place, loop.body), half=half)


def _refuse(script: Script, made_of: Network, found: list[Hazard], *, half: bool) -> None:
    _refuse_first(script, found, half=half)
    if not made_of.is_known:
        raise CannotEdit("the code of the model or of the loss is out of sight, and may do what float16 breaks")
    if _is_double(script):
        raise CannotEdit("the script computes in double precision")


def _refuse_first(script: Script, found: list[Hazard], *, half: bool) -> None:
    for hazard in found:
        if half or not hazard.half_only:
            raise CannotEdit(hazard.told(script))


def _is_double(script: Script) -> bool:
    if not any(word in script.source.data for word in (b"double", b"float64", b"DoubleTensor")):
        return False
    names = (script.name(node) for node in (*script.source.of(syntax.Attribute), *script.source.of(syntax.Name)))
    return any(name in _DOUBLES for name in names) or any(
        not call.args and script.role(call.func.value) in (Role.TENSOR, Role.BATCH, Role.MODULE)
        for call in script.method_calls("double")
    )


def refuse_gradient_work(step: Step) -> None:
    """Raises where gradients are used by hand, several times, or by a closure: they would be scaled."""
    script = step.script
    if script.program.mentions(script, _HOOKS):
        raise CannotEdit("hooks on gradients would see them scaled")
    if len(step.backwards()) != 1:
        raise CannotEdit("the step has several backward passes")
    if step.backward.args:
        raise CannotEdit(f"`{script.text(step.backward)}` keeps the graph or takes a gradient")
    if (left := _left_before_update(step)) is not None:
        raise CannotEdit(f"`{script.text(left)}` before the optimizer's step would leave the loss scaler as it is")
    if any(
        attribute.attr.value == "grad"
        for attribute in script.source.inside(step.turn, syntax.Attribute)
        if script.name(attribute) is None
    ):
        raise CannotEdit("the step reads or changes gradients by hand")
    if (assigned := _assigned_gradients(script)) is not None:
        raise CannotEdit(f"gradients are kept in `{assigned}`, where they would be scaled")
    for call in step.calls():
        callee = script.callee(call)
        is_by_name = script.text(call.func) == "getattr" and "grad" in {_string(script, arg.value) for arg in call.args}
        if is_by_name or (callee is not None and _touches_gradients(callee)) or _is_handed_what_trains(step, call):
            raise CannotEdit(f"`{script.text(call.func)}` works on the gradients, which would be scaled")


def _left_before_update(step: Step) -> syntax.Node | None:
    """What goes on with the next turn, or leaves the loop, between the backward pass and the optimizer's step."""
    source, order, steps = step.script.source, step.script.source.order, step.optimizer_steps()
    loop = step.script.loops.driving_loop(step.backward)
    leaves = (each for kind in (syntax.Continue, syntax.Break) for each in source.inside(step.turn, kind))
    return next(
        (
            each
            for each in leaves
            if source.enclosing(each, *_LOOPS) is loop
            and order[step.backward] < order[each]
            and any(order[each] < order[call] for call in steps)
        ),
        None,
    )


def _string(script: Script, node: syntax.BaseExpression) -> object:
    known = script.constant(node)
    return known.value if known is not None else None


def _assigned_gradients(script: Script) -> str | None:
    """What the programs set gradients to, other than None: a part of a buffer, by which they may be clipped."""
    for other in script.everywhere(b".grad"):
        for target in other.source.of(syntax.AssignTarget):
            assign = other.source.parents[target]
            is_gradient = isinstance(target.target, syntax.Attribute) and target.target.attr.value == "grad"
            if is_gradient and isinstance(assign, syntax.Assign) and other.text(assign.value) != "None":
                return " ".join(other.text(assign.value).split())
    return None


def _is_handed_what_trains(step: Step, call: syntax.Call) -> bool:
    """Whether code that is not seen is given what trains between the backward pass and the optimizer's step."""
    script, order = step.script, step.script.source.order
    name, func = script.name(call.func), call.func
    if script.callee(call) is not None or (name is not None and name.startswith(("torch.", *_BUILT_IN))):
        return False
    steps = step.optimizer_steps()
    if not steps or not order[step.backward] < order[call] < order[steps[0]]:
        return False
    if name is None and isinstance(func, syntax.Attribute):
        if func.attr.value in _LEAVES_GRADIENTS:
            return False
        if script.role(func.value) in _TRAINED:
            return True
    given = [arg.value for arg in call.args]
    given += [
        each.func.value
        for each in given
        if isinstance(each, syntax.Call) and isinstance(each.func, syntax.Attribute) and "parameters" in each.func.attr.value
    ]
    return any(script.role(each) in _TRAINED for each in given)


def _touches_gradients(callee: Definition) -> bool:
    source = callee.script.source
    return any(
        a.attr.value == "grad" and callee.script.name(a) is None for a in source.inside(callee.node, syntax.Attribute)
    ) or any(callee.script.name(call.func) in CLIPS for call in source.inside(callee.node, syntax.Call))


# Autocast


def autocast_edits(step: Step, header: str) -> tuple[Edit, ...]:
    """Puts the statements from the first forward call to the loss under ``header``.

    Raises where they do more than compute, or what they give is used in float32 afterwards."""
    first, last = _wrapped_statements(step)
    _refuse_kept_casts(step, first, last)
    outputs.refuse_uses(step, wrapped=(first, last))
    return edits.wrap(step.script.source, first, last, header)


def _wrapped_statements(step: Step) -> tuple[syntax.Node, syntax.Node]:
    source = step.script.source
    suite = common_suite(step.script, step.statements)
    body = list(suite.body)
    places = sorted({child_index(step.script, body, node) for node in step.statements})
    backward = next((i for i, child in enumerate(body) if source.contains(child, step.backward)), None)
    if backward is not None and backward <= places[-1]:
        raise CannotEdit("the loss is computed in the statement that differentiates it, or after it")
    chosen = body[places[0] : places[-1] + 1]
    for statement in chosen:
        _refuse_leaving(step, statement)
    return chosen[0], chosen[-1]


def _refuse_kept_casts(step: Step, first: syntax.Node, last: syntax.Node) -> None:
    """Raises where a network that the step trains also runs without gradients from one statement to another: autocast keeps
    the casts of its weights until it ends, and those that are made under ``no_grad`` pass no gradients on."""
    script, order = step.script, step.script.source.order
    suite = script.source.parents[first]
    assert isinstance(suite, _SUITES)
    trained = [node for _, node in modules_of(step)]
    for statement in suite.body:
        if not order[first] <= order[statement] <= order[last]:
            continue
        for expression in script.source.inside(statement, syntax.Expr):
            if isinstance(expression.value, syntax.Call) and script.is_call_to(expression.value, *SETTERS):
                raise CannotEdit("gradients are switched by a statement in between")
        for place, call in run_without_gradients(script, statement):
            module = _module_of(place, call)
            made = roots(place, module) if module is not None else []
            is_other = bool(made and trained) and not any(node is each for _, node in made for each in trained)
            if not is_other or _is_part_of_network(place, call):
                raise CannotEdit(
                    f"`{shown(place, call)}` runs without gradients in between: autocast keeps its casts of the weights, "
                    "through which no gradient would pass"
                )


def _module_of(script: Script, call: syntax.Call) -> syntax.BaseExpression | None:
    """The network of which a call runs all or a part, itself or by a method of it; None for one of several."""
    module: syntax.BaseExpression = call.func
    while isinstance(module, syntax.Attribute) and script.role(module.value) is Role.MODULE:
        module = module.value
    return module if isinstance(module, syntax.Name | syntax.Attribute) and script.role(module) is Role.MODULE else None


def _is_part_of_network(script: Script, call: syntax.Call) -> bool:
    """Whether a call in the code of a network runs a part of it."""
    owner = script.source.enclosing(call, syntax.ClassDef)
    if not isinstance(owner, syntax.ClassDef) or not script.text(call.func).startswith("self."):
        return False
    return script.roles.instance(Definition(script, owner)).role is Role.MODULE


def common_suite(script: Script, nodes: tuple[syntax.Node, ...]) -> syntax.IndentedBlock | syntax.Module:
    """The innermost block that all nodes stand in."""
    for suite in script.source.ancestors(nodes[0]):
        if isinstance(suite, _SUITES) and all(script.source.contains(suite, node) for node in nodes):
            return suite
    raise CannotEdit("the statements do not stand in one block")


def child_index(script: Script, body: list[syntax.BaseStatement], node: syntax.Node) -> int:
    """Which statement of a block a node stands in."""
    return next(i for i, child in enumerate(body) if script.source.contains(child, node))


def _refuse_leaving(step: Step, statement: syntax.Node) -> None:
    """Raises where a statement does more than compute: leaves the block, defines, steps the optimizer."""
    source = step.script.source
    if not isinstance(statement, _ALLOWED):
        raise CannotEdit("there is more than plain statements between the forward call and the loss")
    for kind in _LEAVES:
        for node in source.inside(statement, kind):
            loop = source.enclosing(node, *_LOOPS)
            is_inner = (
                isinstance(node, (syntax.Break, syntax.Continue)) and loop is not None and source.contains(statement, loop)
            )
            if not is_inner:
                raise CannotEdit(f"`{step.script.text(node).split()[0]}` stands between the forward call and the loss")
    if any(source.contains(statement, call) for call in step.optimizer_steps()):
        raise CannotEdit("the optimizer steps between the forward call and the loss")


# Is it on a GPU at run time?


def cuda_condition_of_step(step: Step, at: syntax.Node) -> str:
    """The expression that says at ``at`` whether the step runs on a GPU; empty where it always does."""
    for node, is_call_to_cuda in _moves(step):
        condition = _condition(step.script, node) if is_call_to_cuda else _device_condition(step.script, node)
        if condition is None:
            continue
        expressions, text = condition
        if all(is_visible(step.script, expression, at) for expression in expressions):
            return text
    raise CannotEdit("the device is chosen out of sight")


def _moves(step: Step) -> Iterator[tuple[syntax.Call, bool]]:
    """The calls that put the batch and the model on the device, and whether they are ``.cuda()``."""
    script = step.script
    for call in script.source.inside(step.turn, syntax.Call):
        if (
            isinstance(call.func, syntax.Attribute)
            and call.func.attr.value in ("to", "cuda")
            and script.name(call.func) is None
        ):
            yield call, call.func.attr.value == "cuda"
    for placement in model_placements(script):
        for call in (placement.call, *placement.further):
            assert isinstance(call.func, syntax.Attribute)
            yield call, call.func.attr.value == "cuda"


def _condition(script: Script, call: syntax.Call) -> tuple[list[syntax.BaseExpression], str] | None:
    """The test under which ``x.cuda()`` runs."""
    child: syntax.Node = call
    for up in script.source.ancestors(call):
        if isinstance(up, syntax.FunctionDef):
            break
        if (isinstance(up, syntax.IfExp) and child is up.body) or (isinstance(up, syntax.If) and child is up.body):
            simple = isinstance(up.test, (syntax.Name, syntax.Attribute)) or script.is_call_to(
                up.test, "torch.cuda.is_available"
            )
            return ([up.test], script.text(up.test)) if simple else None
        if isinstance(up, (syntax.Else, syntax.IfExp, syntax.ExceptHandler)):
            return None
        child = up
    return [], ""


def _device_condition(script: Script, call: syntax.Call) -> tuple[list[syntax.BaseExpression], str] | None:
    """Whether the device that ``x.to(device)`` names is a GPU."""
    device = script.argument(call, "device", 0)
    if (
        device is None
        or script.roles.calls.is_dtype(device)
        or not isinstance(device, (syntax.Name, syntax.Attribute, syntax.SimpleString))
    ):
        return None
    if _is_cuda(script, device):
        return [], ""
    if isinstance(device, syntax.SimpleString):
        return None
    text = script.text(device)
    if isinstance(device, syntax.Attribute) and script.role(device.value) in (Role.TENSOR, Role.BATCH, Role.MODULE):
        return None
    if script.role(device) is Role.DEVICE:
        return [device], is_of_cuda(text)
    constructor, added = spelling.spell(script, "torch.device")
    return None if added else ([device], is_of_cuda(f"{constructor}({text})"))


def _is_cuda(script: Script, device: syntax.BaseExpression) -> bool:
    """Whether a device is written out as a GPU; the default of an option is not enough."""
    match device:
        case syntax.SimpleString():
            return str(device.evaluated_value).startswith("cuda")
        case syntax.Call(args=[syntax.Arg(value=inner)]) if script.is_call_to(device, "torch.device"):
            return _is_cuda(script, inner)
        case syntax.Name():
            values = all_written(script.names.reaching(device))
            return bool(values) and all(not isinstance(each, syntax.Name) and _is_cuda(script, each) for each in values)
    return False


def is_visible(script: Script, expression: syntax.BaseExpression, at: syntax.Node) -> bool:
    """Whether an expression means at ``at`` what it means where it is written."""
    names = script.names
    for name in script.source.inside(expression, syntax.Name):
        parent = script.source.parents[name]
        if isinstance(parent, syntax.Attribute) and parent.attr is name:
            continue
        if name.value == "self":
            if not same_class(script, name, at) or not _set_before(script, parent, at):
                return False
            continue
        is_same = names.scope(at).lookup(name.value) is names.scope(name).lookup(name.value)
        if not is_same or not is_bound(script, name.value, at):
            return False
    return True


def same_class(script: Script, left: syntax.Node, right: syntax.Node) -> bool:
    """Whether both nodes stand in methods of one class."""
    owners = [script.names.owner(f) if (f := script.function(node)) is not None else None for node in (left, right)]
    return owners[0] is not None and owners[0] is owners[1]


def _set_before(script: Script, attribute: syntax.Node, at: syntax.Node) -> bool:
    """Whether ``self.name`` is set when ``at`` runs: before it, or by another method."""
    function = script.function(at)
    owner = script.names.owner(function) if function is not None else None
    if owner is None or not isinstance(attribute, syntax.Attribute):
        return False
    values = [v for s, v in script.roles.self_assignments(Definition(script, owner), attribute.attr.value) if s is script]
    return any(script.function(value) is not function or script.order.runs_before(value, at) for value in values)
