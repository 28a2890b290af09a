"""How a GradScaler enters a training step: where it is made, what it scales and unscales, and its place in checkpoints.

Everything here raises CannotEdit with the reason where a step cannot be rewritten safely.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.cures import spelling
from speedlint.cures.halves import (
    child_index,
    common_suite,
    cuda_condition_of_step,
    is_visible,
    refuse_gradient_work,
    same_class,
)
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Edit
from speedlint.shapes import eras
from speedlint.shapes.optimizer.optimizers import has_momentum, loads_state, may_be_watched
from speedlint.shapes.steps import CLIPS, Step, training_steps
from speedlint.shapes.training import roots
from speedlint.solve.names import Kind
from speedlint.solve.terms import Definition
from speedlint.source import is_name
from speedlint.torch import library
from speedlint.torch.words import Role

_NAMES = ("scaler", "grad_scaler", "amp_scaler")
_SPELLED_SINCE = (2, 3)
"""The release that brought ``torch.amp.GradScaler``; the older spelling is deprecated since the next one."""
_OF_SKIPPED = (
    (re.compile(rb"detect_anomaly\("), "the search for anomalies raises where the first scale is too large"),
    (
        re.compile(rb"(?:simplefilter|filterwarnings)\(\s*[\"']error"),
        "warnings are errors, and a scheduler warns where a scaler skips the first step",
    ),
    (re.compile(rb"\.state\["), "the optimizer's state is read, which is empty where a scaler skips the first step"),
)
"""What a program says that minds a step which the scaler skips since a gradient is infinite (GradScaler.step)."""
_LOOPS = (syntax.For, syntax.While)
_COMPREHENSIONS = (syntax.ListComp, syntax.GeneratorExp, syntax.DictComp, syntax.SetComp)
_SUITES = (syntax.IndentedBlock, syntax.Module)


def enabled_as(script: Script, autocast: syntax.Call, at: syntax.Node) -> str:
    """What makes a scaler at ``at`` enabled when an autocast is; empty where it always is."""
    old = script.name(autocast.func) == "torch.cuda.amp.autocast"
    enabled = script.argument(autocast, "enabled", 0 if old else 2)
    if enabled is None:
        return ""
    if not isinstance(enabled, (syntax.Name, syntax.Attribute)) or not is_visible(script, enabled, at):
        raise CannotEdit("whether autocast is enabled is decided out of the scaler's sight")
    return "" if script.text(enabled) == "True" else script.text(enabled)


# The scaler


class Scaling(NamedTuple):
    """The edits that scale a step's loss, and the name of the scaler."""

    scaler: str
    edits: tuple[Edit, ...]


def scaling(step: Step, autocast: syntax.Call | None = None) -> Scaling:
    """Makes a scaler beside the optimizer, and scales, unscales, steps, updates, saves and loads with it.

    It is enabled where ``autocast``, the one that is there already, is.
    """
    script, source = step.script, step.script.source
    refuse_gradient_work(step)
    for mark, why in _OF_SKIPPED:
        if script.program.mentions(script, mark):
            raise CannotEdit(why)
    call = _only_step(step)
    assert isinstance(call.func, syntax.Attribute)
    optimizer = call.func.value
    made_after = _where_made(step, optimizer)
    scaler = _free_name(step, optimizer)
    condition = cuda_condition_of_step(step, made_after) if autocast is None else enabled_as(script, autocast, made_after)
    constructor, imports = _constructor(script, condition)
    unscaled = source.data[slice(*source.code_span(step.loss))].decode(source.encoding)
    found = [*imports, edits.insert_after(source, made_after, [f"{scaler} = {constructor}"])]
    found.append(edits.replace(source, step.loss, f"{scaler}.scale({unscaled})"))
    found += unscale_edits(script, step.backward, step.clips(), scaler, call, script.text(optimizer))
    found.append(edits.replace(source, call, f"{scaler}.step({script.text(optimizer)})"))
    found.append(edits.insert_after(source, call, [f"{scaler}.update()"]))
    found += _checkpoint_edits(step, optimizer, scaler, made_after)
    return Scaling(scaler, tuple(found))


