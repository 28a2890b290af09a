"""How often a line runs while its function runs once, or in one turn of the loop over the steps, where that is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.solve.flow import once
from speedlint.solve.folding import Folding, Frame
from speedlint.solve.names import Kind
from speedlint.solve.pure import UNKNOWN, UnfoldableError
from speedlint.source import is_none, last_statement

if TYPE_CHECKING:
    from speedlint.ask.script import Script


def times(script: Script, node: syntax.Node, block: syntax.Node, frame: Frame | None = None) -> int | None:
    """How often ``node`` is reached while ``block`` runs once, by the loops between them; None where that is not known.

    ``frame`` holds what is known of the function's parameters. Branches and early exits between count where their conditions
    are known; where one is not, neither is the number.
    """
    path = _path(script, node, block)
    if path is None:
        return None
    try:
        return _count(Folding(), frame or Frame(script), path, node)
    except UnfoldableError:
        return None


@once(None)
def turns(script: Script, loop: syntax.For | syntax.While) -> int | None:
    """How many turns a loop takes at most, where what it goes over is known, and no option says how many."""
    if not isinstance(loop, syntax.For):
        return None
    try:
        elements = Folding().elements(Frame(script), loop.iter)
    except UnfoldableError:
        elements = None
    if elements is not None:
        return len(elements)
    bounds = range_bounds(script, loop.iter)
    known = [script.loops.guards.fixed(each) for each in bounds or ()]
    numbers = [each.value for each in known if each is not None and isinstance(each.value, int)]
    return between(numbers) if numbers and len(numbers) == len(known) else None


@once(None)
def left_after(script: Script, loop: syntax.For | syntax.While) -> int | None:
    """The number at which a loop that counts its turns is left in every run: 10 of ``for i, x in enumerate(xs)``, or of
    ``i += 1`` in each turn, with ``if i >= 10: break``; None where nothing says so, or where an option sets it."""
    if not isinstance(loop, syntax.For):
        return None
    ends = [each for each in loop.body.body if isinstance(each, syntax.If)]
    tests = [each.test for each in ends if isinstance(last_statement(each.body), syntax.Break)]
    asked = dict.fromkeys(name.value for test in tests for name in script.source.inside(test, syntax.Name))
    counters = [name for name in asked if _is_counter(script, loop, name)]
    found = (_reached(script, loop, test, counter) for test in tests for counter in counters)
    return min((each for each in found if each is not None), default=None)


def _is_counter(script: Script, loop: syntax.For, name: str) -> bool:
    """Whether a variable counts the turns of a loop, from 0: by ``enumerate``, or by ``name += 1`` in each of them."""
    match loop:
        case syntax.For(
            target=syntax.Tuple(elements=[syntax.Element(value=syntax.Name(value=counter)), *_]), iter=iterated
        ) if counter == name and script.is_call_to(iterated, "enumerate"):
            return _counts_from_zero(script, loop, iterated, counter)
    bound = script.names.scope(loop.body).bindings.get(name, ())
    added = [each for each in bound if each.kind is Kind.AUGMENT]
    begun = [each.value for each in bound if each.kind is Kind.ASSIGN and not each.path]
    match begun, [script.source.parents[each.node] for each in added]:
        case [syntax.Integer("0") as start], [
            syntax.AugAssign(operator=syntax.AddAssign(), value=syntax.Integer("1")) as one
        ]:
            return (
                len(bound) == 2
                and not _goes_on_early(script, loop)
                and script.source.parents[script.source.parents[one]] is loop.body
                and not script.source.contains(loop, start)
            )
    return False


def _goes_on_early(script: Script, loop: syntax.For) -> bool:
    """Whether a turn of a loop may end before the lines that count it, or that ask for the count."""
    return any(
        script.source.enclosing(each, syntax.For, syntax.While) is loop
        for each in script.source.inside(loop.body, syntax.Continue)
    )


def _takes_each(script: Script, loop: syntax.For, counter: str) -> bool:
    """Whether the condition that a loop is left on meets each value of a counter, from 0 whenever the loop begins."""
    begun = [each.node for each in script.names.scope(loop.body).bindings.get(counter, ()) if each.kind is Kind.ASSIGN]
    around = [script.source.enclosing(each, syntax.For, syntax.While, syntax.FunctionDef) for each in (loop, *begun)]
    return not _goes_on_early(script, loop) and all(each is around[0] for each in around)


def _counts_from_zero(script: Script, loop: syntax.For, counted: syntax.BaseExpression, counter: str) -> bool:
    """Whether ``enumerate`` begins at 0, and nothing in the loop binds the variable that it counts with."""
    bound = script.names.scope(loop.body).bindings.get(counter, ())
    is_plain = isinstance(counted, syntax.Call) and len(counted.args) == 1
    return is_plain and not any(script.source.contains(loop.body, each.node) for each in bound)


def _reached(script: Script, loop: syntax.For, test: syntax.BaseExpression, counter: str) -> int | None:
    """The number from which on a condition on a counter holds: ``i >= 10``, ``most is not None and i >= most``; one that is
    equal to a number is left out where that may never be, as with ``most = -1`` for all."""
    match test:
        case syntax.BooleanOperation(
            left=syntax.Comparison(
                left=asked, comparisons=[syntax.ComparisonTarget(operator=syntax.IsNot(), comparator=none)]
            ),
            operator=syntax.And(),
            right=syntax.Comparison(comparisons=[syntax.ComparisonTarget(comparator=bound)]) as right,
        ) if is_none(none) and script.text(asked) == script.text(bound):
            return _reached(script, loop, right, counter)
        case syntax.Comparison(
            left=syntax.Name(value=name),
            comparisons=[
                syntax.ComparisonTarget(
                    operator=(syntax.GreaterThan() | syntax.GreaterThanEqual() | syntax.Equal()) as sign, comparator=bound
                )
            ],
        ) if name == counter:
            most = _most(script, bound)
            if isinstance(sign, syntax.Equal) and (most is None or most < 1 or not _takes_each(script, loop, counter)):
                return None
            return most
    return None


def _most(script: Script, number: syntax.BaseExpression) -> int | None:
    """The most that a number is: of a parameter, in all calls of its function."""
    bindings = script.names.reaching(number) if isinstance(number, syntax.Name) else []
    given = [(script, number)]
    if len(bindings) == 1 and isinstance(parameter := bindings[0].node, syntax.Param):
        passed = list(script.values.passed(parameter))
        if any(value is None for _, value in passed):
            return None
        given = [(place, value) for place, value in passed if value is not None] or given
    known = [place.loops.guards.fixed(each) for place, each in given]
    values = [each.value for each in known if each is not None and isinstance(each.value, int)]
    return max(values) if len(values) == len(given) else None


def taken(script: Script, iterated: syntax.BaseExpression, path: tuple[int | None, ...]) -> list[int]:
    """The whole numbers that a loop's variable takes, one after another; none where they are not all known."""
    try:
        elements = Folding().elements(Frame(script), iterated) or []
    except UnfoldableError:
        return []
    for at in path:
        elements = [each[at] if at is not None and isinstance(each, tuple) else None for each in elements]
    return [each for each in elements if isinstance(each, int)] if all(isinstance(each, int) for each in elements) else []


