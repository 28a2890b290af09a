"""Reading: spans over every kind of text, and the files that cannot be read."""

from __future__ import annotations

import ast
import itertools
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from speedlint.facts import syntax
from speedlint.facts.rows import Rows
from speedlint.source import Source, SourceError
from tests import oracle

PATH = Path("train.py")
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def parse(data: bytes | str) -> Source:
    return Source.parse(PATH, data.encode() if isinstance(data, str) else data)


def refusal(data: bytes) -> str:
    with pytest.raises(SourceError) as caught:
        Source.parse(PATH, data)
    assert "\n" not in str(caught.value)
    return str(caught.value)


ATOMS = st.sampled_from(
    ["a", "b.c", "1", "'é→'", '"""x\ny"""', "f'{a!r:>{b}} é'", "b'y'", "[1, 2]", "{}", "None", "-1", "(yield_)"]
)


@st.composite
def _compound(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    one, other = draw(inner), draw(inner)
    gaps = st.sampled_from(["", " ", "\n  ", "  # é (\n"])
    left, right = draw(gaps), draw(gaps)
    operator = draw(st.sampled_from([" + ", "*", " if a else ", " and ", "@"]))
    function = draw(st.sampled_from(["f", "a.to", "(g)"]))
    shapes = [
        f"({left}{one}{right})",
        f"({one}{operator}{other})",
        f"{function}({left}{one}, {other}{right})",
        f"{function}({left}{right})",
        f"({one}).item()",
        f"(lambda x: {one})",
        f"({one})[({other}):]",
        f"[x for x in ({one}) if x]",
        f"(not ({one}))",
    ]
    return draw(st.sampled_from(shapes))


EXPRESSIONS = st.recursive(ATOMS, _compound, max_leaves=8)
COMMENTS = st.sampled_from(["", "  # é", "\n\n# above", ";"])


@st.composite
def programs(draw: st.DrawFn) -> bytes:
    """A valid program in some layout and encoding."""
    tab = draw(st.sampled_from(["    ", "\t", "  "]))
    shapes = [
        "x = {}",
        "{}",
        "if {}:\n{tab}pass\nelse:\n{tab}{}",
        "for x in {}:  # loop\n{tab}{}\n{tab}# end",
        "def f(a: b=({}), *c, d): # x\n{tab}return ({})",
        "while ({}): {}",
    ]
    lines = []
    for shape in draw(st.lists(st.sampled_from(shapes), min_size=1, max_size=4)):
        filled = shape.replace("{tab}", tab)
        while "{}" in filled:
            filled = filled.replace(
                "{}", f"({draw(EXPRESSIONS)})" if draw(st.booleans()) else _one_line(draw(EXPRESSIONS)), 1
            )
        lines.append(filled + draw(COMMENTS))
    text = "\n".join(lines) + draw(st.sampled_from(["", "\n", "\n\n", "\n  "]))
    encoding = draw(st.sampled_from(["utf-8", "utf-8-sig", "latin-1"]))
    if encoding == "latin-1":
        text = "# -*- coding: latin-1 -*-\n" + text.replace("→", "ü")
    return text.replace("\n", draw(st.sampled_from(["\n", "\r\n", "\r"]))).encode(encoding)


def _one_line(text: str) -> str:
    return f"({text})" if "\n" in text or "#" in text else text


def is_valid(data: bytes) -> bool:
    try:
        ast.parse(data)
    except (SyntaxError, ValueError):
        return False
    return True


valid_programs = programs().filter(is_valid)


def nodes(source: Source) -> list[syntax.Node]:
    return [source.tree.node(row) for row in range(len(source.tree.rows.kind))]


@patient
@given(valid_programs)
def test_nodes_are_those_of_libcst_and_their_text_means_the_same(data: bytes) -> None:
    source = parse(data)
    text = data.decode(source.encoding).removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    expected = oracle.nodes(text)
    assert [type(node).__name__ for node in nodes(source)] == [type(node).__name__ for node in expected]
    for node, same in zip(nodes(source), expected, strict=True):
        if isinstance(node, syntax.BaseExpression) and not isinstance(node, syntax.StarredElement):
            written = source.text(node).replace("\r\n", "\n").replace("\r", "\n")
            assert ast.dump(ast.parse(f"({written}\n)")) == ast.dump(ast.parse(f"({oracle.code(same)}\n)"))
            assert written.count("(") == oracle.code(same).count("(")


@patient
@given(valid_programs)
def test_rows_come_back_from_bytes(data: bytes) -> None:
    rows = parse(data).tree.rows
    loaded = Rows.load(rows.dump())
    assert loaded.dump() == rows.dump()


@patient
@given(valid_programs)
def test_spans_nest_and_siblings_keep_apart(data: bytes) -> None:
    source = parse(data)
    children: dict[syntax.Node, list[syntax.Node]] = {}
    for node in nodes(source)[1:]:
        parent = source.parents[node]
        if isinstance(node, (syntax.BaseExpression, syntax.BaseStatement, syntax.BaseSmallStatement, syntax.Arg)):
            children.setdefault(parent, []).append(node)
            inner, outer = source.span(node), source.span(parent)
            assert outer.start <= inner.start < inner.end <= outer.end
    for siblings in children.values():
        spans = sorted(source.span(node) for node in siblings)
        assert all(one.end <= other.start for one, other in itertools.pairwise(spans))


@patient
@given(valid_programs)
def test_positions_are_those_of_python(data: bytes) -> None:
    source = parse(data)
    calls = sorted(source.line(node) for node in source.of(syntax.Call))
    body = [node for node in ast.walk(ast.parse(data)) if isinstance(node, ast.Call)]
    assert len(calls) == len(body)
    lines = source.data.decode(source.encoding).removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    assert [source.line_text(number) for number in range(1, len(lines) + 1)] == lines


@patient
@given(st.binary(max_size=80) | valid_programs)
def test_any_bytes_are_read_or_refused_in_one_line(data: bytes) -> None:
    try:
        source = parse(data)
    except SourceError as error:
        assert "\n" not in str(error)
        assert error.line >= 1
    else:
        assert source.data == data


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"  ",
        b"# only a comment",
        b"\xef\xbb\xbf",
        b"\x0c",
        b"x = 1\n  ",
        b"x = 1\n\x0c\ny = 2\n",
        b"if x:\n    a\n\x0c\n    b\n",
        b"x = 1 \x0c \n",
        b"x = 1\ry = 2\r",
        b"x = 1\r\ny = 2\nz = 3\r",
        b'"""a\rb"""\n',
        b"x = 1\\\r\n+ 2",
        b"if x:\n\ty\n",
        b"x;",
        "# coding: shift_jis\nx = '表'\n".encode("shift_jis"),
    ],
)
def test_every_layout_can_be_measured(data: bytes) -> None:
    source = parse(data)
    assert all(source.text(name).isidentifier() for name in source.of(syntax.Name))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"x = (\n\ny = 1\n", "train.py:1: syntax error for Python"),
        (b"x = 1\nif x:\ny\n", "train.py:3: syntax error for Python"),
        (b"x = 1\nprint 'hello'\n", "train.py:2: syntax error (Python 2?); port it to Python 3 or exclude it"),
        (b"x = 1\ny = '\xe9'\n", "train.py:2: is not valid utf-8; declare the file's encoding or save it as UTF-8"),
        (b"x = 1\n\0", "train.py:2: holds NUL bytes, so it is not Python source; exclude it"),
        (b"# coding: nonsense\n", "train.py:1: unknown encoding: nonsense; declare the file's encoding or save it as UTF-8"),
        (b"# coding: rot13\nk = 1\n", "train.py:1: its encoding rot13 does not code character by character"),
        ("# coding: iso2022_jp\nx = '表裏'\n".encode("iso2022_jp"), "train.py:1: its encoding iso2022_jp does not code"),
        (b"\xff\xfex\0", "train.py:1: holds NUL bytes"),
    ],
)
def test_what_is_not_python_is_one_clear_line(data: bytes, expected: str) -> None:
    assert refusal(data).startswith(expected)


