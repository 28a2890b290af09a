"""How a display is shown every so many steps, by what counts them."""

from __future__ import annotations

from collections.abc import Iterator

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Edit
from speedlint.shapes.sync.counters import Counter
from speedlint.shapes.sync.displays import PERIOD
from speedlint.solve import changing, counts
from speedlint.solve.flow import once
from speedlint.solve.loops import Loop
from speedlint.solve.names import Kind
from speedlint.solve.unpacking import advanced, written
from speedlint.source import is_target
from speedlint.torch import library
from speedlint.torch.words import Frequency, Role

_DOES = frozenset("step backward update read readline write send recv put get_nowait popleft".split())
"""Methods that do something whatever their object is."""


def of_steps(script: Script, node: syntax.Node, period: int) -> Counter:
    """What counts the steps that a node runs in, over more than a period. Raises CannotEdit where nothing surely does."""
    loop = script.loops.driving_loop(node)
    if loop is None:
        raise CannotEdit("the loop over the steps is in another function")
    function = script.function(loop)
    if function is not None and script.loops.of_function(function) is Frequency.STEP:
        raise CannotEdit("the loop is one of several that take training steps")
    outermost = [loop, *_around(script, loop)][-1]
    found = _by_index(script, outermost, period) or _by_adding(script, outermost, node, period)
    if found is None and isinstance(outermost, syntax.For) and counts.range_bounds(script, outermost.iter):
        raise CannotEdit(f"it is not known that `{script.text(outermost.iter)}` counts more than {period} turns")
    if found is None:
        raise CannotEdit("no counter of the steps is at hand: take one from `enumerate`")
    if not found.name.strip("_"):
        raise CannotEdit(f"`{found.name}` counts the steps: give it a name that can be read")
    return found


def _around(script: Script, loop: Loop) -> Iterator[Loop]:
    """The loops around a loop, in its function, that take training steps themselves; the innermost first."""
    for up in script.source.ancestors(loop):
        if isinstance(up, syntax.FunctionDef):
            return
        if isinstance(up, (syntax.For, syntax.While)) and script.loops.kind(up) is Frequency.STEP:
            yield up


def _by_index(script: Script, loop: Loop, period: int) -> Counter | None:
    """The index of a loop over a loader, or of a range that may be longer than a period."""
    if not isinstance(loop, syntax.For):
        return None
    name = _index(loop)
    if name is None or _is_set_in(script, loop, name.value):
        return None
    element = script.roles.element(script.value(loop.iter))
    value = element.items[0] if element.items and isinstance(loop.target, syntax.Tuple) else element
    if value is None or value.role is not Role.NUMBER:
        return None
    for call in script.source.inside(loop.iter, syntax.Call):
        match script.name(call.func):
            case "enumerate" if script.loops.iterates_loader(loop):
                return Counter(name.value, _whole(script, script.argument(call, "start", 1)) or 0)
            case "range":
                bounds = counts.range_bounds(script, call)
                if bounds is None or not _is_long(script, bounds, period):
                    return None
                return Counter(name.value, _whole(script, bounds[0]) or 0 if len(bounds) > 1 else 0)
    return None


def _index(loop: syntax.For) -> syntax.Name | None:
    """The variable that takes the index, of ``enumerate`` or ``range``."""
    match loop:
        case syntax.For(target=syntax.Tuple(elements=[syntax.Element(value=syntax.Name() as name), *_])):
            return name
        case syntax.For(target=syntax.Name() as name):
            return name
    return None


def _is_long(script: Script, bounds: list[syntax.BaseExpression], period: int) -> bool:
    """Whether a range is not known to have fewer numbers than a period, or has as many as a loader has batches."""
    *_, stop = bounds
    match stop:
        case syntax.Call(args=[syntax.Arg(value=counted)]) if script.is_call_to(stop, "len"):
            return script.role(counted) is Role.LOADER
    known = [number for each in bounds if (number := _whole(script, each)) is not None]
    return len(known) < len(bounds) or counts.between(known) > period


def _by_adding(script: Script, loop: Loop, node: syntax.Node, period: int) -> Counter | None:
    """A variable to which each turn adds one."""
    for augmented in script.source.inside(loop.body, syntax.AugAssign):
        match augmented:
            case syntax.AugAssign(
                target=syntax.Name(value=name) as counter, operator=syntax.AddAssign(), value=syntax.Integer(value="1")
            ):
                counts = script.role(counter) is Role.NUMBER and _counts_all(script, loop, augmented, name)
                if counts and not (_is_reset(script, counter, loop) and _is_short(script, loop, period)):
                    has_counted = script.order.runs_before(augmented, node)
                    return Counter(name, _starts_at(script, counter) + has_counted)
    return None


