"""The checklist before a release, on a small repository in which one thing after the other does not agree."""

from __future__ import annotations

import datetime
import shutil
import subprocess
from pathlib import Path

import pytest

from tools.release import disagreements, put

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
TODAY = datetime.date(2026, 1, 31)
FILES = {
    "speedlint/__init__.py": '__version__ = "0.2.0"\n',
    "CHANGELOG.md": "# Changelog\n\n## 0.2.0 - 2026-01-31\n\n## 0.1.0\n",
    "README.md": "# speedlint\n",
    "pyproject.toml": '[project.urls]\nRepository = "https://github.com/org/speedlint"\n',
    "docs/ci.md": "uses: org/speedlint@v0.2.0\n",
}
NAMING = ("pyproject.toml", "docs/ci.md")


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(("git", *who, *arguments), cwd=folder, check=True, capture_output=True)


def found(folder: Path, **changed: str) -> list[str]:
    """What does not hold once the files are written and committed."""
    for name, text in {**FILES, **changed}.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "all")
    return list(disagreements(folder, TODAY))


def test_what_agrees(tmp_path: Path) -> None:
    assert found(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("CHANGELOG.md", "## 0.1.0 - 2026-01-31\n", "CHANGELOG.md begins with 0.1.0, not 0.2.0"),
        ("CHANGELOG.md", "## 0.2.0 - unreleased\n", "CHANGELOG.md dates 0.2.0 unreleased, not 2026-01-31"),
        ("CHANGELOG.md", "## 0.2.0\n", "CHANGELOG.md dates 0.2.0 not at all, not 2026-01-31"),
        ("docs/ci.md", "rev: v0.1.0\n", "docs/ci.md names v0.1.0, not v0.2.0"),
        (
            "README.md",
            "https://github.com/org1/speedlint\n",
            "README.md names org1/speedlint, and pyproject.toml org/speedlint",
        ),
        ("docs/ci.md", "- uses: a/speedlint@v0.2.0\n", "docs/ci.md names a/speedlint, and pyproject.toml org/speedlint"),
        ("README.md", "`OWNER` stands for its place\n", "README.md speaks of OWNER: see tools/release.py --place"),
    ],
)
def test_what_does_not(tmp_path: Path, name: str, text: str, said: str) -> None:
    assert found(tmp_path, **{name: text}) == [said]


def test_the_place_is_given_once(tmp_path: Path) -> None:
    before = {name: text.replace("org/", "OWNER/") for name, text in FILES.items()}
    assert found(tmp_path, **before) == [f"{name} speaks of OWNER: see tools/release.py --place" for name in NAMING]
    put(tmp_path, "org/speedlint")
    assert {name: (tmp_path / name).read_text() for name in FILES} == FILES


def test_a_tag_that_exists_and_a_change_that_is_not_committed(tmp_path: Path) -> None:
    found(tmp_path)
    git(tmp_path, "tag", "v0.2.0")
    (tmp_path / "README.md").write_text("changed\n")
    first, second = disagreements(tmp_path, TODAY)
    assert first == "the work tree has changes that are not committed"
    assert second == "the tag v0.2.0 exists: raise __version__ in speedlint/__init__.py"
