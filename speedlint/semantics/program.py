"""The first-party modules a script reaches and is reached from, read lazily and once.

Third-party code is never read. A module is found from the importing file's own folder, its ancestors up to the project's
root, and the root's ``src``; importers are found by a search for import statements in the bytes of the project's files
before any of them is parsed.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from speedlint.semantics import configs, library
from speedlint.semantics.model import Flow
from speedlint.semantics.names import Names
from speedlint.semantics.script import Options, Script
from speedlint.source import Source, SourceError

_MARKS = (".git", "pyproject.toml", "setup.py", "setup.cfg")
_WEAK_MARKS = ("requirements.txt", "README.md", "README.rst", "environment.yml")
"""What also lies in folders of a project: with Python files right above, the project goes on there."""
_IMPORT = re.compile(
    rb"^[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]+([^#\n]*(?:\([^)]*\))?)|import[ \t]+([^#\n]+))", re.MULTILINE
)
_MOST_FILES = 3000
_FRAMES = 12_000
"""Python frames for values that flow through as many steps as ``Flow`` follows, about ten each."""
_MOST_IMPORTERS = 8
_MOST_AROUND = 400


class Cache:
    """What holds of a file's text whatever stands around it, kept while files are edited and programs made anew."""

    def __init__(self) -> None:
        self._sources: dict[Path, tuple[Source, Names]] = {}
        self._imports: dict[Path, tuple[bytes, set[Path]]] = {}

    def source(self, path: Path, data: bytes) -> tuple[Source, Names]:
        """The parsed file and its names. Raises SourceError."""
        known = self._sources.get(path)
        if known is None or known[0].data != data:
            source = Source.parse(path, data)
            known = self._sources[path] = (source, Names(source))
        return known

    def imports(self, path: Path, data: bytes, find: Callable[[Path, bytes], set[Path]]) -> set[Path]:
        """The first-party files that a file imports, found by ``find``."""
        known = self._imports.get(path)
        if known is None or known[0] != data:
            known = self._imports[path] = (data, find(path, data))
        return known[1]


@dataclass(frozen=True, slots=True)
class _Graph:
    """Who imports whom among the files of a project, in path order."""

    importers: dict[Path, list[Path]]
    imports: dict[Path, list[Path]]


def _spread(paths: Iterable[Path], edges: dict[Path, list[Path]], most: int) -> list[Path]:
    """The paths and all that edges lead to from them, nearest first; no further from where there are ``most``."""
    found = dict.fromkeys(paths)
    todo = list(found)
    while todo and len(found) < most:
        for other in edges.get(todo.pop(0), ()):
            if other not in found:
                found[other] = None
                todo.append(other)
    return list(found)


