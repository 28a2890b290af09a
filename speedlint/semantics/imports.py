"""Which first-party file a module name leads to, and who imports whom, before anything is parsed.

A module is found from the importing file's own folder, its ancestors up to the project's root, and the root's ``src``;
importers are found by a search for import statements in the bytes of the project's files. Third-party code is never read.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from speedlint.files import MAX_BYTES
from speedlint.semantics import library

Read = Callable[[Path], bytes]

_MARKS = (".git", "pyproject.toml", "setup.py", "setup.cfg")
_WEAK_MARKS = ("requirements.txt", "README.md", "README.rst", "environment.yml")
"""What also lies in folders of a project: with Python files right above, the project goes on there."""
_IMPORT = re.compile(
    rb"(?:^|;)[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]*(\([^)]*\)|(?:\\\r?\n|[^#\n;])*)"
    rb"|import[ \t]+((?:\\\r?\n|[^#\n;])+))",
    re.MULTILINE,
)
_ENTRY_POINTS = ("pyproject.toml", "setup.py", "setup.cfg")
"""Where a command that an installation makes names its module: ``train = "package.train:main"``."""
_BY_STRING = (b"import_module", b"__import__", b"iter_modules", b"walk_packages")
_MOST_LISTED = 30_000
_MOST_SEARCHED = 3000
_MOST_AROUND = 400


@dataclass(frozen=True, slots=True)
class _Project:
    """The Python files of a project by the last part of their module's name, and who imports each.

    Attributes:
        importers: in path order; empty where the project has too many files to search them all.
    """

    by_stem: dict[bytes, list[Path]]
    importers: dict[Path, list[Path]]


class Known:
    """The imports of each file's text, kept while other files are edited."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[bytes, list[Path]]] = {}

    def of(self, path: Path, data: bytes, find: Callable[[Path, bytes], list[Path]]) -> list[Path]:
        """The first-party files that a file imports, found by ``find``."""
        known = self._known.get(path)
        if known is None or known[0] != data:
            known = self._known[path] = (data, find(path, data))
        return known[1]