def spelled_constructor(script: Script) -> str:
    """How a scaler is made in the release that the script targets, for a message."""
    return 'torch.amp.GradScaler("cuda")' if eras.is_for(script, _SPELLED_SINCE) else "torch.cuda.amp.GradScaler()"


def _constructor(script: Script, condition: str) -> tuple[str, tuple[Edit, ...]]:
    enabled = f"enabled={condition}" if condition else ""
    if eras.is_for(script, _SPELLED_SINCE):
        name, imports = spelling.spell(script, "torch.amp.GradScaler")
        return f'{name}("cuda"{", " if enabled else ""}{enabled})', imports
    name, imports = spelling.spell(script, "torch.cuda.amp.GradScaler")
    return f"{name}({enabled})", imports


def _only_step(step: Step) -> syntax.Call:
    script, steps = step.script, step.optimizer_steps()
    if not steps:
        raise CannotEdit("the optimizer's step is not in the function of the backward pass")
    if len(steps) > 1:
        raise CannotEdit("the step has several optimizer steps")
    if steps[0].args:
        raise CannotEdit(f"`{script.text(steps[0])}` is given a closure")
    if not isinstance(script.source.parents[steps[0]], syntax.Expr):
        raise CannotEdit(f"the result of `{script.text(steps[0])}` is used")
    return steps[0]


def _free_name(step: Step, optimizer: syntax.BaseExpression) -> str:
    """The name of the scaler beside an optimizer: another one for each optimizer of a scope or class."""
    script, home = step.script, _home(step.script, optimizer)
    names = (*_NAMES, *(f"{_NAMES[0]}_{number}" for number in range(1, 100)))
    taken = {name.value for name in script.source.of(syntax.Name)}
    taken |= {name for name in names[: len(_NAMES)] if _is_spoken_of(script, name)}
    free = (name for name in names if name not in taken)
    calls = [call for each in training_steps(script) for call in each.optimizer_steps()]
    stepped = [call.func.value for call in calls if isinstance(call.func, syntax.Attribute)]
    beside = [each for each in stepped if script.role(each) is Role.OPTIMIZER and _home(script, each) is home]
    named = list(dict.fromkeys(script.text(each) for each in beside))
    own = script.text(optimizer)
    name = next(islice(free, named.index(own) if own in named else len(named), None), None)
    if name is None:
        raise CannotEdit("the names for a scaler are taken")
    return f"self.{name}" if isinstance(optimizer, syntax.Attribute) else name


def _is_spoken_of(script: Script, name: str) -> bool:
    """Whether another file of the programs, or a string of this one, has a name: as an attribute or the key of a checkpoint
    it may be another thing."""
    word = re.compile(rb"\b" + name.encode() + rb"\b")
    if any(string.evaluated_value == name for string in script.source.of(syntax.SimpleString)):
        return True
    return any(True for _ in script.program.others(script, word))


def _home(script: Script, optimizer: syntax.BaseExpression) -> object:
    """The scope of a variable, or the class whose attribute it is."""
    if isinstance(optimizer, syntax.Name):
        return script.names.scope(optimizer).lookup(optimizer.value)
    function = script.function(optimizer)
    return script.names.owner(function) if function is not None else None


def _where_made(step: Step, optimizer: syntax.BaseExpression) -> syntax.Node:
    """The statement after which the scaler is made: the one that makes the optimizer, or all branches that do."""
    script, source = step.script, step.script.source
    if isinstance(optimizer, syntax.Attribute):
        return _made_on_self(step, optimizer)
    if not isinstance(optimizer, syntax.Name):
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
    suite = common_suite(script, tuple(source.statement(node) for node in around))
    last = max(nodes, key=source.order.__getitem__)
    child = suite.body[child_index(script, list(suite.body), last)]
    _refuse_repeated(step, child)
    return child


def _is_torch_optimizer(script: Script, value: syntax.BaseExpression) -> bool:
    """Whether an optimizer is one of torch's.

    Raises CannotEdit for a fused one that hooks watch, or a fused SGD with momentum: where a scaler skips the first step,
    its momentum is never set.
    """
    made = script.value(value).made
    name = made.script.name(made.call.func) if made is not None else None
    if made is not None and made.script.argument(made.call, "fused") is not None:
        if has_momentum(made):
            raise CannotEdit("the momentum of a fused SGD starts unset where a scaler skips the first step: use bfloat16")
        if loads_state(script):
            raise CannotEdit("a state that was saved before turns the fused step off, which a loss scaler takes to be on")
        if may_be_watched(script):
            raise CannotEdit("what watches the steps of a fused optimizer would see those that the scaler skips")
    return (
        name is not None
        and not name.endswith("LBFGS")
        and (name.startswith("torch.optim.") or name in library.LEGACY_OPTIMIZERS)
    )