def _is_reset(script: Script, counter: syntax.Name, loop: Loop) -> bool:
    """Whether a variable starts again in each turn of a loop around the one that adds to it."""
    around = [up for up in script.source.ancestors(loop) if isinstance(up, (syntax.For, syntax.While))]
    bindings = script.names.scope(counter).bindings.get(counter.value, [])
    return any(
        script.source.contains(up, binding.node) for binding in bindings for up in around if binding.kind is not Kind.AUGMENT
    )


def _is_short(script: Script, loop: Loop, period: int) -> bool:
    """Whether a loop is known to take no more turns than a period."""
    taken = counts.turns(script, loop)
    return taken is not None and taken <= period


def _starts_at(script: Script, counter: syntax.Name) -> int:
    """What a counter is set to before it counts; 0 where that is not known."""
    bindings = script.names.scope(counter).bindings.get(counter.value, [])
    starts = {_whole(script, written(binding)) for binding in bindings if binding.kind is not Kind.AUGMENT}
    return (starts.pop() or 0) if len(starts) == 1 else 0


def _whole(script: Script, expression: syntax.BaseExpression | None) -> int | None:
    constant = script.constant(expression) if expression is not None else None
    return constant.value if constant is not None and isinstance(constant.value, int) else None


@once(False)
def _is_set_in(script: Script, loop: Loop, name: str) -> bool:
    return any(use.value == name and is_target(script.source, use) for use in script.source.inside(loop.body, syntax.Name))


def _counts_all(script: Script, loop: Loop, augmented: syntax.AugAssign, name: str) -> bool:
    """Whether the only thing the loop does to the name is to add one in each turn."""
    source = script.source
    targets = [use for use in source.inside(loop.body, syntax.Name) if use.value == name and is_target(source, use)]
    line = source.parents[augmented]
    return len(targets) == 1 and isinstance(line, syntax.SimpleStatementLine) and source.parents[line] is loop.body


def throttled(script: Script, display: syntax.Call | syntax.Assign) -> tuple[Edit, ...]:
    """Puts a display under ``if step % 50 == 0:``. Raises CannotEdit where no counter of the steps is at hand."""
    if isinstance(display, syntax.Call) and not isinstance(script.source.parents[display], syntax.Expr):
        raise CannotEdit("it is not a statement of its own")
    _check_only_tells(script, display)
    return every_few_steps(script, display)


def _check_only_tells(script: Script, display: syntax.Call | syntax.Assign) -> None:
    """Raises CannotEdit where what a display is given does more than compute: it would be done less often too."""
    for bound in script.source.inside(display, syntax.NamedExpr):
        raise CannotEdit(f"`{script.text(bound)}` binds a name in it")
    for call in script.source.inside(display, syntax.Call):
        if call is display:
            continue
        if _does_more(script, call, set()):
            raise CannotEdit(f"`{script.text(call)}` may do more than tell")


_ENDS = frozenset({"exit", "quit", "sys.exit", "os._exit", "os.abort"})
"""What ends the program."""


def _does_more(script: Script, call: syntax.Call, seen: set[syntax.Node]) -> bool:
    """Whether a call runs a network, draws random numbers, steps what trains, changes anything, takes what is next, or may
    end the run; also by what it calls."""
    callee, name = script.callee(call), script.name(call.func)
    if script.role(call.func) is Role.MODULE or name in _ENDS or (name or "").startswith(library.DRAWS):
        return True
    if advanced(script, call) is not None:
        return True
    if callee is not None:
        if callee.node in seen:
            return False
        seen.add(callee.node)
        calls = callee.script.source.inside(callee.node, syntax.Call)
        is_changing = any(True for _ in changing.written(callee.script, callee.node))
        if any(True for _ in callee.script.source.inside(callee.node, syntax.Raise)):
            return True
        return is_changing or any(_does_more(callee.script, each, seen) for each in calls)
    if name is None and script.value(call.func).made is not None and script.role(call.func) is Role.FUNCTION:
        return True  # what `functools.partial` makes
    if name is None and isinstance(call.func, syntax.Attribute):
        if call.func.attr.value in _DOES:
            return True
        return any(base is call.func.value for base, _ in changing.written(script, call))
    return False


def every_few_steps(script: Script, node: syntax.Node, last: syntax.Node | None = None) -> tuple[Edit, ...]:
    """Puts the statement a node stands in, and those up to ``last``, under ``if step % 50 == 0:``. Raises CannotEdit as
    ``throttled`` does."""
    counter = of_steps(script, node, PERIOD)
    return edits.wrap(script.source, node, last or node, f"if {counter.name} % {PERIOD} == {counter.first % PERIOD}:")
