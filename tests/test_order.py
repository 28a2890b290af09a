"""What runs before what: shapes that are easily mistaken, and small programs whose every path is walked."""

from __future__ import annotations

import ast
import itertools
import textwrap
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from speedlint.facts import syntax
from speedlint.facts.order import Order
from speedlint.source import Source

_MOST_PATHS = 3000


def _read(text: str) -> tuple[Order, dict[str, syntax.Name]]:
    """The order of a text, and the first place at which it writes each name."""
    source = Source.parse(Path("train.py"), textwrap.dedent(text).encode())
    names: dict[str, syntax.Name] = {}
    for name in source.of(syntax.Name):
        names.setdefault(name.value, name)
    return Order(source.tree), names


@pytest.mark.parametrize(
    ("text", "certain", "possible"),
    [
        ("a = 1\nb", True, True),
        ("b\na = 1", False, False),
        ("if c:\n    a = 1\nelse:\n    b", False, False),
        ("if c:\n    a = 1\nb", False, True),
        ("if c:\n    a = 1\n    b", True, True),
        ("if c:\n    d\nelif a:\n    e\nelse:\n    b", True, True),
        ("if c:\n    raise d\nelse:\n    a = 1\nb", True, True),
        ("for c in d:\n    a = 1\nb", False, True),
        ("for c in d:\n    b\n    a = 1", False, False),
        ("for c in d:\n    if e:\n        a = 1\n    else:\n        b", False, True),
        ("for a in d:\n    b", True, True),
        ("for a in d:\n    c\nb", False, True),
        ("for c in d:\n    if e:\n        break\nelse:\n    a = 1\nb", False, True),
        ("while True:\n    a = 1\n    if c:\n        break\nb", True, True),
        ("while c:\n    a = 1\nb", False, True),
        ("try:\n    a = c()\nexcept d:\n    b", False, True),
        ("try:\n    a = c()\nexcept d:\n    e\nb", False, True),
        ("try:\n    a = c()\nexcept d:\n    raise\nb", True, True),
        ("try:\n    a = c()\nexcept d:\n    e\nelse:\n    b", True, True),
        ("try:\n    a = c()\nfinally:\n    b", False, True),
        ("try:\n    c()\nfinally:\n    a = 1\nb", True, True),
        ("try:\n    a = c()\nfinally:\n    d()\nb", True, True),
        ("with c:\n    a = 1\nb", True, True),
        ("with c as a:\n    b", True, True),
        ("with suppress(c):\n    a = 1\nb", False, True),
        ("match c:\n    case 1:\n        a = 1\n    case _:\n        b", False, False),
        ("match c:\n    case 1:\n        a = 1\n    case d:\n        a2 = 1\nb", False, True),
        ("match c:\n    case a:\n        d\nb", True, True),
        ("match c:\n    case [a, 1]:\n        b", True, True),
        ("c and (a := 1)\nb", False, True),
        ("c = (a := 1) and b", True, True),
        ("(a := 1) if c else b", False, False),
        ("b if a else c", True, True),
        ("[b for c in (a := d)]", True, True),
        ("a = b", False, False),
        ("a += b", False, False),
        ("def f(a):\n    b", True, True),
        ("a = 1\ndef f():\n    b", True, True),
        ("def f():\n    b\na = 1", False, True),
        ("def f():\n    a = 1\nb", False, True),
        ("class C:\n    a = 1\nb", True, True),
        ("c = lambda a: b", True, True),
        ("import a\nb", True, True),
        ("if a: b", True, True),
        ("assert c, a\nb", False, False),
    ],
)
def test_a_before_b(text: str, certain: bool, possible: bool) -> None:
    order, names = _read(text)
    assert order.runs_before(names["a"], names["b"]) is certain
    assert order.may_run_before(names["a"], names["b"]) is possible


