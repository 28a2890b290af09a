"""Which first-party file a module name leads to, and who imports whom, before anything is parsed.

A module is found from the importing file's own folder, its ancestors up to the project's root, the root's ``src``, and the
folders of the project that a file of the same program puts on ``sys.path``;
importers are found by a search for import statements in the bytes of the project's files. Third-party code is never read.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from speedlint import projects
from speedlint.disk import Disk, Listing, Mark
from speedlint.facts.imported import imported_names
from speedlint.facts.put_on_path import HERE, Put, put_on_path
from speedlint.torch import library

_WEAK_MARKS = ("requirements.txt", "README.md", "README.rst", "environment.yml")
"""What also lies in folders of a project: with Python files right above, the project goes on there."""
_MOST_OF_NAME = 8
"""Files that define something of one name, up to which it is not asked which of them a package takes it from."""
_MOST_FOLDERS = 3
"""Folders of packages, one in the other, between a file and the one that imports it."""
_ENTRY_POINTS = ("pyproject.toml", "setup.py", "setup.cfg")
"""Where a command that an installation makes names its module: ``train = "package.train:main"``."""
_BY_STRING = (b"import_module", b"__import__", b"iter_modules", b"walk_packages")
_TARGET = b"_target_"
_TARGETS = re.compile(rb"\b_target_[\"']?[ \t]*:[ \t]*[\"']?([A-Za-z_]\w*(?:\.\w+)+)")
"""What Hydra imports to make an object that a configuration describes."""
_RELATIVE = re.compile(rb"(?m)^\s*from\s+\.")
_MOST_AROUND = 400
_MOST_OF_PROJECT = 200
"""Python files of a project, up to which all files of its programs are read where they may matter."""
_MOST_PUT = 64
"""Different folders that files of a project put on ``sys.path``: who shares each is asked of the whole project."""
_PUTTING = (b"sys.path", b"addsitedir")
_MAKES_MODULES = (b"sys.modules", b"__path__", b"import_module", b"meta_path", b"path_hooks")
_GENERATED = ("_pb2", "_pb2_grpc", "version", "_version")
"""How modules are called that a build writes."""
_SAYS_WHAT_IS_MADE = (".gitignore", ".gitmodules", "setup.py", "setup.cfg", "pyproject.toml", "Makefile", "CMakeLists.txt")
"""Where a project names the files that it does not hold, or makes."""

_Folders = tuple[str, ...]
"""The folders that one path may be, as the working folder is not known: more than one where it is."""


@dataclass(slots=True)
class _Project:
    """The Python files of a project, who imports each, and who imports something of a name, in path order.

    Attributes:
        stems: the names of its modules, packages and folders, without what is around them.
        put: what its files put on ``sys.path``, those first that are searched first.
        offered: the names of what lies in those folders.
        shared: what the files of the same programs put there, by file.
    """

    root: str
    listing: Listing
    stems: frozenset[str]
    put: dict[str, list[tuple[bool, _Folders]]] | None = None
    offered: frozenset[str] = frozenset()
    shared: dict[str, frozenset[_Folders]] | None = None
    importers: dict[str, list[str]] | None = None
    instantiated: tuple[str, ...] | None = None
    saying: dict[str, list[str]] | None = None
    defining: dict[str, list[str]] | None = None


class Known:
    """What is known of files' texts, kept while other files are edited."""

    def __init__(self) -> None:
        self._imported: dict[str, tuple[bytes, tuple[str, ...]]] = {}
        self._put: dict[str, tuple[bytes, tuple[Put, ...]]] = {}

    def imported_names(self, path: str, data: bytes) -> tuple[str, ...]:
        """See ``imported_names``."""
        known = self._imported.get(path)
        if known is None or known[0] != data:
            known = self._imported[path] = (data, imported_names(data))
        return known[1]

    def put_on_path(self, path: str, data: bytes) -> tuple[Put, ...]:
        """See ``put_on_path``."""
        known = self._put.get(path)
        if known is None or known[0] != data:
            known = self._put[path] = (data, put_on_path(data))
        return known[1]


