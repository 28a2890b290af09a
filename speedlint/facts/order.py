"""What runs before what in a file: dominators and ways through the blocks of each function."""

from __future__ import annotations

import bisect
import itertools
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence

from speedlint.facts import syntax
from speedlint.facts.blocks import ENTRY, EXIT, LAZY, Builder, Point

_UNKNOWN = -1
_HOMES = bytes(kind.kind for kind in LAZY)
_BODIES = {kind.kind: kind.fields.index("body") for kind in LAZY}
_BRANCHING = bytes(
    kind.kind
    for kind in syntax.KINDS
    if issubclass(kind, (syntax.BaseCompoundStatement, syntax.BaseComp))
    or kind in (syntax.IfExp, syntax.MatchCase, syntax.BooleanOperation, syntax.CompFor)
)
"""What may leave out a part of it."""
_TESTED = bytes((syntax.If.kind, syntax.While.kind))
_ORELSE = {kind.kind: kind.fields.index("orelse") for kind in (syntax.If, syntax.For, syntax.While)}
_JUMPS = bytes((syntax.Return.kind, syntax.Raise.kind, syntax.Break.kind, syntax.Continue.kind))
_CUTTING = re.compile(b"[" + re.escape(_JUMPS + _TESTED) + b"]")
"""What decides whether the statements below it run."""


