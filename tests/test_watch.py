"""`speedlint check --watch`: checks again when something has changed, and ends quietly."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conftest import TOY_RULES, Project

Act = Callable[[], object]


@pytest.fixture
def acts(monkeypatch: pytest.MonkeyPatch) -> list[Act]:
    """What is done while nothing has changed, in turn; then Ctrl-C is pressed."""
    todo: list[Act] = []

    def act(_seconds: float) -> None:
        if not todo:
            raise KeyboardInterrupt
        todo.pop(0)()

    monkeypatch.setattr("time.sleep", act)
    return todo


def test_a_change_is_checked_and_ctrl_c_is_quiet(project: Project, acts: list[Act]) -> None:
    project.write("a.py", "x = 1\n")
    acts += [lambda: None, lambda: project.write("a.py", "x.item()\n"), lambda: project.write("b.py", "y.item()\n")]
    result = project.run("check", "--watch")
    assert result.exit_code == 0
    assert result.stdout.startswith("Nothing slow found in 1 file.\na.py:1:1 TOY301")
    assert result.stdout.count("a.py:1:1 TOY301") == 2
    assert "\nb.py:1:1 TOY301" in result.stdout
    assert [line[9:] for line in result.stderr.splitlines() if "changed" in line] == ["a.py changed", "b.py changed"]
    assert "interrupted" not in result.stderr


def test_what_a_file_imports_and_its_settings_are_watched(project: Project, acts: list[Act]) -> None:
    project.write("a.py", "import helper\nx.item()\n")
    project.write("helper.py", "y = 1\n")
    acts += [
        lambda: project.write("helper.py", "y = 22\n"),
        lambda: project.configure("select = ['TOY301', 'TOY306']"),
        lambda: project.configure("selekt = []"),
        lambda: project.configure("select = ['TOY306']"),
    ]
    result = project.run("check", "--watch", "a.py")
    assert result.exit_code == 0
    assert result.stdout.count("a.py:2:1 TOY301") == 3
    assert result.stdout.endswith("Nothing slow found in 1 file.\n")
    assert result.stderr.count("did you mean `select`?") == 1


def test_what_the_settings_lead_to_is_watched(project: Project, acts: list[Act]) -> None:
    """Configurations that are extended, also while they are wrong, baselines, requirements, and how a script is run."""
    project.write("a.py", "x.item()\n")
    project.write("base.toml", "select = ['TOY301']")
    project.write("speedlint.toml", f"extend = 'base.toml'\nrule-paths = [{str(TOY_RULES)!r}]\nbaseline = 'known.json'")
    project.write("known.json", '{"version": 1, "findings": {}}')
    project.write("requirements.txt", "torch==2.1\n")
    project.write("run.sh", "python a.py\n")
    acts += [
        lambda: project.write("base.toml", "selekt = ['TOY306']"),
        lambda: project.write("base.toml", "select = ['TOY306']"),
        lambda: project.write("known.json", '{"version": 1, "findings": {} }'),
        lambda: project.write("requirements.txt", "torch==2.10\n"),
        lambda: project.write("run.sh", "python a.py --amp\n"),
    ]
    result = project.run("check", "--watch", "a.py")
    assert result.exit_code == 0
    changed = [line[9:-8] for line in result.stderr.splitlines() if line.endswith(" changed")]
    assert changed == ["base.toml", "base.toml", "known.json", "requirements.txt", "run.sh"]
    assert result.stdout.startswith("a.py:1:1 TOY301")
    assert result.stdout.count("a.py:1:1 TOY301") == 1
    assert result.stderr.count("did you mean `select`?") == 1


def test_a_file_that_goes_and_a_wrong_start(project: Project, acts: list[Act]) -> None:
    path = project.root / project.write("a.py", "x.item()\n")
    acts += [path.unlink]
    result = project.run("check", "--watch", "a.py")
    assert "a.py: does not exist" in result.stderr
    assert project.run("check", "--watch", "--select", "TOY999").exit_code == 2
    assert "`-` is none" in project.run("check", "--watch", "-").stderr
