"""How half precision enters a training step: the statements to wrap, the scaler and where it is made, saved and loaded.

Everything here raises CannotEdit with the reason where a step cannot be rewritten safely.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from speedlint import edits
from speedlint.edits import CannotEdit
from speedlint.rule import Edit
from speedlint.semantics import library
from speedlint.semantics.model import Definition, Role
from speedlint.semantics.names import Kind
from speedlint.semantics.networks import Hazard
from speedlint.semantics.script import Script
from speedlint.semantics.steps import CLIPS, Step, step_network
from speedlint.semantics.training import model_placements

_NAMES = ("scaler", "grad_scaler", "amp_scaler")
_LOOPS = (cst.For, cst.While)
_SUITES = (cst.IndentedBlock, cst.Module)
_ALLOWED = (cst.SimpleStatementLine, cst.If, cst.With, cst.For)
_LEAVES = (cst.Return, cst.Yield, cst.Raise, cst.Break, cst.Continue, cst.Del, cst.Await, cst.FunctionDef, cst.ClassDef)


# What stands in the way


def refuse_hazards(step: Step, *, half: bool) -> None:
    """Raises where the step does something that autocast (``half``: in float16) breaks, or runs code that is out of sight."""
    made_of = step_network(step)
    for hazard in made_of.hazards:
        if half or not hazard.half_only:
            raise CannotEdit(_told(step.script, hazard))
    if not made_of.is_known:
        raise CannotEdit("the code of the model or of the loss is out of sight, and may do what float16 breaks")
    if any(isinstance(a, cst.Name) and a.value in ("float64", "double", "DoubleTensor") for a in step.script.source.of(cst.Name)):
        raise CannotEdit("the script computes in double precision")


def _told(script: Script, hazard: Hazard) -> str:
    line = hazard.script.source.position(hazard.script.source.span(hazard.node).start)[0]
    where = f"line {line}" if hazard.script is script else f"{hazard.script.path.name} line {line}"
    return f"{where}: {hazard.why}"


def refuse_gradient_work(step: Step) -> None:
    """Raises where gradients are used by hand, several times, or by a closure: they would be scaled."""
    script = step.script
    if len(step.backwards()) != 1:
        raise CannotEdit("the step has several backward passes")
    if step.backward.args:
        raise CannotEdit(f"`{script.text(step.backward)}` keeps the graph or takes a gradient")
    if any(attribute.attr.value == "grad" for attribute in script.source.inside(step.turn, cst.Attribute)
           if script.name(attribute) is None):
        raise CannotEdit("the step reads or changes gradients by hand")
    for call in step.calls():
        callee = script.callee(call)
        if callee is not None and _touches_gradients(callee):
            raise CannotEdit(f"`{script.text(call.func)}` works on the gradients, which would be scaled")


def _touches_gradients(callee: Definition) -> bool:
    source = callee.script.source
    return any(a.attr.value == "grad" and callee.script.name(a) is None for a in source.inside(callee.node, cst.Attribute)) or any(
        callee.script.name(call.func) in CLIPS for call in source.inside(callee.node, cst.Call)
    )


# Autocast


def autocast_edits(step: Step, header: str) -> tuple[Edit, ...]:
    """Puts the statements from the first forward call to the loss under ``header``."""
    first, last = _wrapped_statements(step)
    return edits.wrap(step.script.source, first, last, header)


def _wrapped_statements(step: Step) -> tuple[cst.CSTNode, cst.CSTNode]:
    source = step.script.source
    suite = _common_suite(step.script, step.statements)
    body = list(suite.body)
    places = sorted({_child_index(step.script, body, node) for node in step.statements})
    backward = next((i for i, child in enumerate(body) if source.contains(child, step.backward)), None)
    if backward is not None and backward <= places[-1]:
        raise CannotEdit("the loss is computed in the statement that differentiates it, or after it")
    chosen = body[places[0] : places[-1] + 1]
    for statement in chosen:
        _refuse_leaving(step, statement)
    return chosen[0], chosen[-1]


def _common_suite(script: Script, nodes: tuple[cst.CSTNode, ...]) -> cst.IndentedBlock | cst.Module:
    for suite in script.source.ancestors(nodes[0]):
        if isinstance(suite, _SUITES) and all(script.source.contains(suite, node) for node in nodes):
            return suite
    raise CannotEdit("the statements do not stand in one block")


def _child_index(script: Script, body: list[cst.BaseStatement], node: cst.CSTNode) -> int:
    return next(i for i, child in enumerate(body) if script.source.contains(child, node))


def _refuse_leaving(step: Step, statement: cst.CSTNode) -> None:
    """Raises where a statement does more than compute: leaves the block, defines, steps the optimizer."""
    source = step.script.source
    if not isinstance(statement, _ALLOWED):
        raise CannotEdit("there is more than plain statements between the forward call and the loss")
    for kind in _LEAVES:
        for node in source.inside(statement, kind):
            loop = source.enclosing(node, *_LOOPS)
            is_inner = isinstance(node, (cst.Break, cst.Continue)) and loop is not None and source.contains(statement, loop)
            if not is_inner:
                raise CannotEdit(f"`{step.script.text(node).split()[0]}` stands between the forward call and the loss")
    if any(source.contains(statement, call) for call in step.optimizer_steps()):
        raise CannotEdit("the optimizer steps between the forward call and the loss")


# Is it on a GPU at run time?


def gpu_condition(step: Step, at: cst.CSTNode) -> str:
    """The expression that says at ``at`` whether the step runs on a GPU; empty where it always does."""
    for node, is_call_to_cuda in _moves(step):
        condition = _condition(step.script, node) if is_call_to_cuda else _device_condition(step.script, node)
        if condition is None:
            continue
        expressions, text = condition
        if all(_is_visible(step.script, expression, at) for expression in expressions):
            return text
    raise CannotEdit("the device is chosen out of sight")


def _moves(step: Step) -> Iterator[tuple[cst.Call, bool]]:
    """The calls that put the batch and the model on the device, and whether they are ``.cuda()``."""
    script = step.script
    for call in script.source.inside(step.turn, cst.Call):
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in ("to", "cuda") and script.name(call.func) is None:
            yield call, call.func.attr.value == "cuda"
    for placement in model_placements(script):
        for call in (placement.call, *placement.further):
            assert isinstance(call.func, cst.Attribute)
            yield call, call.func.attr.value == "cuda"


def _condition(script: Script, call: cst.Call) -> tuple[list[cst.BaseExpression], str] | None:
    """The test under which ``x.cuda()`` runs."""
    child: cst.CSTNode = call
    for up in script.source.ancestors(call):
        if isinstance(up, cst.FunctionDef):
            break
        if isinstance(up, cst.IfExp) and child is up.body or isinstance(up, cst.If) and child is up.body:
            simple = isinstance(up.test, (cst.Name, cst.Attribute)) or script.is_call_to(up.test, "torch.cuda.is_available")
            return ([up.test], script.text(up.test)) if simple else None
        if isinstance(up, (cst.Else, cst.IfExp, cst.ExceptHandler)):
            return None
        child = up
    return [], ""


def _device_condition(script: Script, call: cst.Call) -> tuple[list[cst.BaseExpression], str] | None:
    """Whether the device that ``x.to(device)`` names is a GPU."""
    device = script.argument(call, "device", 0)
    if device is None or script.roles.calls.is_dtype(device) or not isinstance(device, (cst.Name, cst.Attribute, cst.SimpleString)):
        return None
    if _is_cuda(script, device):
        return [], ""
    if isinstance(device, cst.SimpleString):
        return None
    text = script.text(device)
    if isinstance(device, cst.Attribute) and script.role(device.value) in (Role.TENSOR, Role.BATCH, Role.MODULE):
        return None
    if script.role(device) is Role.DEVICE:
        return [device], f'{text}.type == "cuda"'
    constructor, added = script.spell("torch.device")
    return None if added else ([device], f'{constructor}({text}).type == "cuda"')


def _is_cuda(script: Script, device: cst.BaseExpression) -> bool:
    """Whether a device is written out as a GPU; the default of an option is not enough."""
    match device:
        case cst.SimpleString():
            return str(device.evaluated_value).startswith("cuda")
        case cst.Call(args=[cst.Arg(value=inner)]) if script.is_call_to(device, "torch.device"):
            return _is_cuda(script, inner)
        case cst.Name():
            found = script.names.reaching(device)
            return bool(found) and all(b.kind is Kind.ASSIGN and not b.path and b.value is not None
                                       and not isinstance(b.value, cst.Name) and _is_cuda(script, b.value) for b in found)
    return False


def _is_visible(script: Script, expression: cst.BaseExpression, at: cst.CSTNode) -> bool:
    """Whether an expression means at ``at`` what it means where it is written."""
    names, order = script.names, script.source.order
    for name in script.source.inside(expression, cst.Name):
        parent = script.source.parents[name]
        if isinstance(parent, cst.Attribute) and parent.attr is name:
            continue
        if name.value == "self":
            if not _same_class(script, name, at) or not _set_before(script, parent, at):
                return False
            continue
        here = names.scope(at).lookup(name.value)
        if here is None or here is not names.scope(name).lookup(name.value):
            return False
        own = here is names.scope(at)
        bindings = here.bindings[name.value]
        if own and not any(b.effect < order[at] and b.region is None or b.kind is Kind.PARAMETER for b in bindings):
            if not any(b.effect < order[at] and script.source.contains(script.source.parents[b.region], at)
                       for b in bindings if b.region is not None):
                return False
    return True


def _same_class(script: Script, left: cst.CSTNode, right: cst.CSTNode) -> bool:
    owners = [script.names.owner(f) if (f := script.function(node)) is not None else None for node in (left, right)]
    return owners[0] is not None and owners[0] is owners[1]


def _set_before(script: Script, attribute: cst.CSTNode, at: cst.CSTNode) -> bool:
    """Whether ``self.name`` is set when ``at`` runs: above it, or by another method."""
    function = script.function(at)
    owner = script.names.owner(function) if function is not None else None
    if owner is None or not isinstance(attribute, cst.Attribute):
        return False
    values = [v for s, v in script.roles.self_assignments(Definition(script, owner), attribute.attr.value) if s is script]
    return any(script.function(value) is not function or script.source.order[value] < script.source.order[at] for value in values)


def enabled_as(script: Script, autocast: cst.Call, at: cst.CSTNode) -> str:
    """What makes a scaler at ``at`` enabled when an autocast is; empty where it always is."""
    old = script.name(autocast.func) == "torch.cuda.amp.autocast"
    enabled = script.argument(autocast, "enabled", 0 if old else 2)
    if enabled is None:
        return ""
    if not isinstance(enabled, (cst.Name, cst.Attribute)) or not _is_visible(script, enabled, at):
        raise CannotEdit("whether autocast is enabled is decided out of the scaler's sight")
    return "" if script.text(enabled) == "True" else script.text(enabled)


# The scaler


@dataclass(frozen=True, slots=True)
class Scaling:
    """The edits that scale a step's loss, and the name of the scaler."""

    scaler: str
    edits: tuple[Edit, ...]