def _refuse_repeated(step: Step, statement: syntax.Node) -> None:
    """Raises where the optimizer is made again and again: each epoch, or by a function that a loop calls, as for each client
    of a round. A scaler starts at a scale that is too large, and skips steps until it is not (``GradScaler.init_scale``)."""
    loops = [up for up in step.script.source.ancestors(step.backward) if isinstance(up, _LOOPS)]
    if any(step.script.source.contains(loop, statement) for loop in loops[:2]):
        raise CannotEdit("the optimizer is made in the training loop, so the scaler would start anew")
    if _is_called_in_loop(step.script, statement, set()):
        raise CannotEdit("a loop makes the optimizer anew, and each new scaler skips steps at first: use bfloat16")


def _is_called_in_loop(script: Script, node: syntax.Node, seen: set[syntax.Node]) -> bool:
    """Whether a loop is around a known call by which a node runs, in whatever function that stands."""
    function = script.function(node)
    if function is None or function in seen:
        return False
    seen.add(function)
    return any(
        place.source.enclosing(call, *_LOOPS, *_COMPREHENSIONS) is not None or _is_called_in_loop(place, call, seen)
        for place, call in script.call_sites(function)
    )


def _made_on_self(step: Step, optimizer: syntax.Attribute) -> syntax.Node:
    script = step.script
    function = script.function(step.backward)
    owner = script.names.owner(function) if function is not None else None
    is_own = is_name(optimizer.value, "self")
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
    script: Script, backward: syntax.Call, clips: list[syntax.Call], scaler: str, optimizer_step: syntax.Call, optimizer: str
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
    if not script.order.may_run_before(backward, first):
        raise CannotEdit("gradients are clipped before the backward pass")
    return (edits.insert_before(source, child, [f"{scaler}.unscale_({optimizer})"]),)


def scaled_clips(backward: syntax.Call, script: Script) -> tuple[syntax.Call, str, list[syntax.Call]] | None:
    """The first clipping of gradients that ``scaler.scale(loss).backward()`` left scaled, the scaler, and its step calls."""
    match backward:
        case syntax.Call(
            func=syntax.Attribute(
                value=syntax.Call(func=syntax.Attribute(value=scaler, attr=syntax.Name("scale"))),
                attr=syntax.Name("backward"),
            )
        ) if script.role(scaler) is Role.SCALER:
            pass
        case _:
            return None
    function = script.function(backward)
    around: syntax.Node = function if function is not None else script.source.module
    calls = [call for call in script.source.inside(around, syntax.Call) if script.function(call) is function]
    order = script.order
    unscaled = [call for call in calls if isinstance(call.func, syntax.Attribute) and call.func.attr.value == "unscale_"]
    clips = [call for call in calls if script.name(call.func) in CLIPS and order.may_run_before(backward, call)]
    later = [call for call in calls if _is_scaled_backward(script, call) and order.may_run_before(backward, call)]
    clips = [clip for clip in clips if not any(order.may_run_before(other, clip) for other in later)]
    if unscaled or not clips or _calls_unscale(script, calls):
        return None
    text = script.text(scaler)
    steps = [
        call
        for call in calls
        if isinstance(call.func, syntax.Attribute)
        and call.func.attr.value == "step"
        and script.text(call.func.value) == text
        and order.may_run_before(backward, call)
    ]
    return clips[0], text, steps


def _is_scaled_backward(script: Script, call: syntax.Call) -> bool:
    return (
        isinstance(call.func, syntax.Attribute) and call.func.attr.value == "backward" and "scale(" in script.text(call.func)
    )


def _calls_unscale(script: Script, calls: list[syntax.Call]) -> bool:
    """Whether a first-party function that is called there unscales."""
    for call in calls:
        callee = script.callee(call)
        if callee is not None:
            inner = (c.func for c in callee.script.source.inside(callee.node, syntax.Call))
            if any(isinstance(func, syntax.Attribute) and func.attr.value == "unscale_" for func in inner):
                return True
    return False