class Program:
    """All scripts of one run.

    ``asked`` are the files that findings are reported in: what is slow in another one is reported where one of these
    reaches it. ``read`` returns a file's bytes; it raises OSError. Pass another one to look at files as they would be after
    edits, with the same ``cache``.
    """

    def __init__(
        self,
        options: Options,
        read: Callable[[Path], bytes] = Path.read_bytes,
        cache: Cache | None = None,
        asked: Iterable[Path] = (),
    ) -> None:
        sys.setrecursionlimit(max(sys.getrecursionlimit(), _FRAMES))
        self.options = options
        self._asked = frozenset(map(absolute, asked))
        self.flow = Flow()
        self._read = read
        self._cache = cache or Cache()
        self._scripts: dict[Path, Script | None] = {}
        self._roots: dict[Path, Path] = {}
        self._projects: dict[Path, _Graph] = {}
        self._configs: dict[Path, configs.Entry | None] = {}
        self._around: dict[Path, tuple[Path, ...]] = {}
        self._modules: dict[tuple[str, str], Path | None] = {}
        self._folders: dict[Path, list[str]] = {}

    def script(self, path: Path) -> Script:
        """The script at ``path``. Raises SourceError and OSError."""
        key = absolute(path)
        found = self._scripts.get(key)
        if found is None:
            found = self._scripts[key] = self._parsed(path)
        return found

    def reached(self, path: Path) -> Script | None:
        """The script at ``path``, or None where it cannot be read as Python."""
        key = absolute(path)
        if key not in self._scripts:
            try:
                self._scripts[key] = self._parsed(path)
            except (SourceError, OSError):
                self._scripts[key] = None
        return self._scripts[key]

    def _parsed(self, path: Path) -> Script:
        source, names = self._cache.source(path, self._read(path))
        return Script(source, names, self, self.options)

    def is_asked(self, path: Path) -> bool:
        """Whether findings are reported in a file; see ``asked``."""
        return absolute(path) in self._asked

    def root(self, path: Path) -> Path:
        """The folder of the project that a file belongs to: the nearest one upward with a project's marks."""
        folder = absolute(path).parent
        if folder not in self._roots:
            self._roots[folder] = _root(folder)
        return self._roots[folder]

    def module(self, script: Script, dotted: str) -> tuple[Path, str] | None:
        """The first-party file a dotted name leads into as ``script`` imports it, and what is left of the name."""
        dots = len(dotted) - len(dotted.lstrip("."))
        parts = dotted[dots:].split(".")
        for count in range(len(parts), 0, -1):
            found = self._file(script, "." * dots + ".".join(parts[:count]))
            if found is not None:
                return found, ".".join(parts[count:])
        return None

    def _file(self, script: Script, dotted: str) -> Path | None:
        key = (script.folder, dotted)
        if key not in self._modules:
            self._modules[key] = self._find(absolute(script.path), dotted)
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

    def is_imported(self, script: Script) -> bool:
        """Whether any file of the project imports ``script``'s module."""
        return bool(self._importing(script))

    def _importing(self, script: Script) -> list[Path]:
        path = absolute(script.path)
        return self._graph(path).importers.get(path, [])

    def _graph(self, path: Path) -> _Graph:
        root = self.root(path)
        if root not in self._projects:
            self._projects[root] = self._import_graph(root)
        return self._projects[root]

    def config(self, path: Path) -> configs.Entry | None:
        """The YAML or JSON configuration at ``path``; None where it cannot be read as one."""
        if path not in self._configs:
            try:
                self._configs[path] = configs.parsed(path, self._read(path))
            except OSError:
                self._configs[path] = None
        return self._configs[path]

    def upward(self, script: Script) -> Iterator[Script]:
        """``script`` and the scripts that import it, through others too, nearest first."""
        path = absolute(script.path)
        yield script
        for other in _spread([path], self._graph(path).importers, _MOST_AROUND)[1:]:
            found = self.reached(other)
            if found is not None:
                yield found

    def others(self, script: Script, *marks: bytes) -> Iterator[Script]:
        """The other scripts of the programs that ``script`` is part of, nearest first: those that import it, through others
        too, and all that these and it reach. With ``marks``, those whose text holds one of them; the rest is not parsed.
        """
        for path in self._beside(absolute(script.path)):
            try:
                data = self._read(path)
            except OSError:
                continue
            if not marks or any(mark in data for mark in marks):
                found = self.reached(path)
                if found is not None:
                    yield found

    def _beside(self, path: Path) -> tuple[Path, ...]:
        """The files of the programs that a file is part of, by their distance, without itself."""
        if path not in self._around:
            graph = self._graph(path)
            upward = _spread([path], graph.importers, _MOST_AROUND)
            self._around[path] = tuple(_spread(upward, graph.imports, _MOST_AROUND))[1:]
        return self._around[path]

    def importers(self, script: Script) -> list[Script]:
        """The project's files that import ``script``'s module, in path order; none where there are too many."""
        paths = self._importing(script)
        if len(paths) > _MOST_IMPORTERS:
            return []
        return [found for found in map(self.reached, paths) if found is not None]

    def _import_graph(self, root: Path) -> _Graph:
        files = _python_files(root)
        by_stem: dict[bytes, list[Path]] = {}
        for file in files:
            stem = file.parent.name if file.name == "__init__.py" else file.stem
            by_stem.setdefault(stem.encode(), []).append(file)
        importers: dict[Path, list[Path]] = {}
        imports: dict[Path, list[Path]] = {}
        for file in sorted(files):
            try:
                data = self._read(file)
            except OSError:
                continue
            imports[file] = sorted(
                self._cache.imports(file, data, lambda path, text: self._imported_by(path, text, by_stem))
            )
            for target in imports[file]:
                importers.setdefault(target, []).append(file)
        return _Graph(importers, imports)

    def _imported_by(self, file: Path, data: bytes, by_stem: dict[bytes, list[Path]]) -> set[Path]:
        return {target for match in _IMPORT.finditer(data) for target in self._targets(file, match, by_stem)}

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
            dotted += [part.split(b" as ")[0].strip().decode("utf-8", "replace") for part in plain.split(b",")]
        found = {self._find(file, name) for name in dotted if re.fullmatch(r"[.\w]+", name)}
        return {path for path in found if path is not None}


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
        found += [Path(folder, name) for name in sorted(files) if name.endswith(".py")]
        if len(found) > _MOST_FILES:
            return []
    return found
