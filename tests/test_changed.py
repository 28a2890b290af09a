"""`--changed`: findings on the lines that a branch has changed, and repositories that cannot say which those are."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from speedlint.git import changed_lines
from tests.conftest import Project

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def _git(*arguments: str | Path) -> str:
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "init.defaultBranch=main")
    return subprocess.run(("git", *identity, *arguments), check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(project: Project) -> Project:
    """A repository on the branch `work`, whose one commit beyond main adds the second line of a.py."""
    project.write("a.py", "x.item()\nz.item()\n")
    _git("init", "-q")
    _git("add", ".")
    _git("commit", "-qm", "old")
    _git("checkout", "-qb", "work")
    project.write("a.py", "x.item()\ny.item()\nz.item()\n")
    _git("commit", "-qam", "new")
    return project


def _lines(project: Project, *arguments: str) -> list[int]:
    return [each["line"] for each in project.findings("a.py", *arguments)]


def test_lines_since_the_branch_left_main(repository: Project) -> None:
    assert _lines(repository, "--changed") == [2]
    said = repository.run("check", "--changed").stderr
    base = _git("rev-parse", "main")[:9]
    assert said == f"note: findings on lines changed since {base}, main; 1 of 3, notes included\n"


def test_what_is_not_committed(repository: Project) -> None:
    assert _lines(repository, "--changed", "HEAD") == []
    repository.write("a.py", "x.item()\ny.item()\nz.item(1)\n")
    assert _lines(repository, "--changed", "HEAD") == [3]
    assert _lines(repository, "--changed") == [2, 3]
    _git("checkout", "-q", "-b", "trunk")
    _git("branch", "-qD", "main", "work")
    assert "since HEAD: what is not committed; 1 of 3" in repository.run("check", "--changed").stderr


def test_what_main_has_got_since_does_not_count(repository: Project) -> None:
    _git("checkout", "-q", "main")
    repository.write("a.py", "x.item(2)\nz.item()\n")
    _git("commit", "-qam", "elsewhere")
    _git("checkout", "-q", "work")
    assert _lines(repository, "--changed", "main") == [2]
    assert "where HEAD left main" in repository.run("check", "--changed", "main").stderr


@pytest.mark.parametrize(
    ("given", "command"),
    [
        (("--changed", "HEAD", "a.py"), "speedlint fix --risk numeric --changed HEAD a.py"),
        (("--changed", "a.py"), "speedlint fix --risk numeric --changed a.py"),
        (("a.py", "--changed"), "speedlint fix --risk numeric --changed a.py"),
    ],
)
def test_the_next_command_is_about_the_same_lines(repository: Project, given: tuple[str, ...], command: str) -> None:
    repository.write("a.py", "x.item()\nw.item()\nz.item()\n")
    assert repository.run("check", *given).stdout.endswith(f"Next: {command}\n")


def test_new_files_and_line_ends(repository: Project) -> None:
    repository.write("b.py", "x.item()\n")
    repository.write("a.py", "x.item()\r\ny.item()\r\nz.item()\r\n")
    assert [each["path"] for each in repository.findings("--changed", "HEAD")] == ["b.py"]


def _notebook(*cells: str, outputs: str = "") -> str:
    held = [{"cell_type": "code", "source": cell, "metadata": {}, "outputs": [outputs]} for cell in cells]
    text = {"cell_type": "markdown", "source": "text"}
    return json.dumps({"cells": [text, *held], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def test_cells_of_a_notebook_that_have_changed(repository: Project) -> None:
    def changed() -> list[tuple[int, int]]:
        return [(each["cell"], each["line"]) for each in repository.findings("a.ipynb", "--changed", "HEAD")]

    first, second = "a = 1\nx.item()\n", "y.item()\n"
    repository.write("a.ipynb", _notebook(first, second))
    assert changed() == [(2, 2), (3, 1)]  # a new file
    _git("add", "a.ipynb")
    _git("commit", "-qm", "notebook")
    assert changed() == []
    repository.write("a.ipynb", _notebook(first, second, outputs="run again"))
    assert changed() == []
    repository.write("a.ipynb", _notebook("import torch", second, first.replace("1", "2"), "w.item()"))
    assert changed() == [(4, 2), (5, 1)]
    repository.run("fix", "--risk", "numeric", "--apply", "--changed", "HEAD", "a.ipynb")
    assert [cell["source"] for cell in json.loads(Path("a.ipynb").read_text())["cells"]] == [
        "text", "import torch", second, "a = 2\nx.detach()\n", "w.detach()",
    ]  # fmt: skip
    repository.write("a.ipynb", _notebook(second, second))
    assert changed() == [(3, 1)]


def test_a_notebook_that_was_none(repository: Project) -> None:
    repository.write("a.ipynb", "{")
    _git("add", "a.ipynb")
    _git("commit", "-qm", "broken")
    repository.write("a.ipynb", _notebook("x.item()"))
    assert len(repository.findings("a.ipynb", "--changed", "HEAD")) == 1


def test_a_value_that_was_changed_elsewhere(repository: Project) -> None:
    repository.configure("select = ['SPD301']")
    helper = "def read(loss):\n    return loss.item()\n"
    train = (
        "import torch\nfrom helper import read\n\nnet = torch.nn.Linear(2, 1).cuda()\n"
        "optimizer = torch.optim.SGD(net.parameters(), 0.1)\nfor x in torch.utils.data.DataLoader(range(8)):\n"
        "    loss = net(x.cuda()).mean()\n    loss.backward()\n    optimizer.step()\n"
    )
    repository.write("helper.py", helper)
    repository.write("train.py", train)
    _git("add", ".")
    _git("commit", "-qm", "more")
    repository.write("train.py", f"{train}    print(read(loss))\n")
    assert [each["path"] for each in repository.findings(".", "--changed", "HEAD")] == ["helper.py"]


def test_the_whole_program_is_read_and_fix_changes_only_these_lines(repository: Project) -> None:
    repository.run("fix", "--apply", "--risk", "numeric", "--changed")
    assert (repository.root / "a.py").read_text() == "x.item()\ny.detach()\nz.item()\n"


def test_a_repository_runs_nothing(repository: Project) -> None:
    repository.write(".gitattributes", "*.py filter=bad diff=bad\n")
    for key in ("filter.bad.clean", "filter.bad.smudge", "diff.bad.command", "diff.bad.textconv", "core.fsmonitor"):
        _git("config", key, "touch ran; cat")
    repository.write("a.py", "x.item(1)\n")
    assert _lines(repository, "--changed") == [1]
    assert not (repository.root / "ran").exists()


@pytest.mark.parametrize(
    ("before", "now", "changed"),
    [
        (b"", b"a", {1}),
        (b"a\nb\nc\n", b"a\nc\n", set()),
        (b"a\nb\n", b"a\nx\ny\nb\n", {2, 3}),
        (b"a\nb", b"a\nb\n", {3}),
        (b"a\rb\r", b"a\nc\n", {2}),
        (b"a\r\nb\r\n", b"a\nb\n", set()),
    ],
)
def test_changed_lines(before: bytes, now: bytes, changed: set[int]) -> None:
    assert changed_lines(before, now) == changed


def _error(project: Project, *arguments: str) -> str:
    result = project.run("check", *arguments)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    return result.stderr


def test_no_repository(project: Project) -> None:
    project.write("a.py", "x.item()\n")
    assert "`--changed` needs a git repository (not a git repository" in _error(project, "--changed")
    _git("init", "-q")
    assert "has no commit yet" in _error(project, "--changed")


def test_no_git(repository: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert "needs git, and there is none on the path" in _error(repository, "--changed")


@pytest.mark.parametrize("revision", ["nowhere", "main..work", "\x1b[2J"])
def test_unknown_revision(repository: Project, revision: str) -> None:
    said = _error(repository, f"--changed={revision}")
    assert "names no commit of" in said
    assert "\x1b" not in said


def test_a_path_after_the_option_is_no_revision(repository: Project) -> None:
    repository.write("b.py", "x.item()\n")
    assert [each["path"] for each in repository.findings("--changed", "a.py")] == ["a.py"]
    assert [each["path"] for each in repository.findings("--changed", "b.py", "a.py")] == ["a.py", "b.py"]
    repository.run("fix", "--apply", "--risk", "numeric", "--changed", "b.py")
    assert (repository.root / "b.py").read_text() == "x.detach()\n"
    (repository.root / "main").mkdir()
    assert _lines(repository, "--changed", "main") == [2]


def test_shallow_clone(repository: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    _git("clone", "-q", "--depth=1", "--branch=work", "--no-single-branch", f"file://{repository.root}", "clone")
    monkeypatch.chdir(repository.root / "clone")
    assert "it is not known where HEAD left origin/main: the clone is shallow" in _error(repository, "--changed=origin/main")
    assert "names no commit" in (said := _error(repository, "--changed", "HEAD~1"))
    assert "`git fetch --unshallow` completes it" in said


def test_a_shallow_clone_without_a_main_branch(repository: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    _git("init", "-q", "clone")  # as in CI
    monkeypatch.chdir(repository.root / "clone")
    _git("fetch", "-q", "--depth=1", f"file://{repository.root}", "work")
    _git("checkout", "-q", "--detach", "FETCH_HEAD")
    assert "has no main branch that HEAD could have left, and the clone is shallow; `git fetch" in _error(
        repository, "--changed"
    )
    assert repository.run("check", "--changed=HEAD").exit_code == 0
