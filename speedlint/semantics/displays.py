"""Lines that only tell something: prints, logs, progress bars, scalars for a board; and how to tell it less often."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from speedlint import edits
from speedlint.edits import CannotEdit
from speedlint.rule import Edit
from speedlint.semantics.accumulators import is_target
from speedlint.semantics.loops import Loop
from speedlint.semantics.model import Frequency, Role
from speedlint.semantics.names import Kind
from speedlint.semantics.script import Script

PERIOD = 50
_PROGRESS = frozenset(
    {"set_postfix", "set_postfix_str", "set_description", "set_description_str", "add_scalar", "add_scalars"}
)
_LOG_LEVELS = frozenset({"info", "warning", "warn", "error", "critical"})
_LOGGERS = (
    "logging.",
    "loguru.",
    "wandb.log",
    "mlflow.log",
    "swanlab.log",
    "comet_ml.",
    "neptune.",
    "clearml.",
    "tqdm.tqdm.write",
)
_BY_NAME = ("log", "logger", "_logger", "logging")
_HOT = (Frequency.STEP, Frequency.EVAL_STEP)


def is_display(script: Script, call: cst.Call) -> bool:
    """Whether a call prints, logs or shows what it is given."""
    name = script.name(call.func)
    if name is not None:
        return name == "print" or (name.startswith(_LOGGERS) and not name.endswith(".debug"))
    if not isinstance(call.func, cst.Attribute):
        return False
    method = call.func.attr.value
    base = script.text(call.func.value).rpartition(".")[2]
    if method in _PROGRESS:
        return True
    if method in _LOG_LEVELS:
        return base.lower() in _BY_NAME or base.lower().endswith(("logger", "_log")) or base.startswith("getLogger")
    return method in ("log", "log_metrics") and any(
        (where.name(value.func) or "").startswith(("wandb.", "mlflow.", "swanlab."))
        for where, value in script.roles.origins(call.func.value)
        if isinstance(value, cst.Call)
    )


def display_around(script: Script, node: cst.CSTNode) -> cst.Call | None:
    """The display call that is a statement of its own and takes the node."""
    for up in script.source.ancestors(node):
        if isinstance(up, cst.Call) and is_display(script, up) and isinstance(script.source.parents[up], cst.Expr):
            return up
        if isinstance(up, cst.BaseStatement | cst.Lambda):
            return None
    return None


def shown_tensors(script: Script, call: cst.Call) -> Iterator[cst.BaseExpression]:
    """The device tensors that a display call turns into text or numbers by itself."""
    for arg in call.args:
        yield from _tensors(script, arg.value, call)


def _tensors(script: Script, node: cst.BaseExpression, call: cst.Call | None) -> Iterator[cst.BaseExpression]:
    match node:
        case cst.FormattedString(parts=parts):
            for part in parts:
                if isinstance(part, cst.FormattedStringExpression):
                    yield from _tensors(script, part.expression, call)
        case cst.ConcatenatedString(left=left, right=right):
            yield from _tensors(script, left, call)
            yield from _tensors(script, right, call)
        case cst.BinaryOperation(left=left, right=right) if script.role(left) is Role.STRING:
            yield from _tensors(script, left, call)
            yield from _tensors(script, right, call)
        case cst.Call(func=cst.Attribute(value=text, attr=cst.Name(value="format")), args=args) if (
            script.role(text) is Role.STRING
        ):
            for arg in args:
                yield from _tensors(script, arg.value, call)
        case cst.Call(func=cst.Name(value="str" | "format" | "dict" | "repr"), args=args):
            for arg in args:
                yield from _tensors(script, arg.value, call)
        case cst.Dict(elements=elements) | cst.Tuple(elements=elements) | cst.List(elements=elements):
            for element in elements:
                yield from _tensors(script, element.value, call)
        case cst.Name() if script.role(node) is Role.MAPPING and call is not None:
            yield from _bound(script, node, call)
        case _:
            if script.is_device_tensor(node):
                yield node


def _bound(script: Script, name: cst.Name, call: cst.Call) -> Iterator[cst.BaseExpression]:
    """What was put into a dict beside the call: ``scores = {"loss": loss}``, then ``wandb.log(scores)``."""
    for binding in script.names.reaching(name):
        value = binding.value
        if binding.kind is not Kind.ASSIGN or binding.path or value is None or isinstance(value, cst.Name):
            continue
        if script.frequency(value) in _HOT and script.function(value) is script.function(call):
            yield from _tensors(script, value, call)


def formatted_tensors(script: Script, text: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """The device tensors in an f-string, a ``.format(...)`` or a ``%`` that stands outside a display call."""
    source = script.source
    for up in source.ancestors(text):
        if isinstance(up, cst.Call) and is_display(script, up):
            return
        if isinstance(up, cst.Raise | cst.Assert) or (isinstance(up, cst.BaseExpression) and _is_text(script, up)):
            return
        if isinstance(up, cst.BaseStatement):
            break
    if _is_text(script, text):
        yield from _tensors(script, text, None)


def _is_text(script: Script, node: cst.CSTNode) -> bool:
    match node:
        case cst.FormattedString() | cst.ConcatenatedString():
            return True
        case cst.Call(func=cst.Attribute(value=text, attr=cst.Name(value="format"))):
            return script.role(text) is Role.STRING
        case cst.BinaryOperation(left=left):
            return script.role(left) is Role.STRING
    return False


def throttled(script: Script, call: cst.Call) -> tuple[Edit, ...]:
    """Puts a display call under ``if step % 50 == 0:``. Raises CannotEdit where no counter of the steps is at hand."""
    if not isinstance(script.source.parents[call], cst.Expr):
        raise CannotEdit("it is not a statement of its own")
    loop = script.loops.driving_loop(call)
    if loop is None:
        raise CannotEdit("the loop over the steps is in another function")
    counter = _counter(script, loop, call)
    if counter is None:
        raise CannotEdit("no counter of the steps is at hand: take one from `enumerate`")
    return edits.wrap(script.source, call, call, f"if {counter} % {PERIOD} == 0:")


def _counter(script: Script, loop: Loop, call: cst.Call) -> str | None:
    candidates = [] if not isinstance(loop, cst.For) else _targets(script, loop)
    for name in candidates:
        if not _is_set_in(script, loop, name):
            return name
    for augmented in script.source.inside(loop.body, cst.AugAssign):
        match augmented:
            case cst.AugAssign(
                target=cst.Name(value=name) as target, operator=cst.AddAssign(), value=cst.Integer(value="1")
            ):
                if script.role(target) is Role.NUMBER and _counts_all(script, loop, augmented, name):
                    return name
    return None


def _targets(script: Script, loop: cst.For) -> list[str]:
    """The name of the loop that counts its turns: of ``enumerate`` or ``range``."""
    match loop:
        case cst.For(target=cst.Tuple(elements=[cst.Element(value=cst.Name() as first), *_])):
            pass
        case cst.For(target=cst.Name() as first):
            pass
        case _:
            return []
    element = script.roles.element(script.value(loop.iter))
    value = element.items[0] if element.items and isinstance(loop.target, cst.Tuple) else element
    is_counter = value.role is Role.NUMBER and _calls(script, loop.iter) & {"enumerate", "range"}
    return [first.value] if is_counter else []


def _calls(script: Script, node: cst.BaseExpression) -> set[str]:
    return {script.name(call.func) or "" for call in script.source.inside(node, cst.Call)}


def _is_set_in(script: Script, loop: Loop, name: str) -> bool:
    return any(use.value == name and is_target(script.source, use) for use in script.source.inside(loop.body, cst.Name))


def _counts_all(script: Script, loop: Loop, augmented: cst.AugAssign, name: str) -> bool:
    """Whether the only thing the loop does to the name is to add one in each turn."""
    source = script.source
    targets = [use for use in source.inside(loop.body, cst.Name) if use.value == name and is_target(source, use)]
    line = source.parents[augmented]
    return len(targets) == 1 and isinstance(line, cst.SimpleStatementLine) and source.parents[line] is loop.body
