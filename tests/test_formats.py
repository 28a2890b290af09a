"""What `speedlint check` prints for people: formats, colours, links, the closing lines."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from speedlint import docs
from speedlint.cli import main
from speedlint.output.terminal import link
from tests.conftest import ROOT, Project
from tests.test_doctor import fake

__all__ = ["fake"]

FOUR = "exactly()\nx.item()\nrisky()\nif a:\n    y.item()\n"
TRAINING = """\
def train(loader, model, optimizer, loss_of):
    for x in loader:
        loss = loss_of(model(x.cuda()))
        loss.backward()
        optimizer.step()
        print(loss.item())
"""
VARIABLES = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "FORCE_HYPERLINK", "TERM")


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def test_more_than_a_few_findings_take_a_line_each(project: Project) -> None:
    path = project.write("a.py", FOUR)
    result = project.run("check", "--torch", "2.4", path)
    assert result.stdout == (
        "a.py:1:1 TOY308 `exactly()` is slow [unknown, exact fix]\n"
        "a.py:2:1 TOY301 `x.item()` is slow [unknown, numeric fix]\n"
        "a.py:3:1 TOY306 `risky()` is slow [unknown, behavior fix]\n"
        "a.py:5:5 TOY301 `y.item()` is slow [unknown, numeric fix]\n"
        "4 findings: 1 exact fix, 2 numeric, 1 behavior. Target: torch 2.4 (--torch). More: `--format full`.\n"
        "Next: speedlint fix --torch 2.4 a.py\n"
    )


def test_the_closing_lines_hint_at_full_where_nobody_asked_for_a_line_each(project: Project) -> None:
    path = project.write("a.py", FOUR)
    hinted, asked = (project.run("check", *given, path).stdout.split() for given in ((), ("--format", "concise")))
    hint = ["More:", "`--format", "full`."]
    assert [word for word in hinted if word not in hint] == asked != hinted
    assert "More:" not in project.run("check", "--format", "full", path).stdout
    assert "More:" not in project.run("check", project.write("b.py", "x.item()\n")).stdout
    project.write("a.py", f"{FOUR}noted()\n")
    assert "More: 1 note (`--notes`), `--format full`." in " ".join(project.run("check", path).stdout.split())


def test_a_few_findings_are_told_in_full(project: Project) -> None:
    path = project.write("a.py", "x.item()\n")
    assert project.run("check", path).stdout == project.run("check", path, "--format", "full").stdout
    assert "= why: " in project.run("check", path).stdout


def test_a_few_findings_that_do_not_fit_on_a_screen_take_a_line_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for columns in ("80", "1000"):
        monkeypatch.setenv("COLUMNS", columns)
        printed = CliRunner().invoke(main, ["check", "examples/train.py"], catch_exceptions=False).stdout
        assert printed.count(" SPD") == 3
        assert "= why: " not in printed


def test_why_speaks_of_the_finding_and_not_of_its_rules_other_cases(project: Project) -> None:
    text = (
        "import os\nimport torch\nos.environ['NCCL_DEBUG'] = 'INFO'\nos.environ['TORCH_DISTRIBUTED_DEBUG'] = 'DETAIL'\n"
        + TRAINING
    )
    path = project.write("a.py", text)
    found = project.run("check", path, "--select", "SPD408", "--notes", "--format", "full").stdout
    assert re.findall(r"= why:  (\S+ \S+ \S+)", found) == ["With `DETAIL` all", "NCCL writes what"]


def test_grouped_by_file(project: Project) -> None:
    project.write("b.py", "x.item()\n")
    project.write("a.py", "y.item(), z.item()\n")
    lines = project.run("check", ".", "--format", "grouped").stdout.splitlines()
    assert lines[:6] == [
        "a.py:",
        "  1:1 TOY301 `y.item()` is slow [unknown, numeric fix]",
        "  1:11 TOY301 `z.item()` is slow [unknown, numeric fix]",
        "",
        "b.py:",
        "  1:1 TOY301 `x.item()` is slow [unknown, numeric fix]",
    ]


@pytest.mark.parametrize("name", ["air_quality_lstm", "clothes_bisenet", "toxic_gpt2"])
def test_eleven_findings_fit_in_25_lines_of_80_columns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT / "fixtures" / "projects" / name)
    monkeypatch.setenv("COLUMNS", "80")
    lines = CliRunner().invoke(main, ["check", "."], catch_exceptions=False).stdout.splitlines()
    findings = sum(bool(re.match(r"\w+\.py:\d+:\d+ SPD\d+ ", line)) for line in lines)
    assert findings >= 8
    assert len(lines) <= 2 * findings + 3
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("columns", [30, 60, 80, 200])
def test_lines_are_wrapped_at_words_and_shortened_at_words(
    project: Project, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("some_package/module.py", "".join(f"x.item({'argument, ' * n})\n" for n in range(1, 9)))
    monkeypatch.setenv("COLUMNS", str(columns))
    for style in ("concise", "grouped", "full"):
        words = project.run("check", ".", "--format", style).stdout.split()
        assert {word for word in words if "argum" in word} <= {"`x.item(argument,", "x.item(argument,", "argument,"}
        assert words.count("`x.item(argument,") >= 8


def test_a_finding_takes_two_lines_at_most(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    path = project.write("a.py", f"x.item({'argument, ' * 20})\n")
    monkeypatch.setenv("COLUMNS", "60")
    lines = project.run("check", path, "--format", "concise").stdout.splitlines()
    assert lines[0] == "a.py:1:1 TOY301 `x.item(argument, argument, argument,"
    assert lines[1] == "    argument, argument, argument, ... [unknown, numeric fix]"
    assert lines[2].startswith("1 finding")
    assert "..." not in project.run("check", path, "--format", "full").stdout


def _printed(project: Project, *arguments: str) -> str:
    return CliRunner().invoke(main, ["check", "a.py", *arguments], color=True, catch_exceptions=False).stdout


@pytest.fixture
def terminal(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with findings, whose standard output is a terminal."""
    project.write("a.py", FOUR)
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda stream: True, raising=False)
    return project


