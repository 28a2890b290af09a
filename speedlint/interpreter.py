"""Which Python trains: one that is named, or the first around that has torch; speedlint's own, under pipx, has none."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from speedlint.errors import UserError

_LONGEST = 20.0
"""Seconds for an answer; finding torch without importing it takes some hundredths."""
_ASK = """
import sys
sys.path[:] = filter(None, sys.path)  # a json.py in this folder is none of ours
import importlib.util, json
try:
    from importlib.metadata import version
    torch = version("torch")
except Exception:
    torch = "of an unknown release" if importlib.util.find_spec("torch") else ""
print(json.dumps([sys.version.split()[0], torch]))
"""
_NAMES = ("bin/python", "Scripts/python.exe", "python.exe")


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python.

    Attributes:
        path: what to start.
        origin: where it was found, such as ``VIRTUAL_ENV``.
        python, torch: their releases; empty where it does not start, or has no torch.
    """

    path: str
    origin: str
    python: str = ""
    torch: str = ""

    @property
    def said(self) -> str:
        """It in one line."""
        torch = f"torch {self.torch}" if self.torch else "no torch"
        return f"{self.path} ({self.origin}): Python {self.python or '?'}, {torch}"


def choose(given: str | None, folder: Path | None, environment: Mapping[str, str] = os.environ) -> Interpreter:
    """The interpreter that was named, else the first one with torch, else the first that starts. Raises UserError.

    Without a ``folder`` no program of the current one is started but for the one that was named.
    """
    if given is not None:
        return _asked(_whole(given, environment), "--python")
    looked_at = []
    for path, origin in candidates(folder, environment):
        found = _asked(path, origin)
        if found.torch:
            return found
        looked_at.append(found)
    return next(each for each in looked_at if each.python)


def with_torch(given: str | None, folder: Path, environment: Mapping[str, str] = os.environ) -> Interpreter:
    """The same, where one without torch is of no use. Raises UserError."""
    found = choose(given, folder, environment)
    if not found.python:
        raise UserError(f"--python {given}: cannot be started, or is no Python")
    if not found.torch and given is None:
        looked_at = "; ".join(f"{path} ({origin})" for path, origin in candidates(folder, environment))
        raise UserError(f"no Python here has torch: {looked_at}. Name the one that trains with `--python`")
    return found


def candidates(folder: Path | None, environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each Python around, once, and where it was found: the active environment's, the folder's, speedlint's, conda's, and
    that of the search path."""
    prefixes = [(environment.get(name), name) for name in ("VIRTUAL_ENV", "CONDA_PREFIX")]
    found: list[tuple[str | None, str]] = [(_of(Path(prefix)), origin) for prefix, origin in prefixes if prefix]
    found += of_folder(folder) if folder is not None else []
    found.append((sys.executable, "speedlint's own"))
    found.append((environment.get("CONDA_PYTHON_EXE"), "conda"))
    found += [(shutil.which(name, path=environment.get("PATH")), "PATH") for name in ("python", "python3")]
    seen: set[str] = set()
    for path, origin in found:
        if path and path not in seen and Path(path).is_file():
            seen.add(path)
            yield path, origin


def of_folder(folder: Path) -> list[tuple[str, str]]:
    """The Pythons of a folder's own environments, and their names."""
    return [(path, f"./{name}") for name in (".venv", "venv") if (path := _of(folder / name)) is not None]


def _whole(given: str, environment: Mapping[str, str]) -> str:
    """The full path: runs start in another folder than this one."""
    if Path(given).name == given:
        return shutil.which(given, path=environment.get("PATH")) or given
    return os.path.abspath(given)  # noqa: PTH100 (resolve would leave a virtual environment)


def _of(prefix: Path) -> str | None:
    return next((str(prefix / name) for name in _NAMES if (prefix / name).is_file()), None)


def _asked(path: str, origin: str) -> Interpreter:
    """The releases that it names; none where it cannot be started."""
    try:
        done = subprocess.run(
            (path, "-c", _ASK), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_LONGEST, check=False
        )
        python, torch = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return Interpreter(path, origin)
    return Interpreter(path, origin, python, torch)