class Imports:
    """Answers for the files of one run; all paths are absolute."""

    def __init__(self, disk: Disk, known: Known) -> None:
        self._disk, self._known = disk, known
        self._paths: dict[str, Path] = {}
        self._roots: dict[str, str] = {}
        self._projects: dict[str, _Project] = {}
        self._around: dict[str, tuple[Path, ...]] = {}
        self._spread: dict[str, list[str]] = {}
        self._users: dict[str, list[Path]] = {}
        self._modules: dict[tuple[str, str, str], str | None] = {}
        self._searched: dict[str, dict[str, str | None]] = {}
        self._folders: dict[str, list[str]] = {}
        self._targets_of: dict[str, list[str]] = {}
        self.bounds: dict[str, None] = {}
        """What was not looked at since there was too much, in a sentence each."""

    def _path(self, path: str) -> Path:
        found = self._paths.get(path)
        if found is None:
            found = self._paths[path] = Path(path)
        return found

    # From a name to a file

    def root(self, path: Path) -> Path:
        """The folder of the project that a file belongs to: the nearest one upward with a project's marks."""
        return self._path(self._root(str(path)))

    def _root(self, path: str) -> str:
        folder = os.path.dirname(path)  # noqa: PTH120
        if folder not in self._roots:
            self._roots[folder] = _root(self._disk, folder)
        return self._roots[folder]

    def module(self, path: Path, dotted: str) -> tuple[Path, str] | None:
        """The first-party file a dotted name leads into as the file imports it, and what is left of the name."""
        dots = len(dotted) - len(dotted.lstrip("."))
        parts = dotted[dots:].split(".")
        if not dots and parts[0] in library.KNOWN and parts[0] not in library.COMMON_NAMES:
            return None
        if not dots and len(parts) > 1 and (own := self._beside(str(path), *parts[:2])) is not None:
            return self._path(own), ".".join(parts[1:])
        for count in range(len(parts), 0, -1):
            found = self._file(str(path), "." * dots + ".".join(parts[:count]))
            if found is not None:
                return self._path(found), ".".join(parts[count:])
        if not dots and len(parts) > 1 and parts[0] == path.stem and parts[1] in self._disk.defined_names(str(path)):
            return path, ".".join(parts[1:])  # a script that imports itself, as what is to be pickled has to
        return None

    def _beside(self, path: str, module: str, name: str) -> str | None:
        """The file of a module that stands beside a script and defines a name, which it finds before a package of the
        module's name: ``from unet import unet`` in ``unet/train.py``."""
        own = os.path.join(os.path.dirname(path), f"{module}.py")  # noqa: PTH118, PTH120
        if own == path or os.path.basename(os.path.dirname(path)) != module or not self._is_there(self._project(path), own):  # noqa: PTH119, PTH120
            return None
        defines = re.compile(rb"^(?:class|def)[ \t]+" + name.encode() + rb"\b", re.MULTILINE)
        return own if self._disk.mentions(path, b"__main__") and self._disk.mentions(own, (name.encode(), defines)) else None

    def _file(self, path: str, dotted: str) -> str | None:
        first = dotted.partition(".")[0]
        if not first or first not in self._offered(self._project(path)):
            return self._usual(path, dotted)
        shared = self._shared(self._project(path))
        searched = self._searched.setdefault(path, {})
        if dotted not in searched:
            searched[dotted] = self._search(path, dotted, shared.get(path, frozenset()))
        return searched[dotted]

    def _usual(self, path: str, dotted: str) -> str | None:
        """The file that a name leads to where nothing is put on ``sys.path``."""
        folder, _, name = path.rpartition(os.sep)
        key = (folder, dotted, name if dotted.rpartition(".")[2] + ".py" == name or name == "__init__.py" else "")
        if key not in self._modules:
            self._modules[key] = self._find(path, dotted)
        return self._modules[key]

    def _find(self, path: str, dotted: str) -> str | None:
        dots = len(dotted) - len(dotted.lstrip("."))
        parts = dotted[dots:].split(".") if dotted[dots:] else []
        mark = library.COMMON_NAMES.get(parts[0]) if parts and not dots else None
        if parts and not dots and parts[0] in library.KNOWN and mark is None:
            return None
        project = self._project(path)
        if dots:
            folder = path
            for _ in range(dots):
                folder = os.path.dirname(folder)  # noqa: PTH120
            folders = [folder]
        else:
            is_listed = os.path.dirname(path) in project.listing.folders  # noqa: PTH120
            folders = self._import_folders(path) if not is_listed or parts[0] in project.stems else []
        for folder in folders:
            if mark is not None and self._is_there(project, os.path.join(folder, parts[0], mark)):  # noqa: PTH118
                continue
            found = self._in(project, path, folder, parts)
            if found is not None:
                return found
        return None

    def _in(self, project: _Project, path: str, folder: str, parts: Sequence[str]) -> str | None:
        """The file of a module in a folder, if it is another one than that which imports it."""
        base = os.path.join(folder, *parts)  # noqa: PTH118 (thousands of these: Path takes ten times as long)
        candidates = (f"{base}.py", f"{base}{os.sep}__init__.py") if parts else (f"{base}{os.sep}__init__.py",)
        return next((each for each in candidates if each != path and self._is_there(project, each)), None)

    def _is_there(self, project: _Project, file: str) -> bool:
        listing = project.listing
        if file in listing.files:
            return True
        folder = os.path.dirname(file)  # noqa: PTH120
        if folder in listing.folders or (os.path.dirname(folder) in listing.folders and not listing.has_links):  # noqa: PTH120
            return False
        return self._disk.is_file(file)

    def _import_folders(self, path: str) -> list[str]:
        """Where absolute imports of a file may lead: its own folder, those above up to the project's root, and ``src``."""
        folder = os.path.dirname(path)  # noqa: PTH120
        if folder not in self._folders:
            root = self._root(path)
            found, up = [folder], folder
            while up != root and up.startswith(root):
                up = os.path.dirname(up)  # noqa: PTH120
                found.append(up)
            self._folders[folder] = [*found, os.path.join(root, "src")]  # noqa: PTH118
        return self._folders[folder]

    def lacking(self, path: Path, dotted: str) -> str | None:
        """The part of a module's name that surely leads nowhere as the file imports it: it would stand in a folder of the
        project that holds code, which has nothing of that name, and no file says that it is made or found elsewhere.

        None where it may be there: also of a package that is not the project's, which may be installed.
        """
        file, dots = str(path), len(dotted) - len(dotted.lstrip("."))
        project, parts = self._project(file), [each for each in dotted[dots:].split(".") if each]
        found = self.module(path, dotted)
        if not project.listing.is_whole or project.listing.has_links or (found is not None and not found[1]):
            return None
        starts = [os.path.normpath(os.path.join(file, *[".."] * dots))] if dots else self._import_folders(file)  # noqa: PTH118
        known = 0 if dots else 1
        if len(parts) <= known or (not dots and parts[0] in (library.KNOWN | sys.stdlib_module_names)):
            return None
        bases = [base for start in starts if self._holds_code(project, base := os.path.join(start, *parts[:known]))]  # noqa: PTH118
        if not dots and not all(self._is_own(project, file, base) for base in bases):
            return None
        for count in range(known, len(parts)):
            if not bases or any(self._may_hold(base, parts[count]) for base in bases):
                bases = [inner for base in bases if self._holds_code(project, inner := os.path.join(base, parts[count]))]  # noqa: PTH118
                if not bases:
                    return None
                continue
            name = parts[count].encode()
            makers = [os.path.join(project.root, each) for each in _SAYS_WHAT_IS_MADE]  # noqa: PTH118
            near = [file, *map(str, self.around(path))]
            if any(self._disk.mentions(each, name) for each in makers) or self._disk.holding(
                near, (*_PUTTING, *_MAKES_MODULES)
            ):
                return None
            return "." * dots + ".".join(parts[: count + 1])
        return None

    def _is_own(self, project: _Project, file: str, folder: str) -> bool:
        """Whether a name surely leads into a folder, not to an installed package of the same name: it is a package itself,
        or lies beside the file, and other files of the project import what it has."""
        if self._disk.is_file(os.path.join(folder, "__init__.py")):  # noqa: PTH118
            return True
        self._importers(file)
        imported = (each for each in project.importers or () if os.path.dirname(each) == folder)  # noqa: PTH120
        return os.path.dirname(folder) == os.path.dirname(file) and any(True for _ in imported)  # noqa: PTH120

    def _holds_code(self, project: _Project, folder: str) -> bool:
        """Whether a folder of the project holds Python files itself."""
        return folder in project.listing.folders and bool(self._disk.names(folder, "*.py"))

    def _may_hold(self, folder: str, name: str) -> bool:
        """Whether a folder has a module of a name, in whatever form, or may have one after a build."""
        return name.endswith(_GENERATED) or bool(self._disk.names(folder, name, f"{name}.*", f"{name}_*"))

    # What is put on sys.path

    def _offered(self, project: _Project) -> frozenset[str]:
        """The names that may lead into folders which files of a project put on ``sys.path``."""
        if project.put is None:
            listing = project.listing
            project.put = {path: put for path in self._disk.holding(listing.readable, _PUTTING) if (put := self._put(path))}
            folders = {folder for put in project.put.values() for _, each in put for folder in each}
            if folders:
                inside = (each.rpartition(os.sep) for each in (*listing.files, *listing.folders))
                names = {name.removesuffix(".py") for folder, _, name in inside if folder in folders}
                known = library.KNOWN - library.COMMON_NAMES.keys()
                project.offered = frozenset(names - known - sys.stdlib_module_names)
        return project.offered

    def _put(self, path: str) -> list[tuple[bool, _Folders]]:
        """The folders of the project that a file puts on ``sys.path``, those that are searched first before the others. A
        path is taken as seen from the file's own folder and from the project's root, where that says nothing of it."""
        project = self._project(path)
        own = os.path.dirname(path)  # noqa: PTH120
        found: list[tuple[bool, _Folders]] = []
        for is_first, places in self._disk.put_on_path(path, self._known.put_on_path):
            starts = ((start, to) for base, to in places for start in ((own,) if base == HERE else (own, project.root)))
            folders = (os.path.normpath(os.path.join(start, *to.split("/"))) for start, to in starts)  # noqa: PTH118
            usual = () if is_first else (project.root, os.path.join(project.root, "src"))  # noqa: PTH118
            inside = tuple(dict.fromkeys(each for each in folders if each in project.listing.folders and each not in usual))
            if inside:
                found = [(True, inside), *found] if is_first else [*found, (False, inside)]
        return found

    def _search(self, path: str, dotted: str, shared: Iterable[_Folders]) -> str | None:
        """The file that a name leads to: by what the file itself puts first, as usual, by what else it puts there, or by
        what others put there, if that is one file."""
        project, parts = self._project(path), dotted.split(".")
        put = (project.put or {}).get(path, [])
        for is_first, folders in put:
            found = self._only(project, path, folders, parts) if is_first else None
            if found is not None:
                return found
        usual = self._usual(path, dotted)
        if usual is not None or (len(parts) > 1 and self._usual(path, parts[0]) is not None):
            return usual
        for is_first, folders in put:
            found = self._only(project, path, folders, parts) if not is_first else None
            if found is not None:
                return found
        return self._only(project, path, sorted({folder for each in shared for folder in each}), parts)

    def _only(self, project: _Project, path: str, folders: Iterable[str], parts: Sequence[str]) -> str | None:
        """The one file that a name leads to from any of some folders."""
        mark = library.COMMON_NAMES.get(parts[0])
        found = {
            file
            for folder in folders
            if mark is None or not self._is_there(project, os.path.join(folder, parts[0], mark))  # noqa: PTH118
            if (file := self._in(project, path, folder, parts)) is not None
        }
        return found.pop() if len(found) == 1 else None

    def _shared(self, project: _Project) -> Mapping[str, frozenset[_Folders]]:
        """What the files of the programs that each file is part of put on ``sys.path``. The files that this leads to may put
        more there: it is asked again, of all files at a time, until it stays."""
        if project.shared is not None:
            return project.shared
        owners: dict[_Folders, list[str]] = {}
        for file, put in (project.put or {}).items():
            for _, folders in put:
                owners.setdefault(folders, []).append(file)
        if len(owners) > _MOST_PUT:
            self._bound(
                f"puts more than {_MOST_PUT} folders on sys.path: each was looked into for the file that does", project.root
            )
            owners = {}
        shared: dict[str, frozenset[_Folders]] = {}
        is_more = bool(owners)
        project.shared = {}
        while is_more:
            targets = {file: self._imported(file) for file in project.listing.readable}
            importers: dict[str, list[str]] = {}
            for file, imported in targets.items():
                for target in imported:
                    importers.setdefault(target, []).append(file)
            for folders, files in owners.items():
                for file in _reached(_reached(files, importers), targets):
                    shared[file] = shared.get(file, frozenset()) | {folders}
            changed = [file for file in shared if shared[file] != project.shared.get(file)]
            for file in filter(self._may_be_led_there, changed):
                self._targets_of.pop(file, None)
                self._searched.pop(file, None)
            is_more = bool(changed)
            project.shared = dict(shared)
        return project.shared

    def _may_be_led_there(self, path: str) -> bool:
        """Whether a file imports a name that may lead into a folder which is put on ``sys.path``."""
        offered = self._offered(self._project(path))
        return any(name.partition(".")[0] in offered for name in self._names(path))

    # Who imports whom

    def importers(self, path: Path) -> list[Path]:
        """The files of the project that import a file."""
        return [self._path(each) for each in self._importers(str(path))]

    def _importers(self, path: str) -> list[str]:
        project = self._project(path)
        if project.importers is None:
            project.importers = {}
            for file in project.listing.readable:
                for target in self._imported(file):
                    project.importers.setdefault(target, []).append(file)
        return project.importers.get(path, [])

    def users(self, path: Path) -> list[Path]:
        """The files that import a file, also by way of the ``__init__`` of a package, in path order."""
        key = str(path)
        if key not in self._users:
            found = _spread(self._importers(key), lambda up: self._importers(up) if up.endswith("__init__.py") else [])
            self._users[key] = [self._path(each) for each in sorted(found)]
        return self._users[key]

    def is_left_out(self, path: Path) -> bool:
        """Whether nothing imports a module of a package whose other modules are imported, by statements alone."""
        if self._importers(str(path)) or not self._is_of_package(path):
            return False
        project = self._project(str(path))
        folder = str(path.parent)
        imported = (project.importers or {}).keys()
        if not any(os.path.dirname(file) == folder and not file.endswith("__init__.py") for file in imported):  # noqa: PTH120
            return False
        named = path.stem.encode() + b":"
        if any(self._disk.mentions(os.path.join(project.root, name), named) for name in _ENTRY_POINTS):  # noqa: PTH118
            return False
        return not any(self._disk.mentions(file, mark) for file in project.listing.readable for mark in _BY_STRING)

    def _is_of_package(self, path: Path) -> bool:
        """Whether a file is a module of a package, not a script beside others: it stands in one, or imports from its own."""
        return self._disk.is_file(str(path.parent / "__init__.py")) or self._disk.mentions(str(path), _RELATIVE)

    def notebooks(self, path: Path) -> list[str]:
        """The notebooks beside a module that import it."""
        statement = re.compile(rb"(?:from|import)\s+" + re.escape(path.stem.encode()) + rb"\b")
        found = (str(path.parent / name) for name in self._disk.names(str(path.parent), "*.ipynb"))
        return [each for each in found if self._disk.is_readable(each) and self._disk.mentions(each, statement)]

    def upward(self, path: Path) -> list[Path]:
        """The file and those that import it, through others too, nearest first."""
        return [self._path(each) for each in _spread([str(path)], self._importers)]

    def distances(self, path: Path) -> dict[Path, int]:
        """Through how many files those of a project are led to a file by the names that they import, nearest first."""
        saying = self._saying(self._project(str(path)))
        found, names, distance = {str(path): 0}, self._defined(path), 0
        while names:
            distance += 1
            nearest = sorted({each for name in names for each in saying.get(name, ())} - found.keys())
            found.update(dict.fromkeys(nearest, distance))
            names = {name for each in nearest for name in self._defined(self._path(each))}
        return {self._path(each): distance for each, distance in found.items()}

    def _saying(self, project: _Project) -> dict[str, list[str]]:
        """The files of a project that import something of a name, by the name."""
        if project.saying is None:
            project.saying = {}
            for file in project.listing.readable:
                for name in {dotted.rpartition(".")[2] for dotted in self._names(file)}:
                    project.saying.setdefault(name, []).append(file)
        return project.saying

    def is_large(self, path: Path) -> bool:
        """Whether a file's project has so many files that not all of its programs' are read; see ``led_to``."""
        return len(self._project(str(path)).listing.readable) > _MOST_OF_PROJECT

    def led_to(self, paths: Iterable[Path]) -> frozenset[Path]:
        """Some files, those that import them, through others too, and those of their project that these are led to by the
        names that they import: of a package, the files that define what is taken from it, not all that it holds."""
        starts = _closure(map(str, paths), self._importers)
        found = _closure(starts, lambda each: self._leads(each, each not in starts and self._only_hands_on(each)))
        return frozenset(map(self._path, found))

    def _only_hands_on(self, path: str) -> bool:
        """Whether a file is a package's own that only gives names to what its modules define."""
        return path.endswith("__init__.py") and not self._disk.defined_names(path)

    def _leads(self, path: str, only_whole: bool) -> Iterator[str]:
        """The files that define what a file imports; of one that hands names on ``only_whole`` modules, of which it takes
        all names or which it finds by their own: what they define may be known by a register."""
        names = self._names(path)
        bases = {name: _base(name) for name in names}
        taken_from = frozenset(bases.values())
        for name, base in bases.items():
            if "*" in name:
                yield from self._modules_of(path, name)
            elif only_whole and (name in taken_from or base in bases):
                continue
            elif (target := self._file(path, name)) is not None:
                yield target
                if name not in taken_from:
                    yield from self._used_of(path, target)
            elif base in bases and (package := self._file(path, base)) is not None:
                yield from self._defining_within(package, name.rpartition(".")[2])

    def _used_of(self, path: str, target: str) -> Iterator[str]:
        """The files of a package that define something whose name a file holds, which imports the package as a whole."""
        folder, is_package, _ = target.rpartition("__init__.py")
        if is_package:
            defining = self._defining(self._project(target))
            written = (each.decode("utf-8", "replace") for each in self._disk.written_names(path))
            yield from (each for name in written for each in defining.get(name, ()) if each.startswith(folder))

    def _defining_within(self, package: str, name: str) -> list[str]:
        """The files that define something of a name which is taken from a package: of many those below its folder."""
        found = self._defining(self._project(package)).get(name, [])
        within = [each for each in found if each.startswith(package.removesuffix("__init__.py"))]
        return within if within and len(found) > _MOST_OF_NAME else found

    def _defining(self, project: _Project) -> dict[str, list[str]]:
        """The files of a project that define something of a name, by the name."""
        if project.defining is None:
            project.defining = {}
            for file in project.listing.readable:
                for name in self._disk.defined_names(file):
                    project.defining.setdefault(name, []).append(file)
        return project.defining

    def _defined(self, path: Path) -> set[str]:
        """What an import statement may call a module and what it defines; a package's own name stands for too much."""
        stem = () if path.stem == "__init__" else (path.stem,)
        return {*stem, *self._disk.defined_names(str(path))}

    def around(self, path: Path) -> tuple[Path, ...]:
        """The other files of the programs that a file is part of, nearest first: those ``upward``, and all that these and it
        import, through others too."""
        key = str(path)
        if key not in self._around:
            self._around[key] = tuple(map(self._path, self._names_around(key)))
        return self._around[key]

    def _names_around(self, key: str) -> list[str]:
        if key not in self._spread:
            found = _spread(_spread([key], self._importers), self._imported)
            if len(found) >= _MOST_AROUND:
                self._bound(f"of a program with more than {_MOST_AROUND} files the farthest were not looked at", key)
            self._spread[key] = found[1:]
        return self._spread[key]

    def is_whole(self, path: Path) -> bool:
        """Whether ``around`` holds all files of the programs that a file is part of."""
        return len(self.around(path)) + 1 < _MOST_AROUND

    def bound(self, what: str, path: Path) -> None:
        """Notes that something was not looked at in the project of a file."""
        self._bound(what, str(path))

    def _bound(self, what: str, path: str) -> None:
        self.bounds[f"{self._root(path)}: {what}"] = None

    def are_always_together(self, path: Path, other: Path) -> bool:
        """Whether each program that a file is part of reaches another file."""
        upward = _spread([str(path)], self._importers)
        starts = [up for up in upward if not self._importers(up)] or [str(path)]
        return all(str(other) in _spread([start], self._imported) for start in starts)

    def mentions(self, path: Path, marks: Iterable[Mark]) -> bool:
        """Whether a file's text holds one of some marks."""
        return bool(self._disk.holding((str(path),), marks))

    def holding(self, paths: Iterable[Path], marks: Iterable[Mark]) -> list[Path]:
        """Those of some files whose text holds one of some marks, in their order."""
        return [self._path(each) for each in self._disk.holding(map(str, paths), marks)]

    def _imported(self, path: str) -> list[str]:
        """The first-party files that a file imports, in path order."""
        found = self._targets_of.get(path)
        if found is None:
            project = self._project(path)
            stems, has_links = project.stems, project.listing.has_links
            lasts = [(name, name.rpartition(".")[2]) for name in self._names(path)]
            targets = {self._file(path, name) for name, last in lasts if not last or last in stems or has_links}
            targets.update(each for name, last in lasts if "*" in last for each in self._modules_of(path, name))
            found = self._targets_of[path] = sorted(target for target in targets if target is not None)
        return found

    def _modules_of(self, path: str, pattern: str) -> Iterator[str]:
        """The modules of a package whose names end as those that a file imports by name."""
        package, _, end = pattern.rpartition("*")
        if package == ".":
            folders = [os.path.dirname(path)]  # noqa: PTH120
        else:
            parts = package.rstrip(".").split(".")
            folders = [os.path.join(folder, *parts) for folder in self._import_folders(path)]  # noqa: PTH118
        listing = self._project(path).listing
        folder = next((each for each in folders if each in listing.folders), None)
        for file in listing.readable if folder is not None else ():
            inside, _, name = file.rpartition(os.sep)
            if inside == folder and name.endswith(f"{end}.py") and name != "__init__.py" and file != path:
                yield file

    def _names(self, path: str) -> tuple[str, ...]:
        """The dotted names that a file's import statements may mean, and those that Hydra may import for it."""
        names = self._disk.imported_names(path, self._known.imported_names)
        by_hydra = any(name.partition(".")[0] == "hydra" for name in names)
        return (*names, *self._instantiated(self._project(path))) if by_hydra else names

    def _instantiated(self, project: _Project) -> tuple[str, ...]:
        """What the configurations of a project tell Hydra to make: ``_target_: models.resnet.ResNet``."""
        if project.instantiated is None:
            holding = self._disk.holding(self._disk.configs(project.root), (_TARGET,))
            texts = (self._disk.read(self._path(each)) for each in holding)
            found = {name.decode() for text in texts for name in _TARGETS.findall(text)}
            project.instantiated = tuple(sorted(found | {name.rpartition(".")[0] for name in found}))
        return project.instantiated

    def _project(self, path: str) -> _Project:
        root = self._root(path)
        found = self._projects.get(root)
        if found is None:
            listing = self._disk.listing(root)
            stems = {file.rpartition(os.sep)[2][:-3] for file in listing.files}
            stems.update(folder.rpartition(os.sep)[2] for folder in listing.folders)
            found = self._projects[root] = _Project(root, listing, frozenset(stems))
            if not listing.is_whole:
                self._bound("has so many Python files that none was looked at beside those asked for", path)
        return found


