"""The blocks of a function, lambda or module: what runs straight through, and where it goes on.

Classes count as part of the code that they stand in. Comprehensions and generators count as run where they are written;
any statement within a ``try`` may raise before it is done; a ``with`` swallows what is raised where it is
``contextlib.suppress``. The ways out of a ``try`` run their own copies of its ``finally``: a node may have several points.
Have: the later parts of ``a < b < c`` count as always run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from speedlint.facts import syntax

LAZY = (syntax.FunctionDef, syntax.Lambda)
_FORKS = (
    syntax.IfExp, syntax.BooleanOperation, syntax.ListComp, syntax.SetComp, syntax.DictComp, syntax.GeneratorExp,
    syntax.Lambda, syntax.NamedExpr,
)  # fmt: skip
"""The expressions that do not run straight through in the order of their rows."""
_FORKED = re.compile(b"[" + re.escape(bytes(kind.kind for kind in _FORKS)) + b"]")


ENTRY, EXIT = 0, 1
"""The blocks in which a function begins, and to which it returns."""


class Point(NamedTuple):
    """A moment of a block: its atom's number, within the atom a row, and whether that row is done."""

    block: int
    place: int
    row: int
    is_done: bool = False


class _Finally:
    """A ``finally``, and the block in which each kind of leaving enters its copy; ``is_shared`` where all enter one."""

    def __init__(self, is_shared: bool) -> None:
        self.is_shared = is_shared
        self.entries: dict[str, int] = {}


class _Loop(NamedTuple):
    """Where ``break`` and ``continue`` lead to."""

    ends: int
    goes_on: int