@pytest.mark.parametrize(
    "text",
    [
        "a = 1\n" + "if c: d\n" + "elif c: d\n" * 200 + "b",
        "a = 1\nd = " + " or ".join(["c"] * 200) + "\nb",
        "a = 1\nd = (c if c else c)" + " + c" * 200 + "\nb",
        "a = 1\n" + "c\n" * 20000 + "b",
    ],
)
def test_long_files(text: str) -> None:
    order, names = _read(text)
    assert order.runs_before(names["a"], names["b"])


def test_one_of_several_is_certain() -> None:
    source = Source.parse(Path("train.py"), b"if c:\n    a = 1\nelse:\n    a = 2\nb\ndel a\nd\n")
    order = Order(source.tree)
    one, two, deleted = (name for name in source.of(syntax.Name) if name.value == "a")
    b, d = (next(name for name in source.of(syntax.Name) if name.value == each) for each in "bd")
    assert order.surely((one, two), b) and not order.surely((one,), b) and not order.runs_before(two, b)
    assert order.surely((one, two), d) and not order.surely((one, two), d, unless=(deleted,))


@pytest.mark.parametrize(
    ("text", "surely"),
    [
        ("a\nb", True),
        ("b\na", False),
        ("a\nif c:\n    b", False),
        ("if c:\n    a\nb", True),
        ("a\nif c:\n    raise d\nb", True),
        ("for c in d:\n    a\n    if e:\n        break\n    b", False),
        ("for c in d:\n    b\n    a", False),
        ("try:\n    a\nfinally:\n    b", True),
    ],
)
def test_a_is_followed_by_b(text: str, surely: bool) -> None:
    order, names = _read(text)
    assert order.is_followed(names["a"], [names["b"]]) is surely


def test_again_unless_it_is_bound_anew() -> None:
    order, names = _read("for c in d:\n    if e:\n        b\n    a\n    f = 1")
    assert order.runs_again(names["a"], names["b"])
    assert not order.runs_again(names["a"], names["b"], unless=(names["f"],))
    assert order.may_run_between(names["c"], names["b"], names["a"])
    assert not order.may_run_between(names["d"], names["c"], names["d"])


def test_under_a_branch() -> None:
    source = Source.parse(
        Path("train.py"),
        b"def f():\n    for i in x:\n        try:\n            if c:\n                a\n        finally: d\n",
    )
    order = Order(source.tree)
    a = next(name for name in source.of(syntax.Name) if name.value == "a")
    around = [type(source.parents[each]) for each in order.under(a)]
    assert around == [syntax.If, syntax.Try, syntax.For]


# Every path


def _statements(depth: int) -> st.SearchStrategy[list[str]]:
    """Blocks as lines; each ``_`` is a statement of its own."""
    line = st.sampled_from(["_", "_", "_", "_", "return", "raise", "break", "continue"]).map(lambda each: [each])
    if depth == 0:
        return st.lists(line, min_size=1, max_size=2).map(_flat)
    block = _statements(depth - 1).map(lambda lines: [f"    {each}" for each in lines])
    maybe = st.one_of(st.none(), block)
    compound = st.one_of(
        st.tuples(st.sampled_from(["_", "_", "_", "True", "0"]), block, maybe).map(
            lambda each: [f"if {each[0]}:", *each[1], *_part("else:", each[2])]
        ),
        st.tuples(block, maybe).map(lambda each: ["for x in _:", *each[0], *_part("else:", each[1])]),
        st.tuples(st.sampled_from(["_", "True"]), block).map(lambda each: [f"while {each[0]}:", *each[1]]),
        st.tuples(block, block, maybe, st.booleans()).map(
            lambda each: ["try:", *each[0], "except:" if each[3] else "except E:", *each[1], *_part("else:", each[2])]
        ),
        st.tuples(block, _statements(0).map(lambda lines: [f"    {each}" for each in lines])).map(
            lambda each: ["try:", *each[0], "finally:", *each[1]]
        ),
        block.map(lambda each: ["with suppress(E):", *each]),
        st.tuples(block, block).map(lambda each: ["match _:", *_case("case 1:", each[0]), *_case("case 2:", each[1])]),
        st.tuples(block, block).map(lambda each: ["match _:", *_case("case 1:", each[0]), *_case("case _:", each[1])]),
    )
    return st.lists(st.one_of(line, compound), min_size=1, max_size=3).map(_flat)


