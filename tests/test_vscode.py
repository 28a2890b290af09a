"""The extension for VS Code: built, tested and packaged by its own commands."""

from __future__ import annotations

import json
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from speedlint import __version__
from tests.conftest import ROOT

EXTENSION = ROOT / "editors" / "vscode"


def test_it_has_speedlints_version_and_its_lock_names_no_host() -> None:
    package = json.loads((EXTENSION / "package.json").read_text("utf-8"))
    lock = json.loads((EXTENSION / "package-lock.json").read_text("utf-8"))
    assert package["version"] == lock["version"] == __version__
    assert not any("resolved" in each for each in lock["packages"].values())
    assert all("integrity" in each for name, each in lock["packages"].items() if name)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("npm") is None, reason="needs Node")
def test_it_is_tested_and_packaged(tmp_path: Path) -> None:
    own = Path(
        shutil.copytree(EXTENSION, tmp_path / "vscode", ignore=shutil.ignore_patterns("node_modules", "out", "*.vsix"))
    )
    for command in (["npm", "ci", "--no-audit"], ["npm", "test"], ["npm", "run", "package"]):
        done = subprocess.run(command, cwd=own, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    with zipfile.ZipFile(own / f"speedlint-{__version__}.vsix") as packaged:
        assert "extension/out/extension.js" in packaged.namelist()
        assert not any("node_modules" in name for name in packaged.namelist())
