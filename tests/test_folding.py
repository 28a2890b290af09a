"""Folding: lengths of lists and counts of turns, against what Python itself computes; nothing of the input is run."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speedlint.ask.program import Program
from speedlint.ask.script import Options, Script
from speedlint.facts import syntax
from speedlint.solve import counts
from speedlint.solve.folding import Folding, Frame
from speedlint.solve.pure import UNKNOWN

SETTINGS: dict[str, Any] = {}


def script(folder: Path, text: str) -> Script:
    path = folder / "train.py"
    path.write_text(textwrap.dedent(text))
    return Program(Options((2, 13))).script(path)


def folded(where: Script, name: str) -> Any:
    """The value of the last use of a name."""
    uses = [node for node in where.source.of(syntax.Name) if node.value == name]
    return Folding().value(Frame(where), uses[-1])


PURE = """
    from itertools import combinations


    def subsets(items):
        if len(items) <= 1:
            yield items
            yield []
        else:
            for rest in subsets(items[1:]):
                yield [items[0]] + rest
                yield rest


    def grown(n):
        found = []
        for i in range(n):
            if i % 2 == 0:
                found.append(i)
        return found


    def pairs(n):
        return [list(each) for size in range(1, n + 1) for each in combinations(range(n), size)]

"""


@pytest.mark.parametrize(
    "expression",
    [
        "[x for x in subsets([0, 1, 2, 3])]",
        "list(subsets(list(range(3))))",
        "grown(7)",
        "pairs(4)",
        "list(range(10))[::-1][2:-1]",
        "[i * 2 for i in range(5) if i != 3]",
        "len([1, 2]) + 3 * -2 if not isinstance([1], tuple) else 0",
        "[a + b for a, b in zip([1, 2], (3, 4))] + [*range(2)]",
        "{'a': [1, 2], 'b': []}['a']",
        "list(enumerate('ab'))[1:]",
        "sorted({3, 1}) if False else sum([1, 2])",
        "1 in [1, 2] and 'x' not in 'abc'",
    ],
)
def test_what_is_known_is_what_python_computes(tmp_path: Path, expression: str) -> None:
    text = textwrap.dedent(PURE)
    names: dict[str, Any] = {}
    exec(text + f"value = {expression}", names)  # the test's own text
    assert folded(script(tmp_path, text + f"value = {expression}\nprint(value)\n"), "value") == names["value"]


@given(st.lists(st.integers(-50, 50), max_size=6), st.integers(-7, 7), st.integers(-7, 7), st.sampled_from([1, 2, -1, -3]))
def test_slices_are_those_of_python(
    tmp_path_factory: pytest.TempPathFactory, items: list[int], a: int, b: int, c: int
) -> None:
    folder = tmp_path_factory.mktemp("slices")
    where = script(folder, f"value = {items}[{a}:{b}:{c}]\nprint(value)\n")
    assert folded(where, "value") == items[a:b:c]


@pytest.mark.parametrize(
    "text",
    [
        "value = open('gone')",
        "value = []\nfor x in data:\n    value.append(x)",
        "value = 1\nif unknown():\n    value = 2",
        "value = 'a' * 10 ** 9",
        "value = list(range(10 ** 9))",
        "value = [1] / 0",
        "value = [1, 2][5]",
        "def f(n):\n    return f(n)\nvalue = f(1)",
        "def f(n):\n    yield n\n    for x in f(n):\n        yield x\nvalue = list(f(1))",
        "def f():\n    import os\n    os.remove('train.py')\n    return os.listdir()\nvalue = f()",
        "value = [x for a in range(4000) for x in range(4000)]",
        "value = value2\nvalue2 = value",
        "value = unknown or [1, 2]",
        "value = [1]\nother = value\nother.append(2)",
        "def fill(x):\n    x.append(2)\nvalue = [1]\nfill(value)",
        "for i in range(3):\n    value = i",
        "value = '%*d' % (2000000000, 7)",
        "value = sum([list(range(4000)) for _ in range(4000)], [])",
        "from itertools import combinations\nvalue = [list(combinations(range(4096), 4095)) for _ in range(1000)]",
        "def f():\n    a = b = []\n    for i in range(45):\n        a, b = [a, a], [b, b]\n    return a == b\nvalue = f()",
        "def f():\n    d = {'a': 1}\n    d['a'] = 2\n    return d['a']\nvalue = f()",
        "def f():\n    x = [1, 2, 3]\n    x[1:] = []\n    return x\nvalue = len(f())",
        "import heapq\ndef f():\n    x = [1]\n    heapq.heappush(x, 2)\n    return x\nvalue = len(f())",
        "@twice\ndef f():\n    return [1]\nvalue = len(f())",
        "def f(x=[]):\n    x.append(1)\n    return x\nf()\nvalue = len(f())",
        "def f():\n    n = 2\n    print(n := 8)\n    return n\nvalue = f()",
    ],
)
def test_what_is_not_known_costs_little_and_runs_nothing(tmp_path: Path, text: str) -> None:
    where = script(tmp_path, f"{text}\nprint(value)\n")
    assert folded(where, "value") is UNKNOWN
    assert where.path.is_file()


LOOPS = """
    def train(items, flag, n=3):
        for a in range(n):
            if a == 1:
                continue
            for b in [x for x in items] if flag else (1, 2):
                for c in [4, 5, 6]:
                    if c > 4:
                        mark(c)
        for d in range(10):
            if d > 2:
                break
            other(d)


    train([0, 0, 0, 0], True)
