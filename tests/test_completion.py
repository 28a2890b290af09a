"""What completes in a shell: commands, options, formats, files, and the codes of rules."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from speedlint.cli import main
from tests.conftest import ROOT, Project

HEAVY = ("rich", "yaml", "pathspec", "pygls", "torch", "libcst", "speedlint.engine", "speedlint.ask.script")


def _asked(line: str, shell: str = "bash") -> dict[str, str]:
    words = line.split(" ")
    return {"_SPEEDLINT_COMPLETE": f"{shell}_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}


def _completed(line: str) -> list[str]:
    """What a line may end with."""
    result = CliRunner().invoke(main, env=_asked(line), catch_exceptions=False)
    return [each.partition(",")[2] for each in result.stdout.splitlines() if each.startswith("plain,")]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("speedlint ex", ["explain"]),
        ("speedlint check --ext", ["--extend-select"]),
        ("speedlint check --format js", ["json", "json-lines"]),
        ("speedlint fix --risk b", ["behavior"]),
        ("speedlint check --select TOY30", [f"TOY30{n}" for n in range(1, 9)]),
        ("speedlint fix --ignore TOY301,toy308", ["TOY301,TOY308"]),
        ("speedlint verify --select called", ["called-item"]),
        ("speedlint baseline --extend-select SPD3,exact-c", ["SPD3,exact-call"]),
        ("speedlint explain TOY301 TOY308", ["TOY308"]),
        ("speedlint explain NONE", []),
        ("speedlint completion f", ["fish"]),
    ],
)
def test_what_completes(project: Project, line: str, words: list[str]) -> None:
    assert _completed(line) == words


def test_nothing_goes_wrong_with_a_wrong_configuration(project: Project) -> None:
    project.write("speedlint.toml", "select = [")
    assert _completed("speedlint explain SPD301") == []


@pytest.mark.parametrize("command", ["check", "fix", "verify", "ask", "doctor"])
def test_files_complete(project: Project, command: str) -> None:
    result = CliRunner().invoke(main, env=_asked(f"speedlint {command} tr"), catch_exceptions=False)
    assert result.stdout.splitlines() == ["file,tr"]


def test_codes_are_explained_where_the_shell_shows_that(project: Project) -> None:
    result = CliRunner().invoke(main, env=_asked("speedlint explain TOY301", "zsh"), catch_exceptions=False)
    assert result.stdout.splitlines() == ["plain", "TOY301", "Calls `.item()`."]


@pytest.mark.parametrize("line", ["speedlint ", "speedlint check --select SPD30"])
def test_completing_imports_nothing_that_takes_long(line: str) -> None:
    code = "import atexit, sys; atexit.register(lambda: print('imported', *sys.modules)); "
    code += "from speedlint.__main__ import main; main()"
    env = {**os.environ, **_asked(line), "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code], env=env, check=True, capture_output=True)  # keeps what the rules say
    said = subprocess.run([sys.executable, "-c", code], env=env, check=True, capture_output=True, text=True).stdout
    printed, _, imported = said.partition("imported ")
    assert "plain," in printed
    assert not set(HEAVY).intersection(imported.split())
    assert not [each for each in imported.split() if each.startswith("_speedlint_rule_")]


SCRIPTS = {
    "bash": 'eval "$(speedlint completion bash)"; COMP_WORDS=(speedlint check --select TOY301,TOY308); COMP_CWORD=3; '
    "_speedlint_completion speedlint; echo ${COMPREPLY[@]}",
    "fish": 'speedlint completion fish | source; complete -C "speedlint check --select TOY301,TOY308" | cut -f 1',
    "zsh": 'autoload -U compinit; compinit -u -D; eval "$(speedlint completion zsh)"; '
    "[[ $_comps[speedlint] == _speedlint_completion ]] && echo TOY301,TOY308",
}


@pytest.mark.parametrize("shell", SCRIPTS)
def test_the_script_works_in_its_shell(project: Project, shell: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    here: Path = tmp_path_factory.mktemp("bin")
    (here / "speedlint").write_text(f'#!/bin/sh\nexec {sys.executable} -m speedlint "$@"\n')
    (here / "speedlint").chmod(0o755)
    env = {**os.environ, "PATH": f"{here}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "HOME": str(here)}
    done = subprocess.run([shell, "-c", SCRIPTS[shell]], env=env, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("TOY301,TOY308\n", "")
