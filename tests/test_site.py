"""The documentation's site: it builds without a warning, and has a page for each rule where `rule_url` says."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import click
import pytest
import tomli
import yaml
from mkdocs.commands.build import build
from mkdocs.config import load_config

from speedlint import docs
from speedlint.cli import main
from speedlint.registry import Registry
from tests.conftest import ROOT

HEADINGS = ("What it finds", "What it costs", "What the fix writes", "Risk of the fix", "When it is a note", "Sources")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a strict build: a warning, such as a broken link, ends it."""
    folder = tmp_path_factory.mktemp("site")
    build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True))
    return folder


def test_each_rule_has_a_page(site: Path) -> None:
    for rule in Registry.load().rules:
        url = docs.rule_url(rule.code)
        assert url is not None
        page = (site / url.removeprefix(docs.SITE) / "index.html").read_text()
        assert f"{rule.code} {rule.name}" in page
        for heading in HEADINGS:
            assert f">{heading}<" in page


def test_the_site_is_served_where_the_code_says(site: Path) -> None:
    assert f'<link rel="canonical" href="{docs.SITE}">' in (site / "index.html").read_text()


def test_a_rule_of_the_user_has_no_page() -> None:
    assert docs.rule_url("TOY301") is None


@pytest.mark.parametrize("page", sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")]), ids=lambda path: path.name)
def test_what_guides_tell_to_copy_parses(page: Path) -> None:
    parse: dict[str, Callable[[str], object]] = {"yaml": yaml.safe_load, "toml": tomli.loads}
    for language, text in re.findall(r"```(yaml|toml)\n(.*?)```", page.read_text(), re.DOTALL):
        assert parse[language](text)


def _commands() -> dict[str, set[str]]:
    """The options of each command."""
    context = click.Context(main)
    commands = {name: main.get_command(context, name) for name in main.list_commands(context)}
    return {
        name: {each for parameter in command.params for each in (*parameter.opts, *parameter.secondary_opts)}
        for name, command in commands.items()
        if command is not None
    }


def test_the_commands_take_the_options_that_the_guides_give_them() -> None:
    taken, told = _commands(), []
    for page in (
        ROOT / "README.md",
        *sorted((ROOT / "docs").glob("*.md")),
        ROOT / "action.yml",
        ROOT / ".pre-commit-hooks.yaml",
    ):
        for command, rest in re.findall(r"speedlint (\w[\w-]*)([^\n`#;&]*)", page.read_text()):
            words = re.sub('"[^"]*"', "", rest.partition(" -- ")[0])
            told += [(page.name, command, each) for each in re.findall(r"(?<=\s)--?[a-z][\w-]*", words) if command in taken]
    assert told
    assert [each for each in told if each[2] not in taken[each[1]]] == []
