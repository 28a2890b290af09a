"""The pre-commit hooks, run by the real pre-commit from a repository that holds this tree."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import ROOT, TOY_RULES

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
PACKAGED = ("speedlint", "rules", "pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml")
SLOW = "x.item()\nexactly()\n"


def _run(*command: str | Path, cwd: Path, home: Path) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env |= {"PRE_COMMIT_HOME": str(home), "GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@example.org"}
    env |= {"GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t@example.org", "GIT_CONFIG_GLOBAL": os.devnull}
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True)


def _repository(folder: Path, home: Path) -> None:
    for command in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "all")):
        _run("git", *command, cwd=folder, home=home)


def _check_both_hooks(try_hook: Callable[[str], subprocess.CompletedProcess[str]], script: Path) -> None:
    checked = try_hook("speedlint")
    assert checked.returncode == 1, checked.stdout + checked.stderr
    assert "train.py:1:1 TOY301 called-item" in checked.stdout
    fixed = try_hook("speedlint-fix")
    assert fixed.returncode == 1, fixed.stdout + fixed.stderr
    assert "files were modified by this hook" in fixed.stdout
    assert script.read_text() == "x.item()\nprint()\n"
    again = try_hook("speedlint-fix")
    assert again.returncode == 0, again.stdout + again.stderr


def _user(folder: Path) -> Path:
    user = folder / "user"
    user.mkdir()
    (user / "speedlint.toml").write_text(f"select = ['TOY']\nrule-paths = [{str(TOY_RULES)!r}]\n")
    (user / "train.py").write_text(SLOW)
    (user / "train.ipynb").write_text(json.dumps({"cells": [{"cell_type": "code", "source": "exactly()"}], "nbformat": 4}))
    return user


def _hooks_here() -> list[dict[str, Any]]:
    """The hooks as they are declared, but in this environment instead of one that pre-commit makes."""
    hooks: list[dict[str, Any]] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    for hook in hooks:
        assert hook["language"] == "python"
        program, _, rest = hook["entry"].partition(" ")
        assert program == "speedlint"
        hook.update(language="system", entry=f"env PYTHONPATH={ROOT} {sys.executable} -m speedlint {rest}")
    return hooks


def test_the_hooks_with_what_is_installed_here(tmp_path: Path) -> None:
    user, home = _user(tmp_path), tmp_path / "home"
    (user / ".pre-commit-config.yaml").write_text(yaml.safe_dump({"repos": [{"repo": "local", "hooks": _hooks_here()}]}))
    _repository(user, home)
    run = (sys.executable, "-m", "pre_commit", "run", "--all-files")
    notebook = user / "train.ipynb"
    _check_both_hooks(lambda hook: _run(*run, hook, cwd=user, home=home), user / "train.py")
    assert "print()" in notebook.read_text()


def test_what_can_be_fixed_is_fixed_before_the_rest_is_told(tmp_path: Path) -> None:
    user, home = _user(tmp_path), tmp_path / "home"
    (user / "train.ipynb").write_text('{"cells": [{"cell_type": "code", "source": "exactly()"}], "nbformat": 4}')
    (user / ".pre-commit-config.yaml").write_text(yaml.safe_dump({"repos": [{"repo": "local", "hooks": _hooks_here()}]}))
    _repository(user, home)
    said = _run(sys.executable, "-m", "pre_commit", "run", "--all-files", cwd=user, home=home).stdout
    assert said.index("fixed train.py: 1 fix (TOY308)") < said.index("train.py:1:1 TOY301")
    assert "fixed train.ipynb: 1 fix (TOY308)" in said
    assert "1 finding in 1 file: 1 numeric fix." in said


@pytest.mark.parametrize(("required", "said"), [("torch>=2.4", '"applicable": true'), ("torch==1.13.1", "Passed")])
def test_the_release_is_the_one_that_the_project_requires(tmp_path: Path, required: str, said: str) -> None:
    user, home = tmp_path / "user", tmp_path / "home"
    user.mkdir()
    shutil.copy(ROOT / "examples" / "train.py", user)
    (user / "requirements.txt").write_text(f"{required}\n")
    (check,) = (each for each in _hooks_here() if each["id"] == "speedlint")
    hook = check | {"args": ["--select", "SPD502", "--format", "json"]}
    (user / ".pre-commit-config.yaml").write_text(yaml.safe_dump({"repos": [{"repo": "local", "hooks": [hook]}]}))
    _repository(user, home)
    checked = _run(sys.executable, "-m", "pre_commit", "run", "--all-files", cwd=user, home=home)
    assert said in checked.stdout


@pytest.mark.slow
def test_hooks_in_an_environment_of_their_own(tmp_path: Path) -> None:
    hooks, user, home = tmp_path / "hooks", _user(tmp_path), tmp_path / "home"
    hooks.mkdir()
    for name in PACKAGED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, hooks / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif (ROOT / name).is_file():
            shutil.copy(ROOT / name, hooks)
    for folder in (hooks, user):
        _repository(folder, home)
    run = (sys.executable, "-m", "pre_commit", "try-repo", hooks)
    _check_both_hooks(lambda hook: _run(*run, hook, "--all-files", cwd=user, home=home), user / "train.py")