"""


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("for a in range(4):\n    mark(a)", 4),
        ("for a in range(4):\n    if a % 2:\n        mark(a)", 2),
        ("for a in range(4):\n    if a % 2:\n        continue\n    mark(a)", 2),
        ("for a in range(4):\n    if data[a]:\n        continue\n    mark(a)", None),
        ("for a in range(4):\n    if data[a]:\n        mark(a)", None),
        ("for a in range(4):\n    if a == 3:\n        return\n    mark(a)", None),
        ("for a in range(4):\n    if a:\n        mark(a)\n    else:\n        continue", None),
        ("for a in range(4):\n    with data:\n        if a:\n            continue\n    mark(a)", None),
        ("for a in range(4):\n    n = a\nfor a in range(4):\n    for b in range(n):\n        mark(b)", None),
        ("k = 5\nk = min(k, 2)\nfor a in range(k):\n    mark(a)", 2),
        ("for a, *b in [(1, 2), (3, 4)]:\n    for c in range(a):\n        mark(c)", None),
        ("found = [a for a in range(4) if mark(a)]", None),
        ("found = {a: mark(a) for a in range(4)}", None),
        ("found = [mark(a) for a in range(4) for b in range(3)]", 12),
        ("found = [mark(a) for a in range(4) if a]", None),
        ("for a in range(1000):\n    for b in range(1000):\n        mark(b)", None),
        ("while data:\n    mark(1)", None),
        ("mark(1)", 1),
    ],
)
def test_a_number_of_turns_is_right_or_not_known(tmp_path: Path, body: str, count: int | None) -> None:
    where = script(tmp_path, "def train(data):\n" + textwrap.indent(body, "    ") + "\n")
    call = next(call for call in where.source.of(syntax.Call) if where.text(call.func) == "mark")
    function = where.function(call)
    assert function is not None
    assert counts.times(where, call, function.body) == count


def test_turns_are_multiplied_and_guards_are_followed(tmp_path: Path) -> None:
    where = script(tmp_path, LOOPS)
    calls = {where.text(call.func): call for call in where.source.of(syntax.Call)}
    block = where.function(calls["mark"])
    assert block is not None
    assert counts.times(where, calls["mark"], block.body) == 2 * 4 * 2
    assert counts.times(where, calls["other"], block.body) is None, "the loop may end before"
    assert counts.times(where, calls["range"], block.body) == 1