class Order:
    """Answers for one file. Two moments count: when a node begins, and when it is done."""

    def __init__(self, tree: syntax.Tree) -> None:
        self._tree = tree
        self._graphs: dict[int, _Graph] = {}
        self._homes = array("i")
        self._cuts: dict[int, list[int]] = {}

    def runs_before(self, first: syntax.Node, then: syntax.Node) -> bool:
        """Whether ``first`` is done on every way to ``then``."""
        return self.surely((first,), then)

    def surely(self, nodes: Iterable[syntax.Node], at: syntax.Node, unless: Iterable[syntax.Node] = ()) -> bool:
        """Whether one of ``nodes`` is done on every way to ``at``, and since then none of ``unless``."""
        done, undone = self._by_home(nodes), self._by_home(unless)
        return any(
            home in done and self._graph(home).surely(done[home], row, undone.get(home, ()))
            for home, row in self._seen_from(at)
        )

    def may_run_before(self, first: syntax.Node, then: syntax.Node) -> bool:
        """Whether ``first`` is done on some way before ``then`` runs for the first time; so of other functions."""
        home = self._home(first)
        if home != self._home(then):
            return True
        graph = self._graph(home)
        starts = graph.begun(then.row)
        return any(not graph.is_dominated(end, starts) and graph.is_ahead(end, starts) for end in graph.done(first.row))

    def may_run_between(self, first: syntax.Node, node: syntax.Node, then: syntax.Node) -> bool:
        """Whether ``node`` runs on a way from ``first`` to ``then`` on which ``first`` runs once; so of other functions."""
        home = self._home(first)
        if self._home(node) != home or self._home(then) != home:
            return True
        graph = self._graph(home)
        again, goals = graph.begun(first.row), graph.begun(then.row)
        return any(graph.leads(end, graph.begun(node.row), again) for end in graph.done(first.row)) and any(
            graph.leads(end, goals, again) for end in graph.done(node.row)
        )

    def runs_again(self, first: syntax.Node, then: syntax.Node, unless: Iterable[syntax.Node] = ()) -> bool:
        """Whether ``then`` may run when ``first`` is done, and none of ``unless`` in between; so of other functions."""
        home = self._home(first)
        if home != self._home(then):
            return True
        graph = self._graph(home)
        stops = [point for node in unless if self._home(node) == home for point in graph.done(node.row)]
        return any(graph.is_reached(end) and graph.leads(end, graph.begun(then.row), stops) for end in graph.done(first.row))

    def is_run(self, node: syntax.Node) -> bool:
        """Whether some way leads to a node, and to each function around it: no ``return`` or other jump cuts all of them."""
        return all(self._is_run_in(home, row) for home, row in self._seen_from(node))

    def _is_run_in(self, home: int, row: int) -> bool:
        """Whether some way of a function leads to a row; most are told without laying out its blocks."""
        if home not in self._graphs and self._is_never_cut(home, row):
            return True
        graph = self._graph(home)
        return any(graph.is_reached(point) for point in graph.begun(row))

    def _is_never_cut(self, home: int, row: int) -> bool:
        """Whether no jump above a row in its function can cut all ways to it: each stands in another branch, or in a loop or
        ``if`` without ``else`` that is over before, and no condition is a constant. Where it is False, nothing is known."""
        kinds, above, last = self._tree.rows.kind, self._tree.rows.parent, self._tree.rows.last
        for at in itertools.takewhile(row.__gt__, self._cuts_of(home)):
            if kinds[at] in _TESTED:
                return False
            is_own = True
            while last[above[at]] < row:
                at = above[at]
                is_own = is_own and kinds[at] not in _HOMES
            if is_own and kinds[above[at]] != syntax.If.kind and not self._may_be_passed(at):
                return False
        return True

    def _cuts_of(self, home: int) -> list[int]:
        """The rows of a function that are jumps, or test a constant."""
        if home not in self._cuts:
            kinds, last = self._tree.rows.kind, self._tree.rows.last[home]
            found = (each.start() for each in _CUTTING.finditer(kinds, home + 1, last + 1))
            self._cuts[home] = [at for at in found if kinds[at] not in _TESTED or self._is_constant(at + 1)]
        return self._cuts[home]

    def _may_be_passed(self, row: int) -> bool:
        """Whether a row is a loop or an ``if`` without ``else``: what it holds may be left out."""
        rows = self._tree.rows
        if rows.kind[row] not in _ORELSE:
            return False
        child, last = row + 1, rows.last
        while last[child] < last[row]:
            child = last[child] + 1
        return rows.slot[child] != _ORELSE[rows.kind[row]]

    def _is_constant(self, row: int) -> bool:
        """Whether an expression is a number or one of ``True``, ``False`` and ``None``."""
        rows = self._tree.rows
        kind = rows.kind[row]
        return kind == syntax.Integer.kind or (
            kind == syntax.Name.kind and rows.strings[rows.text[row]] in ("True", "False", "None")
        )

    def is_followed(self, first: syntax.Node, nodes: Iterable[syntax.Node]) -> bool:
        """Whether one of ``nodes``, in the function of ``first``, begins on every way from there to where that returns."""
        home = self._home(first)
        graph = self._graph(home)
        goals = [
            point for node in nodes if self._home(node) == home and node is not first for point in graph.begun(node.row)
        ]
        ways = [end for end in graph.done(first.row) if graph.is_reached(end)]
        if any(graph.leads(end, [graph.exit], goals) for end in ways):
            return False
        return any(graph.leads(end, goals) for end in ways)

    def always_runs(self, node: syntax.Node, function: syntax.Node) -> bool:
        """Whether a node of a function is done in each of its runs that ends."""
        graph = self._graph(function.row)
        ends = graph.done(node.row) if self._home(node) == function.row else []
        is_reached = any(graph.is_reached(end) for end in ends) and next(self.under(node), None) is None
        return is_reached and not graph.leads(graph.entry, [graph.exit], ends)

    def under(self, node: syntax.Node) -> Iterator[syntax.Node]:
        """The branches, loops' bodies, handlers and cases around a node in its function, innermost first."""
        kinds, above, home = self._tree.rows.kind, self._tree.rows.parent, self._home(node)
        row, up = node.row, above[node.row]
        while row != home and up >= 0:
            if kinds[up] in _BRANCHING and _may_skip(self._tree.node(up), child := self._tree.node(row)):
                yield child
            row, up = up, above[up]

    def _by_home(self, nodes: Iterable[syntax.Node]) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for node in nodes:
            found.setdefault(self._home(node), []).append(node.row)
        return found

    def _seen_from(self, node: syntax.Node) -> Iterator[tuple[int, int]]:
        """The functions around a node, and the row that stands for it in each: a function is defined before it runs."""
        row, home = node.row, self._home(node)
        yield home, row
        while home > 0:
            row, home = home, self._home(self._tree.node(home))
            yield home, row

    def _home(self, node: syntax.Node) -> int:
        """The row of the function, lambda or module that runs a node."""
        if not self._homes:
            self._homes = array("i", [_UNKNOWN]) * len(self._tree.rows.kind)
        found = self._homes[node.row]
        if found == _UNKNOWN:
            found = self._homes[node.row] = self._find_home(node)
        return found

    def _find_home(self, node: syntax.Node) -> int:
        rows = self._tree.rows
        above, kinds = rows.parent, rows.kind
        row, up = node.row, above[node.row]
        while up > 0:
            if kinds[up] in _HOMES and rows.slot[row] == _BODIES[kinds[up]]:
                return up
            if kinds[row] == syntax.Param.kind and (node.row <= row + 1):
                return above[up]
            row, up = up, above[up]
        return 0

    def _graph(self, home: int) -> _Graph:
        if home not in self._graphs:
            self._graphs[home] = _Graph(self._tree, self._tree.node(home))
        return self._graphs[home]