def scaling(step: Step, autocast: cst.Call | None = None) -> Scaling:
    """Makes a scaler beside the optimizer, and scales, unscales, steps, updates, saves and loads with it.

    It is enabled where ``autocast``, the one that is there already, is.
    """
    script, source = step.script, step.script.source
    refuse_gradient_work(step)
    call = _only_step(step)
    assert isinstance(call.func, cst.Attribute)
    optimizer = call.func.value
    made_after = _where_made(step, optimizer)
    scaler = _free_name(script, optimizer)
    condition = gpu_condition(step, made_after) if autocast is None else enabled_as(script, autocast, made_after)
    constructor, imports = _constructor(script, condition)
    unscaled = source.data[slice(*source.code_span(step.loss))].decode(source.encoding)
    found = [*imports, edits.insert_after(source, made_after, [f"{scaler} = {constructor}"])]
    found.append(edits.replace(source, step.loss, f"{scaler}.scale({unscaled})"))
    found += unscale_edits(script, step.backward, step.clips(), scaler, call, script.text(optimizer))
    found.append(edits.replace(source, call, f"{scaler}.step({script.text(optimizer)})"))
    found.append(edits.insert_after(source, call, [f"{scaler}.update()"]))
    found += _checkpoint_edits(step, optimizer, scaler, made_after)
    return Scaling(scaler, tuple(found))


