"""Means to find faults that slow down all they are around: anomaly detection, profilers; and whether it is training."""

from __future__ import annotations

import re

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes.backend import intent
from speedlint.solve.flow import once
from speedlint.solve.loops import Does
from speedlint.solve.names import Kind
from speedlint.solve.values import returned
from speedlint.source import last_statement
from speedlint.torch.words import FREQUENT, Frequency, Role

SETTERS = ("torch.autograd.set_detect_anomaly", "torch.autograd.anomaly_mode.set_detect_anomaly")
ANOMALY = (*SETTERS, "torch.autograd.detect_anomaly", "torch.autograd.anomaly_mode.detect_anomaly")

_OF_AUTOGRAD = "torch.autograd.profiler"
SWITCHED = (f"{_OF_AUTOGRAD}.profile", f"{_OF_AUTOGRAD}.emit_nvtx", f"{_OF_AUTOGRAD}.emit_itt")
"""Profilers with a parameter ``enabled``."""
PROFILERS = (*SWITCHED, "torch.profiler.profile", "torch.profiler.profiler.profile")
_FEW = 200
"""Steps that are a measurement, not a training."""
_HANDLES = re.compile(
    rb"excepthook|\batexit\b|\.submit\(|\.exception\(|_callback\(|\b(?:Thread|Process|Pool)\(|\bsignal\.signal"
)
"""What a program says that deals with errors elsewhere, or does something when it ends by one."""
_CAUGHT = ("RuntimeError", "Exception", "BaseException")


@once(False)
def searches_for_nan(script: Script) -> bool:
    """Whether anomaly detection is on in all of a program's training, in the runs that are made: each operation of a
    backward pass then waits for its gradients."""
    return any(
        is_on(place, call) and intent.of(place, call) is intent.Intent.ALWAYS and not is_undone(place, call)
        for place in script.everywhere(b"detect_anomaly")
        if script.program.is_always_with(script, place)
        for call in place.calls(*ANOMALY)
        if (around := context(place, call)) is None or slows_training(place, around)
    )


def is_on(script: Script, call: syntax.Call) -> bool:
    """Whether a call of anomaly detection switches it on, as far as is known."""
    mode = script.argument(call, "mode", 0) if script.name(call.func) in SETTERS else None
    value = script.constant(mode) if mode is not None else None
    return mode is None or (value is not None and value.value is True)


def context(script: Script, call: syntax.Call) -> syntax.With | None:
    """The ``with`` that a call is an item of, itself, as one side of ``a if x else b``, or by a variable."""
    for up in script.source.ancestors(call):
        if isinstance(up, syntax.WithItem):
            around = script.source.parents[up]
            return around if isinstance(around, syntax.With) else None
        if not isinstance(up, syntax.IfExp):
            return None
    return None


def slows_training(script: Script, around: syntax.With) -> bool:
    """Whether training steps are taken within a ``with``, or it is itself entered in each step."""
    if script.frequency(around) in FREQUENT:
        return bool(script.loops.does(around.body, Does.STEPS))
    return bool(script.loops.does(around.body, Does.TRAINS))


def is_around_training(script: Script, profiler: syntax.Call) -> bool:
    """Whether a profiler that is made here runs while a whole training, or each step, does."""
    around = context(script, profiler)
    if around is not None:
        return slows_training(script, around) and not _is_measurement(script, around.body)
    match script.source.parents[profiler]:
        case syntax.Assign(targets=[syntax.AssignTarget(target=syntax.Name() as name)]):
            return any(_runs_while_training(script, name, use) for use in script.names.uses(name))
    return False


def is_profiled(script: Script, node: syntax.Node) -> bool:
    """Whether a node stands in a ``with`` that records a few steps: what it does there is looked at, not trained with."""
    return any(
        isinstance(around, syntax.With)
        and any(isinstance(item.item, syntax.Call) and script.is_call_to(item.item, *PROFILERS) for item in around.items)
        and script.source.contains(around.body, node)
        and _is_measurement(script, around.body)
        for around in script.source.ancestors(node)
    )


def _runs_while_training(script: Script, name: syntax.Name, use: syntax.Name) -> bool:
    """Whether a use enters or starts the profiler, and training follows before it is stopped."""
    source, parent = script.source, script.source.parents[use]
    if isinstance(parent, syntax.WithItem) and isinstance(around := source.parents[parent], syntax.With):
        return slows_training(script, around) and not _is_measurement(script, around.body)
    if not (isinstance(parent, syntax.Attribute) and parent.attr.value in ("start", "__enter__")):
        return False
    stops = [
        other
        for other in script.names.uses(name)
        if isinstance(stop := source.parents[other], syntax.Attribute) and stop.attr.value in ("stop", "__exit__")
    ]
    return any(
        _trains(script, each) and not _is_measurement(script, each)
        for each in getattr(source.parents[source.statement(use)], "body", ())
        if script.order.runs_before(use, each) and not script.order.surely(stops, each)
    )