ASYNC = """
async def run(pool, images, é):
    async with pool as one:
        images = images.cuda(async=True)  # async=True
        other = images.to(device, async = 'async' == "async")
        done = pool.map(print, images, async=True)
    async for each in done:
        print(f"{each} async=True", async)
    self.async = async
def later():
    from utils.async import moved
"""


def test_async_is_a_name_where_python_3_6_had_it_as_one() -> None:
    source = parse(ASYNC)
    keywords = {source.text(arg.keyword): arg.keyword.value for arg in source.of(syntax.Arg) if arg.keyword is not None}
    assert keywords == {"async": "async"}  # the last one: `pool.map` is no copy of torch's
    copies = [arg.keyword.value for arg in source.of(syntax.Arg) if arg.keyword is not None]
    assert copies == ["non_blocking", "non_blocking", "async"]
    assert [source.text(call.args[-1].value) for call in source.of(syntax.Call)][:2] == ["True", "'async' == \"async\""]
    assert all(source.text(name) in (name.value, "async") for name in source.of(syntax.Name))
    assert [node.value for node in source.of(syntax.SimpleString)] == ["'async'", '"async"']


def test_async_beside_a_cookie_and_letters_of_two_bytes() -> None:
    source = parse("# -*- coding: latin-1 -*-\ny = ('é', x.cuda(async=True), z.item())\n".encode("latin-1"))
    assert [source.text(call) for call in source.of(syntax.Call)] == ["x.cuda(async=True)", "z.item()"]