# Checkpoints


def _checkpoint_edits(step: Step, optimizer: syntax.BaseExpression, scaler: str, made: syntax.Node) -> Iterator[Edit]:
    script = step.script
    for other in script.program.others(script, b"state_dict"):
        for call in other.method_calls("state_dict", "load_state_dict"):
            if isinstance(call.func, syntax.Attribute) and other.role(call.func.value) is Role.OPTIMIZER:
                raise CannotEdit(f"{other.path.name} saves or loads the optimizer's state, and must do so with the scaler's")
    for call in script.method_calls("state_dict", "load_state_dict"):
        assert isinstance(call.func, syntax.Attribute)
        if script.role(call.func.value) is not Role.OPTIMIZER or _is_another(script, call.func.value, optimizer):
            continue
        if script.text(call.func.value) != script.text(optimizer) or not _sees(script, optimizer, call, made):
            raise CannotEdit("the optimizer's state is saved or loaded where a scaler is not in sight")
        _refuse_parts(script)
        yield _saved(script, call, scaler) if call.func.attr.value == "state_dict" else _loaded(script, call, scaler)


def _refuse_parts(script: Script) -> None:
    """Raises where checkpoints are loaded entry by entry: into what has the name of the entry, of which a scaler is none."""
    for other in script.everywhere(b"load_state_dict"):
        for call in other.method_calls("load_state_dict"):
            if isinstance(call.func, syntax.Attribute) and isinstance(call.func.value, syntax.Subscript):
                raise CannotEdit(f"`{other.text(call.func)}` loads a checkpoint part by part, and no scaler is one of them")


def _is_another(script: Script, left: syntax.BaseExpression, right: syntax.BaseExpression) -> bool:
    """Whether two expressions are optimizers that different calls make, for certain."""
    first, second = roots(script, left), roots(script, right)
    made = all(isinstance(node, syntax.Call) for _, node in (*first, *second))
    return bool(first) and made and not {id(node) for _, node in first} & {id(node) for _, node in second}


def _sees(script: Script, optimizer: syntax.BaseExpression, call: syntax.Call, made: syntax.Node) -> bool:
    """Whether the call stands where the scaler that is made after ``made`` is bound."""
    if isinstance(optimizer, syntax.Attribute):
        later = script.function(call) is not script.function(made)
        return same_class(script, call, made) and (later or script.order.runs_before(made, call))
    here = script.function(call)
    if script.function(made) is None and here is not None:
        return True
    return script.function(made) is here and script.order.runs_before(made, call)


def _saved(script: Script, call: syntax.Call, scaler: str) -> Edit:
    entry = script.source.parents[call]
    if (
        not isinstance(entry, syntax.DictElement)
        or entry.value is not call
        or not isinstance(entry.key, syntax.SimpleString)
    ):
        raise CannotEdit("the optimizer's state is not saved in a dict literal")
    span = script.source.span(call)
    line = script.source.position(script.source.span(entry).start)[0]
    before = script.source.line_text(line)
    own_line = before.strip().startswith(script.text(entry.key))
    quote = entry.key.quote
    text = f"{quote}{_key(scaler)}{quote}: {scaler}.state_dict()"
    indent = before[: len(before) - len(before.lstrip())]
    return Edit(script.path, span.end, span.end, f",\n{indent}{text}" if own_line else f", {text}")


def _key(scaler: str) -> str:
    """What the state of a scaler is called in a checkpoint."""
    return scaler.rpartition(".")[2]


def _loaded(script: Script, call: syntax.Call, scaler: str) -> Edit:
    match call.args:
        case [
            syntax.Arg(
                value=syntax.Subscript(
                    value=syntax.Name() as saved, slice=[syntax.SubscriptElement(syntax.Index(syntax.SimpleString()))]
                )
            )
        ]:
            key = _key(scaler)
            lines = [f'if {saved.value}.get("{key}"):', f'    {scaler}.load_state_dict({saved.value}["{key}"])']
            return edits.insert_after(script.source, call, lines)
    raise CannotEdit("the optimizer's state is not loaded from an entry of a checkpoint")