def between(bounds: list[int]) -> int:
    """How many numbers a ``range`` with these bounds has."""
    return max(0, bounds[-1] - (bounds[0] if len(bounds) > 1 else 0))


def range_bounds(script: Script, iterated: syntax.BaseExpression) -> list[syntax.BaseExpression] | None:
    """Where a ``range`` starts, if it does not at 0, and stops; None for anything else, and for one with strides."""
    if not isinstance(iterated, syntax.Call) or not script.is_call_to(iterated, "range"):
        return None
    given = [arg.value for arg in iterated.args if arg.keyword is None]
    return given if 0 < len(given) < 3 else None


def is_in_loop(script: Script, node: syntax.Node, block: syntax.Node) -> bool:
    """Whether a loop or comprehension within ``block`` runs ``node`` several times."""
    for up in script.source.ancestors(node):
        if up is block:
            return False
        if isinstance(up, syntax.For | syntax.While) and not script.source.contains(_head(up), node):
            return True
        if isinstance(up, syntax.ListComp | syntax.GeneratorExp | syntax.SetComp | syntax.DictComp):
            return not script.source.contains(up.for_in.iter, node)
    return False


def _head(loop: syntax.For | syntax.While) -> syntax.Node:
    return loop.iter if isinstance(loop, syntax.For) else loop.test