def absolute(path: Path) -> Path:
    """The path from the root of the file system, ``..`` taken out, links left as they are."""
    return Path(os.path.abspath(path))  # noqa: PTH100 (Path.absolute keeps "..")


def _root(disk: Disk, folder: str) -> str:
    upward = [folder, *map(str, Path(folder).parents)]
    found = next((up for up in upward if projects.is_top(disk, up)), None)
    if found is not None:
        return found
    found = next((up for up in upward if _is_marked(disk, up)), None)
    if found is None:
        return _unmarked_root(disk, folder)
    while (above := os.path.dirname(found)) != found and _is_marked(disk, above):  # noqa: PTH120
        if not disk.names(above, "*.py") and not _is_own_package(disk, found):
            break
        found = above
    return found


def _unmarked_root(disk: Disk, folder: str) -> str:
    """The folder of a project without a mark that a folder belongs to: the one whose own files import from it, or from one
    that holds it."""
    found, up, passed = folder, folder, 0
    while passed < _MOST_FOLDERS and (above := os.path.dirname(up)) != up:  # noqa: PTH120
        name = os.path.basename(up).encode()  # noqa: PTH119
        mark = (name, re.compile(rb"(?m)^[ \t]*(?:from[ \t]+\.?|import[ \t]+)%s\b" % re.escape(name)))
        up, passed = above, passed + 1
        if disk.holding((os.path.join(up, each) for each in disk.names(up, "*.py")), (mark,)):  # noqa: PTH118
            found, passed = up, 0
    return found


