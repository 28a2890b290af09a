"""The parameters of a loader: what is passed for one, where its value is written, and how to write another there."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from speedlint.facts import syntax
from speedlint.solve import reach
from speedlint.solve.terms import Constant

if TYPE_CHECKING:
    from speedlint.ask.script import Script

TORCH_LOADER = "torch.utils.data.DataLoader"
POSITIONS = {
    "dataset": 0,
    "batch_size": 1,
    "sampler": 3,
    "batch_sampler": 4,
    "num_workers": 5,
    "collate_fn": 6,
    "pin_memory": 7,
    "worker_init_fn": 10,
}
_CPU_COUNTS = frozenset({"os.cpu_count", "multiprocessing.cpu_count", "torch.multiprocessing.cpu_count", "psutil.cpu_count"})


class Setting(NamedTuple):
    """One parameter of a loader.

    Attributes:
        expression: what is passed for it, None where it is absent.
        value: its value where it is known.
        holder: the ``**kwargs`` expression it comes through, if it does.
    """

    name: str
    expression: syntax.BaseExpression | None
    value: Constant | None
    holder: syntax.BaseExpression | None = None

    @property
    def is_off(self) -> bool:
        """Whether it is absent, or known to be 0 or False."""
        return self.expression is None or (self.value is not None and self.value.value in (0, False))


def places(script: Script, setting: Setting) -> list[Constant]:
    """Where the value of a setting is written: one place, or one in each call of the function that is handed it."""
    if setting.value is None or setting.expression is None:
        return []
    if isinstance(setting.expression, syntax.Name):
        bindings = script.names.reaching(setting.expression)
        if len(bindings) == 1 and isinstance(bindings[0].node, syntax.Param):
            return _passed_places(script, bindings[0].node, setting.value)
    return [setting.value]


def _passed_places(script: Script, parameter: syntax.Param, known: Constant) -> list[Constant]:
    found: dict[int, Constant] = {}
    for other, value in script.values.passed(parameter):
        where, expression = (script, parameter.default) if value is None else (other, value)
        constant = where.constant(expression) if expression is not None else None
        if constant is not None:
            found.setdefault(id(constant.node), constant)
    return list(found.values()) or [known]


def label(script: Script, node: syntax.Node) -> str:
    """What the place where a literal stands is called: the option, key, parameter, field or variable it is for.

    Nothing where one statement gives several names the same value.
    """
    source = script.source
    for up in source.ancestors(node):
        match up:
            case syntax.Arg(keyword=syntax.Name("default" | "required")):
                call = source.parents[up]
                flags = [arg for arg in call.args if arg.keyword is None] if isinstance(call, syntax.Call) else []
                return " ".join(script.text(arg) for arg in flags)
            case syntax.Arg(keyword=syntax.Name(value=name)):
                return name
            case syntax.Arg():
                return _parameter_name(script, up)
            case syntax.Param(name=syntax.Name(value=name)):
                return name
            case syntax.DictElement(key=key):
                return script.text(key)
            case syntax.Assign(targets=targets):
                return script.text(targets[0].target) if len(targets) == 1 else ""
            case syntax.AnnAssign(target=target):
                return script.text(target)
            case syntax.BaseStatement():
                return ""
    return ""


def _parameter_name(script: Script, arg: syntax.Arg) -> str:
    call = script.source.parents[arg]
    if not isinstance(call, syntax.Call):
        return ""
    if script.name(call.func) == TORCH_LOADER:
        return next((name for name, at in POSITIONS.items() if at == call.args.index(arg)), "")
    callee = script.callee(call)
    if callee is None or not isinstance(callee.node, syntax.FunctionDef):
        return ""
    parameter = reach.parameter_of(script, callee, call, arg)
    return parameter.name.value if parameter is not None else ""


def is_surely_positive(script: Script, expression: syntax.BaseExpression) -> bool:
    """Whether a number of workers is above 0 whatever the machine and the options are."""
    match expression:
        case syntax.Integer():
            return int(expression.value, 0) > 0
        case syntax.BooleanOperation(operator=syntax.Or(), right=right):
            return is_surely_positive(script, right)
        case syntax.Call(func=func, args=args):
            name = script.name(func)
            if name == "max":
                return any(is_surely_positive(script, arg.value) for arg in args)
            if name == "min":
                return bool(args) and all(is_surely_positive(script, arg.value) for arg in args)
            return name in _CPU_COUNTS
    return False
