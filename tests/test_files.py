"""Which files are looked at, in real folders."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from speedlint import files
from speedlint.files import Problem, discover


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def make(*names: str, content: str = "x = 1\n") -> None:
    for name in names:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def found(*paths: str, **options: Any) -> list[str]:
    discovery = discover(map(Path, paths), **options)
    assert not discovery.problems
    return [path.as_posix() for path in discovery.paths]


def problem(*paths: str) -> str:
    (only,) = discover(map(Path, paths)).problems
    assert "\n" not in str(only)
    return str(only)


def test_folders_are_walked_for_python_in_order() -> None:
    make("b.py", "a.py", "sub/c.py", "sub/notes.txt", "sub/script", "a/z.py")
    assert found(".") == ["a/z.py", "a.py", "b.py", "sub/c.py"]


def test_a_named_file_is_taken_whatever_the_patterns() -> None:
    make("script", ".venv/a.py", "out/b.py")
    make(".gitignore", content="out/\n")
    assert found("script", ".venv/a.py", "out/b.py", exclude=["script"]) == ["script", ".venv/a.py", "out/b.py"]


def test_a_named_file_that_is_no_python_is_told() -> None:
    make("pyproject.toml", "data/README.md", "train.sh", "train.py.orig", "train_v2")
    make("run.sub", content="#!/usr/bin/env python3\nx = 1\n")
    assert found("train.py.orig", "train_v2", "run.sub") == ["train.py.orig", "train_v2", "run.sub"]
    for name in ("pyproject.toml", "data/README.md", "train.sh"):
        assert problem(name) == f"{name}: is no Python file by its name; name a .py file, a notebook or a folder"


def test_what_is_never_source_is_skipped() -> None:
    make(
        "a.py",
        ".git/b.py",
        ".venv/c.py",
        "node_modules/d.py",
        "__pycache__/e.py",
        ".tox/f.py",
        "env/pyvenv.cfg",
        "env/lib/g.py",
    )
    assert found(".") == ["a.py"]


def test_gitignore_at_every_level_and_above() -> None:
    make(
        "repo/.git/HEAD",
        "repo/a.py",
        "repo/out/b.py",
        "repo/pkg/c.py",
        "repo/pkg/gen_d.py",
        "repo/pkg/gen_keep.py",
        "repo/pkg/local.py",
    )
    make("repo/.gitignore", content="out/\ngen_*.py\n")
    make("repo/pkg/.gitignore", content="!gen_keep.py\n/local.py\n")
    make(".gitignore", content="*.py\n")
    expected = ["repo/pkg/c.py", "repo/pkg/gen_keep.py"]
    assert found("repo") == ["repo/a.py", *expected]
    assert found("repo/pkg") == expected
    assert len(found("repo", gitignore=False)) == 6


def test_exclude_is_relative_to_its_root() -> None:
    make("a.py", "tests/b.py", "src/tests/c.py", "src/d_pb2.py")
    assert found(".", exclude=["/tests/", "*_pb2.py"]) == ["a.py", "src/tests/c.py"]
    assert found("src", exclude=["/tests/"], root=Path("src")) == ["src/d_pb2.py"]


def test_the_same_file_is_looked_at_once() -> None:
    make("a.py", "sub/b.py")
    Path("link.py").symlink_to("a.py")
    assert found("a.py", "./a.py", "sub", "sub/b.py", "link.py", ".") == ["a.py", "sub/b.py"]


def test_a_linked_folder_is_followed_and_a_loop_ends() -> None:
    make("elsewhere/a.py", "project/b.py")
    Path("project/linked").symlink_to("../elsewhere")
    Path("project/loop").symlink_to(".")
    assert found("project") == ["project/b.py", "project/linked/a.py"]


def test_notebooks_are_taken_and_what_jupyter_keeps_of_them_is_not() -> None:
    make("a.py", "net.ipynb", ".ipynb_checkpoints/net-checkpoint.ipynb")
    assert found(".") == ["a.py", "net.ipynb"]
    assert found(".", exclude=["*.ipynb"]) == ["a.py"]


def test_large_files_are_skipped_unless_named(monkeypatch: pytest.MonkeyPatch) -> None:
    make("a.py", "big.py", content="x = 1\n" * 10)
    monkeypatch.setattr(files, "MAX_BYTES", 50)
    make("a.py")
    assert problem(".") == "big.py: larger than 1 MB: looks generated, skipped; pass it by name to check it anyway"
    assert found("big.py") == ["big.py"]


def test_paths_that_cannot_be_looked_at_are_one_line_each() -> None:
    make("empty/notes.txt", "loops/a.py")
    Path("broken.py").symlink_to("gone.py")
    Path("loop.py").symlink_to("loop.py")
    assert problem("missing.py") == "missing.py: does not exist; check the spelling"
    assert problem("empty").startswith("empty: holds no Python files")
    assert problem("broken.py").startswith("broken.py: is a symbolic link to gone.py, which does not exist")
    assert problem("loop.py").startswith("loop.py: cannot be read (Too many levels of symbolic links)")
    assert problem("/dev/null").startswith("/dev/null: is not a file or folder")
    assert problem("a" * 300).startswith("aaa")


def test_a_broken_link_in_a_folder_is_named_and_the_rest_taken() -> None:
    make("sub/a.py")
    Path("sub/broken.py").symlink_to("gone.py")
    discovery = discover([Path("sub")])
    assert discovery.paths == (Path("sub/a.py"),)
    assert [each.path for each in discovery.problems] == [Path("sub/broken.py")]


def test_a_folder_that_may_not_be_read_is_named_and_the_rest_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    make("sub/a.py", "sub/locked/b.py")
    scandir = os.scandir

    def refuse(path: Path) -> Iterator[os.DirEntry[str]]:
        if path.name == "locked":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    discovery = discover([Path("sub")])
    assert discovery.paths == (Path("sub/a.py"),)
    assert [str(each) for each in discovery.problems] == [
        "sub/locked: cannot be read (Permission denied); check its permissions"
    ]


def test_a_gitignore_that_makes_no_sense_is_named() -> None:
    make("sub/a.py")
    Path("sub/.gitignore").write_bytes(b"\xff\xfe\n!\n")
    discovery = discover([Path("sub")])
    assert discovery.paths == (Path("sub/a.py"),)
    assert all("cannot be used" in str(each) for each in discovery.problems)


def test_a_problem_is_one_line_with_its_place() -> None:
    assert str(Problem(Path("a.py"), 3, "what, what to do")) == "a.py:3: what, what to do"
    assert str(Problem(Path("a.py"), None, "what, what to do")) == "a.py: what, what to do"