def _constructor(script: Script, condition: str) -> tuple[str, tuple[Edit, ...]]:
    enabled = f"enabled={condition}" if condition else ""
    if (script.options.torch or (0, 0)) >= (2, 3):
        name, imports = script.spell("torch.amp.GradScaler")
        return f'{name}("cuda"{", " if enabled else ""}{enabled})', imports
    name, imports = script.spell("torch.cuda.amp.GradScaler")
    return f"{name}({enabled})", imports


def _only_step(step: Step) -> cst.Call:
    script, steps = step.script, step.optimizer_steps()
    if not steps:
        raise CannotEdit("the optimizer's step is not in the function of the backward pass")
    if len(steps) > 1:
        raise CannotEdit("the step has several optimizer steps")
    if steps[0].args:
        raise CannotEdit(f"`{script.text(steps[0])}` is given a closure")
    if not isinstance(script.source.parents[steps[0]], cst.Expr):
        raise CannotEdit(f"the result of `{script.text(steps[0])}` is used")
    return steps[0]


def _free_name(script: Script, optimizer: cst.BaseExpression) -> str:
    taken = {name.value for name in script.source.of(cst.Name)}
    name = next((name for name in _NAMES if name not in taken), None)
    if name is None:
        raise CannotEdit("the names for a scaler are taken")
    return f"self.{name}" if isinstance(optimizer, cst.Attribute) else name