def _is_own_package(disk: Disk, folder: str) -> bool:
    """Whether a folder that seems to be a project's is a package, with ``__init__.py`` or without: its own files import it
    by its name, or those beside it by its own and the name of the folder that holds them all."""
    above, name = os.path.split(folder)
    inside, beside = name.encode(), os.path.basename(above).encode() + b"." + name.encode()  # noqa: PTH119
    return any(
        bool(disk.holding(disk.listing(where).readable, (b"from " + called + b".", b"import " + called + b".")))
        for where, called in ((folder, inside), (above, beside))
    )


def _is_marked(disk: Disk, folder: str) -> bool:
    return any(disk.exists(os.path.join(folder, mark)) for mark in _WEAK_MARKS)  # noqa: PTH118


def _reached(paths: Iterable[str], edges: Mapping[str, Sequence[str]]) -> list[str]:
    """The paths and all that edges lead to from them."""
    found = dict.fromkeys(paths)
    todo = list(found)
    while todo:
        new = [other for other in edges.get(todo.pop(), ()) if other not in found]
        found.update(dict.fromkeys(new))
        todo.extend(new)
    return list(found)


def _base(name: str) -> str:
    """What a name is taken from: ``a`` of ``a.b``, ``..`` of ``..b``."""
    base = name[: len(name) - len(name.rpartition(".")[2])]
    return base.rstrip(".") or base


def _closure(paths: Iterable[str], edges: Callable[[str], Iterable[str]]) -> set[str]:
    """The paths and all that edges lead to from them."""
    found = set(paths)
    todo = sorted(found)
    for path in todo:
        new = set(edges(path)) - found
        found |= new
        todo += sorted(new)
    return found


def _spread(paths: Iterable[str], edges: Callable[[str], Sequence[str]]) -> list[str]:
    """The paths and all that edges lead to from them, nearest first; no further from where there are too many."""
    found = dict.fromkeys(paths)
    todo = list(found)
    at = 0
    while at < len(todo) and len(found) < _MOST_AROUND:
        for other in edges(todo[at]):
            if other not in found:
                found[other] = None
                todo.append(other)
        at += 1
    return list(found)