class Builder:
    """Lays the statements of one function out in blocks.

    Attributes:
        after: the blocks that each block leads to.
        begun: the points at which rows that are no part of an atom, and atoms, begin.
        done: those at which such rows are done, but for atoms that are done where they begin.
    """

    def __init__(self, tree: syntax.Tree) -> None:
        self._tree, self._rows = tree, tree.rows
        self.after: list[list[int]] = [[], []]
        self.begun: dict[int, list[Point]] = {}
        self.done: dict[int, list[Point]] = {}
        self._now, self._places = 0, 0
        self._raises: tuple[int, ...] = ()
        self._frames: list[_Loop | _Finally] = []
        self._in_finally = 0

    def build(self, home: syntax.Node) -> None:
        """Lays out a function, lambda or module."""
        self._begin(home)
        self._finish(home)
        if isinstance(home, LAZY):
            for param in _params(home):
                self._atom(param)
        if isinstance(home, syntax.Module):
            for statement in home.body:
                self._statement(statement)
        elif isinstance(home, syntax.FunctionDef):
            self._suite(home.body)
        elif isinstance(home, syntax.Lambda):
            self._expression(home.body)
        self.after[self._now].append(EXIT)

    # Blocks

    def _block(self, *before: int) -> int:
        """A new block that follows others, and may raise."""
        self.after.append(list(self._raises))
        made = len(self.after) - 1
        for each in before:
            self.after[each].append(made)
        return made

    def _begin(self, node: syntax.Node) -> Point:
        self._places += 1
        point = Point(self._now, self._places, node.row)
        self.begun.setdefault(node.row, []).append(point)
        return point

    def _finish(self, node: syntax.Node) -> None:
        self._places += 1
        self.done.setdefault(node.row, []).append(Point(self._now, self._places, self._rows.last[node.row], True))

    def _atom(self, node: syntax.Node) -> None:
        """A node whose rows run in their order; where it may raise, in a block of its own."""
        if self._raises:
            self._now = self._block(self._now)
        self._begin(node)

    def _dead(self) -> None:
        """What follows is not reached."""
        self._now = self._block()

    # Expressions

    def _is_forked(self, node: syntax.Node) -> bool:
        """Whether a part of an expression may be skipped or run again: it is no atom."""
        return _FORKED.search(self._rows.kind, node.row, self._rows.last[node.row] + 1) is not None

    def _expression(self, node: syntax.Node) -> None:
        """An expression; what is not forked itself is taken apart in a loop, since sums may have thousands of terms."""
        todo = [(node, False)]
        while todo:
            each, is_begun = todo.pop()
            if is_begun:
                self._finish(each)
            elif not self._is_forked(each):
                self._atom(each)
            elif isinstance(each, syntax.BooleanOperation):
                self._shortened(each)
            else:
                self._begin(each)
                parts = () if isinstance(each, _FORKS) else tuple(each.children)
                todo += [(each, True), *((part, False) for part in reversed(parts))]
                self._forked(each)

    def _forked(self, node: syntax.Node) -> None:
        match node:
            case syntax.IfExp(test=test, body=body, orelse=orelse):
                self._expression(test)
                self._either(lambda: self._expression(body), lambda: self._expression(orelse))
            case syntax.Lambda():
                for param in _params(node):
                    self._default(param)
            case syntax.NamedExpr(target=target, value=value):
                self._expression(value)
                self._atom(target)
            case syntax.DictComp(key=key, value=value, for_in=clause):
                self._comprehension(clause, (key, value))
            case (
                syntax.ListComp(elt=elt, for_in=clause)
                | syntax.SetComp(elt=elt, for_in=clause)
                | syntax.GeneratorExp(elt=elt, for_in=clause)
            ):
                self._comprehension(clause, (elt,))

    def _shortened(self, node: syntax.BooleanOperation) -> None:
        """``a and b and c``: the operations on the left, one within the other, are a loop."""
        nested = [node]
        while isinstance(left := nested[-1].left, syntax.BooleanOperation):
            nested.append(left)
        for each in nested:
            self._begin(each)
        self._expression(nested[-1].left)
        for each in reversed(nested):
            fork, self._now = self._now, self._block(self._now)
            self._expression(each.right)
            self._now = self._block(fork, self._now)
            self._finish(each)

    def _either(self, *ways: Callable[[], None]) -> None:
        """One of several ways, or none where only one is given."""
        fork = self._now
        ends = [] if len(ways) > 1 else [fork]
        for way in ways:
            self._now = self._block(fork)
            way()
            ends.append(self._now)
        self._now = self._block(*ends)

    def _comprehension(self, clause: syntax.CompFor, made: tuple[syntax.Node, ...]) -> None:
        self._begin(clause)
        self._expression(clause.iter)
        head = self._block(self._now)
        self._now = self._block(head)
        self._atom(clause.target)
        for condition in clause.ifs:
            self._expression(condition)
            self.after[self._now].append(head)
            self._now = self._block(self._now)
        if clause.inner_for_in is not None:
            self._comprehension(clause.inner_for_in, made)
        else:
            for each in made:
                self._expression(each)
        self.after[self._now].append(head)
        self._now = self._block(head)
        self._finish(clause)

    def _default(self, param: syntax.Param) -> None:
        for each in (param.default, param.annotation):
            if each is not None:
                self._expression(each)

    # Statements

    def _suite(self, suite: syntax.BaseSuite) -> None:
        self._begin(suite)
        for statement in suite.body:
            self._statement(statement)
        self._finish(suite)

    def _otherwise(self, part: syntax.Else | None) -> None:
        if part is not None:
            self._begin(part)
            self._suite(part.body)
            self._finish(part)

    def _statement(self, node: syntax.Node) -> None:
        lay_out = _STATEMENTS.get(type(node))
        if lay_out is None:
            self._expression(node)
            return
        self._begin(node)
        lay_out(self, node)
        self._finish(node)

    def _line(self, node: syntax.SimpleStatementLine) -> None:
        for each in node.body:
            self._statement(each)

    def _assign(self, node: syntax.Assign) -> None:
        self._expression(node.value)
        for target in node.targets:
            self._expression(target)

    def _annotated(self, node: syntax.AnnAssign) -> None:
        for each in (node.annotation, node.value, node.target):
            if each is not None:
                self._expression(each)

    def _augmented(self, node: syntax.AugAssign) -> None:
        self._expression(node.target)
        self._expression(node.value)
        if self._raises:
            self._now = self._block(self._now)
        if self._is_forked(node.target):
            self.done[node.target.row].pop()
        self._finish(node.target)

    def _assert(self, node: syntax.Assert) -> None:
        self._expression(node.test)
        if node.msg is not None:
            message = node.msg

            def fails() -> None:
                self._expression(message)
                self._dead()

            self._either(fails)

    def _jump(self, node: syntax.Node) -> None:
        """``return``, ``raise``, ``break`` and ``continue``."""
        for child in node.children:
            self._expression(child)
        self._leave(type(node).__name__)
        self._dead()

    def _leave(self, kind: str) -> None:
        """Leads the block to where a jump goes, through the ``finally`` blocks on its way."""
        if kind == "Raise":
            self.after[self._now] += self._raises
            return
        for frame in reversed(self._frames):
            if isinstance(frame, _Finally):
                self.after[self._now].append(self._enter(frame, kind))
                return
            if kind in ("Break", "Continue"):
                self.after[self._now].append(frame.ends if kind == "Break" else frame.goes_on)
                return
        self.after[self._now].append(EXIT)

    def _enter(self, frame: _Finally, kind: str) -> int:
        """The block in which a copy of a ``finally`` begins; within another one all kinds of leaving share a copy."""
        if kind not in frame.entries:
            shared = next(iter(frame.entries.values()), None) if frame.is_shared else None
            raises, self._raises = self._raises, ()
            frame.entries[kind] = self._block() if shared is None else shared
            self._raises = raises
        return frame.entries[kind]

    def _if(self, node: syntax.If) -> None:
        """An ``if``; its ``elif`` branches, one within the other, are a loop."""
        nested, ends = [node], []
        while True:
            self._expression(nested[-1].test)
            fork = self._now
            self._now = self._block(*(() if _is_never(nested[-1].test) else (fork,)))
            self._suite(nested[-1].body)
            ends.append(self._now)
            self._now = self._block(*(() if _is_always(nested[-1].test) else (fork,)))
            if not isinstance(other := nested[-1].orelse, syntax.If):
                break
            nested.append(other)
            self._begin(other)
        self._otherwise(other)
        for each, end in zip(reversed(nested), reversed(ends), strict=True):
            self._now = self._block(end, self._now)
            if each is not node:
                self._finish(each)

    def _for(self, node: syntax.For) -> None:
        self._expression(node.iter)
        head = self._block(self._now)
        self._now = self._block(head)
        self._expression(node.target)
        self._turns(node, head, self._block(head))

    def _while(self, node: syntax.While) -> None:
        head = self._now = self._block(self._now)
        self._expression(node.test)
        tested = self._now
        self._now = self._block(*(() if _is_never(node.test) else (tested,)))
        self._turns(node, head, self._block(*(() if _is_always(node.test) else (tested,))))

    def _turns(self, node: syntax.For | syntax.While, head: int, over: int) -> None:
        """The body of a loop that goes on at ``head``, and its ``else``, from ``over`` on."""
        ends = self._block()
        self._frames.append(_Loop(ends, head))
        self._suite(node.body)
        self._frames.pop()
        self.after[self._now].append(head)
        self._now = over
        self._otherwise(node.orelse)
        self.after[self._now].append(ends)
        self._now = ends

    def _with(self, node: syntax.With) -> None:
        for item in node.items:
            self._begin(item)
            self._expression(item.item)
            if item.asname is not None:
                self._expression(item.asname)
            self._finish(item)
        if not any(_suppresses(item.item) for item in node.items):
            self._suite(node.body)
            return
        after, outer = self._block(self._now), self._raises
        self._raises = (after, *outer)
        self._suite(node.body)
        self._raises = outer
        self.after[self._now].append(after)
        self._now = after

    def _match(self, node: syntax.Match) -> None:
        self._expression(node.subject)
        ends = []
        for case in node.cases:
            fork = self._now
            self._now = self._block(fork)
            self._begin(case)
            self._atom(case.pattern)
            missed = [] if _is_any(case.pattern) else [fork]
            if case.guard is not None:
                self._expression(case.guard)
                missed.append(self._now)
                self._now = self._block(self._now)
            self._suite(case.body)
            self._finish(case)
            ends.append(self._now)
            self._now = self._block(*missed)
        self._now = self._block(self._now, *ends)

    def _try(self, node: syntax.Try) -> None:
        outer, frame, after = self._raises, _Finally(self._in_finally > 0), []
        if node.finalbody is not None:
            self._frames.append(frame)
            outside: tuple[int, ...] = (self._enter(frame, "Raise"),)
        else:
            outside = outer
        self._raises = ()
        handlers = [self._block() for _ in node.handlers]
        catches_all = any(handler.type is None for handler in node.handlers)
        self._raises = (*handlers, *(() if catches_all else outside))
        self._now = self._block(self._now)
        self._suite(node.body)
        self._raises = outside
        self._now = self._block(self._now)
        self._otherwise(node.orelse)
        after.append(self._now)
        for handler, entry in zip(node.handlers, handlers, strict=True):
            self.after[entry] += outside
            self._now = entry
            self._handler(handler)
            after.append(self._now)
        if node.finalbody is None:
            self._now = self._block(*after)
        else:
            self._end(node.finalbody, frame, after, outer)

    def _handler(self, handler: syntax.ExceptHandler) -> None:
        self._begin(handler)
        for each in (handler.type, handler.name):
            if each is not None:
                self._expression(each)
        self._suite(handler.body)
        self._finish(handler)

    def _end(self, final: syntax.Finally, frame: _Finally, after: list[int], outer: tuple[int, ...]) -> None:
        """The copies of a ``finally``, each leading on to where its kind of leaving was going."""
        self._frames.pop()
        self._raises = outer
        normal = self._enter(frame, "")
        for each in after:
            self.after[each].append(normal)
        goes_on = self._block()
        self._in_finally += 1
        for entry in dict.fromkeys(frame.entries.values()):
            self.after[entry] += outer
            self._now = entry
            self._begin(final)
            self._suite(final.body)
            self._finish(final)
            for kind in [kind for kind, each in frame.entries.items() if each == entry]:
                if kind:
                    self._leave(kind)
                else:
                    self.after[self._now].append(goes_on)
        self._in_finally -= 1
        self._now = goes_on

    def _function(self, node: syntax.FunctionDef) -> None:
        for decorator in node.decorators:
            self._expression(decorator)
        for param in _params(node):
            self._default(param)
        if node.returns is not None:
            self._expression(node.returns)
        self._atom(node.name)

    def _class(self, node: syntax.ClassDef) -> None:
        for each in (*node.decorators, *node.bases, *node.keywords):
            self._expression(each)
        self._suite(node.body)
        self._atom(node.name)