def _may_skip(up: syntax.Node, child: syntax.Node) -> bool:
    match up:
        case syntax.If() | syntax.IfExp():
            return child is not up.test
        case syntax.For() | syntax.While() | syntax.MatchCase():
            return child is up.body or child is getattr(up, "orelse", None)
        case syntax.Try():
            return not isinstance(child, syntax.Finally)
        case syntax.Match():
            return child is not up.subject
        case syntax.BooleanOperation():
            return child is up.right
        case syntax.BaseComp():
            return child is not up.for_in
        case syntax.CompFor():
            return child is not up.iter
    return False


class _Graph:
    """The blocks of one function, and the points at which its rows stand."""

    def __init__(self, tree: syntax.Tree, home: syntax.Node) -> None:
        self._rows = tree.rows
        built = Builder(tree)
        built.build(home)
        self.entry, self.exit = Point(ENTRY, -1, 0), Point(EXIT, -1, 0)
        self._after = built.after
        self._begun, self._done = _packed(built.begun), _packed(built.done)
        self._known = sorted(self._begun)
        self._ahead: dict[int, set[int]] = {}
        self._number()

    def begun(self, row: int) -> Sequence[Point]:
        """Where a row begins to run."""
        found = self._begun.get(row)
        return found if found is not None else [Point(block, at, row) for block, at, _, _ in self._begun[self._atom(row)]]

    def done(self, row: int) -> Sequence[Point]:
        """Where a row is done."""
        found = self._done.get(row)
        last = self._rows.last[row]
        if found is not None:
            return found
        return [Point(block, at, last, is_done=True) for block, at, _, _ in self._begun[self._atom(row)]]

    def _atom(self, row: int) -> int:
        """The innermost row around one that has points."""
        at = self._known[bisect.bisect_right(self._known, row) - 1]
        while self._rows.last[at] < row or at not in self._begun:
            at = self._rows.parent[at]
        return at

    def is_reached(self, point: Point) -> bool:
        """Whether any way leads to a point."""
        return point.block in self._enters

    def is_ahead(self, start: Point, goals: Sequence[Point]) -> bool:
        """Whether a way leads from ``start`` to one of ``goals``."""
        if any(goal.block == start.block and goal > start for goal in goals):
            return True
        if start.block not in self._ahead:
            self._ahead[start.block] = self._reached_from(start.block)
        return any(goal.block in self._ahead[start.block] for goal in goals)

    def _reached_from(self, block: int) -> set[int]:
        seen: set[int] = set()
        todo = list(self._after[block])
        while todo:
            found = todo.pop()
            if found not in seen:
                seen.add(found)
                todo += self._after[found]
        return seen

    def surely(self, first: Sequence[int], then: int, undone: Sequence[int]) -> bool:
        """Whether one of the rows ``first`` is done on every way to the row ``then``, and none of ``undone`` since."""
        starts, ends = self.begun(then), [point for row in first for point in self.done(row)]
        if not all(self.is_dominated(start, ends) for start in starts):
            return False
        again = [point for row in undone for point in self.done(row) if self.is_reached(point)]
        return not any(self.leads(point, starts, ends) for point in again)

    def is_dominated(self, point: Point, ends: Sequence[Point]) -> bool:
        """Whether every way to a point passes one of ``ends``."""
        if not self.is_reached(point) or any(self._dominates(end, point) for end in ends):
            return True
        return len(ends) > 1 and not self.leads(self.entry, [point], ends)

    def _dominates(self, end: Point, point: Point) -> bool:
        if end.block == point.block:
            return end < point
        return end.block in self._enters and (
            self._enters[end.block] < self._enters[point.block] and self._leaves[point.block] <= self._leaves[end.block]
        )

    def leads(self, start: Point, goals: Sequence[Point], avoiding: Sequence[Point] = ()) -> bool:
        """Whether a way leads from ``start`` to one of ``goals`` and passes none of ``avoiding``."""
        if not avoiding:
            return self.is_ahead(start, goals)
        here = _firsts(point for point in (*goals, *avoiding) if point.block == start.block and point > start)
        if here:
            return here[start.block] in goals
        firsts, stops = _firsts(goals), _firsts(avoiding)
        seen: set[int] = set()
        todo = list(self._after[start.block])
        while todo:
            block = todo.pop()
            if block in seen:
                continue
            seen.add(block)
            if block in firsts and (block not in stops or firsts[block] < stops[block]):
                return True
            if block not in stops:
                todo += self._after[block]
        return False

    def _number(self) -> None:
        """Numbers the tree of dominators: a block dominates those that are entered after it and left before it."""
        order = _postorder(self._after)
        before: dict[int, list[int]] = {block: [] for block in order}
        for block in order:
            for after in self._after[block]:
                before[after].append(block)
        above = _dominators(order, before)
        below: dict[int, list[int]] = {}
        for block in reversed(order[:-1]):
            below.setdefault(above[block], []).append(block)
        self._enters: dict[int, int] = {}
        self._leaves: dict[int, int] = {}
        todo = [(0, False)]
        while todo:
            block, is_left = todo.pop()
            if is_left:
                self._leaves[block] = len(self._enters)
                continue
            self._enters[block] = len(self._enters)
            todo.append((block, True))
            todo += [(each, False) for each in below.get(block, ())]


