"""Text that is written in every step: printed, logged, or drawn by a progress bar."""

from __future__ import annotations

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes.sync.displays import is_display, shown_tensors
from speedlint.solve.counts import turns
from speedlint.solve.loops import Does, Loop
from speedlint.torch.words import FREQUENT, Frequency

_WRITES = ("sys.stdout.write", "sys.stderr.write")
_TEXT = ("print", "logging.", "loguru.", "tqdm.tqdm.write")
_BARS = frozenset({"tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.notebook.tqdm", "tqdm.std.tqdm", "tqdm.trange", "tqdm.auto.trange"})
_REDRAWING = frozenset({"set_postfix", "set_postfix_str", "set_description", "set_description_str"})
_FEW = 1000
_LEVELS = frozenset({"info", "warning", "warn", "error", "critical"})


def writes_text(script: Script, call: syntax.Call) -> bool:
    """Whether a call itself writes a line: boards that collect numbers and bars that draw themselves now and then do not."""
    name = script.name(call.func)
    if name is not None:
        return name in _WRITES or (is_display(script, call) and name.startswith(_TEXT))
    return isinstance(call.func, syntax.Attribute) and call.func.attr.value in _LEVELS and is_display(script, call)


def writer(script: Script, call: syntax.Call) -> tuple[Script, syntax.Call] | None:
    """The call that writes text whenever the given one is made: itself, or one in a function of the project that does no
    more than that."""
    if writes_text(script, call):
        return script, call
    callee = script.callee(call)
    if callee is None or not isinstance(callee.node, syntax.FunctionDef):
        return None
    other, function = callee.script, callee.node
    if other.loops.function_does(function) & ~Does.NO_TRAINING:
        return None
    for inner in other.source.inside(function.body, syntax.Call):
        up = other.source.enclosing(
            inner, syntax.If, syntax.IfExp, syntax.BooleanOperation, syntax.Try, syntax.FunctionDef, syntax.Lambda
        )
        if up is function and writes_text(other, inner):
            return other, inner
    return None


def redraws(script: Script, call: syntax.Call) -> bool:
    """Whether a call tells a bar of tqdm a value in a way that draws it at once."""
    match call.func:
        case syntax.Attribute(value=syntax.Name() as bar, attr=syntax.Name(value=method)) if method in _REDRAWING:
            pass
        case _:
            return False
    plain = [arg for arg in call.args if arg.keyword is None]
    if len(plain) > 1 or any(arg.star for arg in call.args) or script.argument(call, "refresh") is not None:
        return False
    made = [binding.value for binding in script.names.reaching(bar) if not binding.path]
    return bool(made) and all(isinstance(each, syntax.Call) and script.name(each.func) in _BARS for each in made)


def in_every_step(script: Script, call: syntax.Call, loop: Loop) -> bool:
    """Whether a call is a statement of its own that every turn of a loop over the steps reaches."""
    if not isinstance(script.source.parents[call], syntax.Expr) or script.frequency(call) not in FREQUENT:
        return False
    if script.source.enclosing(call, syntax.If, syntax.Else, syntax.Try, syntax.For, syntax.While) is not loop:
        return False
    return not _is_short(script, loop)


def _is_short(script: Script, loop: Loop) -> bool:
    """Whether all steps of the program are a few, as written: ``for step in range(100)`` that runs once."""
    function, steps = script.function(loop), 1
    if function is not None and script.frequency(function.body) is not Frequency.ONCE:
        return False
    around: syntax.Node | None = loop
    while isinstance(around, (syntax.For, syntax.While)):
        most = turns(script, around)
        if most is None:
            return False
        steps, around = steps * most, script.source.enclosing(around, syntax.For, syntax.While, syntax.FunctionDef)
    return steps <= _FEW


def waits(script: Script, call: syntax.Call) -> bool:
    """Whether what is shown is read from the GPU at that: the text is the smaller part then."""
    read = (each.attr.value for each in script.source.inside(call, syntax.Attribute))
    return any(name in ("item", "cpu", "tolist", "data") for name in read) or any(True for _ in shown_tensors(script, call))
