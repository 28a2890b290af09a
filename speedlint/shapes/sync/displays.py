"""Lines that only tell something: prints, logs, progress bars, scalars for a board; and how to tell it less often."""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.solve.names import Kind
from speedlint.torch.words import FREQUENT, Role

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


def is_display(script: Script, call: syntax.Call) -> bool:
    """Whether a call prints, logs or shows what it is given."""
    name = script.name(call.func)
    if name is not None:
        return name == "print" or (name.startswith(_LOGGERS) and not name.endswith(".debug"))
    if not isinstance(call.func, syntax.Attribute):
        return False
    method = call.func.attr.value
    if method in _PROGRESS:
        return True
    if method in _LOG_LEVELS:
        base = script.text(call.func.value).rpartition(".")[2]
        return base.lower() in _BY_NAME or base.lower().endswith(("logger", "_log")) or base.startswith("getLogger")
    return method in ("log", "log_metrics") and any(
        (where.name(value.func) or "").startswith(("wandb.", "mlflow.", "swanlab."))
        for where, value in script.roles.origins(call.func.value)
        if isinstance(value, syntax.Call)
    )


def display_around(script: Script, node: syntax.Node) -> syntax.Call | syntax.Assign | None:
    """The display that is a statement of its own and takes the node: a call, or ``bar.desc = ...``."""
    for up in script.source.ancestors(node):
        if isinstance(up, syntax.Call) and is_display(script, up) and isinstance(script.source.parents[up], syntax.Expr):
            return up
        if isinstance(up, syntax.Assign) and _describes_bar(script, up):
            return up
        if isinstance(up, syntax.BaseStatement | syntax.Lambda):
            return None
    return None


def _describes_bar(script: Script, statement: syntax.Assign) -> bool:
    match statement.targets:
        case [syntax.AssignTarget(target=syntax.Attribute(value=bar, attr=syntax.Name(value="desc")))]:
            return any(
                isinstance(value, syntax.Call) and (where.name(value.func) or "").startswith("tqdm.")
                for where, value in script.roles.origins(bar)
            )
    return False


def shown_tensors(script: Script, call: syntax.Call) -> Iterator[syntax.BaseExpression]:
    """The device tensors that a display call turns into text or numbers by itself."""
    for arg in call.args:
        yield from _tensors(script, arg.value, call)


def _tensors(script: Script, node: syntax.BaseExpression, call: syntax.Call | None) -> Iterator[syntax.BaseExpression]:
    match node:
        case syntax.FormattedString(parts=parts):
            for part in parts:
                if isinstance(part, syntax.FormattedStringExpression):
                    yield from _tensors(script, part.expression, call)
        case syntax.ConcatenatedString(left=left, right=right):
            yield from _tensors(script, left, call)
            yield from _tensors(script, right, call)
        case syntax.BinaryOperation(left=left, right=right) if script.role(left) is Role.STRING:
            yield from _tensors(script, left, call)
            yield from _tensors(script, right, call)
        case syntax.Call(func=syntax.Attribute(value=text, attr=syntax.Name(value="format")), args=args) if (
            script.role(text) is Role.STRING
        ):
            for arg in args:
                yield from _tensors(script, arg.value, call)
        case syntax.Call(func=syntax.Name(value="str" | "format" | "dict" | "repr"), args=args):
            for arg in args:
                yield from _tensors(script, arg.value, call)
        case syntax.Dict(elements=elements) | syntax.Tuple(elements=elements) | syntax.List(elements=elements):
            for element in elements:
                yield from _tensors(script, element.value, call)
        case syntax.Name() if script.role(node) is Role.MAPPING and call is not None:
            yield from _bound(script, node, call)
        case _:
            if script.is_device_tensor(node):
                yield node


def _bound(script: Script, name: syntax.Name, call: syntax.Call) -> Iterator[syntax.BaseExpression]:
    """What was put into a dict beside the call: ``scores = {"loss": loss}``, then ``wandb.log(scores)``."""
    for binding in script.names.reaching(name):
        value = binding.value
        if binding.kind is not Kind.ASSIGN or binding.path or value is None or isinstance(value, syntax.Name):
            continue
        if script.frequency(value) in FREQUENT and script.function(value) is script.function(call):
            yield from _tensors(script, value, call)


def formatted_tensors(script: Script, text: syntax.BaseExpression) -> Iterator[syntax.BaseExpression]:
    """The device tensors in an f-string, a ``.format(...)`` or a ``%`` that stands outside a display call."""
    for up in script.source.ancestors(text) if is_text(script, text) else ():
        if isinstance(up, syntax.Call) and is_display(script, up):
            return
        if isinstance(up, syntax.Raise | syntax.Assert) or (isinstance(up, syntax.BaseExpression) and is_text(script, up)):
            return
        if isinstance(up, syntax.BaseStatement):
            yield from _tensors(script, text, None)
            return


def is_text(script: Script, node: syntax.Node) -> bool:
    """Whether an expression makes a text of values: an f-string, ``"...".format(x)``, ``"..." % x`` or a sum of such."""
    match node:
        case syntax.FormattedString() | syntax.ConcatenatedString():
            return True
        case syntax.Call(func=syntax.Attribute(value=text, attr=syntax.Name(value="format"))):
            return script.role(text) is Role.STRING
        case syntax.BinaryOperation(left=left):
            return script.role(left) is Role.STRING
    return False