def _flat(parts: list[list[str]]) -> list[str]:
    return [line for part in parts for line in part]


def _part(head: str, block: list[str] | None) -> list[str]:
    return [] if block is None else [head, *block]


def _case(head: str, block: list[str]) -> list[str]:
    return [f"    {each}" for each in [head, *block]]


def _program(lines: list[str]) -> str | None:
    """The lines with a number for each ``_``; None where a loop's jump stands outside of a loop, or it is too long."""
    numbers = itertools.count()
    text = "\n".join(
        line.replace("_", f"m{next(numbers)}") if "_" in line and "case _" not in line else line for line in lines
    )
    body = "def f():\n" + textwrap.indent(text, "    ")
    try:
        compile(body, "", "exec")
    except SyntaxError:
        return None
    return body if 2 <= next(numbers) <= 7 else None


Path_ = tuple[tuple[tuple[str, str], ...], str]
"""What begins and is done, in order, and how the statements are left."""


_NOTHING: Path_ = ((), "")


class _TooManyError(Exception):
    pass


class _Walk:
    """All paths of statements: loops run twice at most; a statement may raise before, within or after it."""

    def __init__(self) -> None:
        self._count = 0

    def block(self, body: list[ast.stmt]) -> list[Path_]:
        found = [_NOTHING]
        for each in body:
            following = self.statement(each)
            found = self._then(found, "", following)
        return found

    def _then(self, paths: list[Path_], how: str, following: list[Path_]) -> list[Path_]:
        made = [path for path in paths if path[1] != how]
        made += [(path[0] + more[0], more[1]) for path in paths if path[1] == how for more in following]
        made = list(dict.fromkeys(made))
        self._count += len(made)
        if self._count > _MOST_PATHS:
            raise _TooManyError
        return made

    def mark(self, node: ast.expr) -> list[Path_]:
        if not isinstance(node, ast.Name):
            return [((), "")]
        begun, done = ("begin", node.id), ("done", node.id)
        return [((begun, done), ""), ((), "raise"), ((begun,), "raise"), ((begun, done), "raise")]

    def statement(self, node: ast.stmt) -> list[Path_]:
        match node:
            case ast.Expr(value=value):
                return self.mark(value)
            case ast.Return():
                return [((), "return"), ((), "raise")]
            case ast.Raise():
                return [((), "raise")]
            case ast.Break():
                return [((), "break"), ((), "raise")]
            case ast.Continue():
                return [((), "continue"), ((), "raise")]
            case ast.If(test=ast.Constant(value=value), body=body, orelse=orelse):
                return [*self.block(body if value else orelse), ((), "raise")]
            case ast.If(test=test, body=body, orelse=orelse):
                return self._then(self.mark(test), "", [*self.block(body), *self.block(orelse)])
            case ast.For():
                return self._then(self.mark(node.iter), "", self._turns([_NOTHING], node.body, self.block(node.orelse), 2))
            case ast.While():
                over = [] if isinstance(node.test, ast.Constant) else [_NOTHING]
                return self._turns(self.mark(node.test), node.body, over, 2)
            case ast.With():
                return [(trace, "" if how == "raise" else how) for trace, how in self.block(node.body)] + [
                    path for path in self.block(node.body) if path[1] == "raise"
                ]
            case ast.Match():
                ways = [path for case in node.cases for path in self.block(case.body)]
                is_whole = isinstance(node.cases[-1].pattern, ast.MatchAs)
                return self._then(self.mark(node.subject), "", ways if is_whole else [*ways, ((), "")])
            case ast.Try():
                return self._try(node)
        raise AssertionError(ast.dump(node))

    def _turns(self, test: list[Path_], body: list[ast.stmt], over: list[Path_], turns: int) -> list[Path_]:
        found = self._then(test, "", over) if over else [(trace, how or "cut") for trace, how in test]
        if not turns:
            return found
        turn = [(trace, "next" if how in ("", "continue") else how) for trace, how in self.block(body)]
        turn = [(trace, "" if how == "break" else how) for trace, how in turn]
        again = self._then(turn, "next", self._turns(test, body, over, turns - 1))
        return list(dict.fromkeys([*found, *self._then(test, "", again)]))

    def _try(self, node: ast.Try) -> list[Path_]:
        found = self.block(node.body)
        caught = [path for handler in node.handlers for path in self.block(handler.body)]
        if not any(handler.type is None for handler in node.handlers):
            caught.append(((), "raise"))
        found = [
            path
            for way in found
            for path in (
                self._then([way], "raise", caught) if way[1] == "raise" else self._then([way], "", self.block(node.orelse))
            )
        ]
        if not node.finalbody:
            return found
        final = self.block(node.finalbody)
        return [(trace + more, then or how) for trace, how in found for more, then in final]