_STATEMENTS: dict[type[syntax.Node], Callable[[Builder, Any], None]] = {
    syntax.SimpleStatementLine: Builder._line,
    syntax.Assign: Builder._assign,
    syntax.AnnAssign: Builder._annotated,
    syntax.AugAssign: Builder._augmented,
    syntax.Assert: Builder._assert,
    syntax.Return: Builder._jump,
    syntax.Raise: Builder._jump,
    syntax.Break: Builder._jump,
    syntax.Continue: Builder._jump,
    syntax.If: Builder._if,
    syntax.For: Builder._for,
    syntax.While: Builder._while,
    syntax.With: Builder._with,
    syntax.Match: Builder._match,
    syntax.Try: Builder._try,
    syntax.FunctionDef: Builder._function,
    syntax.ClassDef: Builder._class,
}


def _params(function: syntax.Node) -> Iterator[syntax.Param]:
    """The parameters of a function or lambda."""
    if isinstance(function, LAZY):
        for each in function.params.children:
            if isinstance(each, syntax.Param):
                yield each


def _is_always(test: syntax.BaseExpression) -> bool:
    """Whether a test is ``True`` or a number other than 0."""
    match test:
        case syntax.Name(value="True"):
            return True
        case syntax.Integer(value=value):
            return value != "0"
    return False


def _is_never(test: syntax.BaseExpression) -> bool:
    """Whether a test is ``False``, ``None`` or 0."""
    match test:
        case syntax.Name(value="False" | "None") | syntax.Integer(value="0"):
            return True
    return False


def _is_any(pattern: syntax.Node) -> bool:
    """Whether a case is ``case _`` or ``case name``."""
    return isinstance(pattern, syntax.MatchAs) and pattern.pattern is None


def _suppresses(manager: syntax.BaseExpression) -> bool:
    match manager:
        case syntax.Call(func=syntax.Name(value=name) | syntax.Attribute(attr=syntax.Name(value=name))):
            return name == "suppress"
    return False