def test_async_is_a_part_of_a_modules_name() -> None:
    source = parse(ASYNC)
    assert [source.text(each) for each in source.of(syntax.ImportFrom)] == ["from utils.async import moved"]
    assert {name.value for name in source.of(syntax.Name) if name.value.startswith("asyn")} == {"async"}


@pytest.mark.parametrize("more", ["async def", "x = async x", "(async=True"])
def test_what_is_no_python_all_the_same_is_told_where_this_python_stops(more: str) -> None:
    assert refusal(f"y = x.cuda(async=True)\n{more}\n".encode()).startswith("train.py:1: syntax error for Python")


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 1000 + ")" * 1000,
        "f(" * 5000 + ")" * 5000,
        "lambda: " * 5000 + "1",
        "not " * 5000 + "1",
        "+".join(["1"] * 1000),
        "a" + ".b" * 1000,
        "'a' " * 1000,
        "-" * 50_000 + "1",
        "1 if 1 else " * 2500 + "1",
        "0\nif y: pass\n" + "elif y: pass\n" * 20_000,
    ],
    ids=["parentheses", "calls", "lambdas", "nots", "sum", "attributes", "strings", "signs", "choices", "branches"],
)
def test_what_is_nested_too_deeply_is_refused_not_a_crash(expression: str) -> None:
    text = f"x = 1\n\ny = {expression}\n"
    assert "is nested too deeply to be read" in refusal(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        "x = '" + "(" * 500 + "'\n",
        "# " + "[" * 500 + "\n",
        "# " + "-" * 500 + "\n",
        "x = " + "(" * 90 + "1" + ")" * 90,
        "x = " + "+".join(["1"] * 250),
        "x = [" + "f(1), " * 2000 + "]",
    ],
    ids=["string", "comment", "line", "parentheses", "sum", "list"],
)
def test_what_is_long_or_moderately_deep_is_read(text: str) -> None:
    assert parse(text).tree


def test_the_span_of_a_block_leaves_out_the_comments_below_it() -> None:
    source = parse("for x in y:\n    z  # beside\n    # end\n# below\nif x: y  # beside\n")
    assert source.text(source.of(syntax.For)[0]) == "for x in y:\n    z"
    assert source.text(source.of(syntax.If)[0]) == "if x: y"


def test_parentheses_belong_to_the_span_but_not_to_the_code_span() -> None:
    source = parse("((a + b)).item()\n")
    node = source.of(syntax.BinaryOperation)[0]
    assert source.text(node) == "((a + b))"
    assert source.code_span(node) == (2, 7)


def test_the_files_newline_is_its_most_frequent() -> None:
    assert parse(b"a\r\nb\r\nc\n").newline == "\r\n"
    assert parse(b"a\rb\r").newline == "\r"
    assert parse(b"a").newline == "\n"