def _where_made(step: Step, optimizer: cst.BaseExpression) -> cst.CSTNode:
    """The statement after which the scaler is made: the one that makes the optimizer, or all branches that do."""
    script, source = step.script, step.script.source
    if isinstance(optimizer, cst.Attribute):
        return _made_on_self(step, optimizer)
    if not isinstance(optimizer, cst.Name):
        raise CannotEdit("where the optimizer is made is out of sight")
    bindings = script.names.reaching(optimizer)
    if any(binding.kind is Kind.PARAMETER for binding in bindings):
        raise CannotEdit(f"`{optimizer.value}` is passed in: a scaler must be made once, beside it, and passed in too")
    nodes = tuple(b.node for b in bindings if b.kind is Kind.ASSIGN and b.value is not None and not b.path)
    if not nodes or len(nodes) != len(bindings):
        raise CannotEdit(f"where `{optimizer.value}` is made is out of sight")
    if not all(_is_torch_optimizer(script, b.value) for b in bindings if b.value is not None):
        raise CannotEdit(f"`{optimizer.value}` is not one of torch's optimizers")
    function = script.function(nodes[0])
    if function not in (None, script.function(step.backward)):
        raise CannotEdit(f"`{optimizer.value}` is made in another function")
    around = (*nodes, step.backward) if function is script.function(step.backward) else nodes
    suite = _common_suite(script, tuple(source.statement(node) for node in around))
    last = max(nodes, key=source.order.__getitem__)
    child = suite.body[_child_index(script, list(suite.body), last)]
    _refuse_repeated(step, child)
    return child


def _is_torch_optimizer(script: Script, value: cst.BaseExpression) -> bool:
    made = script.value(value).made
    name = made.script.name(made.call.func) if made is not None else None
    return name is not None and not name.endswith("LBFGS") and (name.startswith("torch.optim.") or name in library.LEGACY_OPTIMIZERS)


def _refuse_repeated(step: Step, statement: cst.CSTNode) -> None:
    """Raises where the optimizer is made anew each epoch."""
    loops = [up for up in step.script.source.ancestors(step.backward) if isinstance(up, _LOOPS)]
    if any(step.script.source.contains(loop, statement) for loop in loops[:2]):
        raise CannotEdit("the optimizer is made in the training loop, so the scaler would start anew")


def _made_on_self(step: Step, optimizer: cst.Attribute) -> cst.CSTNode:
    script = step.script
    function = script.function(step.backward)
    owner = script.names.owner(function) if function is not None else None
    is_own = isinstance(optimizer.value, cst.Name) and optimizer.value.value == "self"
    if owner is None or not is_own:
        raise CannotEdit("where the optimizer is made is out of sight")
    made = list(script.roles.self_assignments(Definition(script, owner), optimizer.attr.value))
    if len(made) != 1 or made[0][0] is not script or not _is_torch_optimizer(script, made[0][1]):
        raise CannotEdit(f"`{script.text(optimizer)}` is not made in one place in sight")
    statement = script.source.statement(made[0][1])
    if script.names.owner(script.function(statement) or function) is not owner or script.function(statement) is None:  # type: ignore[arg-type]
        raise CannotEdit(f"`{script.text(optimizer)}` is made in another class")
    _refuse_repeated(step, statement)
    return statement


# Clipping


def unscale_edits(
    script: Script, backward: cst.Call, clips: list[cst.Call], scaler: str, optimizer_step: cst.Call, optimizer: str
) -> tuple[Edit, ...]:
    """Unscales the gradients before they are clipped, once for each optimizer step."""
    source = script.source
    if not clips:
        return ()
    suite = source.parents[source.statement(optimizer_step)]
    body = [*suite.body] if isinstance(suite, _SUITES) else []
    first = min(clips, key=source.order.__getitem__)
    child = next((statement for statement in body if source.contains(statement, first)), None)
    if child is None or isinstance(child, _LOOPS) or not all(source.contains(suite, clip) for clip in clips):
        raise CannotEdit("gradients are clipped more often than the optimizer steps")
    if source.order[child] < source.order[source.statement(backward)]:
        raise CannotEdit("gradients are clipped before the backward pass")
    return (edits.insert_before(source, child, [f"{scaler}.unscale_({optimizer})"]),)


