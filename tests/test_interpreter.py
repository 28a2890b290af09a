"""Which Python trains, where none is named."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from speedlint.cli import main
from speedlint.errors import UserError
from speedlint.interpreter import candidates, choose, with_torch
from speedlint.verify.plan import Command

LOOKING = "looking for the Python that trains"
"""What is said where the answer takes half a second."""


def python_in(folder: Path, torch: str) -> str:
    """An interpreter that gives its answer without looking."""
    path = folder / "bin" / "python"
    path.parent.mkdir(parents=True)
    path.write_text(f"""#!/bin/sh\necho '["3.9.1", "{torch}"]'\n""")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def around(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment in which speedlint's own interpreter has no torch."""
    monkeypatch.setattr(sys, "executable", python_in(tmp_path / "own", ""))
    (tmp_path / "empty").mkdir()
    return {"PATH": str(tmp_path / "empty")}


def test_the_active_environment_goes_before_the_folders_own(tmp_path: Path, around: dict[str, str]) -> None:
    own = python_in(tmp_path / ".venv", "2.3")
    assert choose(None, tmp_path, around).path == own
    active = python_in(tmp_path / "active", "2.4")
    found = choose(None, tmp_path, {**around, "VIRTUAL_ENV": str(tmp_path / "active")})
    assert found.said == f"{active} (VIRTUAL_ENV): Python 3.9.1, torch 2.4"


def test_one_without_torch_is_passed_over(tmp_path: Path, around: dict[str, str]) -> None:
    python_in(tmp_path / "active", "")
    on_path = python_in(tmp_path / "there", "2.2")
    environment = {"VIRTUAL_ENV": str(tmp_path / "active"), "PATH": str(tmp_path / "there" / "bin")}
    assert (choose(None, tmp_path, environment).path, choose(None, tmp_path, environment).origin) == (on_path, "PATH")


def test_where_none_has_torch_all_are_named(tmp_path: Path, around: dict[str, str]) -> None:
    with pytest.raises(UserError, match=r"own/bin/python.*--python"):
        with_torch(None, tmp_path, around)
    assert [origin for _, origin in candidates(tmp_path, around)] == ["speedlint's own"]


@pytest.mark.skipif(os.name != "posix", reason="the stand-ins are shell scripts")
def test_verify_and_doctor_say_which_one_it_is_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("print('no training')\n")
    done = CliRunner().invoke(main, ["verify", "train.py", "--python", sys.executable], catch_exceptions=False)
    said = [line for line in done.stderr.splitlines() if line != LOOKING]
    assert said[0].startswith(f"{sys.executable} (--python): Python 3.")
    monkeypatch.setattr("speedlint.doctor.facts.ask_torch", lambda python, timeout: stand_in(python))
    done = CliRunner().invoke(main, ["doctor", "--python", sys.executable], catch_exceptions=False)
    assert done.stdout.splitlines()[0].startswith(f"{sys.executable} (--python): Python 3.")


@pytest.mark.skipif(os.name != "posix", reason="the stand-in is a shell script")
def test_there_is_a_sign_of_life_while_pythons_are_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    slow = tmp_path / "slow-python"
    slow.write_text(f'#!/bin/sh\nsleep 2\nexec {sys.executable} "$@"\n')
    slow.chmod(0o755)
    done = CliRunner().invoke(main, ["verify", "train.py", "--python", str(slow)])
    first, second = done.stderr.splitlines()[:2]
    assert (first, second.startswith(f"{slow} (--python)")) == (LOOKING, True)


def stand_in(python: str) -> object:
    from speedlint.doctor.facts import Torch

    return Torch(executable=python, missing="it is not asked here")


def test_nothing_of_the_folder_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "json.py").write_text("open('ran', 'w')\nraise ImportError\n")
    monkeypatch.chdir(tmp_path)
    found = choose(sys.executable, tmp_path, {})
    assert found.python == sys.version.split()[0]
    assert not (tmp_path / "ran").exists()


def test_a_relative_path_is_that_of_this_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = python_in(tmp_path / ".venv", "2.3")
    monkeypatch.chdir(tmp_path)
    assert choose(".venv/bin/python", tmp_path).path == path
    assert choose("python", tmp_path, {"PATH": str(tmp_path / ".venv" / "bin")}).path == path
    with pytest.raises(UserError, match=r"--python gone/python: cannot be started"):
        with_torch("gone/python", tmp_path)


def test_the_doctor_starts_nothing_of_the_folder_that_is_not_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    Path(python_in(tmp_path / ".venv", "2.3")).write_text("#!/bin/sh\ntouch ran\n")
    monkeypatch.setattr("speedlint.doctor.facts.ask_torch", lambda python, timeout: stand_in(python))
    done = CliRunner().invoke(main, ["doctor"], catch_exceptions=False)
    assert "./.venv has a Python of its own, which is asked where it is named: --python .venv/bin/python" in done.stdout
    assert not (tmp_path / "ran").exists()


def test_a_launcher_is_that_of_the_environment(tmp_path: Path) -> None:
    python = python_in(tmp_path / "env", "2.3")
    (tmp_path / "env" / "bin" / "torchrun").touch()
    command = Command(python, "train.py", False, (), ("torchrun", "--standalone"), tmp_path)
    assert command.words({})[0] == "torchrun"
    (tmp_path / "env" / "pyvenv.cfg").touch()
    assert command.words({})[:2] == [f"{tmp_path}/env/bin/torchrun", "--standalone"]
    assert replace(command, launcher=("srun",)).words({})[0] == "srun"
