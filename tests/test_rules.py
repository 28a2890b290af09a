"""Every rule, held to its documentation and its fixture: what must be flagged, what must stay silent, and the cure."""

from __future__ import annotations

import ast
import collections
import io
import re
import textwrap
import tokenize
from pathlib import Path

import pyflakes.checker
import pyflakes.messages
import pytest

from speedlint import config, docs, stages
from speedlint.ask.script import Options
from speedlint.engine import Engine
from speedlint.families import FAMILIES
from speedlint.registry import Registry, own_rules
from speedlint.rule import Risk, Rule
from tests.conftest import ROOT
from tests.marks import difference, found, marks

FIXTURES = ROOT / "fixtures" / "rules"
REGISTRY = Registry.load()
every_rule = pytest.mark.parametrize("rule", REGISTRY.rules, ids=lambda rule: f"{rule.code}-{rule.name}")
SAMPLED = 6
"""One rule in so many is fixed again; all of them with `-m slow`."""
FIXED_AGAIN = [
    pytest.param(rule, id=f"{rule.code}-{rule.name}", marks=[] if number % SAMPLED == 0 else pytest.mark.slow)
    for number, rule in enumerate(REGISTRY.rules)
]


def _fixture(rule: Rule) -> Path:
    return FIXTURES / f"{rule.name.replace('-', '_')}.py"


def _settings(rule: Rule, folder: Path) -> config.Settings:
    return config.Settings(folder, select=(rule.code,), risk=Risk.BEHAVIOR)


def _options(text: str) -> Options:
    """The fixture's first line may say ``# speedlint-test: torch=2.4 amp=bf16``; ``torch=`` is an unknown release."""
    said = dict(re.findall(r"(\w+)=(\S*)", text.partition("\n")[0])) if text.startswith("# speedlint-test:") else {}
    torch = said.get("torch", "2.13")
    return Options(config.release(torch) if torch else None, said.get("amp", "fp16"))


def _fixed(rule: Rule, text: str, folder: Path) -> str:
    path = folder / _fixture(rule).name
    path.write_text(text)
    staged = stages.fix((path,), _settings(rule, folder), REGISTRY, _options(text))
    assert not staged.problems
    return next((outcome.after.decode() for outcome in staged.outcomes), text)


@every_rule
def test_documentation(rule: Rule) -> None:
    assert re.fullmatch(r"[A-Z`].*\.", docs.summary(rule.docs)), "the first line is a sentence"
    sections = docs.sections(rule.docs)
    assert tuple(sections) == docs.HEADINGS
    assert all(sections.values()), "no section is empty"
    assert docs.why(rule.docs)
    for heading in ("Example", "Use instead"):
        for block in re.findall(r"```python\n(.*?)```", sections[heading], re.DOTALL):
            ast.parse(textwrap.dedent(block))
    assert "```python" in sections["Example"]


@every_rule
def test_sources_have_a_page_each(rule: Rule) -> None:
    text = docs.sections(rule.docs)["Sources"]
    pages = docs.sources(rule.docs)
    assert pages, "a line `- [title](https://...)` under Sources"
    links = "\n".join(f"- [{title}]({url})" for title, url in pages.items())
    said = text.removesuffix(links).strip()
    assert said and said != text, "what the sources say, then a list of their pages"
    assert "http" not in said


def test_a_page_has_the_same_title_in_every_rule() -> None:
    titles: dict[str, set[str]] = {}
    for rule in REGISTRY.rules:
        for title, url in docs.sources(rule.docs).items():
            titles.setdefault(url, set()).add(title)
    assert not [each for each in titles.values() if len(each) > 1]


@every_rule
def test_code_names_its_family(rule: Rule) -> None:
    (family,) = (name for name, family in FAMILIES.items() if rule.code.startswith(family.prefix))
    assert (own_rules() / family / f"{rule.name.replace('-', '_')}.py").is_file()


@every_rule
def test_finds_what_its_fixture_marks_and_nothing_else(rule: Rule) -> None:
    path = _fixture(rule)
    text = path.read_text()
    report = Engine(_settings(rule, FIXTURES), REGISTRY, options=_options(text)).check(path)
    assert not report.problems
    wanted = [mark.expected for mark in marks(text)]
    assert wanted, "the fixture marks what must be found"
    assert {each.code for each in wanted} == {rule.code}
    assert not difference(path.name, text, wanted, found(report.diagnostics))
    for each in report.diagnostics:
        assert each.advice or (each.fix and each.fix.edits), f"line {each.line} has neither advice nor a fix"
        own = re.search(rf"(?m)^- `{re.escape(each.case)}`: ", docs.sections(rule.docs)["Why it is slow"])
        assert not each.case or own, f'line {each.line}: no item `{each.case}` under "Why it is slow"'


@every_rule
def test_cure(rule: Rule, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    path = _fixture(rule)
    before = path.read_text()
    after = _fixed(rule, before, tmp_path)
    if request.config.getoption("--bless"):
        path.with_suffix(".fixed").write_text(after)
    assert after == path.with_suffix(".fixed").read_text(), "`pytest --bless` rewrites the file: review the difference"
    assert _undefined(after) <= _undefined(before)
    assert not _comments(before) - _comments(after), "no comment is lost"


@pytest.mark.parametrize("rule", FIXED_AGAIN)
def test_a_second_fix_changes_nothing(rule: Rule, tmp_path: Path) -> None:
    """A fixer that has come to its end has looked again; this looks as who calls it a second time does."""
    after = _fixture(rule).with_suffix(".fixed").read_text()
    assert _fixed(rule, after, tmp_path) == after


def _undefined(text: str) -> set[str]:
    messages = pyflakes.checker.Checker(ast.parse(text)).messages
    return {str(message.message_args[0]) for message in messages if isinstance(message, pyflakes.messages.UndefinedName)}


def _comments(text: str) -> collections.Counter[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = (token.string for token in tokens if token.type == tokenize.COMMENT)
    return collections.Counter(each for each in comments if not marks(each))