def scaled_clips(backward: cst.Call, script: Script) -> tuple[cst.Call, str, list[cst.Call]] | None:
    """The first clipping of what ``scaler.scale(loss).backward()`` left scaled, the scaler, and the ``scaler.step`` calls."""
    match backward:
        case cst.Call(func=cst.Attribute(value=cst.Call(func=cst.Attribute(value=scaler, attr=cst.Name("scale"))),
                                         attr=cst.Name("backward"))) if script.role(scaler) is Role.SCALER:
            pass
        case _:
            return None
    function = script.function(backward)
    around: cst.CSTNode = function if function is not None else script.source.module
    calls = [call for call in script.source.inside(around, cst.Call) if script.function(call) is function]
    order = script.source.order
    unscaled = [call for call in calls if isinstance(call.func, cst.Attribute) and call.func.attr.value == "unscale_"]
    clips = [call for call in calls if script.name(call.func) in CLIPS and order[call] > order[backward]]
    later = [call for call in calls if _is_scaled_backward(script, call) and order[call] > order[backward]]
    clips = [clip for clip in clips if not any(order[other] < order[clip] for other in later)]
    if unscaled or not clips or _calls_unscale(script, calls):
        return None
    text = script.text(scaler)
    steps = [call for call in calls if isinstance(call.func, cst.Attribute) and call.func.attr.value == "step"
             and script.text(call.func.value) == text and order[call] > order[backward]]
    return clips[0], text, steps


def _is_scaled_backward(script: Script, call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and call.func.attr.value == "backward" and "scale(" in script.text(call.func)


def _calls_unscale(script: Script, calls: list[cst.Call]) -> bool:
    """Whether a first-party function that is called there unscales."""
    for call in calls:
        callee = script.callee(call)
        if callee is not None:
            inner = (c.func for c in callee.script.source.inside(callee.node, cst.Call))
            if any(isinstance(func, cst.Attribute) and func.attr.value == "unscale_" for func in inner):
                return True
    return False


# Checkpoints


def _checkpoint_edits(step: Step, optimizer: cst.BaseExpression, scaler: str, made: cst.CSTNode) -> Iterator[Edit]:
    script = step.script
    for other in script.neighbours:
        for call in other.method_calls("state_dict", "load_state_dict"):
            if isinstance(call.func, cst.Attribute) and other.role(call.func.value) is Role.OPTIMIZER:
                raise CannotEdit(f"{other.path.name} saves or loads the optimizer's state, and must do so with the scaler's")
    for call in script.method_calls("state_dict", "load_state_dict"):
        assert isinstance(call.func, cst.Attribute)
        if script.role(call.func.value) is not Role.OPTIMIZER:
            continue
        if script.text(call.func.value) != script.text(optimizer) or not _sees(script, optimizer, call, made):
            raise CannotEdit("the optimizer's state is saved or loaded where a scaler is not in sight")
        yield _saved(script, call, scaler) if call.func.attr.value == "state_dict" else _loaded(script, call, scaler)


def _sees(script: Script, optimizer: cst.BaseExpression, call: cst.Call, made: cst.CSTNode) -> bool:
    """Whether the call stands where the scaler that is made after ``made`` is bound."""
    if isinstance(optimizer, cst.Attribute):
        later = script.function(call) is not script.function(made)
        return _same_class(script, call, made) and (later or script.source.order[call] > script.source.order[made])
    here = script.function(call)
    if script.function(made) is None and here is not None:
        return True
    return script.function(made) is here and script.source.order[call] > script.source.order[made]


def _saved(script: Script, call: cst.Call, scaler: str) -> Edit:
    entry = script.source.parents[call]
    if not isinstance(entry, cst.DictElement) or entry.value is not call or not isinstance(entry.key, cst.SimpleString):
        raise CannotEdit("the optimizer's state is not saved in a dict literal")
    span = script.source.span(call)
    line = script.source.position(script.source.span(entry).start)[0]
    before = script.source.line_text(line)
    own_line = before.strip().startswith(script.text(entry.key))
    quote = entry.key.quote
    text = f"{quote}scaler{quote}: {scaler}.state_dict()"
    indent = before[: len(before) - len(before.lstrip())]
    return Edit(script.path, span.end, span.end, f",\n{indent}{text}" if own_line else f", {text}")


def _loaded(script: Script, call: cst.Call, scaler: str) -> Edit:
    match call.args:
        case [cst.Arg(value=cst.Subscript(value=cst.Name() as saved, slice=[cst.SubscriptElement(cst.Index(cst.SimpleString()))]))]:
            lines = [f'if {saved.value}.get("scaler"):', f'    {scaler}.load_state_dict({saved.value}["scaler"])']
            return edits.insert_after(script.source, call, lines)
    raise CannotEdit("the optimizer's state is not loaded from an entry of a checkpoint")