@pytest.mark.parametrize(
    ("text", "is_run"),
    [
        ("if c:\n    raise d\nb", True),
        ("if c:\n    raise d\nelse:\n    raise e\nb", False),
        ("if c:\n    raise d\nelif e:\n    b", True),
        ("if 0:\n    b", False),
        ("if c:\n    d\nelif 0:\n    b", False),
        ("for c in d:\n    if e:\n        continue\n    b", True),
        ("for c in d:\n    continue\n    b", False),
        ("for c in d:\n    raise e\nb", True),
        ("for c in d:\n    e\nelse:\n    raise f\nb", False),
        ("while c:\n    raise d\nb", True),
        ("while True:\n    c\nb", False),
        ("while True:\n    if c:\n        break\nb", True),
        ("try:\n    raise c\nexcept d:\n    e\nelse:\n    b", False),
        ("with c:\n    raise d\nb", False),
        ("def c():\n    raise d\nb", True),
    ],
)
def test_which_jumps_keep_a_line_from_being_run(text: str, is_run: bool) -> None:
    order, names = _read(text)
    assert order.is_run(names["b"]) is is_run


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(_statements(2))
def test_against_every_path(lines: list[str]) -> None:
    text = _program(lines)
    assume(text is not None)
    assert text is not None
    function = ast.parse(text).body[0]
    assert isinstance(function, ast.FunctionDef)
    try:
        paths = _Walk().block(function.body)
    except _TooManyError:
        assume(False)
    traces = [trace for trace, _ in paths]
    order, names = _read(text)
    marks = [name for name in names if name.startswith("m")]
    for mark in marks:
        is_reached = any(("begin", mark) in trace for trace in traces)
        assert Order(names[mark].tree).is_run(names[mark]) is is_reached, f"{mark} in\n{text}"
    for one, other in itertools.product(marks, marks):
        at = [trace.index(("begin", other)) for trace in traces if ("begin", other) in trace]
        before = [("done", one) in trace[: trace.index(("begin", other))] for trace in traces if ("begin", other) in trace]
        again = any(("begin", other) in trace[trace.index(("done", one)) :] for trace in traces if ("done", one) in trace)
        case = f"{one} before {other} in\n{text}"
        assert order.is_run(names[other]) is bool(at), case
        if at:
            assert order.runs_before(names[one], names[other]) is all(before), case
        assert order.may_run_before(names[one], names[other]) is any(before), case
        assert order.runs_again(names[one], names[other]) is again, case
        rest = [
            trace[place:]
            for trace, how in paths
            for place, step in enumerate(trace)
            if step == ("done", one) and how in ("", "return")
        ]
        if one != other and again and rest:
            followed = all(("begin", other) in each for each in rest)
            assert order.is_followed(names[one], [names[other]]) is followed, case
