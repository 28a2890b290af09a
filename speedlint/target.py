"""The torch release a project targets: it decides which rules and spellings apply. Nothing of the project is run."""

from __future__ import annotations

import ast
import configparser
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from speedlint.config import Settings, read_toml
from speedlint.errors import UserError

_PROJECT_ROOTS = (".git", "pyproject.toml", "setup.py", "setup.cfg")
_TORCH = re.compile(r"(?:py)?torch\b(?![-_.])", re.IGNORECASE)
_RELEASE = re.compile(r"(\d+)\.(\d+)")
_BOUND = re.compile(r"(?:===?|>=?|~=)\s*v?(\d+)(?:\.(\d+))?")


class Target(NamedTuple):
    """A torch release, such as ``(2, 4)``, or None where it is unknown, and what said so."""

    release: tuple[int, int] | None
    origin: str


def find(settings: Settings, folder: Path | None = None) -> Target:
    """The release that the files in ``folder``, by default the settings' own, are written for.

    It is that of the command line or the config, else the lower bound of the innermost requirement, else the installed one.
    """
    if settings.torch:
        return Target(settings.torch, settings.torch_from)
    for file, requirement in _requirements(folder or settings.root, settings.root):
        if bound := _lower_bound(requirement):
            return Target(bound, str(file))
    return _installed()


def _installed() -> Target:
    """The release beside speedlint, from the name of its metadata: ``importlib.metadata`` takes 40 ms to import."""
    for folder in map(Path, sys.path):
        for metadata in sorted(folder.glob("torch-[0-9]*-info")):
            if release := _RELEASE.match(metadata.name.removeprefix("torch-")):
                return Target((int(release[1]), int(release[2])), "the installed torch")
    return Target(None, "nothing: set `torch` in the configuration, or `--torch`")


def _requirements(start: Path, root: Path) -> Iterator[tuple[Path, str]]:
    """Every requirement on torch of the project around ``start``, from the innermost folder outwards."""
    for folder in _project_folders(start, root):
        for pattern, read in _READERS.items():
            for file in sorted(folder.glob(pattern)):
                yield from ((file, line) for line in _read(file, read) if _TORCH.match(line))


def _project_folders(start: Path, root: Path) -> list[Path]:
    """``start`` and the folders above it up to the project's own; to ``root`` or the current one where none is seen."""
    folders = [start, *start.parents]
    for depth, folder in enumerate(folders):
        if any((folder / name).exists() for name in _PROJECT_ROOTS):
            return folders[: depth + 1]
    known = (folders.index(folder) for folder in (start, root, Path.cwd()) if folder in folders)
    return folders[: max(known) + 1]


def _read(file: Path, read: Callable[[Path], Iterator[str]]) -> list[str]:
    """The file's requirements; a file that cannot be read or parsed has none, since it is not speedlint's to judge."""
    try:
        return [line.strip() for line in read(file)] if b"torch" in file.read_bytes().lower() else []
    except (OSError, ValueError, SyntaxError, RecursionError, UserError, configparser.Error, AttributeError, TypeError):
        return []


def _lower_bound(requirement: str) -> tuple[int, int] | None:
    specifiers = re.split(r"\s+(?:#|--)|[;@]", requirement)[0]
    bounds = [(int(major), int(minor or 0)) for major, minor in _BOUND.findall(specifiers)]
    return max(bounds, default=None)


def _from_text(file: Path) -> Iterator[str]:
    yield from file.read_text("utf-8-sig").splitlines()


def _from_pyproject(file: Path) -> Iterator[str]:
    table = read_toml(file)
    project: dict[str, Any] = table.get("project", {})
    yield from project.get("dependencies", [])
    for group in (*project.get("optional-dependencies", {}).values(), *table.get("dependency-groups", {}).values()):
        yield from (line for line in group if isinstance(line, str))
    poetry = table.get("tool", {}).get("poetry", {}).get("dependencies", {}).get("torch")
    if isinstance(poetry, str):
        yield "torch" + re.sub(r"^[\^~](?!=)|^(?=\d)", ">=", poetry)


def _from_setup_cfg(file: Path) -> Iterator[str]:
    config = configparser.ConfigParser(interpolation=None)
    config.read_string(file.read_text("utf-8-sig"))
    yield from config.get("options", "install_requires", fallback="").splitlines()


def _from_setup_py(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _from_conda(file: Path) -> Iterator[str]:
    for line in file.read_text("utf-8-sig").splitlines():
        if match := re.match(r"\s*-\s*[\"']?(?:pytorch::|conda-forge::)?(?:py)?torch\s*([<>=!~][^\"'#]*)", line):
            yield "torch" + re.sub(r"^=(?!=)", "==", match[1]).split("=py")[0].split("=cuda")[0]


_READERS: dict[str, Callable[[Path], Iterator[str]]] = {
    "pyproject.toml": _from_pyproject,
    "setup.cfg": _from_setup_cfg,
    "setup.py": _from_setup_py,
    "requirements*.txt": _from_text,
    "requirements/*.txt": _from_text,
    "environment*.y*ml": _from_conda,
}