def _trains(script: Script, statement: syntax.Node) -> bool:
    if isinstance(statement, (syntax.For, syntax.While)):
        return script.loops.kind(statement) is Frequency.STEP or bool(script.loops.does(statement.body, Does.TRAINS))
    return bool(script.loops.does(statement, Does.TRAINS))


def _is_measurement(script: Script, block: syntax.Node) -> bool:
    """Whether the steps in a block are few: a loop that is left early, or counts to a small number."""
    if any(True for kind in (syntax.Break, syntax.Return) for _ in script.source.inside(block, kind)):
        return True
    for loop in script.source.inside(block, syntax.For):
        if isinstance(loop.iter, syntax.Call) and script.name(loop.iter.func) in ("range", "itertools.islice"):
            known = script.constant(loop.iter.args[-1].value) if loop.iter.args else None
            if known is not None and isinstance(known.value, int) and known.value <= _FEW and _steps(script, loop):
                return True
    return False


def _steps(script: Script, loop: syntax.For) -> bool:
    return script.loops.kind(loop) is Frequency.STEP


def is_undone(script: Script, call: syntax.Call, setters: tuple[str, ...] = SETTERS) -> bool:
    """Whether a call further down switches the same thing off."""
    return intent.is_undone(
        script, call,
        (
            other
            for other in script.calls(*setters)
            if isinstance(script.source.parents[other], syntax.Expr)
            and (value := script.argument(other, "mode", 0)) is not None
            and (known := script.constant(value)) is not None
            and known.value is False
        ),
    )  # fmt: skip


def is_caught(script: Script) -> bool:
    """Whether the program goes on after a RuntimeError that is raised in its training, or does something at its end."""
    if script.program.mentions(script, _HANDLES):
        return True
    return any(_goes_on(one) for one in script.everywhere(b"except", b"suppress", b"with "))


def _goes_on(script: Script) -> bool:
    suppressed = (
        each for each in script.source.of(syntax.With) if any(_suppresses(script, item.item) for item in each.items)
    )
    if any(script.loops.does(each.body, Does.BACKWARD | Does.TRAINS) for each in suppressed):
        return True
    return any(
        (script.loops.does(each.body, Does.BACKWARD | Does.TRAINS) or _calls_what_it_was_given(script, each))
        and any(_catches(script, handler) for handler in each.handlers)
        for each in script.source.of(syntax.Try)
    )


def _calls_what_it_was_given(script: Script, tried: syntax.Try) -> bool:
    """Whether a function tries another that it was given: it may train, as what a decorator is around does."""
    return any(
        isinstance(call.func, syntax.Name)
        and any(binding.kind is Kind.PARAMETER for binding in script.names.reaching(call.func))
        and script.role(call.func) is not Role.MODULE
        for call in script.source.inside(tried.body, syntax.Call)
    )


def _suppresses(script: Script, manager: syntax.BaseExpression) -> bool:
    """Whether a context manager ends what is raised within it: the library's, or one of the project's own."""
    made = script.definition(manager.func) if isinstance(manager, syntax.Call) else script.value(manager).definition
    if made is None:
        name = (script.name(manager.func) or script.text(manager.func)) if isinstance(manager, syntax.Call) else ""
        return (
            isinstance(manager, syntax.Call)
            and name.rpartition(".")[2] == "suppress"
            and any(script.text(arg.value) in _CAUGHT for arg in manager.args)
        )
    if isinstance(made.node, syntax.ClassDef):
        left = script.roles.calls.method(made, "__exit__")
        return left is not None and any(left.script.text(value) not in ("None", "False") for value in returned(left))
    return any(
        any(True for _ in made.script.source.inside(each.body, syntax.Yield))
        and any(_catches(made.script, handler) for handler in each.handlers)
        for each in made.script.source.inside(made.node, syntax.Try)
    )


def _catches(script: Script, handler: syntax.ExceptHandler) -> bool:
    if isinstance(last_statement(handler.body), syntax.Raise):
        return False
    kinds = [handler.type] if handler.type is not None else []
    if len(kinds) == 1 and isinstance(kinds[0], syntax.Tuple):
        kinds = [element.value for element in kinds[0].elements]
    return not kinds or any(script.name(kind) in _CAUGHT or script.text(kind) in _CAUGHT for kind in kinds)
