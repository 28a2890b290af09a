"""`speedlint new-rule`, and CONTRIBUTING's example of a rule: what they say works as it is."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from speedlint import docs
from speedlint.ask.script import Options
from speedlint.config import Settings
from speedlint.engine import Engine
from speedlint.families import FAMILIES
from speedlint.registry import Registry, own_rules
from tests.conftest import ROOT, Project
from tests.marks import difference, found, marks

TRAIN = """import torch
from torch.utils.data import DataLoader


def train(rows):
    model = torch.nn.Linear(4, 2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for features, target in DataLoader(rows):
        loss = (model(features.cuda()) - target.cuda()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
    print(loss.item())


train([])
"""


@pytest.fixture
def clone(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project that holds speedlint's rules, and is taken for a clone of it."""
    shutil.copytree(own_rules(), project.root / "rules", ignore=shutil.ignore_patterns("__pycache__"))
    (project.root / "fixtures" / "rules").mkdir(parents=True)
    monkeypatch.setattr("speedlint.registry._PACKAGE", project.root / "speedlint")
    return project


def _next(family: str) -> str:
    prefix = FAMILIES[family].prefix
    return f"SPD{max(int(rule.code[3:]) for rule in Registry.load().rules if rule.code.startswith(prefix)) + 1}"


@pytest.mark.parametrize("family", FAMILIES)
def test_it_has_the_next_code_of_its_family(clone: Project, family: str) -> None:
    code = _next(family)
    result = clone.run("new-rule", "slow-thing", "--family", family)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines()[0] == f"{code}: rules/{family}/slow_thing.py, fixtures/rules/slow_thing.py"
    assert "pytest --bless" in result.stdout
    assert Registry.load().find("slow-thing").code == code


def test_the_skeleton_passes_the_tests_of_all_rules(clone: Project) -> None:
    clone.run("new-rule", "slow_thing", "--family", "sync")
    registry = Registry.load()
    rule, fixture = registry.find("slow-thing"), clone.root / "fixtures" / "rules" / "slow_thing.py"
    sections = docs.sections(rule.docs)
    assert tuple(sections) == docs.HEADINGS
    assert all(sections.values()) and docs.why(rule.docs)
    assert re.fullmatch(r"[A-Z`].*\.", docs.summary(rule.docs))
    text = fixture.read_text()
    report = Engine(Settings(fixture.parent, select=(rule.code,)), registry, options=Options((2, 13))).check(fixture)
    assert not report.problems
    wanted = [mark.expected for mark in marks(text)]
    assert len(wanted) == 1 < text.count(".slow_call(")
    assert not difference(fixture.name, text, wanted, found(report.diagnostics))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("item-in-loop", "--family", "sync"), "there is a rule `item-in-loop` already, SPD301; choose another name"),
        (("item_in_loop", "--family", "data"), "there is a rule `item-in-loop` already, SPD301; choose another name"),
        (("taken", "--family", "sync"), "fixtures/rules/taken.py: exists already; choose another name, or remove it"),
        (("Item", "--family", "sync"), "`Item` is no name for a rule; use lower-case words with hyphens, such as"),
        (("../up", "--family", "sync"), "`../up` is no name for a rule; use lower-case words with hyphens, such as"),
        (("slow-thing",), "say with --family where it belongs: precision, data, sync, backend, optimizer, model,"),
    ],
)
def test_it_refuses_in_one_line(clone: Project, arguments: tuple[str, ...], said: str) -> None:
    clone.write("fixtures/rules/taken.py", "kept")
    before = sorted(clone.root.rglob("*.py"))
    result = clone.run("new-rule", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ") and said in result.stderr and result.stderr.count("\n") == 1
    assert sorted(clone.root.rglob("*.py")) == before
    assert (clone.root / "fixtures/rules/taken.py").read_text() == "kept"


def test_it_needs_a_clone(clone: Project) -> None:
    shutil.rmtree(clone.root / "fixtures")
    result = clone.run("new-rule", "slow-thing", "--family", "sync")
    assert result.exit_code == 2
    assert "rules are added in a clone of speedlint's repository" in result.stderr
    assert not (clone.root / "rules" / "sync" / "slow_thing.py").exists()


def test_a_family_that_is_full(clone: Project) -> None:
    rule = (clone.root / "rules/sync/item_in_loop.py").read_text()
    clone.write("rules/sync/last.py", rule.replace('"SPD301"', '"SPD399"'))
    result = clone.run("new-rule", "slow-thing", "--family", "sync")
    assert result.stderr == "error: the family `sync` has no code left after SPD399; begin a new family\n"


def test_the_example_in_contributing_works(project: Project) -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL | re.MULTILINE)
    project.write("lint_rules/item_waits.py", example)
    project.write("speedlint.toml", 'rule-paths = ["lint_rules"]\n')
    project.write("train.py", TRAIN)
    ((line, message),) = (
        (each["line"], each["message"]) for each in project.findings("train.py", "--select", "item-waits", "--notes")
    )
    assert line == TRAIN[: TRAIN.index("print(loss.item())")].count("\n") + 1
    assert message == "`loss.item()` waits for the GPU on every step"
    assert tuple(docs.sections(Registry.load((Path("lint_rules"),)).find("item-waits").docs)) == docs.HEADINGS