@pytest.mark.parametrize(
    ("environment", "colours"),
    [
        ({}, True),
        ({"TERM": "xterm-256color"}, True),
        ({"TERM": "dumb"}, False),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, True),
        ({"CLICOLOR": "0"}, False),
        ({"CLICOLOR": "0", "CLICOLOR_FORCE": "1"}, True),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_colours_on_a_terminal(
    terminal: Project, environment: dict[str, str], colours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert ("\x1b[" in _printed(terminal)) is colours
    assert "\x1b[" in _printed(terminal, "--color", "always")
    assert "\x1b[" not in _printed(terminal, "--color", "never")


@pytest.mark.parametrize(
    ("environment", "colours"),
    [({}, False), ({"FORCE_COLOR": "1"}, True), ({"CLICOLOR_FORCE": "1"}, True), ({"CLICOLOR": "1"}, False)],
)
def test_colours_into_a_pipe(
    project: Project, environment: dict[str, str], colours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("a.py", FOUR)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert ("\x1b[" in _printed(project)) is colours
    assert "\x1b]8" not in _printed(project)
    assert "\x1b[" not in _printed(project, "--format", "json", "--color", "always")


def test_every_command_that_colours_takes_the_option(terminal: Project, fake: None) -> None:
    for command in (["rules"], ["explain", "TOY301"], ["ask", "a.py:2"], ["fix", "a.py"], ["doctor"]):
        never, always = (
            CliRunner().invoke(main, [*command, "--color", word], color=True).stdout for word in ("never", "always")
        )
        assert never and "\x1b" not in never
        assert "\x1b[" in always


def test_colours_can_be_read_on_black_and_on_white(terminal: Project) -> None:
    assert set(re.findall(r"\x1b\[([\d;]+)m", _printed(terminal))) <= {"0", "1", "31", "35"}


def test_codes_are_links_to_their_rules_pages(terminal: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal.write("a.py", TRAINING)
    at = link("SPD301", docs.rule_url("SPD301"))
    assert at in _printed(terminal, "--select", "SPD301", "--notes")
    assert link("SPD301", "https://speedlint.readthedocs.io/rules/SPD301/") == at
    monkeypatch.setenv("TERM", "linux")
    assert "\x1b]8" not in _printed(terminal, "--select", "SPD301", "--notes")
    monkeypatch.setenv("FORCE_HYPERLINK", "1")
    assert at in _printed(terminal, "--select", "SPD301", "--notes")
    assert docs.rule_url("TOY301") is None


def _closing(project: Project, *arguments: str | Path) -> list[str]:
    lines = project.run("check", *arguments).stdout.splitlines()
    return lines[
        next(number for number, each in enumerate(lines) if re.match(r"(\d+ finding|\d+ files? not|Nothing)", each)) :
    ]


def test_closing_lines_name_the_target_and_where_it_was_found(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write("a.py", "x.item()\n")
    project.write("sub/b.py", "x.item()\n")
    project.write("requirements.txt", "torch>=2.1\n")
    assert "Target: torch 2.1 (requirements.txt)." in _closing(project, "a.py")[0]
    monkeypatch.chdir(project.root / "sub")
    assert "Target: torch 2.1 (../requirements.txt)." in _closing(project, "b.py")[0]
    monkeypatch.chdir(project.root)
    project.configure("select = ['TOY']\ntorch = '2.3'")
    assert "Target: torch 2.3 (speedlint.toml)." in _closing(project, ".")[0]


def test_closing_lines_name_three_targets(project: Project) -> None:
    for minor in range(5):
        project.write(f"p{minor}/requirements.txt", f"torch>=2.{minor}\n")
        project.write(f"p{minor}/a.py", "x.item()\n")
    said = " ".join(_closing(project, "."))
    assert "Target: torch 2.0 (p0/requirements.txt); torch 2.1 (p1/requirements.txt); torch 2.2 (" in said
    assert "requirements.txt); 2 more. More: `--format full`. Next" in said


def test_closing_lines_count_what_was_not_understood(project: Project) -> None:
    project.write("a.py", "x.item()\n")
    project.write("b.py", "x.item(\n")
    assert "1 file not understood, see the error." in " ".join(_closing(project, "."))
    project.write("c.py", "y.item(\n")
    assert _closing(project, "b.py", "c.py") == ["2 files not understood, see the errors."]
    (project.root / "c.py").unlink()
    project.write("a.py", "pass\n")
    assert _closing(project, ".") == ["Nothing slow found in 1 file. 1 file not understood, see the error."]


def test_a_path_that_is_missing_is_told_once(project: Project) -> None:
    result = project.run("check", "missing.py")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "error: missing.py: does not exist; check the spelling\n"
    path = project.write("a.py", "exactly()\n")
    result = project.run("check", path, "missing.py")
    assert result.stderr == "error: missing.py: does not exist; check the spelling\n"
    assert result.stdout.splitlines()[-2:] == [
        "1 finding: 1 exact fix. Target: torch 2.13 (the installed torch).",
        "Next: speedlint fix a.py",
    ]
    result = project.run("baseline", "missing.py")
    assert (result.exit_code, result.stdout) == (2, "")
    assert not (project.root / ".speedlint-baseline.json").exists()


def test_what_is_fixed_how_is_counted_as_the_findings_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT / "fixtures" / "projects" / "fundus_segmentation")
    monkeypatch.setenv("COLUMNS", "400")
    said = CliRunner().invoke(main, ["check", ".", "--format", "concise"], catch_exceptions=False).stdout
    own = [re.sub(r" fix|, .* at others", "", cure) for cure in re.findall(r"\[\w+, (.+)\]$", said, re.MULTILINE)]
    assert " at others]" in said
    (counted,) = re.findall(r"findings.*?: (.*?)\. Target", said)
    told = {cure: int(number) for number, cure in re.findall(r"(\d+) (exact|numeric|behavior|withheld|by hand)", counted)}
    assert told == {cure: own.count(cure) for cure in own}


def test_the_next_command_is_what_can_be_done(project: Project) -> None:
    path = project.write("my file.py", "x.item()\n")
    assert _closing(project, path)[-1] == "Next: speedlint fix --risk numeric 'my file.py'"
    assert _closing(project)[-1] == "Next: speedlint fix --risk numeric"
    assert _closing(project, *[path] * 4)[-1] == "Next: speedlint fix --risk numeric 'my file.py'"
    given = ("--torch", "2.4", "--select", "TOY301", "--select", "TOY3", "--notes", "--exclude", "x")
    assert _closing(project, path, *given)[-1] == (
        "Next: speedlint fix --risk numeric --select TOY301,TOY3 --torch 2.4 'my file.py'"
    )
    project.configure("select = ['TOY']\nrisk = 'behavior'")
    assert _closing(project, path)[-1] == "Next: speedlint fix 'my file.py'"
    project.write("my file.py", "noted()\n")
    assert _closing(project, path, "--notes")[-1] == "Next: speedlint explain TOY302"
    assert click.unstyle(_closing(project, path)[-1]) == "Nothing slow found in 1 file. 1 note hidden (`--notes`)."
