"""Configurations as Ruff reads them: the nearest file for each source, `extend`, and what is looked at by default."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from speedlint import check_paths, check_source, config, fix_source
from speedlint.output.formats import FORMATS
from speedlint.registry import Registry
from speedlint.server.analysis import Analyst
from speedlint.verify.plan import Command, plan
from tests.conftest import TOY_RULES, Project

RULES = f"rule-paths = [{str(TOY_RULES)!r}]\n"
ALL = "x.item(), exactly(), risky(), off()\n"


def _found(project: Project, *arguments: str) -> set[str]:
    """The files and codes that are found."""
    return {f"{each['path']} {each['code']}" for each in project.findings(*arguments)}


@pytest.fixture
def nested(project: Project) -> Project:
    """A project with another one in it, whose configuration selects another rule."""
    project.configure("select = ['TOY301']")
    project.write("sub/pyproject.toml", "[tool.speedlint]\nselect = ['TOY308']\n")
    for name in ("a.py", "sub/b.py", "sub/deep/c.py"):
        project.write(name, ALL)
    return project


def test_the_nearest_file_counts_for_each_source(nested: Project) -> None:
    assert _found(nested) == {"a.py TOY301", "sub/b.py TOY308", "sub/deep/c.py TOY308"}
    nested.write("sub/deep/speedlint.toml", "select = ['TOY306']\n")
    assert _found(nested) == {"a.py TOY301", "sub/b.py TOY308", "sub/deep/c.py TOY306"}


def test_the_command_line_counts_for_all(nested: Project) -> None:
    assert {each.partition(" ")[2] for each in _found(nested, "--select", "TOY306")} == {"TOY306"}


def test_a_file_that_is_named_counts_for_all(nested: Project) -> None:
    assert {each.partition(" ")[2] for each in _found(nested, "--config", "speedlint.toml")} == {"TOY301"}


def test_fix_goes_by_them_too(nested: Project) -> None:
    nested.run("fix", "--apply", "--risk", "numeric")
    assert (nested.root / "a.py").read_text() == ALL.replace("item", "detach")
    assert (nested.root / "sub/b.py").read_text() == ALL.replace("exactly", "print")


def test_patterns_are_relative_to_their_file(nested: Project) -> None:
    nested.write(
        "sub/pyproject.toml", "[tool.speedlint]\nexclude = ['/deep/']\nper-file-ignores = { '/b.py' = ['TOY301'] }\n"
    )
    nested.write("deep/d.py", ALL)
    nested.write("b.py", ALL)
    assert _found(nested, "--select", "TOY301") == {f"{name} TOY301" for name in ("a.py", "b.py", "deep/d.py")}


def test_rules_of_a_nested_project(project: Project) -> None:
    project.write("speedlint.toml", "select = ['SPD301']")
    project.write("sub/speedlint.toml", RULES + "select = ['TOY301']")
    project.write("sub/a.py", ALL)
    assert _found(project) == {"sub/a.py TOY301"}


def test_the_lower_risk_counts(nested: Project) -> None:
    nested.configure("select = ['TOY']\nrisk = 'behavior'")
    nested.write("sub/pyproject.toml", "[tool.speedlint]\nselect = ['TOY']\nrisk = 'exact'\n")
    nested.run("fix", "--apply")
    assert (nested.root / "a.py").read_text() == "x.detach(), print(), repr(), off()\n"
    assert (nested.root / "sub/b.py").read_text() == ALL.replace("exactly", "print")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("selekt = []", "did you mean `select`?"),
        ("select = ['TOY999']", "speedlint.toml: `TOY999` selects no rule"),
        ("ignore = ['ALL']", "`select` and `ignore` leave no rule"),
        ("extend = '../gone.toml'", "gone.toml: cannot be read (No such file or directory)"),
    ],
)
@pytest.mark.parametrize("command", ["check", "fix", "baseline"])
def test_a_wrong_nested_file_is_one_line(nested: Project, text: str, said: str, command: str) -> None:
    nested.write("sub/deep/speedlint.toml", text)
    result = nested.run(command)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert said in result.stderr


def test_a_change_of_a_nested_file_is_seen(nested: Project) -> None:
    _found(nested)
    nested.write("sub/pyproject.toml", "[tool.speedlint]\nselect = ['TOY306']\n")
    assert "sub/b.py TOY306" in _found(nested)


def test_extend(project: Project) -> None:
    project.configure("select = ['TOY301']\nextend-select = ['TOY305']\nexclude = ['old/']")
    project.write("sub/speedlint.toml", "extend = '../speedlint.toml'\nextend-select = ['TOY308']")
    for name in ("sub/a.py", "sub/old/b.py"):
        project.write(name, ALL)
    assert _found(project, "sub") == {"sub/a.py TOY301", "sub/a.py TOY305", "sub/a.py TOY308"}
    project.write(
        "sub/speedlint.toml", "extend = '../speedlint.toml'\nselect = ['TOY308']\nexclude = []\nextend-select = []"
    )
    assert _found(project, "sub") == {f"sub/{name} {code}" for name in ("a.py", "old/b.py") for code in ("TOY305", "TOY308")}


def test_extend_in_a_circle(project: Project) -> None:
    project.write("other.toml", "extend = 'speedlint.toml'")
    project.configure("extend = 'other.toml'")
    result = project.run("check", ".")
    assert result.exit_code == 2
    assert "`extend` leads back to this file" in result.stderr


def test_extend_select_and_all(project: Project) -> None:
    project.write("a.py", ALL)
    assert _found(project, "--select", "TOY301", "--extend-select", "TOY305") == {"a.py TOY301", "a.py TOY305"}
    assert _found(project, "--select", "ALL") == {"a.py TOY301", "a.py TOY305", "a.py TOY306", "a.py TOY308"}
    assert "a.py TOY305" not in _found(project, "--select", "TOY")
    project.configure("ignore = ['TOY306']\nextend-select = ['off-call']")
    assert _found(project) == {"a.py TOY301", "a.py TOY305", "a.py TOY308"}


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("unfixable = ['TOY301']", "x.item(), print(), risky(), off()\n"),
        ("fixable = ['TOY301']", "x.detach(), exactly(), risky(), off()\n"),
        ("fixable = ['ALL']\nunfixable = ['called-item']", "x.item(), print(), risky(), off()\n"),
    ],
)
def test_fixable_and_unfixable(project: Project, text: str, after: str) -> None:
    project.configure(f"select = ['TOY']\n{text}")
    project.write("a.py", ALL)
    project.run("fix", "--apply", "--risk", "numeric")
    assert (project.root / "a.py").read_text() == after
    withheld = [each for each in project.findings() if each["fix"] and not each["fix"]["applicable"]]
    assert withheld
    assert "leaves it to you (`fixable` and `unfixable`)" in " ".join(project.run("check").stdout.split())


def test_force_exclude(project: Project) -> None:
    project.configure("select = ['TOY301']\nexclude = ['old/']")
    project.write("old/a.py", ALL)
    project.write("test_b.py", ALL)
    project.write("c.py", ALL)
    named = ("old/a.py", "test_b.py", "c.py")
    assert len(_found(project, *named)) == 3
    assert _found(project, *named, "--force-exclude") == {"c.py TOY301"}
    assert project.run("check", "--force-exclude", "old/a.py", "old").exit_code == 0
    project.configure("select = ['TOY301']\nexclude = ['old/']\nforce-exclude = true")
    assert _found(project, *named) == {"c.py TOY301"}


def test_tests_are_left_out_unless_named(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("train.py", "test_a.py", "a_test.py", "tests/helper.py", "sub/tests/b.py", "contest.py", "testing.py"):
        project.write(name, "x.item()\n")
    assert {each["path"] for each in project.findings()} == {"train.py", "contest.py", "testing.py"}
    assert {each["path"] for each in project.findings("tests", "test_a.py")} == {"tests/helper.py", "test_a.py"}
    project.configure("select = ['TOY']\ntests = true")
    assert len(project.findings()) == 7
    project.configure()
    monkeypatch.chdir(project.root / "tests")
    assert len(project.findings(".")) == 1


def test_notes_and_format(project: Project) -> None:
    project.configure("select = ['TOY']\nnotes = true\nformat = 'json'")
    project.write("a.py", "noted()\n")
    assert [each["code"] for each in json.loads(project.run("check").stdout)["findings"]] == ["TOY302"]
    assert project.run("check", "--no-notes", "--format", "concise").stdout.startswith("Nothing slow found")
    project.configure("format = 'xml'")
    result = project.run("check")
    assert result.exit_code == 2
    assert "`format` must be one of" in result.stderr
    assert "not `xml`" in result.stderr


def test_the_schema_knows_the_formats(project: Project) -> None:
    schema = json.loads(project.run("schema", "config").stdout)
    assert schema["properties"]["format"]["enum"] == list(FORMATS)


def test_select_and_ignore_that_leave_nothing(project: Project) -> None:
    result = project.run("check", "--select", "TOY301", "--ignore", "TOY3")
    assert result.exit_code == 2
    assert "`select` and `ignore` leave no rule" in result.stderr


def test_the_hooks_force_exclusion(project: Project) -> None:
    hooks = (Path(__file__).parent.parent / ".pre-commit-hooks.yaml").read_text()
    assert hooks.count("--force-exclude") == hooks.count("entry:") == 2


@pytest.fixture
def own_rules(project: Project) -> Project:
    """A project without rules of its own, and in it one that has some."""
    project.write("speedlint.toml", "select = ['SPD301']\n")
    project.write("sub/speedlint.toml", RULES + "select = ['TOY308']\n")
    project.write("train.py", "from sub import helper\nhelper.exactly()\nexactly()\n")
    project.write("sub/helper.py", "exactly()\n")
    return project


def test_the_rules_of_a_nearer_configuration_look_at_its_files(own_rules: Project) -> None:
    found = {"sub/helper.py TOY308"}
    assert _found(own_rules) == found
    assert {f"{each.place.path} {each.code}" for each in check_paths(["."]).findings} == found
    assert [each.code for each in check_source("exactly()\n", "sub/new.py").findings] == ["TOY308"]
    assert fix_source("exactly()\n", "sub/new.py").source == "print()\n"
    helper = own_rules.root / "sub/helper.py"
    checked = Analyst().check(helper, {helper: b"exactly()\n"})
    assert [each.code for each in checked.report.diagnostics] == ["TOY308"]


def test_the_rules_of_a_nearer_configuration_fix_what_is_verified(own_rules: Project) -> None:
    command = Command("python", "train.py", False, (), (), own_rules.root)
    whole = plan(command, config.load((own_rules.root,)), Registry.load())
    assert [each.path.name for each in whole.outcomes] == ["helper.py"]
    assert whole.registry is not None
    assert "TOY308" in whole.registry.by_code


def test_the_api_looks_at_the_files_that_check_looks_at(nested: Project) -> None:
    nested.write("sub/pyproject.toml", "[tool.speedlint]\nselect = ['TOY308']\nexclude = ['/deep/']\n")
    nested.write("tests/test_a.py", ALL)
    assert {f"{each.place.path} {each.code}" for each in check_paths(["."]).findings} == _found(nested)
