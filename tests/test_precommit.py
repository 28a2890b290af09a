"""The pre-commit hooks, run by the real pre-commit from a repository that holds this tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_hooks(tmp_path: Path) -> None:
    hooks, user, home = tmp_path / "hooks", tmp_path / "user", tmp_path / "home"
    for folder in (hooks, user):
        folder.mkdir()
    for name in PACKAGED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, hooks / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif (ROOT / name).is_file():
            shutil.copy(ROOT / name, hooks)
    (user / "speedlint.toml").write_text(f"select = ['TOY']\nrule-paths = [{str(TOY_RULES)!r}]\n")
    (user / "train.py").write_text(SLOW)
    for folder in (hooks, user):
        _repository(folder, home)

    pre_commit = (sys.executable, "-m", "pre_commit", "try-repo", hooks)
    checked = _run(*pre_commit, "speedlint", "--all-files", cwd=user, home=home)
    assert checked.returncode == 1, checked.stdout + checked.stderr
    assert "train.py:1:1 TOY301 called-item" in checked.stdout
    fixed = _run(*pre_commit, "speedlint-fix", "--all-files", cwd=user, home=home)
    assert fixed.returncode == 1, fixed.stdout + fixed.stderr
    assert "files were modified by this hook" in fixed.stdout
    assert (user / "train.py").read_text() == "x.item()\nprint()\n"
    again = _run(*pre_commit, "speedlint-fix", "--all-files", cwd=user, home=home)
    assert again.returncode == 0, again.stdout + again.stderr