class Imports:
    """Answers for the files of one run; all paths are absolute."""

    def __init__(self, read: Read, known: Known) -> None:
        self._read, self._known = read, known
        self._roots: dict[Path, Path] = {}
        self._projects: dict[Path, _Project] = {}
        self._around: dict[Path, tuple[Path, ...]] = {}
        self._users: dict[Path, list[Path]] = {}
        self._modules: dict[tuple[Path, str], Path | None] = {}
        self._folders: dict[Path, list[str]] = {}

    # From a name to a file

    def root(self, path: Path) -> Path:
        """The folder of the project that a file belongs to: the nearest one upward with a project's marks."""
        folder = path.parent
        if folder not in self._roots:
            self._roots[folder] = _root(folder)
        return self._roots[folder]

    def module(self, path: Path, dotted: str) -> tuple[Path, str] | None:
        """The first-party file a dotted name leads into as the file imports it, and what is left of the name."""
        dots = len(dotted) - len(dotted.lstrip("."))
        parts = dotted[dots:].split(".")
        for count in range(len(parts), 0, -1):
            found = self._file(path, "." * dots + ".".join(parts[:count]))
            if found is not None:
                return found, ".".join(parts[count:])
        return None

    def _file(self, path: Path, dotted: str) -> Path | None:
        key = (path.parent, dotted)
        if key not in self._modules:
            self._modules[key] = self._find(path, dotted)
        return self._modules[key]

    def _find(self, path: Path, dotted: str) -> Path | None:
        dots = len(dotted) - len(dotted.lstrip("."))
        parts = dotted[dots:].split(".") if dotted[dots:] else []
        if not dots and parts[0] in library.KNOWN:
            return None
        if dots:
            folders = [str(path.parents[dots - 1])] if dots <= len(path.parents) else []
        else:
            folders = self._import_folders(path)
        for folder in folders:
            base = os.path.join(folder, *parts)  # noqa: PTH118 (thousands of these: Path takes ten times as long)
            for candidate in (f"{base}.py", f"{base}{os.sep}__init__.py") if parts else (f"{base}{os.sep}__init__.py",):
                if os.path.isfile(candidate) and candidate != str(path):  # noqa: PTH113
                    return Path(candidate)
        return None

    def _import_folders(self, path: Path) -> list[str]:
        """Where absolute imports of a file may lead: its own folder, those above up to the project's root, and ``src``."""
        folder = path.parent
        if folder not in self._folders:
            root = self.root(path)
            inside = [str(up) for up in path.parents if up == root or root in up.parents]
            self._folders[folder] = [*inside, str(root / "src")]
        return self._folders[folder]

    # Who imports whom

    def importers(self, path: Path) -> list[Path]:
        """The files of the project that import a file."""
        return self._project(path).importers.get(path, [])

    def users(self, path: Path) -> list[Path]:
        """The files that import a file, also by way of the ``__init__`` of a package, in path order."""
        if path not in self._users:
            found = _spread(self.importers(path), lambda up: self.importers(up) if up.name == "__init__.py" else [])
            self._users[path] = sorted(found)
        return self._users[path]

    def is_left_out(self, path: Path) -> bool:
        """Whether nothing imports a module of a package whose other modules are imported, by statements alone."""
        if self.importers(path) or not (path.parent / "__init__.py").is_file():
            return False
        project = self._project(path)
        if not any(file.parent == path.parent and file.name != "__init__.py" for file in project.importers):
            return False
        named = path.stem.encode() + b":"
        if any(named in self.data(self.root(path) / name) for name in _ENTRY_POINTS):
            return False
        files = (file for files in project.by_stem.values() for file in files)
        return not any(mark in self.data(file) for file in files for mark in _BY_STRING)

    def notebooks(self, path: Path) -> list[bytes]:
        """The notebooks beside a module that import it."""
        statement = re.compile(rb"(?:from|import)\s+" + re.escape(path.stem.encode()) + rb"\b")
        found = [self.data(each) for each in sorted(path.parent.glob("*.ipynb")) if is_readable(each)]
        return [data for data in found if statement.search(data)]

    def upward(self, path: Path) -> list[Path]:
        """The file and those that import it, through others too, nearest first."""
        return _spread([path], self.importers)

    def around(self, path: Path) -> tuple[Path, ...]:
        """The other files of the programs that a file is part of, nearest first: those ``upward``, and all that these and it
        import, through others too."""
        if path not in self._around:
            self._around[path] = tuple(_spread(self.upward(path), self._imported))[1:]
        return self._around[path]

    def are_always_together(self, path: Path, other: Path) -> bool:
        """Whether each program that a file is part of reaches another file."""
        starts = [up for up in self.upward(path) if not self.importers(up)] or [path]
        return all(other in _spread([start], self._imported) for start in starts)

    def _imported(self, path: Path) -> list[Path]:
        """The first-party files that a file imports, in path order."""
        return self._known.of(path, self.data(path), self._search)

    def data(self, path: Path) -> bytes:
        """The bytes of a file; none where it cannot be read."""
        try:
            return self._read(path)
        except OSError:
            return b""

    def _project(self, path: Path) -> _Project:
        root = self.root(path)
        if root not in self._projects:
            files = _python_files(root)
            project = self._projects[root] = _Project(_by_stem(files), {})
            if len(files) <= _MOST_SEARCHED:
                for file in sorted(files):
                    for target in self._imported(file):
                        project.importers.setdefault(target, []).append(file)
        return self._projects[root]

    def _search(self, file: Path, data: bytes) -> list[Path]:
        by_stem = self._project(file).by_stem
        return sorted({target for match in _IMPORT.finditer(data) for target in self._targets(file, match, by_stem)})

    def _targets(self, file: Path, match: re.Match[bytes], by_stem: dict[bytes, list[Path]]) -> set[Path]:
        module, names, plain = match.groups()
        words = set(re.findall(rb"\w+", match[0]))
        if not words & by_stem.keys():
            return set()
        dotted: list[str] = []
        if module:
            base = module.decode()
            dotted.append(base)
            dotted += [(base if base.endswith(".") else base + ".") + n.decode() for n in re.findall(rb"\w+", names)]
        else:
            dotted += [part.split(b" as ")[0].strip(b" \t\r\n\\").decode("utf-8", "replace") for part in plain.split(b",")]
        found = {self._find(file, name) for name in dotted if re.fullmatch(r"[.\w]+", name)}
        return {path for path in found if path is not None}


def is_readable(path: Path) -> bool:
    """Whether a path is a plain file of a size that a script has: no pipe, no device."""
    try:
        status = path.stat()
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size <= MAX_BYTES


def absolute(path: Path) -> Path:
    """The path from the root of the file system, ``..`` taken out, links left as they are."""
    return Path(os.path.abspath(path))  # noqa: PTH100 (Path.absolute keeps "..")


def _root(folder: Path) -> Path:
    upward = (folder, *folder.parents)
    found = next((up for up in upward if _is_marked(up, _MARKS)), None)
    if found is not None:
        return found
    found = next((up for up in upward if _is_marked(up, _WEAK_MARKS)), folder)
    while _is_marked(found.parent, _WEAK_MARKS) and any(found.parent.glob("*.py")):
        found = found.parent
    return found


def _is_marked(folder: Path, marks: tuple[str, ...]) -> bool:
    return any((folder / mark).exists() for mark in marks)


def _python_files(root: Path) -> list[Path]:
    found: list[Path] = []
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and name not in ("node_modules", "__pycache__")
        )
        paths = (Path(folder, name) for name in sorted(files) if name.endswith(".py"))
        found += [path for path in paths if is_readable(path)]
        if len(found) > _MOST_LISTED:
            return []
    return found


def _by_stem(files: Iterable[Path]) -> dict[bytes, list[Path]]:
    found: dict[bytes, list[Path]] = {}
    for file in files:
        stem = file.parent.name if file.name == "__init__.py" else file.stem
        found.setdefault(stem.encode(), []).append(file)
    return found


def _spread(paths: Iterable[Path], edges: Callable[[Path], Sequence[Path]]) -> list[Path]:
    """The paths and all that edges lead to from them, nearest first; no further from where there are too many."""
    found = dict.fromkeys(paths)
    todo = list(found)
    while todo and len(found) < _MOST_AROUND:
        for other in edges(todo.pop(0)):
            if other not in found:
                found[other] = None
                todo.append(other)
    return list(found)