def _packed(points: dict[int, list[Point]]) -> dict[int, tuple[Point, ...]]:
    """The same in half the memory."""
    return {row: tuple(each) for row, each in points.items()}


def _firsts(points: Iterable[Point]) -> dict[int, Point]:
    """The first of the points in each block."""
    return {point.block: point for point in sorted(points, reverse=True)}


def _postorder(after: list[list[int]]) -> list[int]:
    """The blocks that are reached from the first one, each after those it leads to; the first one last."""
    found: list[int] = []
    seen = {0}
    todo = [(0, iter(after[0]))]
    while todo:
        block, rest = todo[-1]
        following = next((each for each in rest if each not in seen), None)
        if following is None:
            found.append(block)
            todo.pop()
        else:
            seen.add(following)
            todo.append((following, iter(after[following])))
    return found


def _dominators(order: list[int], before: dict[int, list[int]]) -> dict[int, int]:
    """The nearest dominator of each block (Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm")."""
    number = {block: place for place, block in enumerate(order)}
    above = {0: 0}
    changed = True
    while changed:
        changed = False
        for block in reversed(order[:-1]):
            known = [each for each in before[block] if each in above]
            nearest = known[0]
            for other in known[1:]:
                while nearest != other:
                    if number[nearest] < number[other]:
                        nearest = above[nearest]
                    else:
                        other = above[other]
            if above.get(block) != nearest:
                above[block], changed = nearest, True
    return above
