"""Flow: answers are the least solution of their equations, whatever is asked first; so are findings."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speedlint.config import Settings
from speedlint.engine import Engine
from speedlint.registry import Registry
from speedlint.solve.flow import Flow
from tests.conftest import ROOT

REGISTRY = Registry.load()
NOTHING: frozenset[int] = frozenset()
Equations = list[tuple[frozenset[int], list[int], list[tuple[int, int]]]]
"""For each question: what it holds itself, whose answers it holds too, and whose answers it holds where another has 0."""

_few = st.integers(0, 5)
_equation = st.tuples(
    st.frozensets(st.integers(0, 3), max_size=2), st.lists(_few, max_size=3), st.lists(st.tuples(_few, _few), max_size=2)
)
equations = st.lists(_equation, min_size=6, max_size=6)


def _side(
    one: tuple[frozenset[int], list[int], list[tuple[int, int]]], ask: Callable[[int], frozenset[int]]
) -> frozenset[int]:
    own, from_all, from_some = one
    found = own.union(*(ask(other) for other in from_all))
    return found.union(*(ask(other) for condition, other in from_some if 0 in ask(condition)))


def _least(graph: Equations) -> list[frozenset[int]]:
    found = [NOTHING] * len(graph)
    while (again := [_side(one, found.__getitem__) for one in graph]) != found:
        found = again
    return found


def _asked(graph: Equations, order: list[int]) -> dict[int, frozenset[int]]:
    flow = Flow()

    def ask(number: int) -> frozenset[int]:
        return flow.ask(number, lambda: _side(graph[number], ask), NOTHING)

    return {number: ask(number) for number in order}


@given(equations, st.permutations(range(6)))
@settings(max_examples=500, deadline=None)
def test_answers_are_the_least_solution_in_any_order(graph: Equations, order: list[int]) -> None:
    assert _asked(graph, order) == dict(enumerate(_least(graph)))


@given(equations)
@settings(max_examples=10, deadline=None)
def test_all_orders_of_asking_agree(graph: Equations) -> None:
    least = dict(enumerate(_least(graph)))
    assert all(_asked(graph, list(order)) == least for order in permutations(range(6)))


def test_a_large_graph() -> None:
    chance = random.Random(0)
    some = [chance.sample(range(400), 2) for _ in range(400)]
    graph: Equations = [
        (frozenset({number % 4}) if number % 40 == 0 else NOTHING, some[number], []) for number in range(400)
    ]
    assert _asked(graph, list(range(400))) == _asked(graph, list(range(399, -1, -1))) == dict(enumerate(_least(graph)))


def test_a_chain_deeper_than_a_stack() -> None:
    flow, length = Flow(), 5000

    def ask(number: int) -> int:
        return flow.ask(number, lambda: 1 + ask(number - 1) if number else 0, -1)

    assert ask(length) == length


def test_an_answer_that_never_settles_is_unknown() -> None:
    flow = Flow()

    def ask() -> int:
        return flow.ask("growing", lambda: ask() + 1, 0, unknown=-1)

    assert ask() == flow.ask("growing", lambda: 0, 0) <= 0


def test_what_hangs_on_itself_alone_is_unknown() -> None:
    flow = Flow()

    def ask(name: str, other: str) -> str | None:
        return flow.ask(name, lambda: ask(other, name), None, unknown="unknown")

    assert ask("a", "b") == ask("b", "a") == "unknown"


def test_an_error_leaves_nothing_behind() -> None:
    flow = Flow()

    def fails() -> int:
        ask()
        raise ValueError

    def ask() -> int:
        return flow.ask("a", lambda: flow.ask("b", fails, 0), 0)

    with pytest.raises(ValueError):
        ask()
    assert flow.ask("b", lambda: 7, 0) == 7


def _findings(path: Path, *select: str) -> list[tuple[int, str, str]]:
    report = Engine(Settings(path.parent, select=select), REGISTRY).check(path)
    assert not report.problems
    return [(each.line, each.code, each.message) for each in report.diagnostics]


RECURSIVE = """\
import torch
from torch import nn
from torch.utils.data import DataLoader

device = torch.device("cuda")
model = nn.Linear(10, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def smooth(depth):
    if depth == 0:
        return torch.ones((), device="cuda")
    state = {"part": (blend(depth), depth)}
    return state["part"][0] * 0.5


def blend(depth):
    if depth == 0:
        return torch.zeros((), device="cuda")
    return smooth(depth - 1)


def train(loader: DataLoader):
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        weight = float(smooth(2))
        print(blend(2), weight)
"""


def test_a_rule_finds_the_same_whatever_another_asked_before_it(tmp_path: Path) -> None:
    """Have: asked for ``blend`` first, ``blend`` within its own dict was taken for unknown."""
    path = tmp_path / "train.py"
    path.write_text(RECURSIVE)
    alone, together = _findings(path, "SPD303"), _findings(path, "SPD301", "SPD303")
    assert [code for _, code, _ in together] == ["SPD301", "SPD303"]
    assert alone == together[1:]


SCRIPTS = sorted([*(ROOT / "fixtures" / "scripts").glob("*.py"), *(ROOT / "fixtures" / "rules").glob("*.py")])
SAMPLE = random.Random(7).sample(SCRIPTS, 15)
FEW = 6
"""Of the sample, what is checked where time counts."""


@pytest.mark.parametrize(
    "path",
    [*SAMPLE[:FEW], *(pytest.param(each, marks=pytest.mark.slow) for each in SAMPLE[FEW:])],
    ids=lambda path: path.stem,
)
def test_each_rule_finds_alone_what_it_finds_among_all(path: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(path, tmp_path))
    codes = [rule.code for rule in REGISTRY.rules]
    together = _findings(path, *codes)
    alone = {code: [each for each in together if each[1] == code] for code in codes}
    assert {code: _findings(path, code) for code in codes} == alone