def _path(script: Script, node: syntax.Node, block: syntax.Node) -> list[syntax.Node] | None:
    """The loops, branches and blocks around the node within ``block``, the outermost first; None where one is not known."""
    found: list[syntax.Node] = []
    child = node
    for up in script.source.ancestors(node):
        match up:
            case syntax.For(body=body):
                if child is body:
                    found.append(up)
            case syntax.ListComp(elt=element) | syntax.GeneratorExp(elt=element) | syntax.SetComp(elt=element):
                if child is not element:
                    return None
                found.append(up.for_in)
            case (
                syntax.While()
                | syntax.DictComp()
                | syntax.IfExp()
                | syntax.BooleanOperation()
                | syntax.Try()
                | syntax.Lambda()
            ):
                return None
            case syntax.If() | syntax.IndentedBlock():
                found.append(up)
        if up is block:
            break
        child = up
    return found[::-1]


def _count(folding: Folding, frame: Frame, path: list[syntax.Node], node: syntax.Node) -> int | None:
    folding.charge(1)
    if not path:
        return 1
    outer, *rest = path
    following = rest[0] if rest else node
    match outer:
        case syntax.For() if _may_leave(frame.script, outer):
            return None
        case syntax.For(target=target, iter=iterated):
            return _over(folding, frame, target, iterated, rest, node)
        case syntax.CompFor(target=target, iter=iterated, ifs=[]):
            inner = [outer.inner_for_in] if outer.inner_for_in is not None else []
            return _over(folding, frame, target, iterated, [*inner, *rest], node)
        case syntax.CompFor():
            return None
        case syntax.If(test=test) if not frame.script.source.contains(test, following):
            known = folding.value(frame, test)
            if known is UNKNOWN:
                return None
            if bool(known) is not frame.script.source.contains(outer.body, following):
                return 0
        case syntax.IndentedBlock():
            leaves = _is_left_before(folding, frame, outer, following)
            if leaves is not False:
                return 0 if leaves else None
    return _count(folding, frame, rest, node)


def _over(
    folding: Folding,
    frame: Frame,
    target: syntax.Node,
    iterated: syntax.BaseExpression,
    rest: list[syntax.Node],
    node: syntax.Node,
) -> int | None:
    elements = folding.elements(frame, iterated)
    if elements is None:
        return None
    total = 0
    for each in elements:
        count = _count(folding, frame.turn(folding.bind(target, each)), rest, node)
        if count is None:
            return None
        total += count
    return total


def _is_left_before(folding: Folding, frame: Frame, block: syntax.IndentedBlock, node: syntax.Node) -> bool | None:
    """Whether ``if not heads: continue`` leaves the block before it comes to the node; None where that is not known."""
    for statement in block.body:
        folding.charge(1)
        if frame.script.source.contains(statement, node):
            return False
        if isinstance(statement, syntax.If) and isinstance(last_statement(statement.body), syntax.Continue):
            known = folding.value(frame, statement.test)
            if known is UNKNOWN or statement.orelse is not None:
                return None
            if known:
                return True
    return False


def _may_leave(script: Script, loop: syntax.For) -> bool:
    """Whether something ends the loop, or a turn of it, in a way that is not followed."""
    inside = script.source.inside
    if any(script.source.enclosing(each, syntax.For, syntax.While) is loop for each in inside(loop.body, syntax.Break)):
        return True
    if any(script.function(each) is script.function(loop) for each in inside(loop.body, syntax.Return)):
        return True
    return any(
        script.source.enclosing(each, syntax.For, syntax.While) is loop and not _is_plain_exit(script, each)
        for each in inside(loop.body, syntax.Continue)
    )


def _is_plain_exit(script: Script, leave: syntax.Continue) -> bool:
    """Whether a ``continue`` ends an ``if`` that stands in a block around which nothing but branches and loops stand."""
    branch = script.source.enclosing(leave, syntax.If, syntax.With, syntax.Try)
    holder = script.source.parents[branch] if branch is not None else None
    is_last = isinstance(branch, syntax.If) and isinstance(last_statement(branch.body), syntax.Continue)
    is_alone = is_last and isinstance(branch, syntax.If) and branch.orelse is None
    return is_alone and isinstance(holder, syntax.IndentedBlock) and isinstance(script.source.parents[holder], syntax.For)
